"""What a rule is given: the records of a block as columns, and what it is to compare them with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rewritelog.arrays import Flags, Ints
from rewritelog.checking.findings import SHOWN, Finding, Violations
from rewritelog.errors import Location, RewriteLogError
from rewritelog.formats import ParamRecords
from rewritelog.formats.bgtrace.blocks import LoadedBlock
from rewritelog.formats.bgtrace.heads import Summary
from rewritelog.formats.bgtrace.params import ParamFolder, ParamNotes, read_params
from rewritelog.formats.bgtrace.records import BlockRecords


class BlockParams(NamedTuple):
    """The params of a block, without those of files that cannot be read."""

    source: ParamFolder
    records: ParamRecords
    notes: ParamNotes
    unreadable: list[Finding]

    @classmethod
    def read(cls, source: ParamFolder, loaded: LoadedBlock) -> BlockParams:
        """Read the params of a block."""
        unreadable = list[Finding]()

        def leave_out(path: Path, pe: int, error: RewriteLogError) -> None:
            problem = str(error).removeprefix(f"{path}: ")
            unreadable.append(Finding(Location(path, pe=pe), problem))

        read = read_params(source, loaded, strict=False, on_unreadable=leave_out)
        return cls(source, *read, unreadable)


_ITEMS = {
    "messages": "message",
    "events": "log event",
    "backward": "backward dependency",
    "forward": "forward dependency",
}


@dataclass(frozen=True)
class CheckedBlock:
    """A block, or a part of a long timeline, as the rules see it."""

    records: BlockRecords
    """The records before the first damage of each timeline."""
    summary: Summary
    params: BlockParams | None = None
    """None without any param files."""
    never_sent: Flags | None = None
    """Whether each SEB awaits a message that is never sent; None while that is not known."""
    state: dict[str, Any] = field(default_factory=dict)
    """What a rule keeps, under its name, from one part of a timeline to the next."""
    key: int = 0
    """A random number of 64 bits, so that no log can be made to cause collisions of hashes."""

    @cached_property
    def total(self) -> Ints:
        """The number of SEBs of each SEB's timeline, as recorded."""
        return np.asarray(self.records.loaded.totals[self.records.piece])

    def where(
        self, kind: str, broken: Flags, says: Callable[[int], str], at: Ints | None = None
    ) -> Violations:
        """Return the violations by records of a kind, `sebs` or a list of theirs.

        `broken` has one element for each record; `says` returns the message for one. `at` has the
        offset of each in the buffer, if that is not the record's.
        """
        records = getattr(self.records, kind)
        which = np.flatnonzero(broken)
        at = records.at if at is None else at
        findings = []
        for row in which[:SHOWN].tolist():
            seb = int(records.seb[row])
            item = _ITEMS.get(kind)
            number = row - int(self.records.first(kind)[seb]) if item else 0
            label = f"{item} {number}: " if item else ""
            findings.append(Finding(self.location(seb, int(at[row])), label + says(row)))
        return len(which), findings

    def location(self, seb: int, at: int) -> Location:
        """Return the location of a SEB, counted over the block, with an offset in the buffer."""
        loaded = self.records.loaded
        pe, index = int(self.records.pe[seb]), int(self.records.index[seb])
        return Location(loaded.file.path, loaded.block.offset + at, pe, index)


def names_message(block: BlockRecords, pes: int) -> Flags:
    """Return whether each SEB names a message that starts it, of one of the PEs."""
    source = block.sebs["src_pe"]
    return np.asarray((block.sebs["msg_id"] >= 0) & (source >= 0) & (source < pes))
