"""Reading of a timeline SEB by SEB, for `dump`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from rewritelog.arrays import Ints
from rewritelog.core import core
from rewritelog.errors import DamagedLogError, Location
from rewritelog.formats.bgtrace.blocks import Block, Buffer, LongTimeline
from rewritelog.formats.bgtrace.declaration import FAULTS, EventType
from rewritelog.formats.bgtrace.logset import LogSet
from rewritelog.formats.bgtrace.records import LISTS, BlockRecords, Records, offset_of, records_of
from rewritelog.formats.files import InputFile

Record: TypeAlias = dict[str, Any]

_PART_BYTES = 1 << 18
"""The timeline is read in parts of this size, unless one SEB is larger."""

_AT_ONCE = 1000
"""The number of items of a list that are Python objects at a time."""


@dataclass(frozen=True)
class Items:
    """The messages, events or dependencies of a SEB, which become Python objects one by one."""

    made: Callable[[slice], Iterator[Any]]
    begin: int
    end: int

    def __len__(self) -> int:
        return self.end - self.begin

    def __iter__(self) -> Iterator[Any]:
        for low in range(self.begin, self.end, _AT_ONCE):
            yield from self.made(slice(low, min(low + _AT_ONCE, self.end)))


class TimelineReader:
    """Reads the SEBs of one timeline in order."""

    def __init__(self, logs: LogSet, block: Block, source: InputFile) -> None:
        """Read the number of SEBs; raise `DamagedLogError` if it is negative or missing."""
        file = logs.files[block.file]
        self._logs, self._block, self._path = logs, block, file.path
        self._faults: list[DamagedLogError] = []
        self._timeline = LongTimeline(
            source, file, block, logs.layout, Buffer(), _PART_BYTES, self._add_faults, fits=False
        )
        self.count = self._timeline.left
        self._raise_fault()

    def sebs(self) -> Iterator[Record]:
        """Yield each SEB: its location, its fields in this log version, and its lists as `Items`.

        Items can be read until the next SEB is. Raise `DamagedLogError` after the last SEB before
        any damage.
        """
        for loaded in self._timeline.parts():
            yield from _records(records_of(loaded))
        self._raise_fault()

    def _add_faults(self, faults: Any, count: int = 1) -> None:  # noqa: ARG002
        self._faults.extend(faults)

    def _raise_fault(self) -> None:
        """Raise the first fault; it names the field in which the fixed part of a SEB is cut off."""
        for fault in self._faults:
            where = fault.location
            if fault.rule != "cut-off" or where.offset_bytes is None:
                raise fault
            seb = self._logs.layout.seb
            cut, at = FAULTS[core.MESSAGES_TRUNCATED].field, seb.itemsize
            for name in reversed(seb.names or ()):
                after = offset_of(seb, name) + seb[name].itemsize
                if where.offset_bytes + after > self._block.end:
                    cut, at = name, offset_of(seb, name)
            location = Location(where.file, where.offset_bytes + at, where.pe, where.seb, cut)
            raise DamagedLogError(location, fault.problem, fault.rule)


def _records(block: BlockRecords) -> Iterator[Record]:
    """Yield the SEBs of a part."""
    made = {
        "messages": _dicts(block.messages),
        "events": _events(block.events),
        "backward": _numbers(block.backward["other"]),
        "forward": _numbers(block.forward["other"]),
    }
    firsts = {name: block.first(name).tolist() for name in LISTS}
    offsets = block.sebs.at + block.loaded.block.offset
    for k, fields in enumerate(_dicts(block.sebs)(slice(None))):
        yield {
            "pe": int(block.pe[k]),
            "seb": int(block.index[k]),
            "offset": int(offsets[k]),
            **fields,
            **{name: Items(made[name], *firsts[name][k : k + 2]) for name in LISTS},
        }


def _dicts(records: Records) -> Callable[[slice], Iterator[Record]]:
    """Return a function that makes dicts of records with the fields of their log version."""
    names = list(records.dtype.names or ())
    columns = [records.raw(name) for name in names]

    def made(rows: slice) -> Iterator[Record]:
        for values in zip(*(column[rows].tolist() for column in columns), strict=True):
            yield dict(zip(names, values, strict=True))

    return made


def _events(events: Records) -> Callable[[slice], Iterator[Record]]:
    """Return a function that makes dicts of log events, whose `data` is an index or a text."""
    made_fields, texts = _dicts(events), events.at + events.dtype.itemsize

    def made(rows: slice) -> Iterator[Record]:
        for at, event in zip(texts[rows].tolist(), made_fields(rows), strict=True):
            number = event.pop("number")
            text = events.buffer[at : at + number]
            pointer = event["type"] == EventType.PROJECTIONS
            yield {**event, "data": number if pointer else text.tobytes()}

    return made


def _numbers(column: Ints) -> Callable[[slice], Iterator[int]]:
    return lambda rows: iter(column[rows].tolist())
