"""The contents of a log set in ascending order of the PEs: tables, brackets, records."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TypeVar

import numpy as np

from rewritelog.arrays import Flags, Floats, Ints, Table
from rewritelog.commands.logs import ALWAYS
from rewritelog.formats import NO_RECORDS, ParamRecords
from rewritelog.formats.bgtrace.blocks import Block, LoadedBlock
from rewritelog.formats.bgtrace.logset import LogSet
from rewritelog.formats.bgtrace.params import Paired, ParamFolder, read_params
from rewritelog.formats.bgtrace.records import BlockRecords, records_of
from rewritelog.formats.bgtrace.tables import dependency_rows, event_rows, message_rows, seb_rows
from rewritelog.running.engines import map_blocks

Result = TypeVar("Result")

PART_BYTES = 1 << 20
"""Timelines are exported in parts of this size; their tables take several times as much."""

_SEB = [("pe", np.int64), ("seb", np.int64)]

BRACKET_ROW = np.dtype(
    [*_SEB, ("bracket", np.int64), ("start", np.float64), ("end", np.float64), ("event", object)]
)
"""A bracket, in seconds since the start of its SEB; its event if records and brackets agree."""

PARAM_ROW = np.dtype([*_SEB, ("event", object), ("params", object)])
"""A param record, with its parameters as a list."""


@dataclass(frozen=True)
class Contents:
    """The exported SEBs of successive PEs, or of a part of a PE's timeline.

    Its tables are made when they are asked for. Rows are in the order of PEs and SEBs.
    """

    blocks: Sequence[BlockRecords]
    """A block for each timeline file; all are whole timelines, or there is one."""
    interval: tuple[float, float]
    """Begin and end in seconds of what is exported."""
    params: ParamFolder | None
    """The param files; None for records that are not needed."""
    first: bool
    """Whether the PEs' timelines begin here."""
    last: bool
    """Whether they end here."""

    @cached_property
    def pes(self) -> list[int]:
        """The PEs, in ascending order."""
        return sorted(pe for block in self.blocks for pe in block.loaded.pes.tolist())

    @cached_property
    def sebs(self) -> Table:
        """Rows of `SEB_ROW`."""
        rows = self._in_order(seb_rows)
        if self.interval == ALWAYS:
            return rows
        end = np.maximum(rows["start_time"], rows["end_time"])
        kept = (end >= self.interval[0]) & (rows["start_time"] <= self.interval[1])
        return np.asarray(rows[kept])

    @cached_property
    def messages(self) -> Table:
        """Rows of `MESSAGE_ROW`."""
        return self._chosen(self._in_order(message_rows))

    @cached_property
    def log_events(self) -> Table:
        """Rows of `EVENT_ROW`."""
        return self._chosen(self._in_order(event_rows))

    @cached_property
    def dependencies(self) -> Table:
        """Rows of `DEPENDENCY_ROW`."""
        return self._chosen(self._in_order(dependency_rows))

    @cached_property
    def brackets(self) -> Table:
        """Rows of `BRACKET_ROW`."""
        return self._chosen(self._in_order(self._bracket_rows))

    @cached_property
    def records(self) -> Table:
        """Rows of `PARAM_ROW`."""
        rows = self._in_order(self._record_rows)
        return self._chosen(rows) if self.interval != ALWAYS else rows

    def row_of(self, rows: Table) -> Ints:
        """Return the row in `sebs` of the SEB of each row of another table."""
        return np.searchsorted(self._keys, _keys(rows))

    @cached_property
    def _keys(self) -> Ints:
        return _keys(self.sebs)

    def _chosen(self, rows: Table) -> Table:
        if self.interval == ALWAYS:
            return rows
        return rows[np.isin(_keys(rows), self._keys)]

    def _in_order(self, make: Callable[[BlockRecords], Table]) -> Table:
        """Return the rows of all blocks in the order of the PEs."""
        rows = np.concatenate([make(block) for block in self.blocks])
        return rows[np.argsort(rows["pe"], kind="stable")] if len(self.blocks) > 1 else rows

    @cached_property
    def _read(self) -> dict[int, ParamRecords]:
        """The param records of each block, by the index of its timeline file."""
        return {
            block.loaded.block.file: NO_RECORDS
            if self.params is None
            else read_params(self.params, block.loaded, strict=False)[0] or NO_RECORDS
            for block in self.blocks
        }

    def _bracket_rows(self, block: BlockRecords) -> Table:
        brackets, records = block.brackets, self._read[block.loaded.block.file]
        usable = block.sebs["end_time"] >= block.sebs["start_time"]
        closed = usable[brackets.seb]
        seb, number = brackets.seb[closed], brackets.number[closed]
        paired = Paired.of(block, records, usable)
        marked = paired.bracket >= 0
        event = np.full(len(brackets), -1)
        event[paired.bracket[marked]] = records.event[paired.record[marked]]
        events = [records.events[k] if k >= 0 else None for k in event[closed].tolist()]
        columns = (
            block.pe[seb],
            block.index[seb],
            number,
            brackets.starts[closed],
            brackets.ends[closed],
        )
        rows = np.empty(len(seb), dtype=BRACKET_ROW)
        for name, column in zip(BRACKET_ROW.names or (), (*columns, events), strict=True):
            rows[name] = column
        return rows

    def _record_rows(self, block: BlockRecords) -> Table:
        records = self._read[block.loaded.block.file]
        rows = np.empty(len(records), dtype=PARAM_ROW)
        rows["pe"], rows["seb"] = block.loaded.pes[records.piece], records.seb
        rows["event"] = [records.events[event] for event in records.event.tolist()]
        ends = (records.param_start + records.param_count).tolist()
        for row, (begin, end) in enumerate(zip(records.param_start.tolist(), ends, strict=True)):
            rows["params"][row] = records.params[begin:end].tolist()
        return rows


