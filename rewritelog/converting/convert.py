"""Conversion of a log set to another log version or byte order."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, get_args

import numpy as np

from rewritelog.arrays import Bytes, Ints
from rewritelog.converting.kernels import convert as kernels
from rewritelog.errors import OutputError, RewriteLogError, UsageError
from rewritelog.format import ByteOrder, Layout, Record, format_names, layout
from rewritelog.format.declaration import (
    INTEGER_FORMATS,
    LOG_VERSIONS,
    MACHINE_HEADER_BYTES,
    MISSING,
    MachineHeader,
    summary_struct,
    timeline_file_struct,
)
from rewritelog.kernels import walk
from rewritelog.logs.blocks import BLOCK_BYTES, Buffer, LoadedBlock, raise_fault
from rewritelog.logs.files import InputFile
from rewritelog.logs.logset import LogSet
from rewritelog.logs.provenance import PROVENANCE_NAME
from rewritelog.logs.timelines import TimelineFile
from rewritelog.output import OutputFile, create_file, new_folder
from rewritelog.output.companions import COMPANIONS, copy_companions
from rewritelog.progress import report_progress
from rewritelog.text import bytes_text, count_text

_COPIED = ("param.*", PROVENANCE_NAME, *COMPANIONS)
"""The files that belong to a log set and know nothing of its format."""

OFFSET_LIMIT = 1 << 32
"""Offsets are modulo this, so that a timeline of this size is indistinguishable from none."""

_GUARDS = {"mpi_size": "mpi_op"}
"""Fields that are only meaningful if another one is not its default."""


@dataclass(frozen=True)
class Loss:
    """A field with meaningful values that the target version cannot represent."""

    field: str
    count: int
    """The number of records with such a value."""
    records: str
    """The kind of the records: `SEBs` or `messages`."""
    pe: int
    """The PE of the first of them, and `seb` its SEB."""
    seb: int

    def __str__(self) -> str:
        """Return the loss for messages."""
        return (
            f"{self.field} of {self.count} {self.records} (first in PE {self.pe}, SEB {self.seb})"
        )


@dataclass(frozen=True)
class Conversion:
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


@dataclass(frozen=True)
class _Plan:
    """The conversion of records from one layout to another."""

    source: Layout
    target: Layout
    sebs: kernels.RecordConversion
    messages: kernels.RecordConversion
    lost: tuple[tuple[str, str], ...]
    """The kind of record and the field of each loss rule, those of SEBs first."""

    @property
    def reverse(self) -> bool:
        return self.source.order != self.target.order


@dataclass
class _Tally:
    """The counts of a conversion so far."""

    sebs: int = 0
    messages: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    losses: dict[tuple[str, str], Loss] = field(default_factory=dict)


def convert_logs(
    logs: LogSet,
    out: Path,
    *,
    log_version: int | None = None,
    order: ByteOrder | None = None,
    lossy: bool = False,
    force: bool = False,
) -> Conversion:
    """Write a log set into the folder `out` in another log version, byte order or both.

    None keeps that of the logs. Fields that the source lacks get default values. Raise
    `RewriteLogError` naming fields with meaningful values that the target version cannot represent,
    unless `lossy`; `DamagedLogError` for damaged logs; `OutputError` if the output cannot be
    written (see `new_folder`). No output remains in these cases.
    """
    version = logs.summary.log_version if log_version is None else log_version
    wanted = logs.summary.order if order is None else order
    if version not in LOG_VERSIONS:
        known = f"{LOG_VERSIONS[0]} to {LOG_VERSIONS[-1]}"
        raise UsageError(f"log version {version} is unknown; {known} are known")
    if wanted not in get_args(ByteOrder):
        raise UsageError(f"byte order {wanted!r} is unknown; known: little, big")
    plan = _plan(logs.layout, layout(version, wanted))
    tally = _Tally()
    with new_folder(out, [logs.folder], force=force) as folder:
        for file in logs.files:
            _convert_file(logs, file, plan, folder / file.path.name, tally, lossy=lossy)
        losses = tuple(tally.losses[key] for key in plan.lost if key in tally.losses)
        if losses and not lossy:
            named = "; ".join(str(loss) for loss in losses)
            raise RewriteLogError(
                f"{logs.folder}: log version {version} cannot hold {named}; "
                "--lossy converts anyway and drops them"
            )
        (folder / logs.summary_path.name).write_bytes(_converted_summary(logs, version, wanted))
        copy_companions(logs, folder, _COPIED)
    return Conversion(
        version, wanted, tally.sebs, tally.messages, logs.size_bytes, tally.bytes_out, losses
    )


def _convert_file(
    logs: LogSet, file: TimelineFile, plan: _Plan, path: Path, tally: _Tally, *, lossy: bool
) -> None:
    """Convert one timeline file; after a loss that is not allowed only count further losses."""
    sizes = np.zeros(len(file.pes), dtype=np.int64)
    target = Buffer()
    create_file(path, file.head_bytes)
    with OutputFile(path, flush=True) as output:
        at = file.head_bytes
        for loaded in logs.blocks_of(file, BLOCK_BYTES):
            data, written = _convert_block(loaded, plan, target, tally)
            first = loaded.block.first_timeline
            sizes[first : first + len(written)] += written
            _check_sizes(file, sizes[first : first + len(written)], loaded, plan)
            if lossy or not tally.losses:
                output.write(data, at)
            at += len(data)
            tally.bytes_in += len(loaded.buffer)
            report_progress("converting", tally.bytes_in, logs.size_bytes, "bytes")
        output.write(_file_head(file, sizes, plan.target.order), 0)
    tally.bytes_out += at


def _convert_block(
    loaded: LoadedBlock, plan: _Plan, buffer: Buffer, tally: _Tally
) -> tuple[Bytes, Ints]:
    """Return the converted bytes of a block, and the size of each piece in them."""
    lay, pieces = plan.source.kernel, loaded.pieces
    fault = np.zeros(walk.FAULT_SIZE, dtype=np.int64)
    totals = walk.tally(loaded.buffer, pieces.starts, pieces.ends, pieces.counts, lay, fault)
    raise_fault(fault, loaded)
    sebs, messages = int(pieces.counts.sum()), int(totals[:, 0].sum())
    size = loaded.block.size_bytes
    size += sebs * (plan.sebs.size - lay.seb_bytes) + messages * (
        plan.messages.size - lay.message_bytes
    )
    data = buffer.take(size)
    lost = [_no_losses(records) for records in (plan.sebs, plan.messages)]
    sizes: Ints = kernels.convert(
        loaded.buffer, pieces, lay, plan.reverse, plan.sebs, plan.messages, data, *lost
    )
    tally.sebs += sebs
    tally.messages += messages
    _note_losses(lost, loaded, plan, tally)
    return data, sizes


def _no_losses(records: kernels.RecordConversion) -> kernels.Losses:
    rules = len(records.rules)
    return kernels.Losses(np.zeros(rules, dtype=np.int64), np.zeros((rules, 2), dtype=np.int64))


def _note_losses(
    lost: list[kernels.Losses], loaded: LoadedBlock, plan: _Plan, tally: _Tally
) -> None:
    counts = np.concatenate([losses.counts for losses in lost])
    firsts = np.concatenate([losses.firsts for losses in lost])
    for key, count, (piece, seb) in zip(plan.lost, counts.tolist(), firsts.tolist(), strict=True):
        if count == 0:
            continue
        records, name = key
        first = (int(loaded.pes[piece]), seb)
        if key in tally.losses:
            known = tally.losses[key]
            count += known.count  # noqa: PLW2901 - the sum is what is noted
            first = min(first, (known.pe, known.seb))
        tally.losses[key] = Loss(name, count, records, *first)


def _check_sizes(file: TimelineFile, sizes: Ints, loaded: LoadedBlock, plan: _Plan) -> None:
    largest = int(np.argmax(sizes))
    if sizes[largest] >= OFFSET_LIMIT:
        raise OutputError(
            f"{file.path}: the timeline of PE {loaded.pes[largest]} would have 4 GiB or more in "
            f"log version {plan.target.log_version}, which the format's offsets cannot hold"
        )


def _file_head(file: TimelineFile, sizes: Ints, order: ByteOrder) -> bytes:
    borders = file.head_bytes + np.cumsum(sizes) - sizes
    head: bytes = timeline_file_struct(order).build(
        {
            "machine": _converted_machine(file.machine, order),
            "count": len(sizes),
            "offsets": (borders % OFFSET_LIMIT).tolist(),
        }
    )
    return head


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
    built: bytes = summary_struct(order).build(summary)
    return built


def _plan(source: Layout, target: Layout) -> _Plan:
    reverse = source.order != target.order
    sebs, seb_losses = _record_conversion("seb", source.seb, target.seb, reverse=reverse)
    messages, message_losses = _record_conversion(
        "message", source.message, target.message, reverse=reverse
    )
    losses = [("SEBs", name) for name in seb_losses]
    losses += [("messages", name) for name in message_losses]
    return _Plan(source, target, sebs, messages, tuple(losses))


def _record_conversion(
    record: Record, source: np.dtype[Any], target: np.dtype[Any], *, reverse: bool
) -> tuple[kernels.RecordConversion, list[str]]:
    """Return the conversion of one kind of record, and the fields that the target lacks."""
    rules, names = _loss_rules(record, source, target)
    moves = _moves(source, target, reverse=reverse)
    template, defaults = _default_record(target), _default_record(source)
    return kernels.RecordConversion(target.itemsize, moves, template, rules, defaults), names


def _extents(dtype: np.dtype[Any]) -> dict[str, tuple[int, int, int]]:
    """Return offset, size, and size of one number of each field, in bytes."""
    extents = {}
    for name, entry in (dtype.fields or {}).items():
        kind, offset = entry[0], entry[1]
        width = 1 if kind.base.kind == "V" else kind.base.itemsize
        extents[name] = (int(offset), kind.itemsize, width)
    return extents


def _moves(source: np.dtype[Any], target: np.dtype[Any], *, reverse: bool) -> Ints:
    """Return the moves that fill a target record; adjacent similar ones are merged."""
    moves: list[list[int]] = []
    known = _extents(source)
    for name, (to, size, width) in _extents(target).items():
        begin, there, _ = known.get(name, (-1, 0, 1))
        kept = min(size, there)
        parts = [[begin, to, kept, width if reverse else 1], [-1, to + kept, size - kept, 1]]
        for part in parts:
            if part[kernels.LENGTH] > 0:
                _add_move(moves, part)
    return np.array(moves, dtype=np.int64).reshape(-1, 4)


def _add_move(moves: list[list[int]], part: list[int]) -> None:
    if moves:
        begin, _, length, width = moves[-1]
        expected = begin + length if begin >= 0 else -1
        if part[kernels.SOURCE] == expected and part[kernels.WIDTH] == width:
            moves[-1][kernels.LENGTH] += part[kernels.LENGTH]
            return
    moves.append(part)


def _default_record(dtype: np.dtype[Any]) -> Bytes:
    """Return a record with defaults for fields that some version lacks, and 0 for all others."""
    record = np.zeros(1, dtype=dtype)
    for name in dtype.names or ():
        if name in MISSING:
            value = np.asarray(MISSING[name])
            record[name] = value[: record[name].size] if value.ndim else value
    return record.view(np.uint8)


def _loss_rules(
    record: Record, source: np.dtype[Any], target: np.dtype[Any]
) -> tuple[Ints, list[str]]:
    """Return the loss rules for fields that the target lacks, and the names of these fields.

    The names are those of FORMAT; of an array that is cut off, the first lost element.
    """
    rules: list[list[int]] = []
    lost: list[str] = []
    known = _extents(target)
    names: list[str] = []
    for name, (at, size, width) in _extents(source).items():
        kept = known[name][1] if name in known else 0
        if kept < size:
            guard = lost.index(_GUARDS[name]) if _GUARDS.get(name) in lost else -1
            rules.append([at + kept, size - kept, at + kept, guard])
            lost.append(name)
            names.append(format_names(record)[name] + (f"[{kept // width}]" if kept else ""))
    return np.array(rules, dtype=np.int64).reshape(-1, 4), names
