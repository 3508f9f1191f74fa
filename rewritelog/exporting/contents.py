"""The contents of a log set in ascending order of the PEs: tables, brackets, records."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TypeVar

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from rewritelog.arrays import Flags, Floats, Ints, Table, pair_keys
from rewritelog.commands.logs import ALWAYS
from rewritelog.formats import ParamRecords
from rewritelog.formats.bgtrace.blocks import Block, LoadedBlock, timelines_of
from rewritelog.formats.bgtrace.logset import LogSet
from rewritelog.formats.bgtrace.params import Paired, ParamFolder, ParamNotes, read_params
from rewritelog.formats.bgtrace.records import (
    DEPENDENCY_ROW,
    EVENT_ROW,
    MAKERS,
    MESSAGE_ROW,
    SEB_ROW,
    BlockRecords,
    records_of,
)
from rewritelog.running.engines import map_blocks
from rewritelog.running.locks import cached_property

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

TABLES = {
    "sebs": SEB_ROW,
    "messages": MESSAGE_ROW,
    "log_events": EVENT_ROW,
    "dependencies": DEPENDENCY_ROW,
    "brackets": BRACKET_ROW,
    "params": PARAM_ROW,
}
"""The rows of each table."""


class Contents(Struct, frozen=True, dict=True):
    """The exported SEBs of successive PEs, or of a part of a PE's timeline.

    Its `TABLES` are made when they are asked for, as in `contents["messages"]`. Rows are in the
    order of PEs and SEBs.
    """

    blocks: Sequence[BlockRecords]
    """A block of whole timelines for each timeline file, or one part of a long timeline."""
    interval: tuple[float, float]
    """Begin and end in seconds of what is exported."""
    params: ParamFolder

    @property
    def first(self) -> bool:
        """Whether the PEs' timelines begin here."""
        return self.blocks[0].loaded.is_first

    @cached_property
    def pes(self) -> list[int]:
        """The PEs, in ascending order."""
        return sorted(pe for block in self.blocks for pe in block.loaded.pes.tolist())

    def __getitem__(self, name: str) -> Table:
        """Return one of `TABLES`."""
        if name not in self._tables:
            makers = {**MAKERS, "brackets": self._bracket_rows, "params": self._record_rows}
            rows = np.concatenate([makers[name](block) for block in self.blocks])
            rows = rows[np.argsort(rows["pe"], kind="stable")]
            self._tables[name] = rows if self.interval == ALWAYS else self._chosen(name, rows)
        return self._tables[name]

    @cached_property
    def _tables(self) -> dict[str, Table]:
        return {}

    def _chosen(self, name: str, rows: Table) -> Table:
        """Return the rows of the interval."""
        if name != "sebs":
            return rows[np.isin(pair_keys(rows["pe"], rows["seb"]), self._keys)]
        end = np.maximum(rows["start_time"], rows["end_time"])
        in_interval = (end >= self.interval[0]) & (rows["start_time"] <= self.interval[1])
        return np.asarray(rows[in_interval])

    def row_of(self, rows: Table) -> Ints:
        """Return the row in `sebs` of the SEB of each row of another table."""
        return np.searchsorted(self._keys, pair_keys(rows["pe"], rows["seb"]))

    @cached_property
    def _keys(self) -> Ints:
        """A key for each SEB that increases with PE and index."""
        return pair_keys(self["sebs"]["pe"], self["sebs"]["seb"])

    @cached_property
    def _read(self) -> dict[int, tuple[ParamRecords, ParamNotes]]:
        """The param records of each block, by the index of its timeline file."""
        return {
            block.loaded.block.file: read_params(self.params, block.loaded, strict=False)
            for block in self.blocks
        }

    @property
    def malformed(self) -> int:
        """The number of malformed param lines."""
        return sum(notes.malformed for _, notes in self._read.values())

    def _bracket_rows(self, block: BlockRecords) -> Table:
        brackets, (records, _) = block.brackets, self._read[block.loaded.block.file]
        usable = block.sebs["end_time"] >= block.sebs["start_time"]
        closed = usable[brackets.seb]
        seb, number = brackets.seb[closed], brackets.number[closed]
        paired = Paired.of(block, records, usable)
        marked = paired.bracket >= 0
        event = np.full(len(brackets), -1)
        event[paired.bracket[marked]] = records.event[paired.record[marked]]
        events = [records.events[k] if k >= 0 else None for k in event[closed].tolist()]
        rows = np.empty(len(seb), dtype=BRACKET_ROW)
        rows["pe"], rows["seb"], rows["bracket"] = block.pe[seb], block.index[seb], number
        rows["start"], rows["end"] = brackets.times[closed].T
        rows["event"] = events
        return rows

    def _record_rows(self, block: BlockRecords) -> Table:
        records, _ = self._read[block.loaded.block.file]
        rows = np.empty(len(records), dtype=PARAM_ROW)
        rows["pe"], rows["seb"] = block.loaded.pes[records.piece], records.seb
        rows["event"] = [records.events[event] for event in records.event.tolist()]
        ends = (records.param_start + records.param_count).tolist()
        for row, (begin, end) in enumerate(zip(records.param_start.tolist(), ends, strict=True)):
            rows["params"][row] = records.params[begin:end].tolist()
        return rows