def _keys(rows: Table) -> Ints:
    """Return a number for the SEB of each row that rises with PE and SEB."""
    return np.asarray(rows["pe"] << 32 | rows["seb"])


@dataclass(frozen=True)
class _Piece:
    """Whole timelines of successive PEs, or a part of a long timeline with its bytes."""

    blocks: Sequence[Block | LoadedBlock]
    """A block for each timeline file."""
    size_bytes: int


def map_contents(
    logs: LogSet,
    pes: Sequence[int],
    interval: tuple[float, float],
    params: ParamFolder | None,
    work: Callable[[Contents], Result],
    stage: str,
) -> Iterator[Result]:
    """Yield what a function returns for the contents of PEs, in ascending order of the PEs.

    It runs on the engine of the job, with memory for some parts at a time. Raise `DamagedLogError`
    for damaged logs.
    """
    sizes = _timeline_sizes(logs)
    of_piece, total = partial(_of_piece, logs, interval, params, work), int(sizes[list(pes)].sum())
    for _, result in map_blocks(of_piece, _pieces(logs, pes, sizes), stage, total):
        yield result


def _of_piece(
    logs: LogSet,
    interval: tuple[float, float],
    params: ParamFolder | None,
    work: Callable[[Contents], Result],
    piece: _Piece,
) -> Result:
    loaded: list[LoadedBlock] = []
    for block in piece.blocks:
        if isinstance(block, LoadedBlock):
            loaded.append(block)
        else:
            loaded += logs.load([block], max(block.size_bytes, 1))
    part = loaded[0].block.part
    first, last = (True, True) if part is None else (part.first_seb == 0, part.last)
    return work(Contents([records_of(block) for block in loaded], interval, params, first, last))


def _timeline_sizes(logs: LogSet) -> Ints:
    sizes = np.zeros(len(logs.pes), dtype=np.int64)
    for file in logs.files:
        sizes[file.pes] = np.diff(file.borders)
    return sizes


def _pieces(logs: LogSet, pes: Sequence[int], sizes: Ints) -> Iterator[_Piece]:
    """Yield the pieces of PEs; the parts of long timelines are read here, where they are found."""
    for run in _runs(pes, sizes):
        size = int(sizes[run.start : run.stop].sum())
        if size <= PART_BYTES:
            yield _Piece(list(_blocks(logs, run)), size)
            continue
        for part in logs.load([logs.timeline_block(run.start)], PART_BYTES):
            kept = replace(part, buffer=part.buffer.copy())
            yield _Piece([kept], len(part.buffer))


def _runs(pes: Sequence[int], sizes: Ints) -> Iterator[range]:
    """Yield runs of successive PEs that fit together into a part, or a single PE."""
    begin, total = 0, 0
    for at, pe in enumerate(pes):
        total += int(sizes[pe])
        if at > begin and (pe != pes[at - 1] + 1 or total > PART_BYTES):
            yield range(pes[begin], pes[at - 1] + 1)
            begin, total = at, int(sizes[pe])
    if len(pes):
        yield range(pes[begin], pes[-1] + 1)


def _blocks(logs: LogSet, run: range) -> Iterator[Block]:
    """Yield the timelines of successive PEs, which are successive in each file too, as blocks."""
    for file in logs.files:
        low, high = np.searchsorted(file.pes, [run.start, run.stop]).tolist()
        if high > low:
            begin, end = file.borders[[low, high]].tolist()
            yield Block(file.index, begin, end, low, high - low)


def durations_of(sebs: Table) -> Floats:
    """Return the duration of each SEB in seconds; 0 for an unclosed one."""
    closed: Flags = (sebs["end_time"] >= sebs["start_time"]) & np.isfinite(sebs["exec_time"])
    return np.where(closed, np.maximum(sebs["exec_time"], 0.0), 0.0)
