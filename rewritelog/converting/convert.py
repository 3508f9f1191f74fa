"""Conversion of a log set to another log version or byte order."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, get_args

import numpy as np

from rewritelog.arrays import Ints
from rewritelog.converting.records import LostField, convert_block, losses_of, lost_fields
from rewritelog.errors import OutputError, RewriteLogError, UsageError
from rewritelog.format import ByteOrder, Layout, layout
from rewritelog.format.declaration import (
    INTEGER_FORMATS,
    LOG_VERSIONS,
    MACHINE_HEADER_BYTES,
    MachineHeader,
    summary_struct,
    timeline_file_struct,
)
from rewritelog.logs.blocks import BLOCK_BYTES, Buffer, LoadedBlock
from rewritelog.logs.files import InputFile
from rewritelog.logs.logset import LogSet
from rewritelog.logs.provenance import PROVENANCE_NAME
from rewritelog.logs.records import BlockRecords, records_of
from rewritelog.logs.timelines import TimelineFile
from rewritelog.output import OutputFile, create_file, flush_files, new_folder
from rewritelog.output.companions import COMPANIONS, copy_companions
from rewritelog.running.engines import map_blocks
from rewritelog.text import bytes_text, count_text

_COPIED = ("param.*", PROVENANCE_NAME, *COMPANIONS)
"""The files that belong to a log set and know nothing of its format."""

OFFSET_LIMIT = 1 << 32
"""Offsets are modulo this, so that a timeline of this size is indistinguishable from none."""


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


@dataclass
class _Tally:
    """The counts of a conversion so far."""

    lost: list[LostField]
    """What the target layout lacks."""
    sebs: int = 0
    messages: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    losses: dict[LostField, Loss] = field(default_factory=dict)

    def add(self, block: BlockRecords) -> None:
        """Count the records of a block, and those that lose a value."""
        self.sebs += len(block.sebs)
        self.messages += len(block.messages)
        self.bytes_in += len(block.loaded.buffer)
        for one, sebs in losses_of(block, self.lost):
            if len(sebs):
                first = (int(block.pe[sebs[0]]), int(block.index[sebs[0]]))
                self._lose(one, Loss(str(one), len(sebs), one.records, *first))

    def add_file(self, other: _Tally) -> None:
        """Add the counts of a file."""
        self.sebs += other.sebs
        self.messages += other.messages
        self.bytes_in += other.bytes_in
        self.bytes_out += other.bytes_out
        for one, loss in other.losses.items():
            self._lose(one, loss)

    def _lose(self, one: LostField, loss: Loss) -> None:
        known = self.losses.get(one)
        if known is not None:
            first = min((loss.pe, loss.seb), (known.pe, known.seb))
            loss = Loss(loss.field, known.count + loss.count, loss.records, *first)
        self.losses[one] = loss


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
    target = layout(version, wanted)
    tally = _Tally(lost_fields(logs.layout, target))
    with new_folder(out, [logs.folder], force=force) as folder:
        work = _FileConverter(logs, target, folder, lossy)
        for _, done in map_blocks(work, logs.files, "converting", logs.size_bytes):
            tally.add_file(done)
        losses = tuple(tally.losses[one] for one in tally.lost if one in tally.losses)
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


@dataclass(frozen=True)
class _FileConverter:
    """Converts timeline files, each in one piece: where a block goes depends on those before it."""

    logs: LogSet
    target: Layout
    folder: Path
    lossy: bool

    def __call__(self, file: TimelineFile, /) -> _Tally:
        """Convert a file and flush it; after a loss that is not allowed only count further ones."""
        tally = _Tally(lost_fields(self.logs.layout, self.target))
        sizes = np.zeros(len(file.pes), dtype=np.int64)
        buffer, path = Buffer(), self.folder / file.path.name
        create_file(path, file.head_bytes)
        with OutputFile(path, flush=True) as output:
            at = file.head_bytes
            for loaded in self.logs.blocks_of(file, BLOCK_BYTES):
                block = records_of(loaded)
                tally.add(block)
                data, written = convert_block(block, self.target, buffer)
                first = loaded.block.first_timeline
                sizes[first : first + len(written)] += written
                _check_sizes(file, sizes[first : first + len(written)], loaded, self.target)
                if self.lossy or not tally.losses:
                    output.write(data, at)
                at += len(data)
            output.write(_file_head(file, sizes, self.target.order), 0)
        flush_files([path])
        tally.bytes_out = at
        return tally


def _check_sizes(file: TimelineFile, sizes: Ints, loaded: LoadedBlock, target: Layout) -> None:
    largest = int(np.argmax(sizes))
    if sizes[largest] >= OFFSET_LIMIT:
        raise OutputError(
            f"{file.path}: the timeline of PE {loaded.pes[largest]} would have 4 GiB or more in "
            f"log version {target.log_version}, which the format's offsets cannot hold"
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