class _Piece(Struct, frozen=True):
    """Whole timelines of successive PEs, or a part of a long timeline with its bytes."""

    blocks: Sequence[Block | LoadedBlock]
    """A block for each timeline file."""
    size_bytes: int


def map_contents(
    logs: LogSet,
    pes: Sequence[int],
    interval: tuple[float, float],
    params: ParamFolder,
    work: Callable[[Contents], Result],
) -> Iterator[tuple[Result, int]]:
    """Call `work` with the contents of PEs, and yield the results in ascending order of the PEs.

    With each comes the number of malformed param lines that were read for it. It runs on the engine
    of the job, with memory for some parts at a time. Raise `DamagedLogError` for damaged logs.
    """
    sizes = _timeline_sizes(logs)
    of_piece, total = partial(_of_piece, logs, interval, params, work), int(sizes[list(pes)].sum())
    for _, result in map_blocks(of_piece, _pieces(logs, pes, sizes), "exporting", total):
        yield result


def _of_piece(
    logs: LogSet,
    interval: tuple[float, float],
    params: ParamFolder,
    work: Callable[[Contents], Result],
    piece: _Piece,
) -> tuple[Result, int]:
    loaded: list[LoadedBlock] = []
    for block in piece.blocks:
        if isinstance(block, LoadedBlock):
            loaded.append(block)
        else:
            loaded += logs.load([block], max(block.size_bytes, 1))
    contents = Contents([records_of(block) for block in loaded], interval, params)
    return work(contents), contents.malformed


def _timeline_sizes(logs: LogSet) -> Ints:
    sizes = np.zeros(len(logs.pes), dtype=np.int64)
    for file in logs.files:
        sizes[file.pes] = np.diff(file.borders)
    return sizes


def _pieces(logs: LogSet, pes: Sequence[int], sizes: Ints) -> Iterator[_Piece]:
    """Yield the pieces of PEs; long timelines are read here, since a walk finds their parts."""
    for run in _runs(pes, sizes):
        size = int(sizes[run.start : run.stop].sum())
        if size <= PART_BYTES:
            yield _Piece(list(_blocks(logs, run)), size)
            continue
        for part in logs.load([logs.timeline_block(run.start)], PART_BYTES):
            copied = replace(part, buffer=part.buffer.copy())
            yield _Piece([copied], len(part.buffer))


def _runs(pes: Sequence[int], sizes: Ints) -> Iterator[range]:
    """Yield runs of successive PEs that fit together into a part, or a single PE."""
    begin, total = 0, 0
    for at, pe in enumerate(pes):
        total += int(sizes[pe])
        if at > begin and (pe != pes[at - 1] + 1 or total > PART_BYTES):
            yield range(pes[begin], pes[at - 1] + 1)
            begin, total = at, int(sizes[pe])
    yield range(pes[begin], pes[-1] + 1)


def _blocks(logs: LogSet, run: range) -> Iterator[Block]:
    """Yield the timelines of successive PEs, which are successive in each file too, as blocks."""
    for file in logs.files:
        low, high = np.searchsorted(file.pes, [run.start, run.stop]).tolist()
        if high > low:
            yield timelines_of(file, low, high)


def durations_of(sebs: Table) -> Floats:
    """Return the duration of each SEB in seconds; 0 for an unclosed one."""
    closed: Flags = (sebs["end_time"] >= sebs["start_time"]) & np.isfinite(sebs["exec_time"])
    return np.where(closed, np.maximum(sebs["exec_time"], 0.0), 0.0)
