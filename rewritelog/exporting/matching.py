"""Matching of SEBs with the messages that start them, in tables on disk.

A replay, which has all SEBs and messages in memory, matches them there. A trace viewer gets log
sets larger than memory PE by PE, and needs tables on disk because any PE may send to any other.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from rewritelog.arrays import Flags, Ints, Table
from rewritelog.commands.logs import ALWAYS
from rewritelog.exporting.contents import Contents, durations_of, map_contents
from rewritelog.formats.bgtrace.logset import LogSet

SENT = np.dtype([("size", np.int32), ("send", np.float64), ("last", np.float64)])
"""A message: its size in bytes, its send time in seconds, and the last nanosecond of the SEB that
sends it in seconds, since the next SEB may start at its end."""

_TABLES = {"keys": np.dtype(np.int64), "sent": SENT}
"""The rows of the two files: PE and number of each message, ascending, and the messages."""

_NANOSECOND = 1e-9


@dataclass(frozen=True)
class Matching:
    """The messages of a log set, sorted by PE and number."""

    folder: Path
    """That with the files `_TABLES`, which each process maps."""
    pes: int

    def causes(self, sebs: Table) -> tuple[Table, Flags]:
        """Return the starting message of each SEB, and whether it was sent.

        If a PE repeats a number, only its first message starts any.
        """
        keys, messages = (_mapped(self.folder / name, dtype) for name, dtype in _TABLES.items())
        named, source = _key_of(sebs["src_pe"], sebs["msg_id"]), sebs["src_pe"]
        row = np.searchsorted(keys, named)
        sent = (sebs["msg_id"] >= 0) & (source >= 0) & (source < self.pes) & (row < len(keys))
        sent[sent] = keys[row[sent]] == named[sent]
        causes = np.zeros(len(sebs), dtype=SENT)
        causes[sent] = messages[row[sent]]
        return causes, sent


def _key_of(pe: Ints, number: Ints) -> Ints:
    """Return a number for each message that rises with its PE and its number."""
    return (pe.astype(np.int64) << 32) + number


@contextmanager
def matched(logs: LogSet, folder: Path) -> Iterator[Matching]:
    """Yield the matching of a log set, in temporary files in a folder during the `with` block.

    It takes 28 bytes of disk for each message, and memory for the messages of one PE.
    """
    with TemporaryDirectory(prefix=".matching-", dir=folder) as scratch:
        keys_path, sent_path = (Path(scratch, name) for name in _TABLES)
        waiting: list[tuple[Ints, Table]] = []
        with keys_path.open("xb") as keys_file, sent_path.open("xb") as sent_file:
            parts = map_contents(logs, logs.pes, ALWAYS, None, _collected, "matching messages")
            for keys, sent, last in parts:
                waiting.append((keys, sent))
                if last:
                    all_keys, rows = map(np.concatenate, zip(*waiting, strict=True))
                    order = np.argsort(all_keys, kind="stable")
                    keys_file.write(all_keys[order].data)
                    sent_file.write(rows[order].tobytes())
                    waiting = []
        yield Matching(Path(scratch), len(logs.pes))


def _collected(part: Contents) -> tuple[Ints, Table, bool]:
    """Return messages with their keys, and if timelines end here."""
    sebs, messages = part["sebs"], part["messages"]
    starts = sebs["start_time"]
    last = np.maximum(starts, starts + durations_of(sebs) - _NANOSECOND)
    sent = np.empty(len(messages), dtype=SENT)
    sent["size"], sent["send"] = messages["size"], messages["send_time"]
    sent["last"] = last[part.row_of(messages)]
    return _key_of(messages["pe"], messages["msg_id"]), sent, part.last


def _mapped(path: Path, dtype: np.dtype[np.generic]) -> Table:
    """Return the rows of a file as a memory map; an empty file cannot be mapped."""
    if path.stat().st_size == 0:
        return np.empty(0, dtype=dtype)
    return np.memmap(path, dtype=dtype, mode="r")
