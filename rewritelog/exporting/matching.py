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
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from rewritelog.arrays import Flags, Ints, Table
from rewritelog.exporting.contents import PART_BYTES, durations_of
from rewritelog.logs.logset import LogSet
from rewritelog.logs.tables import tables_of
from rewritelog.progress import report_progress

SENT = np.dtype(
    [
        ("msg_id", np.int32),
        ("seb", np.int32),
        ("size", np.int32),
        ("send", np.float64),
        ("last", np.float64),
    ]
)
"""A message: its number, the SEB that sends it, its size in bytes, its send time in seconds, and
the last nanosecond of that SEB in seconds, since the next SEB may start at its end."""

RECEIVER = np.dtype([("msg_id", np.int32), ("pe", np.int32), ("seb", np.int32)])
"""A SEB that a message starts."""

_AWAITED = np.dtype([("source", np.int32), *RECEIVER.descr])
_CHUNK_ROWS = 1 << 20
_NANOSECOND = 1e-9


@dataclass(frozen=True)
class ByPe:
    """Rows sorted by the sending PE, and then by the number of the message."""

    rows: Table
    begins: Ints
    """The first row of each PE; shape (PEs + 1,)."""

    def of(self, pe: int) -> Table:
        """Return the rows of a PE."""
        return self.rows[self.begins[pe] : self.begins[pe + 1]]


@dataclass(frozen=True)
class Matching:
    """The messages of a log set and the SEBs that they start."""

    sent: ByPe
    receivers: ByPe

    def receivers_of(self, pe: int, messages: Table) -> tuple[Ints, Ints]:
        """Return the range of each message's receivers among the receivers of its PE.

        If a PE repeats a number, only its first message has receivers.
        """
        numbers, sent = messages["msg_id"], self.sent.of(pe)
        rows = self.receivers.of(pe)["msg_id"]
        begins = np.searchsorted(rows, numbers, side="left")
        ends = np.searchsorted(rows, numbers, side="right")
        counts = sent["seb"][np.searchsorted(sent["msg_id"], numbers)] == messages["seb"]
        _, first = np.unique(numbers[counts], return_index=True)
        counts[np.delete(np.flatnonzero(counts), first)] = False
        return begins, np.where(counts, ends, begins)

    def causes(self, sebs: Table) -> tuple[Table, Flags]:
        """Return the starting message of each SEB, and whether it was sent."""
        causes = np.zeros(len(sebs), dtype=SENT)
        found = np.zeros(len(sebs), dtype=np.bool_)
        pes = len(self.sent.begins) - 1
        waits = (sebs["msg_id"] >= 0) & (sebs["src_pe"] >= 0) & (sebs["src_pe"] < pes)
        waiting = np.flatnonzero(waits)
        waiting = waiting[np.argsort(sebs["src_pe"][waiting], kind="stable")]
        sources, first = np.unique(sebs["src_pe"][waiting], return_index=True)
        for pe, asked in zip(sources.tolist(), np.split(waiting, first[1:]), strict=False):
            rows = self.sent.of(pe)
            at = np.searchsorted(rows["msg_id"], sebs["msg_id"][asked])
            inside = at < len(rows)
            at, row = at[inside], asked[inside]
            same = rows["msg_id"][at] == sebs["msg_id"][row]
            causes[row[same]] = rows[at[same]]
            found[row[same]] = True
        return causes, found


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
        yield Matching(sent, ByPe(_scatter(awaited, begins, path / "receivers"), begins))


def _collect(logs: LogSet, folder: Path) -> tuple[ByPe, Table]:
    """Write all messages by sender, and the message that each SEB waits for by receiver."""
    pes = len(logs.pes)
    begins = np.zeros(pes + 1, dtype=np.int64)
    with (folder / "sent").open("wb") as sent_file, (folder / "awaited").open("wb") as awaited_file:
        for pe in logs.pes:
            parts = []
            for loaded in logs.timeline_parts(pe, PART_BYTES):
                tables = tables_of(loaded)
                parts.append(_sent_rows(tables.sebs, tables.messages))
                _awaited_rows(tables.sebs, pes).tofile(awaited_file)
            rows = np.concatenate(parts)
            if np.any(np.diff(rows["msg_id"]) < 0):
                rows = rows[np.argsort(rows["msg_id"], kind="stable")]
            rows.tofile(sent_file)
            begins[pe + 1] = begins[pe] + len(rows)
            report_progress("matching messages, PE", pe + 1, pes)
    return ByPe(_mapped(folder / "sent", SENT), begins), _mapped(folder / "awaited", _AWAITED)


def _sent_rows(sebs: Table, messages: Table) -> Table:
    rows = np.empty(len(messages), dtype=SENT)
    for name, column in (("msg_id", "msg_id"), ("seb", "seb"), ("size", "size")):
        rows[name] = messages[column]
    rows["send"] = messages["send_time"]
    starts = sebs["start_time"]
    last = np.maximum(starts, starts + durations_of(sebs) - _NANOSECOND)
    rows["last"] = last[np.searchsorted(sebs["seb"], messages["seb"])]
    return rows


def _awaited_rows(sebs: Table, pes: int) -> Table:
    waiting = sebs[(sebs["msg_id"] >= 0) & (sebs["src_pe"] >= 0) & (sebs["src_pe"] < pes)]
    rows = np.empty(len(waiting), dtype=_AWAITED)
    rows["source"] = waiting["src_pe"]
    for name in ("msg_id", "pe", "seb"):
        rows[name] = waiting[name]
    return rows


def _mapped(path: Path, dtype: np.dtype[np.void]) -> Table:
    """Return the rows of a file as a memory map; an empty file cannot be mapped."""
    if path.stat().st_size == 0:
        return np.empty(0, dtype=dtype)
    return np.memmap(path, dtype=dtype, mode="r")


def _scatter(awaited: Table, begins: Ints, path: Path) -> Table:
    """Write the receivers sorted by sender and number of the message."""
    if len(awaited) == 0:
        return np.empty(0, dtype=RECEIVER)
    rows: Table = np.memmap(path, dtype=RECEIVER, mode="w+", shape=(len(awaited),))
    following = begins[:-1].copy()
    for at in range(0, len(awaited), _CHUNK_ROWS):
        chunk = np.asarray(awaited[at : at + _CHUNK_ROWS])
        chunk = chunk[np.argsort(chunk["source"], kind="stable")]
        sources, first, many = np.unique(chunk["source"], return_index=True, return_counts=True)
        rank = np.arange(len(chunk)) - np.repeat(first, many)
        targets = np.repeat(following[sources], many) + rank
        for name in RECEIVER.names or ():
            rows[name][targets] = chunk[name]
        following[sources] += many
    for begin, end in zip(begins[:-1].tolist(), begins[1:].tolist(), strict=True):
        part = rows[begin:end]
        part[:] = part[np.argsort(part["msg_id"], kind="stable")]
    return rows
