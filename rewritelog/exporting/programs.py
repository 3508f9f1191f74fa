"""SEBs as steps of a program that a simulator runs: what each waits for, computes and sends."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rewritelog.arrays import Table
from rewritelog.exporting.contents import Contents, durations_of
from rewritelog.exporting.matching import Matching

_NOT_RECEIVED = -1.0
"""The recvTime of a SEB that no message resumes."""


@dataclass(frozen=True)
class Send:
    """A message, and the SEBs that it starts."""

    offset_s: float
    """When it leaves, since its SEB's start: from 0 to the SEB's duration."""
    msg_id: int
    size_bytes: int
    receivers: Table
    """Rows of `RECEIVER`."""


@dataclass(frozen=True)
class Cause:
    """The message that starts a SEB."""

    pe: int
    """Of the sender."""
    seb: int
    """The SEB that sends it."""
    msg_id: int
    size_bytes: int


@dataclass(frozen=True)
class Step:
    """A SEB of a PE."""

    pe: int
    seb: int
    duration_s: float
    cause: Cause | None
    requires: tuple[int, ...]
    """SEBs of the same PE that must have ended."""
    sends: tuple[Send, ...]
    """In the order in which they leave."""


@dataclass
class Program:
    """Makes steps of SEBs, and counts what has no counterpart in a simulation."""

    matching: Matching
    steps: int = 0
    not_received: int = 0
    """Messages that start no SEB: they are not sent."""
    not_sent: int = 0
    """SEBs whose starting message was never sent: they do not wait for it."""
    invalid_dependencies: int = 0
    """Backward dependencies on a SEB that is not an earlier one."""

    def steps_of(self, contents: Contents) -> Iterator[Step]:
        """Yield the steps of some SEBs of a PE, in the order of the timeline."""
        sebs = contents.tables.sebs
        durations = durations_of(sebs).tolist()
        causes, sent = self.matching.causes(sebs)
        sends = self._sends_of(contents)
        before = self._dependencies_of(contents)
        self.not_sent += int(np.count_nonzero((sebs["msg_id"] >= 0) & ~sent))
        for k, (seb, source, number, received) in enumerate(
            zip(
                sebs["seb"].tolist(),
                sebs["src_pe"].tolist(),
                sebs["msg_id"].tolist(),
                sebs["recv_time"].tolist(),
                strict=True,
            )
        ):
            cause = None
            if sent[k]:
                size = max(0, int(causes["size"][k]))
                cause = Cause(source, int(causes["seb"][k]), number, size)
            requires = before.get(seb, ())
            if seb > 0 and cause is None and (not requires or received != _NOT_RECEIVED):
                requires = tuple(sorted({*requires, seb - 1}))
            departures = sends.get(seb, ())
            yield Step(contents.pe, seb, durations[k], cause, requires, departures)
        self.steps += len(sebs)

    def _sends_of(self, contents: Contents) -> dict[int, tuple[Send, ...]]:
        """Return the messages of each SEB that start any SEB."""
        messages, sebs = contents.tables.messages, contents.tables.sebs
        at = np.searchsorted(sebs["seb"], messages["seb"])
        offsets = messages["send_time"] - sebs["start_time"][at]
        offsets = np.clip(np.nan_to_num(offsets), 0.0, durations_of(sebs)[at])
        receivers = self.matching.receivers_of(contents.pe, messages["msg_id"])
        found: dict[int, list[Send]] = {}
        for k, rows in enumerate(receivers):
            if len(rows) == 0:
                self.not_received += 1
                continue
            number, size = int(messages["msg_id"][k]), max(0, int(messages["size"][k]))
            send = Send(float(offsets[k]), number, size, rows)
            found.setdefault(int(messages["seb"][k]), []).append(send)
        return {
            seb: tuple(sorted(sends, key=lambda send: send.offset_s))
            for seb, sends in found.items()
        }

    def _dependencies_of(self, contents: Contents) -> dict[int, tuple[int, ...]]:
        rows = contents.tables.dependencies
        rows = rows[~rows["forward"]]
        valid = (rows["other"] >= 0) & (rows["other"] < rows["seb"])
        self.invalid_dependencies += int(np.count_nonzero(~valid))
        found: dict[int, set[int]] = {}
        for seb, other in zip(
            rows["seb"][valid].tolist(), rows["other"][valid].tolist(), strict=True
        ):
            found.setdefault(seb, set()).add(other)
        return {seb: tuple(sorted(others)) for seb, others in found.items()}
