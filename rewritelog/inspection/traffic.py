"""Who sends how much to whom, and in messages of which sizes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rewritelog.arrays import Floats, Ints
from rewritelog.formats.bgtrace.heads import Summary
from rewritelog.formats.bgtrace.records import BlockRecords

MOST_ROWS = 128
"""If there are more PEs, neighbours share a row and a column."""

SIZES = 33
"""Classes of message sizes: of 0 bytes, then of 2^k to 2^(k + 1) − 1 bytes."""

_EVERYWHERE, _MULTICAST, _BUT = -1, -2, -100
"""Destinations that are no node (FORMAT 4): `_BUT` − N is everywhere but node N."""


@dataclass(frozen=True, eq=False)
class Traffic:
    """The messages of a log set, from senders to the PEs that they are addressed to."""

    group: int
    """The number of PEs that share a row and a column."""
    messages: Ints
    """Messages from the PEs of a row to those of a column; each counts for every such PE."""
    sent_bytes: Ints
    """The bytes of these messages, shape (rows, rows) like them."""
    sizes: Ints
    """The number of messages in each class of sizes, each counted once, shape (`SIZES`,)."""
    multicasts: int
    """Messages to lists of PEs that the log does not hold, which only `sizes` includes."""

    @classmethod
    def none(cls, pes: int) -> Traffic:
        """Return no messages at all."""
        group = max(1, -(-pes // MOST_ROWS))
        cells = np.zeros((2, -(-pes // group), -(-pes // group)), dtype=np.int64)
        return cls(group, cells[0], cells[1], np.zeros(SIZES, dtype=np.int64), 0)

    @classmethod
    def of(cls, block: BlockRecords, summary: Summary) -> Traffic:
        """Return the messages of a block."""
        messages, pes, workers = block.messages, summary.total_pes, max(1, summary.num_wth)
        size = np.maximum(messages["size"], 0).astype(np.float64)
        node, worker = (messages[name].astype(np.int64) for name in ("dst_node", "tid"))
        cells = _Cells(pes, block.pe[messages.seb], size)
        for which, sign, to_node in (
            (node >= 0, 1, node),
            (node <= _BUT, -1, _BUT - node),
        ):
            cells.add(which & (worker >= 0), to_node * workers + worker, sign)
            for number in range(workers):
                cells.add(which & (worker < 0), to_node * workers + number, sign)
        every = np.arange(pes)
        everywhere = (node == _EVERYWHERE) | (node <= _BUT)
        cells.add_all(everywhere & ((worker < 0) | (node <= _BUT)), every)
        for number in np.unique(worker[(node == _EVERYWHERE) & (worker >= 0)]).tolist():
            some = every[every % workers == number]
            cells.add_all((node == _EVERYWHERE) & (worker == number), some)
        classes = np.where(size >= 1, np.frexp(np.maximum(size, 1))[1], 0)
        return cls(
            cells.group,
            np.rint(cells.sums[0]).astype(np.int64),
            np.rint(cells.sums[1]).astype(np.int64),
            np.bincount(classes, minlength=SIZES),
            int(np.count_nonzero(node == _MULTICAST)),
        )

    def __add__(self, other: Traffic) -> Traffic:
        return Traffic(
            self.group,
            self.messages + other.messages,
            self.sent_bytes + other.sent_bytes,
            self.sizes + other.sizes,
            self.multicasts + other.multicasts,
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Traffic) and self.to_json() == other.to_json()

    __hash__ = None  # type: ignore[assignment]

    def size_classes(self) -> list[tuple[int, int, int]]:
        """Return the least and the largest size in bytes of each class, and its messages."""
        counts = self.sizes.tolist()
        used = [k for k, count in enumerate(counts) if count]
        return [
            (2 ** (k - 1) if k else 0, 2**k - 1, counts[k])
            for k in range(used[0] if used else 0, used[-1] + 1 if used else 0)
        ]

    def to_json(self) -> dict[str, Any]:
        """Return the traffic as a JSON object."""
        return {
            "pes_per_row": self.group,
            "messages": self.messages.tolist(),
            "bytes": self.sent_bytes.tolist(),
            "sizes": [
                {"least_bytes": least, "most_bytes": most, "messages": count}
                for least, most, count in self.size_classes()
            ],
            "multicasts": self.multicasts,
        }


class _Cells:
    """Messages and bytes by the rows of their senders and receivers."""

    def __init__(self, pes: int, sender: Ints, size: Floats) -> None:
        self.group = max(1, -(-pes // MOST_ROWS))
        self._pes, self._rows = pes, -(-pes // self.group)
        self._row, self._size = sender // self.group, size
        self.sums: Floats = np.zeros((2, self._rows, self._rows))

    def add(self, which: Any, to: Ints, sign: int) -> None:
        """Add some of the messages, or take them away, each to one PE."""
        known = np.flatnonzero(which & (to >= 0) & (to < self._pes))
        cell = self._row[known] * self._rows + to[known] // self.group
        for k, weights in enumerate((None, self._size[known])):
            counts = np.bincount(cell, weights, minlength=self._rows**2)
            self.sums[k] += sign * counts.reshape(self._rows, self._rows)

    def add_all(self, which: Any, to: Ints) -> None:
        """Add some of the messages, each to all of some PEs."""
        receivers = np.bincount(to // self.group, minlength=self._rows)
        for k, weights in enumerate((None, self._size[which])):
            sent = np.bincount(self._row[which], weights, minlength=self._rows)
            self.sums[k] += sent[:, None] * receivers
