"""Matching of messages with the SEBs that they start, in tables on disk.

A message starts the SEBs that name its sender's PE and its number. A replay, which has all SEBs and
messages in memory, matches them there. An export streams log sets larger than memory PE by PE, and
needs tables on disk because any PE may send to any other.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from rewritelog.arrays import Flags, Ints, Table, spans
from rewritelog.commands.logs import ALWAYS
from rewritelog.exporting.contents import Contents, durations_of, map_contents
from rewritelog.formats.bgtrace.logset import LogSet
from rewritelog.stopping import in_steps

SENT = np.dtype([("seb", np.int32), ("size", np.int32), ("send", np.float64), ("last", np.float64)])
"""A message: the SEB that sends it, its size in bytes, its send time in seconds, and the last
nanosecond of that SEB in seconds, since the next SEB may start at its end."""

_AWAITED = np.dtype([("key", np.int64), ("pe", np.int32)])
"""The message that starts a SEB, and the SEB's PE."""

_NANOSECOND = 1e-9


@dataclass(frozen=True)
class Matching:
    """The messages of a log set, sorted by PE and number, and the PEs where they start SEBs."""

    folder: Path
    pes: int

    def __reduce__(self) -> tuple[type[Matching], tuple[Path, int]]:
        """Leave the tables out when this is sent to another process, which maps the files."""
        return Matching, (self.folder, self.pes)

    @cached_property
    def keys(self) -> Ints:
        """PE and number of each message, ascending."""
        return _mapped(self.folder / "keys", np.dtype(np.int64))

    @cached_property
    def sent(self) -> Table:
        """Rows of `SENT`."""
        return _mapped(self.folder / "sent", SENT)

    @cached_property
    def received(self) -> Ints:
        """The messages that start a SEB, in the upper half of each number, and its PE."""
        return _mapped(self.folder / "received", np.dtype(np.int64))

    def find(self, keys: Ints) -> tuple[Ints, Flags]:
        """Return the first message with each key, and whether there is one."""
        row = np.searchsorted(self.keys, keys)
        exists = row < len(self.keys)
        exists[exists] = self.keys[row[exists]] == keys[exists]
        return row, exists

    def receivers_of(self, messages: Table) -> tuple[Ints, Ints]:
        """Return which of the messages start a SEB, and its PE; ascending, and then by PE.

        If a PE repeats a number, only its first message starts any.
        """
        row, _ = self.find(key_of(messages["pe"], messages["msg_id"]))
        counts = np.zeros(len(messages), dtype=np.int64)
        first_rows = np.unique(row, return_index=True)[1]
        first_rows = first_rows[self.sent["seb"][row[first_rows]] == messages["seb"][first_rows]]
        begins, ends = (np.searchsorted(self.received, row[first_rows] + k << 32) for k in (0, 1))
        counts[first_rows] = ends - begins
        message = np.repeat(np.arange(len(messages)), counts)
        order = np.argsort(first_rows)
        return message, self.received[spans(begins[order], counts[first_rows[order]])] & 0xFFFFFFFF

    def causes(self, sebs: Table) -> tuple[Table, Flags]:
        """Return the starting message of each SEB, and whether it was sent."""
        causes = np.zeros(len(sebs), dtype=SENT)
        row, sent = self.find(key_of(sebs["src_pe"], sebs["msg_id"]))
        sent &= waits(sebs, self.pes)
        causes[sent] = self.sent[row[sent]]
        return causes, sent


def key_of(pe: Ints, number: Ints) -> Ints:
    """Return a number for each message that rises with its PE and its number."""
    return (pe.astype(np.int64) << 32) + number


def waits(sebs: Table, pes: int) -> Flags:
    """Return which SEBs are started by a message that one of the PEs may have sent."""
    return np.asarray((sebs["msg_id"] >= 0) & (sebs["src_pe"] >= 0) & (sebs["src_pe"] < pes))


@contextmanager
def matched(logs: LogSet, folder: Path, *, receivers: bool) -> Iterator[Matching]:
    """Yield the matching of a log set, in temporary files in a folder during the `with` block.

    It takes 32 bytes of disk for each message, and with `receivers` 20 for each SEB that one
    starts, and memory for the messages of one PE.
    """
    with TemporaryDirectory(prefix=".matching-", dir=folder) as scratch:
        matching = Matching(Path(scratch), len(logs.pes))
        _collect(logs, matching, receivers=receivers)
        awaited = _mapped(matching.folder / "awaited", _AWAITED)
        with (matching.folder / "received").open("xb") as file:
            for step in in_steps(len(awaited)):
                row, sent = matching.find(awaited["key"][step])
                (row << 32 | awaited["pe"][step])[sent].tofile(file)
        if receivers and len(matching.received):
            np.memmap(matching.folder / "received", np.int64, mode="r+").sort()
        yield matching


def _collect(logs: LogSet, matching: Matching, *, receivers: bool) -> None:
    """Write all messages, sorted, and if `receivers` are needed what each SEB waits for."""
    waiting: list[tuple[Ints, Table]] = []
    work = partial(_collected, matching.pes, receivers)
    with ExitStack() as opened:
        keys_file, sent_file, awaited_file = (
            opened.enter_context((matching.folder / name).open("xb"))
            for name in ("keys", "sent", "awaited")
        )
        parts = map_contents(logs, logs.pes, ALWAYS, None, work, "matching messages")
        for keys, sent, awaited, last in parts:
            awaited.tofile(awaited_file)
            waiting.append((keys, sent))
            if last:
                all_keys, rows = (np.concatenate(columns) for columns in zip(*waiting, strict=True))
                order = np.argsort(all_keys, kind="stable")
                all_keys[order].tofile(keys_file)
                rows[order].tofile(sent_file)
                waiting = []


def _collected(pes: int, receivers: bool, part: Contents) -> tuple[Ints, Table, Table, bool]:
    """Return messages with their keys, the SEBs that wait for any, and if timelines end here."""
    sebs, messages = part["sebs"], part["messages"]
    starts = sebs["start_time"]
    last = np.maximum(starts, starts + durations_of(sebs) - _NANOSECOND)
    sent = np.empty(len(messages), dtype=SENT)
    sent["seb"], sent["size"], sent["send"] = (messages[n] for n in ("seb", "size", "send_time"))
    sent["last"] = last[part.row_of(messages)]
    waiting = sebs[waits(sebs, pes) & receivers]
    awaited = np.empty(len(waiting), dtype=_AWAITED)
    awaited["key"] = key_of(waiting["src_pe"], waiting["msg_id"])
    awaited["pe"] = waiting["pe"]
    return key_of(messages["pe"], messages["msg_id"]), sent, awaited, part.last


def _mapped(path: Path, dtype: np.dtype[np.generic]) -> Table:
    """Return the rows of a file as a memory map; an empty file cannot be mapped."""
    if path.stat().st_size == 0:
        return np.empty(0, dtype=dtype)
    return np.memmap(path, dtype=dtype, mode="r")
