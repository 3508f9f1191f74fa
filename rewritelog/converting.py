"""Conversion of a log set to another log version or byte order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from rewritelog.arrays import Bytes, Flags, Ints, Table
from rewritelog.commands.logs import ConvertCommand
from rewritelog.core import core
from rewritelog.errors import DamagedLogError, Location, OutputError, RewriteLogError, spelled
from rewritelog.formats.bgtrace.blocks import Block, LoadedBlock
from rewritelog.formats.bgtrace.declaration import (
    COUNT_BYTES,
    INTEGER_FORMATS,
    MACHINE_HEADER_BYTES,
    MISSING,
    ByteOrder,
    Layout,
    MachineHeader,
    Record,
    format_names,
    layout,
    summary_struct,
)
from rewritelog.formats.bgtrace.heads import OFFSET_RANGE, TimelineFile, timeline_file_head
from rewritelog.formats.bgtrace.logset import LogSet
from rewritelog.formats.bgtrace.records import BlockRecords, Records, records_of
from rewritelog.formats.files import PROVENANCE_NAME, InputFile
from rewritelog.output.files import COMPANIONS, FlushingWork, copy_companions, create_file
from rewritelog.output.folders import new_folder
from rewritelog.running.engines import map_blocks
from rewritelog.text import Readable, bytes_text, count_text

_GUARDS = {"mpi_size": "mpi_op"}
"""Fields that are only meaningful if another one is not its default."""


_KINDS: tuple[Record, ...] = ("seb", "message")
"""The records whose size depends on the log version."""


class LostField(NamedTuple):
    """A field, or the end of an array, that the target layout lacks."""

    record: Record
    name: str
    kept: int
    """The number of elements that the target has of an array."""

    def __str__(self) -> str:
        """Return the name in FORMAT, with the first lost element of an array that is cut off."""
        return format_names(self.record)[self.name] + (f"[{self.kept}]" if self.kept else "")


def lost_fields(source: Layout, target: Layout) -> list[LostField]:
    """Return the fields that the target layout lacks, those of SEBs first."""
    lost = []
    for record in _KINDS:
        source_fields, target_fields = getattr(source, record), getattr(target, record)
        for name in source_fields.names:
            kept = sum(target_fields[name].shape) if name in target_fields.names else 0
            if name not in target_fields.names or kept < sum(source_fields[name].shape):
                lost.append(LostField(record, name, kept))
    return lost


class Loss(Struct, frozen=True):
    """A field with meaningful values that the target version cannot represent."""

    field: str
    count: int
    """The number of records with such a value."""
    records: str
    """The kind of the records: `SEBs` or `messages`."""
    pe: int
    """The PE of the first such record, and `seb` its SEB."""
    seb: int

    def __add__(self, other: Loss) -> Loss:
        """Return the loss of the same field in more SEBs or messages."""
        first = min((self.pe, self.seb), (other.pe, other.seb))
        return Loss(self.field, self.count + other.count, self.records, *first)

    def __str__(self) -> str:
        count = count_text(self.count, self.records.removesuffix("s"))
        return f"{self.field} of {count} (first in PE {self.pe}, SEB {self.seb})"


def losses_of(block: BlockRecords, lost: Iterable[LostField]) -> Iterator[tuple[LostField, Loss]]:
    """Yield the lost fields that have meaningful values in a block."""
    losing = dict[str, Flags]()
    for field in lost:
        records, kind = (
            (block.sebs, "SEBs") if field.record == "seb" else (block.messages, "messages")
        )
        values, default = records.raw(field.name), np.asarray(MISSING[field.name])
        if values.ndim == 1:
            loses = np.asarray(values != default)
        else:
            cut = slice(field.kept, values.shape[1])
            loses = np.asarray((values[:, cut] != default[cut]).any(axis=1))
        if _GUARDS.get(field.name) in losing:
            loses &= losing[_GUARDS[field.name]]
        losing[field.name] = loses
        sebs = records.seb[loses]
        if len(sebs):
            first = int(block.pe[sebs[0]]), int(block.index[sebs[0]])
            yield field, Loss(str(field), len(sebs), kind, *first)


def _shifts(block: BlockRecords, target: Layout) -> Ints:
    """Return by how many bytes each SEB, and then the block's end, moves in the target layout."""
    source = block.loaded.layout
    seb_growth = target.seb.itemsize - source.seb.itemsize
    message_growth = target.message.itemsize - source.message.itemsize
    return np.concatenate([[0], np.cumsum(seb_growth + block.walked["messages"] * message_growth)])


