"""The records of a block in another log version or byte order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from rewritelog.arrays import Bytes, Flags, Ints, Table
from rewritelog.core import core
from rewritelog.formats.bgtrace.declaration import COUNT_BYTES, MISSING, Layout, format_names
from rewritelog.formats.bgtrace.records import BlockRecords, Records

_GUARDS = {"mpi_size": "mpi_op"}
"""Fields that are only meaningful if another one is not its default."""


@dataclass(frozen=True)
class LostField:
    """A field, or the end of an array, that the target layout lacks."""

    record: Literal["seb", "message"]
    name: str
    kept: int
    """The number of elements that the target has of an array."""

    @property
    def records(self) -> str:
        """The kind of the records in messages."""
        return "SEBs" if self.record == "seb" else "messages"

    def __str__(self) -> str:
        """Return the name in FORMAT, with the first lost element of an array that is cut off."""
        return format_names(self.record)[self.name] + (f"[{self.kept}]" if self.kept else "")

    def among(self, records: Records) -> Flags:
        """Return which records have a value that is not the default."""
        values, default = records.raw(self.name), np.asarray(MISSING[self.name])
        if values.ndim == 1:
            return np.asarray(values != default)
        lost = values[:, self.kept :] != default[self.kept : values.shape[1]]
        return np.asarray(lost.any(axis=1))


def lost_fields(source: Layout, target: Layout) -> list[LostField]:
    """Return what the target layout lacks, in SEBs first."""
    lost = []
    kinds: list[tuple[Literal["seb", "message"], np.dtype[Any], np.dtype[Any]]] = [
        ("seb", source.seb, target.seb),
        ("message", source.message, target.message),
    ]
    for record, had, has in kinds:
        for name in had.names or ():
            kept = sum(has[name].shape) if name in (has.names or ()) else 0
            if name not in (has.names or ()) or kept < sum(had[name].shape):
                lost.append(LostField(record, name, kept))
    return lost


def losses_of(block: BlockRecords, lost: list[LostField]) -> Iterator[tuple[LostField, Ints]]:
    """Yield each lost field with the SEBs, over the whole block, of records that lose a value."""
    losing: dict[str, Flags] = {}
    for field in lost:
        records = block.sebs if field.record == "seb" else block.messages
        losing[field.name] = field.among(records)
        if _GUARDS.get(field.name) in losing:
            losing[field.name] &= losing[_GUARDS[field.name]]
        yield field, records.seb[losing[field.name]]


def _shifts(block: BlockRecords, target: Layout) -> Ints:
    """Return by how much each SEB, and then the end, moves in the target layout."""
    source = block.loaded.layout
    longer = target.seb.itemsize - source.seb.itemsize
    longer_messages = target.message.itemsize - source.message.itemsize
    return np.concatenate([[0], np.cumsum(longer + block.counts[:, 0] * longer_messages)])


def converted_sizes(block: BlockRecords, target: Layout) -> Ints:
    """Return the size of each piece in the target layout, with the count of its timeline."""
    pieces = block.loaded.pieces
    bounds = _shifts(block, target)[np.concatenate([[0], np.cumsum(block.walked)])]
    begun = pieces.firsts == 0
    return np.asarray(pieces.ends - pieces.starts + COUNT_BYTES * begun + np.diff(bounds))


def convert_block(block: BlockRecords, target: Layout) -> Bytes:
    """Return the bytes of a whole block in the target layout.

    Fields that the source lacks get default values.
    """
    source, pieces = block.loaded.layout, block.loaded.pieces
    sebs, messages = block.sebs, block.messages
    sent, shift = block.counts[:, 0], _shifts(block, target)
    data = np.empty(len(block.loaded.buffer) + int(shift[-1]), dtype=np.uint8)
    at = sebs.at + shift[:-1]
    _write(sebs, data, at, target.seb)
    _put(data, at + target.seb.itemsize, sent, target.count)
    index = np.arange(len(messages)) - block.first("messages")[messages.seb]
    begin = at + target.seb.itemsize + COUNT_BYTES
    place = begin[messages.seb] + index * target.message.itemsize
    _write(messages, data, place, target.message)
    after = sebs.at + source.seb.itemsize + COUNT_BYTES + sent * source.message.itemsize
    _copy_lists(block, data, after, begin + sent * target.message.itemsize, target)
    bounds = shift[np.concatenate([[0], np.cumsum(block.walked)])]
    begun = pieces.firsts == 0
    counts = pieces.starts - COUNT_BYTES + bounds[:-1]
    _put(data, counts[begun], block.loaded.totals[begun], target.count)
    return data


def _copy_lists(block: BlockRecords, data: Bytes, begin: Ints, to: Ints, target: Layout) -> None:
    """Copy the lists of events and dependencies of SEBs, whose sizes no log version changes."""
    sizes = _ends(block) - begin
    core.copy_ranges(block.loaded.buffer, begin, to, sizes, data)
    if target.order == block.loaded.layout.order:
        return
    _, events, backward, forward = block.counts.T
    _put(data, to, events, target.count)
    forward_at = to + sizes - COUNT_BYTES * (1 + forward)
    _put(data, forward_at, forward, target.count)
    _put(data, forward_at - COUNT_BYTES * (1 + backward), backward, target.count)
    for records in (block.events, block.backward, block.forward):
        at = records.at + (to - begin)[records.seb]
        _write(records, data, at, records.dtype.newbyteorder("S"))


def _ends(block: BlockRecords) -> Ints:
    """Return the offset after each SEB."""
    ends = np.append(block.sebs.at[1:], 0)
    last = np.cumsum(block.walked)[block.walked > 0] - 1
    ends[last] = block.loaded.pieces.ends[block.walked > 0]
    return ends


def _write(records: Records, data: Bytes, at: Ints, dtype: np.dtype[Any]) -> None:
    """Write records to other places with the fields of a dtype."""
    written = replace(records, buffer=data, dtype=dtype, at=at)
    for name in dtype.names or ():
        kind = dtype[name]
        values = records.raw(name) if kind.kind == "V" and not kind.shape else records[name]
        written.put(name, values[:, : kind.shape[0]] if kind.shape else values)


def _put(data: Bytes, at: Ints, values: Table | Ints, kind: np.dtype[Any]) -> None:
    """Write a number at each of some offsets."""
    column = np.ascontiguousarray(values, dtype=kind.newbyteorder("=")).view(np.uint8)
    core.scatter(data, at, 0, kind.itemsize, kind.itemsize, not kind.isnative, column)
