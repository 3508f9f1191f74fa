"""The rewrite of one block of logs: read, predict, patch by the compiled core, write and count."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
from msgspec import Struct

from rewritelog.arrays import Bytes, Flags, Floats, Ints, Table, Texts
from rewritelog.commands.durations import (
    NO_DILATION,
    DilationRules,
    DurationOptions,
    RewriteOptions,
)
from rewritelog.core import core
from rewritelog.formats import NO_RECORDS, ParamRecords
from rewritelog.formats.bgtrace.blocks import Block, LoadedBlock, fault_error
from rewritelog.formats.bgtrace.logset import LogSet
from rewritelog.formats.bgtrace.params import ParamFolder, ParamNotes, list_params, read_params
from rewritelog.formats.bgtrace.records import (
    Records,
    distinct_names,
    records_of,
    tracer_replaces,
)
from rewritelog.output.files import FlushingWork
from rewritelog.rewriting.predicting import Predicted, Predictor, dilations_of
from rewritelog.rewriting.statistics import (
    EXAMPLES,
    IRREGULAR,
    BlockCount,
    BlockStatistics,
    DurationSum,
    Irregularity,
)
from rewritelog.text import count_text, decoded


class Patched(Struct, frozen=True):
    """How the SEBs of a block were rewritten, and how its param records were used."""

    outcomes: Bytes
    """The outcome of each SEB, as a code of the core."""
    records: Table
    """The param records, as the core's struct `param_record`."""
    counts: Ints
    """Shape (BlockCount,)."""