def convert_block(block: BlockRecords, target: Layout) -> Bytes:
    """Return the bytes of a whole block in the target layout.

    Fields that the source lacks get default values.
    """
    sebs, messages, pieces = block.sebs, block.messages, block.loaded.pieces
    sent, shift = block.walked["messages"], _shifts(block, target)
    data = np.empty(len(block.loaded.buffer) + int(shift[-1]), dtype=np.uint8)
    at = sebs.at + shift[:-1]
    _write(sebs, data, at, target.seb)
    _put(data, at + target.seb.itemsize, sent, target.count)
    index = np.arange(len(messages)) - block.first("messages")[messages.seb]
    begin = at + target.seb.itemsize + COUNT_BYTES
    place = begin[messages.seb] + index * target.message.itemsize
    _write(messages, data, place, target.message)
    _copy_lists(block, data, begin + sent * target.message.itemsize, target)
    bounds = shift[np.concatenate([[0], np.cumsum(block.pieces.counts)])]
    begins_here = pieces.firsts == 0
    counts = pieces.starts - COUNT_BYTES + bounds[:-1]
    _put(data, counts[begins_here], block.loaded.totals[begins_here], target.count)
    return data


def _copy_lists(block: BlockRecords, data: Bytes, to: Ints, target: Layout) -> None:
    """Copy the lists of events and dependencies of SEBs, whose sizes no log version changes."""
    walked, begin = block.walked, np.ascontiguousarray(block.walked["events_at"])
    forward_at = walked["backward_at"] + COUNT_BYTES * (1 + walked["backward"])
    sizes = forward_at + COUNT_BYTES * (1 + walked["forward"]) - begin
    core.copy_ranges(block.loaded.buffer, begin, to, sizes, data)
    if target.order == block.loaded.layout.order:
        return
    moved = to - begin
    _put(data, to, walked["events"], target.count)
    _put(data, walked["backward_at"] + moved, walked["backward"], target.count)
    _put(data, forward_at + moved, walked["forward"], target.count)
    for records in (block.events, block.backward, block.forward):
        at = records.at + moved[records.seb]
        _write(records, data, at, records.dtype.newbyteorder("S"))


def _write(records: Records, data: Bytes, at: Ints, dtype: np.dtype[Any]) -> None:
    """Write records to the offsets `at` of `data`, with the fields of a dtype."""
    written = replace(records, buffer=data, dtype=dtype, at=at)
    for name in dtype.names or ():
        kind = dtype[name]
        values = records.raw(name) if kind.kind == "V" and not kind.shape else records[name]
        written.put(name, values[:, : kind.shape[0]] if kind.shape else values)


def _put(data: Bytes, at: Ints, values: Table | Ints, kind: np.dtype[Any]) -> None:
    """Write a number at each of some offsets."""
    column = np.ascontiguousarray(values, dtype=kind.newbyteorder("=")).view(np.uint8)
    core.scatter(data, at, 0, kind.itemsize, kind.itemsize, not kind.isnative, column)


_COPIED = ("param.*", PROVENANCE_NAME, *COMPANIONS)
"""The files of a log set that do not depend on its format."""


