"""Matching of messages with the SEBs that they start, in tables on disk.

A message starts the SEBs that name its sender's PE and its number. Both tables are sorted by this
PE and number, so that the rows of one PE are a slice.

A replay, which has all SEBs and messages in memory, matches them there. An export streams log sets
larger than memory PE by PE, and needs tables on disk because any PE may send to any other.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from rewritelog.arrays import Flags, Ints, Table
from rewritelog.exporting.contents import Contents, durations_of, map_contents
from rewritelog.exporting.options import ExportOptions
from rewritelog.formats.bgtrace.logset import LogSet

SENT = np.dtype(
    [(name, np.int32) for name in ("msg_id", "seb", "size")]
    + [(name, np.float64) for name in ("send", "last")]
)
"""A message: its number, the SEB that sends it, its size in bytes, its send time in seconds, and
the last nanosecond of that SEB in seconds, since the next SEB may start at its end."""

RECEIVER = np.dtype([(name, np.int32) for name in ("msg_id", "pe", "seb")])
"""A SEB that a message starts."""

_AWAITED = np.dtype([("source", np.int32), *RECEIVER.descr])
_CHUNK_ROWS = 1 << 20
_NANOSECOND = 1e-9
_OFFSET = 1 << 31
"""Makes any number of a message positive."""


@dataclass(frozen=True)
class ByPe:
    """Rows sorted by the sending PE, and then by the number of the message."""

    path: Path
    dtype: np.dtype[np.void]
    begins: Ints
    """The first row of each PE; shape (PEs + 1,)."""

    def __reduce__(self) -> tuple[type[ByPe], tuple[Any, ...]]:
        """Leave the rows out when this is sent to another process, which maps the file itself."""
        return ByPe, (self.path, self.dtype, self.begins)

    @cached_property
    def rows(self) -> Table:
        """All rows."""
        return _mapped(self.path, self.dtype)

    def find(self, pes: Ints, numbers: Ints) -> Ints:
        """Return the first row of each PE with this number or a higher one: all bisect at once."""
        column = self.rows["msg_id"]
        low, high = self.begins[pes], self.begins[pes + 1]
        open_ = np.flatnonzero(low < high)
        while len(open_):
            middle = (low[open_] + high[open_]) // 2
            above = column[middle] < numbers[open_]
            low[open_[above]] = middle[above] + 1
            high[open_[~above]] = middle[~above]
            open_ = open_[low[open_] < high[open_]]
        return low

    def has(self, row: Ints, pes: Ints, numbers: Ints) -> Flags:
        """Return whether the rows that `find` has returned have just these numbers."""
        inside = row < self.begins[pes + 1]
        inside[inside] = self.rows["msg_id"][row[inside]] == numbers[inside]
        return inside


@dataclass(frozen=True)
class Matching:
    """The messages of a log set and the SEBs that they start."""

    sent: ByPe
    receivers: ByPe

    def receivers_of(self, messages: Table) -> tuple[Ints, Ints]:
        """Return the range of the rows of each message's receivers.

        If a PE repeats a number, only its first message has receivers.
        """
        pes, numbers = messages["pe"], messages["msg_id"].astype(np.int64)
        begins = self.receivers.find(pes, numbers)
        ends = self.receivers.find(pes, numbers + 1)
        first_sent = self.sent.rows["seb"][self.sent.find(pes, numbers)] == messages["seb"]
        _, first = np.unique(pes << 32 | numbers + _OFFSET, return_index=True)
        counts = np.zeros(len(messages), dtype=np.bool_)
        counts[first] = first_sent[first]
        return begins, np.where(counts, ends, begins)

    def causes(self, sebs: Table) -> tuple[Table, Flags]:
        """Return the starting message of each SEB, and whether it was sent."""
        causes = np.zeros(len(sebs), dtype=SENT)
        awaits = waits(sebs, len(self.sent.begins) - 1)
        pes, numbers = sebs["src_pe"][awaits].astype(np.int64), sebs["msg_id"][awaits]
        row = self.sent.find(pes, numbers)
        sent = self.sent.has(row, pes, numbers)
        awaits[awaits] = sent
        causes[awaits] = self.sent.rows[row[sent]]
        return causes, awaits


def waits(sebs: Table, pes: int) -> Flags:
    """Return which SEBs are started by a message that one of the PEs may have sent."""
    return np.asarray((sebs["msg_id"] >= 0) & (sebs["src_pe"] >= 0) & (sebs["src_pe"] < pes))


@contextmanager
def matched(logs: LogSet, folder: Path) -> Iterator[Matching]:
    """Yield the matching of a log set, in temporary files in a folder during the `with` block.

    It takes 28 bytes of disk for each message and 28 for each SEB that one starts, and memory for
    the messages of one PE.
    """
    with TemporaryDirectory(prefix=".matching-", dir=folder) as scratch:
        path = Path(scratch)
        sent, awaited = _collect(logs, path)
        counts = np.bincount(awaited["source"], minlength=len(logs.pes))
        begins = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        _scatter(awaited, begins, path / "receivers")
        yield Matching(sent, ByPe(path / "receivers", RECEIVER, begins))


def _collect(logs: LogSet, folder: Path) -> tuple[ByPe, Table]:
    """Write all messages by sender, and the message that each SEB waits for by receiver."""
    counts = np.zeros(len(logs.pes), dtype=np.int64)
    waiting: list[tuple[Ints, Table]] = []
    everything = ExportOptions("goal")
    with (folder / "sent").open("wb") as sent_file, (folder / "awaited").open("wb") as awaited_file:
        work = partial(_collected, len(logs.pes))
        parts = map_contents(logs, logs.pes, everything, None, work, "matching messages")
        for senders, sent, awaited, last in parts:
            awaited.tofile(awaited_file)
            np.add.at(counts, senders, 1)
            waiting.append((senders, sent))
            if last:
                pes, rows = (np.concatenate(columns) for columns in zip(*waiting, strict=True))
                rows[np.lexsort((rows["msg_id"], pes))].tofile(sent_file)
                waiting = []
    begins = np.concatenate([[0], np.cumsum(counts)])
    return ByPe(folder / "sent", SENT, begins), _mapped(folder / "awaited", _AWAITED)


def _collected(pes: int, part: Contents) -> tuple[Ints, Table, Table, bool]:
    """Return the PEs of messages, these, the SEBs that wait for any, and if timelines end here."""
    sebs, messages = part.sebs, part.messages
    starts = sebs["start_time"]
    last = np.maximum(starts, starts + durations_of(sebs) - _NANOSECOND)
    sent = np.empty(len(messages), dtype=SENT)
    for name in ("msg_id", "seb", "size"):
        sent[name] = messages[name]
    sent["send"], sent["last"] = messages["send_time"], last[part.row_of(messages)]
    waiting = sebs[waits(sebs, pes)]
    awaited = np.empty(len(waiting), dtype=_AWAITED)
    for name, column in zip(_AWAITED.names or (), ("src_pe", "msg_id", "pe", "seb"), strict=True):
        awaited[name] = waiting[column]
    return messages["pe"], sent, awaited, part.last


def _mapped(path: Path, dtype: np.dtype[np.void]) -> Table:
    """Return the rows of a file as a memory map; an empty file cannot be mapped."""
    if path.stat().st_size == 0:
        return np.empty(0, dtype=dtype)
    return np.memmap(path, dtype=dtype, mode="r")


def _scatter(awaited: Table, begins: Ints, path: Path) -> None:
    """Write the receivers sorted by sender and number of the message."""
    if len(awaited) == 0:
        path.touch()
        return
    rows = np.memmap(path, dtype=RECEIVER, mode="w+", shape=(len(awaited),))
    following = begins[:-1].copy()
    for at in range(0, len(awaited), _CHUNK_ROWS):
        chunk = np.asarray(awaited[at : at + _CHUNK_ROWS])
        chunk = chunk[np.argsort(chunk["source"], kind="stable")]
        sources, first, counts = np.unique(chunk["source"], return_index=True, return_counts=True)
        rank = np.arange(len(chunk)) - np.repeat(first, counts)
        targets = np.repeat(following[sources], counts) + rank
        for name in RECEIVER.names or ():
            rows[name][targets] = chunk[name]
        following[sources] += counts
    for low, high in _chunks(begins):
        part = rows[begins[low] : begins[high]]
        source = np.repeat(np.arange(low, high), np.diff(begins[low : high + 1]))
        part[:] = part[np.lexsort((part["msg_id"], source))]
    rows.flush()


def _chunks(begins: Ints) -> Iterator[tuple[int, int]]:
    """Yield ranges of PEs with a limited number of rows, or a single one."""
    low = 0
    while low < len(begins) - 1:
        fitting = int(np.searchsorted(begins, begins[low] + _CHUNK_ROWS, side="right")) - 1
        high = max(low + 1, fitting)
        yield low, high
        low = high