def patch(
    loaded: LoadedBlock, records: Table, factors: Floats, sums: Floats | None, *, keep_recv: bool
) -> Patched:
    """Rewrite the SEBs of a block that have a duration, and add their durations to any `sums`.

    `factors` has the dilation of each SEB; `sums` has the shape (pieces, DurationSum, 2). Raise
    `DamagedLogError` for a damaged block, and for times that are not numbers or become too large.
    """
    if sums is None:
        sums = no_sums(len(loaded.pes))
    pieces, lay = loaded.pieces, loaded.layout
    smallest_event = lay.event.itemsize
    sebs = np.empty(int(pieces.counts.sum()), dtype=np.int64)
    outcomes = np.empty(len(sebs), dtype=np.uint8)
    counts = np.zeros(len(BlockCount), dtype=np.int64)
    fault = np.zeros(core.FAULT_SIZE, dtype=np.int64)
    core.patch(
        loaded.buffer,
        *pieces,
        lay.core,
        factors,
        keep_recv,
        records,
        np.empty(3 * (2 + len(loaded.buffer) // smallest_event)),
        sebs,
        outcomes,
        counts,
        sums,
        fault,
    )
    if fault[core.FAULT_CODE] != core.OK:
        raise fault_error(fault, loaded)
    patched = Records(loaded.buffer, lay.seb, lay.seb, np.arange(len(sebs)), sebs)
    by_model = np.isin(outcomes % core.IRREGULAR_FLAG, (BlockCount.BY_MODEL, BlockCount.BY_EXACT))
    names, number = distinct_names(patched.take(np.flatnonzero(by_model)))
    of_name = np.bincount(number)
    replaced = np.array([tracer_replaces(name) for name in names], dtype=np.bool_)
    counts[BlockCount.TRACER_REPLACES] = of_name[replaced].sum()
    return Patched(outcomes, records, counts)


def no_sums(timelines: int) -> Floats:
    """Return zeros to which durations are added, shape (timelines, DurationSum, 2)."""
    return np.zeros((timelines, len(DurationSum), 2))


def records_for(
    loaded: LoadedBlock, params: ParamRecords, predicted_s: Floats, exact: Flags
) -> Table:
    """Return param records as the core takes them; it dilates those with `predicted_s` NaN."""
    records = np.zeros(len(params), dtype=core.structs["param_record"])
    records["seb"] = loaded.pieces.rows(params.piece, params.seb)
    records["predicted_s"], records["exact"] = predicted_s, exact
    return records


class RewriteTask(Struct, frozen=True):
    """All that rewriting any block of a log set needs; it can be pickled for another process."""

    logs: LogSet
    predictor: Predictor
    params: ParamFolder | None
    """None if the model predicts nothing, so that no param file is read."""
    dilations: DilationRules
    strict: bool
    keep_recv: bool = False
    """Whether messages keep their receive times."""

    @property
    def changes_durations(self) -> bool:
        """Whether any duration may change."""
        return self.params is not None or self.dilations != NO_DILATION

    def rewrite(self, block: Block, files: FlushingWork[Block, BlockStatistics]) -> BlockStatistics:
        """Rewrite a block, and write it at its offset; return its statistics.

        Raise what `rewrite_part` raises, or `OSError` if the output cannot be written.
        """
        statistics, sums = BlockStatistics(), no_sums(block.timelines)
        for loaded in self.logs.read(block):
            statistics.add(rewrite_part(self, loaded, sums))
            files.write(loaded.file.path.name, loaded.buffer, loaded.block.offset)
        statistics.set_durations(loaded.pes.copy(), sums)
        return statistics

    def rewrite_loaded(
        self, loaded: LoadedBlock, predicted: Predicted, sums: Floats | None = None
    ) -> tuple[Patched, frozenset[str]]:
        """Rewrite a loaded block or part in place; return also the matching dilation patterns.

        Durations are added to any `sums`. Raise as `patch` does.
        """
        count = int(loaded.pieces.counts.sum())
        factors, patterns = dilations_of(self.dilations, count, partial(_names, loaded))
        rows = records_for(loaded, predicted.params, predicted.duration_s, predicted.flags["exact"])
        return patch(loaded, rows, factors, sums, keep_recv=self.keep_recv), patterns

    def about_params(self, statistics: BlockStatistics) -> Iterator[str]:  # noqa: ARG002 - nodes'
        """Yield warnings of missing and of unused param files."""
        if self.params is None:
            return
        if not self.params.pes:
            yield f"{self.params.folder} has no param files, so the model predicts nothing"
        unknown_pes = sorted(self.params.pes.difference(self.logs.pes))
        if unknown_pes:
            names = ", ".join(f"param.{pe}" for pe in unknown_pes[:5])
            yield (
                f"not used: {count_text(len(unknown_pes), 'param file')} of PEs that the log does "
                f"not have ({names})"
            )


def logs_task(logs: LogSet, predictor: Predictor, options: DurationOptions) -> RewriteTask:
    """Return the task for the options and a fitted model."""
    params = list_params(options.params or logs.folder) if predictor.fitted.uses_params else None
    keep_recv = isinstance(options, RewriteOptions) and options.recv == "keep"
    return RewriteTask(logs, predictor, params, options.dilations, options.strict, keep_recv)


def rewrite_part(
    task: RewriteTask, loaded: LoadedBlock, sums: Floats | None = None
) -> BlockStatistics:
    """Rewrite a loaded block or part in place; return its statistics, and add to any `sums`.

    Raise `DamagedLogError` with its location, `TimingError` for param records that cannot be used,
    or `ModelError`.
    """
    params, notes = NO_RECORDS, ParamNotes()
    if task.params is not None:
        columns = task.predictor.fitted.columns
        params, notes = read_params(task.params, loaded, strict=task.strict, columns=columns)
    predicted = task.predictor.predict(params, loaded.pes)
    patched, patterns = task.rewrite_loaded(loaded, predicted, sums)
    return BlockStatistics(
        counts=patched.counts,
        events=predicted.by_event(patched.records),
        irregularities=_irregularities(loaded, params, notes, patched),
        size_bytes=loaded.block.size_bytes,
        matched_patterns=patterns,
    )


def _names(loaded: LoadedBlock) -> Texts:
    """Return the names of SEBs; raise `DamagedLogError` if the block is damaged."""
    names, number = records_of(loaded).names
    return Texts(tuple(map(decoded, names)), number)


def _irregularities(
    loaded: LoadedBlock, params: ParamRecords, notes: ParamNotes, patched: Patched
) -> dict[str, Irregularity]:
    """Return what is irregular in the params and SEBs of a block."""
    notes_by_kind = {
        "malformed": (notes.malformed, notes.malformed_examples),
        "seqno": (notes.seqno_differs, notes.seqno_examples),
    }

    def note_sebs(what: str, count: int, piece: Ints, seb: Ints) -> None:
        pes = loaded.pes[piece].tolist()
        places = [f"PE {pe} SEB {index}" for pe, index in zip(pes, seb.tolist(), strict=True)]
        notes_by_kind[what] = count, places

    state, seb = patched.records["state"], patched.records["seb"]
    left_alone = np.flatnonzero(state == core.RECORD_LEFT_ALONE)
    of_no_length = left_alone[patched.outcomes[seb[left_alone]] == BlockCount.ZERO_LENGTH]
    missing = np.flatnonzero(state == core.RECORD_NO_SEB)
    for what, rows in (("no_seb", missing), ("of_no_length", of_no_length)):
        first = rows[:EXAMPLES]
        note_sebs(what, len(rows), params.piece[first], params.seb[first])
    for which in IRREGULAR:
        pieces, flag = loaded.pieces, core.IRREGULAR_FLAG << which - BlockCount.MARKS_IRREGULAR
        rows = np.flatnonzero(patched.outcomes & flag)
        first = rows[:EXAMPLES]
        piece = np.searchsorted(pieces.first_rows, first, side="right") - 1
        sebs = first - pieces.first_rows[piece] + pieces.firsts[piece]
        note_sebs(which.name.lower(), len(rows), piece, sebs)
    position = loaded.block.file, loaded.block.offset
    return {
        what: Irregularity.of(position, *note) for what, note in notes_by_kind.items() if note[0]
    }