@dataclass(frozen=True, repr=False)
class Conversion(Readable):
    """The results of a conversion."""

    log_version: int
    order: ByteOrder
    sebs: int
    messages: int
    bytes_in: int
    """The size of the timeline files before."""
    bytes_out: int
    """The size of the timeline files after."""
    losses: tuple[Loss, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the results as a JSON object."""
        return asdict(self)

    def text(self) -> str:
        """Return the results as text."""
        figures = f"{count_text(self.sebs, 'SEB')}, {count_text(self.messages, 'message')}"
        sizes = f"{bytes_text(self.bytes_in)} before, {bytes_text(self.bytes_out)} now"
        lines = [
            f"log version {self.log_version}, {self.order}-endian: {figures}, {sizes}",
            *(f"dropped: {loss}" for loss in self.losses),
        ]
        return "\n".join(lines)


def convert(request: ConvertCommand) -> Conversion:
    """Write a log set in another log version, byte order or both.

    Fields that the source lacks get default values. Raise `RewriteLogError` naming fields with
    meaningful values that the target version cannot represent, unless the request is lossy;
    `DamagedLogError` for damaged logs; `OutputError` if the output cannot be written (see
    `new_folder`). No output remains in these cases.
    """
    logs = request.logs
    version, byte_order = logs.summary.log_version, request.byte_order or logs.summary.order
    if request.log_version is not None:
        version = request.log_version
    target = layout(version, byte_order)
    with new_folder(request.out, force=request.force) as folder:
        sizes, losses = _sizes(logs, target)
        if losses and not request.lossy:
            named = "; ".join(str(loss) for loss in losses)
            raise RewriteLogError(
                f"{logs.folder}: log version {version} cannot hold {named}; "
                f"{spelled('lossy', True)} converts anyway and drops them"
            )
        counts, borders = np.zeros(2, dtype=np.int64), list[Ints]()
        for file, of_file in zip(logs.files, sizes, strict=True):
            borders.append(np.concatenate([[0], np.cumsum(of_file)]) + file.head_bytes)
            head = _converted_head(file, borders[-1], target)
            create_file(folder / file.path.name, int(borders[-1][-1]), head)
        work = FlushingWork(partial(_converted, logs, target, borders), folder, flush=True)
        for _, written in map_blocks(
            work, logs.units(in_turn=True), "converting", logs.units_bytes
        ):
            counts += written
        (folder / logs.summary_path.name).write_bytes(_converted_summary(logs, version, byte_order))
        copy_companions(logs, folder, _COPIED)
    heads = logs.size_bytes - logs.units_bytes
    bytes_out = heads + sum(int(of_file.sum()) for of_file in sizes)
    sebs, messages = counts.tolist()
    return Conversion(version, byte_order, sebs, messages, logs.size_bytes, bytes_out, losses)


def _sizes(logs: LogSet, target: Layout) -> tuple[list[Ints], tuple[Loss, ...]]:
    """Return the size that each timeline of each file will have, and what will be lost.

    Both need a pass over the logs, unless records keep their sizes and fields.
    """
    source = logs.layout
    lost = lost_fields(source, target)
    sizes = [np.diff(file.borders) for file in logs.files]
    same = all(getattr(source, kind).itemsize == getattr(target, kind).itemsize for kind in _KINDS)
    if same and not lost:
        return sizes, ()
    losses = dict[LostField, Loss]()
    work = partial(_measured, target, lost)
    for block, of_block, of_block_losses in logs.map(work, "measuring"):
        begin = block.first_timeline
        sizes[block.file][begin : begin + len(of_block)] = of_block
        for field, loss in of_block_losses:
            losses[field] = losses[field] + loss if field in losses else loss
    return sizes, tuple(losses[field] for field in lost if field in losses)


def _measured(
    target: Layout, lost: list[LostField], parts: Iterator[LoadedBlock]
) -> tuple[Block, Ints, list[tuple[LostField, Loss]]]:
    """Return a block, the size of each of its timelines in the target layout, and its losses."""
    losses, sizes = list[tuple[LostField, Loss]](), np.zeros(1, dtype=np.int64)
    for loaded in parts:  # several parts belong to one timeline
        block, pieces = records_of(loaded), loaded.pieces
        bounds = _shifts(block, target)[np.concatenate([[0], np.cumsum(block.pieces.counts)])]
        counts = COUNT_BYTES * (pieces.firsts == 0)
        sizes = sizes + (pieces.ends - pieces.starts + counts + np.diff(bounds))
        losses += losses_of(block, lost)
    return loaded.block, sizes, losses


def _converted(
    logs: LogSet,
    target: Layout,
    borders: list[Ints],
    block: Block,
    files: FlushingWork[Block, Ints],
) -> Ints:
    """Convert a block; return the numbers of its SEBs and messages.

    `borders` has the offsets at which timelines begin and end in each converted file.
    """
    file, first = logs.files[block.file], block.first_timeline
    at, end = (int(borders[block.file][k]) for k in (first, first + block.timelines))
    counts = np.zeros(2, dtype=np.int64)
    for loaded in logs.read(block):
        records = records_of(loaded)
        data = convert_block(records, target)
        at += len(data)
        if at > end:
            break
        files.write(file.path.name, data, at - len(data))
        counts += len(records.sebs), len(records.messages)
    if at != end:
        raise DamagedLogError(Location(file.path), "the file changed during the run")
    return counts


def _converted_head(file: TimelineFile, borders: Ints, target: Layout) -> bytes:
    """Return the head of a converted file; raise `OutputError` for a timeline that is too large."""
    for number in np.flatnonzero(np.diff(borders) >= OFFSET_RANGE).tolist():
        raise OutputError(
            f"{file.path}: the timeline of PE {file.pes[number]} would have 4 GiB or more in "
            f"log version {target.log_version}, which the format's offsets cannot hold"
        )
    machine = _converted_machine(file.machine, target.order)
    return timeline_file_head(machine, borders[:-1].tolist(), target.order)


def _converted_machine(machine: bytes, order: ByteOrder) -> Any:
    header = MachineHeader.parse(machine)
    header.sizes.integer_format = header.sizes.float_format = INTEGER_FORMATS[order]
    return header


def _converted_summary(logs: LogSet, log_version: int, order: ByteOrder) -> bytes:
    """Return the converted summary, which has a log version if the source's has or it is not 0."""
    with InputFile(logs.summary_path) as file:
        head = file.read(0, file.size_bytes).tobytes()
    summary = summary_struct(logs.summary.order).parse(head)
    summary.machine = _converted_machine(head[:MACHINE_HEADER_BYTES], order)
    if summary.log_version is not None or log_version != 0:
        summary.log_version = log_version
    return bytes(summary_struct(order).build(summary))
