"""What a rule is given: the records of a block as columns, and what it is to compare them with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
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
from rewritelog.hashing import mix


@dataclass(frozen=True)
class BlockParams:
    """The params of a block, without those of files that cannot be read."""

    source: ParamFolder
    records: ParamRecords
    notes: ParamNotes
    unreadable: list[Finding] = field(default_factory=list)


def params_of(source: ParamFolder, loaded: LoadedBlock) -> BlockParams:
    """Read the params of a block, without the files that cannot be read."""
    try:
        return BlockParams(source, *read_params(source, loaded, strict=False))
    except RewriteLogError:
        readable, unreadable = set(), []
        for pe in sorted(source.pes.intersection(loaded.pes.tolist())):
            try:
                read_params(replace(source, pes=frozenset([pe])), loaded, strict=False)
                readable.add(pe)
            except RewriteLogError as error:
                path = source.path(pe)
                problem = str(error).removeprefix(f"{path}: ")
                unreadable.append(Finding(Location(path, pe=pe), problem))
        rest = replace(source, pes=frozenset(readable))
        return BlockParams(source, *read_params(rest, loaded, strict=False), unreadable)


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
    never_sent: NeverSent | None = None
    """The messages that are awaited but never sent; None while they are not known."""
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


_FEWEST_FLAGS, _MOST_FLAGS = 1 << 10, 1 << 25
_BYTES_A_FLAG = 32


class NeverSent(NamedTuple):
    """The flags of messages that are awaited but never sent."""

    flags: Ints
    size: int
    """The number of flags, a power of two."""

    def has(self, pe: Ints, number: Ints) -> Flags:
        """Return whether each message is one of them."""
        return np.isin(_flags(pe, number, self.size), self.flags)


class MessageFlags:
    """The flags of all messages of a log set, which threads may set concurrently.

    Sent to another process, it begins there with none set.
    """

    def __init__(self, size_bytes: int) -> None:
        """Have as many flags as files of this size may contain messages, up to a limit."""
        fitting = 1 << (size_bytes // _BYTES_A_FLAG).bit_length()
        flags = min(max(_FEWEST_FLAGS, fitting), _MOST_FLAGS)
        self._size_bytes = size_bytes
        self._sent = np.zeros(flags, dtype=np.bool_)
        self._awaited = np.zeros(flags, dtype=np.bool_)

    def __reduce__(self) -> tuple[Any, ...]:
        """Leave out what is set."""
        return MessageFlags, (self._size_bytes,)

    def add(self, block: BlockRecords, pes: int) -> None:
        """Set the flags of the messages that SEBs of a block send, and of those that start them."""
        number, sender = block.messages["msg_id"], block.pe[block.messages.seb]
        self._sent[_flags(sender[number >= 0], number[number >= 0], len(self._sent))] = True
        source, number = block.sebs["src_pe"], block.sebs["msg_id"]
        named = names_message(block, pes)
        self._awaited[_flags(source[named], number[named], len(self._awaited))] = True

    @property
    def state(self) -> tuple[Flags, Flags]:
        """All flags."""
        return self._sent, self._awaited

    def add_state(self, state: tuple[Flags, Flags]) -> None:
        """Set the flags that are set in another process."""
        self._sent |= state[0]
        self._awaited |= state[1]

    def never_sent(self) -> NeverSent:
        """Return the flags of messages that are awaited but not sent."""
        return NeverSent(np.flatnonzero(self._awaited > self._sent), len(self._sent))


def names_message(block: BlockRecords, pes: int) -> Flags:
    """Return whether each SEB names a message that starts it, of one of the PEs."""
    source = block.sebs["src_pe"]
    return np.asarray((block.sebs["msg_id"] >= 0) & (source >= 0) & (source < pes))


def _flags(pe: Ints, number: Ints, size: int) -> Ints:
    """Return the index of the flag of each message, given the sender and its number for it."""
    messages = pe.astype(np.uint64) << np.uint64(32) | number.astype(np.uint64)
    return (mix(messages) & np.uint64(size - 1)).astype(np.int64)
