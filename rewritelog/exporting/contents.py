"""The contents of a log set, streamed PE by PE in ascending order: tables, brackets, records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rewritelog.arrays import Floats, Ints, Table
from rewritelog.exporting.kernels.brackets import list_brackets
from rewritelog.exporting.options import ExportOptions
from rewritelog.kernels import walk
from rewritelog.logs.blocks import LoadedBlock
from rewritelog.logs.logset import LogSet
from rewritelog.logs.params import ParamFolder, ParamRecords, read_params
from rewritelog.logs.tables import Tables, tables_of
from rewritelog.progress import report_progress

PART_BYTES = 4 << 20
"""Timelines are exported in parts of this size; their tables take several times as much."""


@dataclass(frozen=True)
class Contents:
    """The exported SEBs of one PE, or of a part of its timeline."""

    pe: int
    tables: Tables
    brackets: Table
    """Rows of `BRACKET_ROW`."""
    records: ParamRecords
    last: bool
    """Whether this is the end of the PE's timeline."""


BRACKET_ROW = np.dtype(
    [
        ("pe", np.int64),
        ("seb", np.int64),
        ("bracket", np.int64),
        ("start", np.float64),
        ("end", np.float64),
        ("event", object),
    ]
)
"""A bracket, in seconds since the start of its SEB; its event if records and brackets agree."""


def stream(
    logs: LogSet,
    pes: Sequence[int],
    options: ExportOptions,
    params: ParamFolder,
) -> Iterator[Contents]:
    """Yield the contents of the PEs, with memory for one block at a time.

    Raise `DamagedLogError` for damaged logs, `TimingError` if a param file cannot be read.
    """
    for done, pe in enumerate(pes):
        for loaded in logs.timeline_parts(pe, PART_BYTES):
            records, _ = read_params(params, loaded, strict=False)
            tables = tables_of(loaded)
            brackets = _brackets(loaded, len(tables.events), records)
            last = loaded.block.part is None or loaded.block.part.last
            contents = Contents(pe, tables, brackets, records, last)
            yield _within(contents, options) if options.has_interval else contents
        report_progress("exporting PE", done + 1, len(pes))


def _brackets(loaded: LoadedBlock, events: int, records: ParamRecords) -> Table:
    found = np.empty((events // 2, 3), dtype=np.int64)
    times = np.empty((events // 2, 2))
    fault = np.zeros(walk.FAULT_SIZE, dtype=np.int64)
    known = list_brackets(loaded.buffer, loaded.pieces, loaded.layout.kernel, fault, found, times)
    found, times = found[:known], times[:known]
    rows = np.empty(known, dtype=BRACKET_ROW)
    rows["pe"], rows["seb"], rows["bracket"] = loaded.pes[found[:, 0]], found[:, 1], found[:, 2]
    rows["start"], rows["end"] = times[:, 0], times[:, 1]
    rows["event"] = _events_of(found, records)
    return rows


def _events_of(found: Ints, records: ParamRecords) -> list[str | None]:
    """Return the event of each bracket of a PE, None if its SEB has more or fewer records."""
    sebs, many = np.unique(found[:, 1], return_counts=True)
    first = np.searchsorted(records.seb, sebs)
    agree = np.searchsorted(records.seb, sebs, side="right") - first == many
    at = np.searchsorted(sebs, found[:, 1])
    rows = first[at] + found[:, 2]
    return [
        records.events[records.event[row]] if certain else None
        for row, certain in zip(rows.tolist(), agree[at].tolist(), strict=True)
    ]


def _within(contents: Contents, options: ExportOptions) -> Contents:
    """Return the contents of the SEBs that overlap with the interval."""
    sebs = contents.tables.sebs
    end = np.maximum(sebs["start_time"], sebs["end_time"])
    kept = (end >= options.from_s) & (sebs["start_time"] <= options.to_s)
    numbers = sebs["seb"][kept]

    def of(rows: Table) -> Table:
        return rows[np.isin(rows["seb"], numbers)]

    tables = contents.tables
    chosen = Tables(sebs[kept], of(tables.messages), of(tables.events), of(tables.dependencies))
    record_kept = np.isin(contents.records.seb, numbers)
    records = replace(
        contents.records,
        **{
            name: getattr(contents.records, name)[record_kept]
            for name in ("event", "piece", "seb", "param_start", "param_count")
        },
    )
    return replace(contents, tables=chosen, brackets=of(contents.brackets), records=records)


def durations_of(sebs: Table) -> Floats:
    """Return the duration of each SEB in seconds; 0 for an unclosed one."""
    closed = (sebs["end_time"] >= sebs["start_time"]) & np.isfinite(sebs["exec_time"])
    return np.where(closed, np.maximum(sebs["exec_time"], 0.0), 0.0)
