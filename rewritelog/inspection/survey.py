"""What `info` counts and adds up in the units of logs or traces, and who sends how much to whom."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from msgspec import Struct, field

from rewritelog.arrays import ZERO_SUM, Flags, Floats, Ints
from rewritelog.core import core
from rewritelog.formats.bgtrace.blocks import LoadedBlock
from rewritelog.formats.bgtrace.heads import Summary
from rewritelog.formats.bgtrace.records import (
    IRREGULAR,
    LISTS,
    BlockRecords,
    records_of,
)
from rewritelog.formats.traces import AnyTraces
from rewritelog.text import NO_NAME, TextTable, percent_text, share_of, time_column

MOST_ROWS = 128
"""If there are more PEs, neighbours share a row and a column."""

SIZES = 33
"""Classes of message sizes: of 0 bytes, then of 2^k to 2^(k + 1) − 1 bytes."""

_EVERYWHERE, _MULTICAST, _BUT = -1, -2, -100
"""Destinations that are no node (FORMAT 4): `_BUT` − N is everywhere but node N."""


class Traffic(Struct, frozen=True, eq=False):
    """The messages of a log set, from senders to the PEs that they are addressed to."""

    group: int
    """The number of PEs that share a row and a column."""
    messages: Ints
    """Messages from the PEs of a row to those of a column; each counts once for every receiver."""
    sent_bytes: Ints
    """The bytes of these messages, shape (rows, rows) like them."""
    sizes: Ints
    """The number of messages in each class of sizes, each counted once, shape (`SIZES`,)."""
    multicasts: int
    """Messages to lists of PEs that the log does not hold, which only `sizes` includes."""

    @classmethod
    def none(cls) -> Traffic:
        """Return no messages, to which those of any log set can be added."""
        cells = np.zeros((1, 1), dtype=np.int64)
        return cls(1, cells, cells, np.zeros(SIZES, dtype=np.int64), 0)

    @classmethod
    def of(cls, block: BlockRecords, summary: Summary) -> Traffic:
        """Return the messages of a block."""
        messages, pes, workers = block.messages, summary.total_pes, max(1, summary.num_wth)
        size = np.maximum(messages["size"], 0).astype(np.float64)
        node, worker = (messages[name].astype(np.int64) for name in ("dst_node", "tid"))
        cells, excepting = _Cells(pes, block.pe[messages.seb], size), node <= _BUT
        first = np.where(excepting, _BUT - node, node) * workers
        is_one = (worker >= 0) & (worker < workers)
        for which, sign in ((node >= 0, 1), (excepting, -1)):
            cells.add(which & is_one, first + worker, first + worker + 1, sign)
            cells.add(which & (worker < 0), first, first + workers, sign)
        everywhere = excepting | (node == _EVERYWHERE) & (worker < 0)
        cells.add(everywhere, np.zeros_like(node), np.full_like(node, pes))
        classes = np.where(size >= 1, np.frexp(np.maximum(size, 1))[1], 0)
        counts, sent_bytes = np.rint(cells.sums()).astype(np.int64)
        return cls(
            cells.group,
            counts,
            sent_bytes,
            np.bincount(classes, minlength=SIZES),
            int(np.count_nonzero(node == _MULTICAST)),
        )

    def __add__(self, other: Traffic) -> Traffic:
        return Traffic(
            max(self.group, other.group),
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
        self._borders = np.append(np.arange(0, pes, self.group), pes)
        self._row, self._size = sender // self.group, size
        rows = len(self._borders) - 1
        self._inside, self._beyond = np.zeros((2, 2, rows, rows + 1))

    def add(self, which: Flags, begin: Ints, end: Ints, sign: int = 1) -> None:
        """Add some of the messages, or subtract them: each goes to PEs from begin to before end.

        These are all PEs from begin on, less all from end on: the rest of a row, and later rows.
        """
        known = np.flatnonzero(which & (begin >= 0) & (end <= self._borders[-1]))
        if not len(known):
            return
        rows = len(self._borders) - 1
        for bound, times in ((begin[known], sign), (end[known], -sign)):
            row = np.minimum(bound // self.group, rows - 1)
            cell = self._row[known] * (rows + 1) + row
            left = (self._borders[row + 1] - bound).astype(np.float64)
            for k, weights in enumerate((np.ones(len(known)), self._size[known])):
                for sums, at, factor in ((self._inside, cell, left), (self._beyond, cell + 1, 1.0)):
                    added = np.bincount(at, times * weights * factor, rows * (rows + 1))
                    sums[k] += added.reshape(rows, -1)

    def sums(self) -> Floats:
        """Return messages and bytes from each row to each one, shape (2, rows, rows)."""
        beyond = np.cumsum(self._beyond, axis=2)[:, :, :-1] * np.diff(self._borders)
        return np.asarray(self._inside[:, :, :-1] + beyond)


SHOWN = 20
"""The most rows of a table of times, and of a list of files."""


class Survey(Struct):
    """Counts and sums of some blocks, or of a rank."""

    counts: Counter[str] = field(default_factory=Counter)
    """The counts of `LogInfo` or `TraceInfo`, by their names."""
    earliest_s: float = math.inf
    """The earliest start of a SEB."""
    latest_s: float = -math.inf
    """The latest end of a closed SEB."""
    traffic: Traffic = field(default_factory=Traffic.none)
    times: dict[Any, tuple[int, Any]] = {}
    """The number of SEBs of each name or nodes of each group, and the sum of their durations."""

    def add(self, other: Survey) -> None:
        """Add the counts and sums of a later block."""
        self.counts.update(other.counts)
        self.earliest_s = min(self.earliest_s, other.earliest_s)
        self.latest_s = max(self.latest_s, other.latest_s)
        self.traffic += other.traffic
        for group, time in other.times.items():
            self.add_time(group, *time)

    def add_time(self, group: Any, items: int, seconds: Any) -> None:
        """Add the number and the seconds of some SEBs of a name, or nodes of a group."""
        if group in self.times:
            items, seconds = items + self.times[group][0], self.times[group][1] + seconds
        self.times[group] = items, seconds


def read_survey(logs: AnyTraces, work: Callable[[Iterator[Any]], Survey]) -> Survey:
    """Return the survey of all logs or traces; `work` returns that of a unit."""
    total = Survey()
    for part in logs.map(work):
        total.add(part)
    return total


def survey_of_block(summary: Summary, parts: Iterator[LoadedBlock]) -> Survey:
    """Return the survey of a block."""
    survey = Survey()
    for loaded in parts:
        survey.add(_survey_of(records_of(loaded), summary))
    return survey


def _survey_of(block: BlockRecords, summary: Summary) -> Survey:
    sebs = block.sebs
    start, end = sebs["start_time"], sebs["end_time"]
    finite, closed = np.isfinite(start) & np.isfinite(end), ~np.isnan(block.seconds)
    names, name = block.names
    seconds = np.zeros((len(names), 2))
    core.add_by_group(name[closed], block.seconds[closed], seconds)
    sums = [ZERO_SUM.plus(high_low) for high_low in seconds.tolist()]
    brackets = block.brackets
    lists = {name: int(block.walked[name].sum()) for name in LISTS}
    lists["log_events"] = lists.pop("events")
    flags = {
        "not_finite": ~finite,
        "unclosed": finite & ~closed,
        "zero_length": block.seconds == 0,
        "irregular": brackets.counts == IRREGULAR,
    }
    counts = {what: int(np.count_nonzero(flag)) for what, flag in flags.items()}
    counts |= {"sebs": len(sebs), "brackets": len(brackets), **lists}
    return Survey(
        Counter(counts),
        earliest_s=float(start[finite].min(initial=math.inf)),
        latest_s=float(end[closed].max(initial=-math.inf)),
        traffic=Traffic.of(block, summary),
        times=dict(zip(names, zip(np.bincount(name).tolist(), sums, strict=True), strict=True)),
    )


def time_table(
    heads: tuple[str, str], rows: Sequence[tuple[str, str, int, float]], total_s: float
) -> TextTable:
    """Return a table of the first `SHOWN` rows: names with suffixes, counts, times and shares."""
    shown = rows[:SHOWN]
    times = time_column([seconds for *_, seconds in shown])
    cells = [
        ((name or NO_NAME) + suffix, f"{count:,}", time, percent_text(share_of(seconds, total_s)))
        for (name, suffix, count, seconds), time in zip(shown, times, strict=True)
    ]
    return TextTable((*heads, "time", "share"), cells, further=len(rows) - len(shown))
