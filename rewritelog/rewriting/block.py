"""The rewrite of one block: read, predict, patch, write and count."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rewritelog.arrays import Floats
from rewritelog.formats import NO_RECORDS
from rewritelog.formats.bgtrace.blocks import (
    BLOCK_BYTES,
    Block,
    LoadedBlock,
    plan_in_turn,
    read_block,
)
from rewritelog.formats.bgtrace.logset import LogSet
from rewritelog.formats.bgtrace.params import ParamFolder, ParamNotes, read_params
from rewritelog.output.files import FlushingWork
from rewritelog.rewriting.counts import EXAMPLES, IRREGULAR, DurationSum
from rewritelog.rewriting.dilations import DilationRules
from rewritelog.rewriting.patching import Patched, patch, records_for
from rewritelog.rewriting.predicting import Predicted, Predictor
from rewritelog.rewriting.running_sums import RunningSums
from rewritelog.rewriting.statistics import (
    BlockStatistics,
    EventStatistics,
    Examples,
    RecordFlag,
)


@dataclass(frozen=True)
class RewriteTask:
    """What is needed to rewrite any block of a log set; it can be pickled for another process."""

    logs: LogSet
    predictor: Predictor
    params: ParamFolder | None
    """None if the model predicts nothing, so that no param file is read."""
    dilations: DilationRules
    strict: bool
    keep_recv: bool = False
    """Whether messages keep their receive times."""
    block_bytes: int = BLOCK_BYTES
    """The largest size of a part of a long timeline, unless one SEB is larger."""

    @property
    def blocks(self) -> Iterable[Block]:
        """What is rewritten at a time."""
        return plan_in_turn(self.logs.files, self.block_bytes)

    @property
    def size_bytes(self) -> int:
        """The size of all that is read."""
        return self.logs.timelines_bytes

    def rewriter(self, draft: Path | None, *, flush: bool) -> BlockRewriter:
        """Return what rewrites blocks into the files of a folder; None to write nothing."""
        return BlockRewriter(self, draft, flush=flush)


class BlockRewriter(FlushingWork[Block, BlockStatistics]):
    """Rewrites blocks, and writes them at their offsets."""

    def __init__(self, task: RewriteTask, draft: Path | None, *, flush: bool) -> None:
        """Begin with a folder that has the files to write into; None to write nothing."""
        super().__init__(draft, flush=flush)
        self._task = task

    def __call__(self, block: Block, /) -> BlockStatistics:
        """Rewrite a block; return its statistics.

        Raise what `rewrite_part` raises, or `OSError` if the output cannot be written.
        """
        task, statistics, running = self._task, BlockStatistics(), RunningSums()
        file = task.logs.files[block.file]
        for loaded in read_block(file, block, task.logs.layout, task.block_bytes):
            statistics.add(rewrite_part(task, loaded, running))
            self.write(file.path.name, loaded.buffer, loaded.block.offset)
        return statistics


def rewrite_part(task: RewriteTask, loaded: LoadedBlock, running: RunningSums) -> BlockStatistics:
    """Rewrite a loaded block or part in place; return its statistics.

    Raise `DamagedLogError` with its location, `TimingError` for param records that cannot be used,
    or `ModelError`.
    """
    records, statistics = _predicted(task, loaded)
    factors, statistics.matched_patterns = task.dilations.for_block(loaded)
    rows = records_for(loaded, records.params, records.given_s, records.flags[RecordFlag.EXACT])
    sums = running.begin(len(loaded.pes))
    patched = patch(loaded, rows, factors, sums, keep_recv=task.keep_recv)
    statistics.size_bytes = loaded.block.size_bytes
    done = loaded.block.part is None or loaded.block.part.last
    statistics.sums = running.durations(sums, done=done)
    if done:
        old_s, new_s = (_busy(sums, which) for which in (DurationSum.OLD, DurationSum.NEW))
        statistics.busy = [(loaded.pes.copy(), old_s, new_s)]
    statistics.counts = patched.counts
    _add_examples(statistics, loaded, patched)
    records.add_to(statistics, loaded, patched.records)
    values = records.values(patched.records)
    events = running.events(records.kinds, records.kind, records.piece, values, done=done)
    for (event, param_count), added in events.items():
        statistics.events.setdefault(event, EventStatistics()).sums[param_count] = added
    return statistics


def _busy(sums: Floats, which: DurationSum) -> Floats:
    """Return the busy time of each PE, given the sums of whole timelines."""
    return np.asarray(sums[:, which, 0] + sums[:, which, 1])


def _predicted(task: RewriteTask, loaded: LoadedBlock) -> tuple[Predicted, BlockStatistics]:
    """Return the block's records with their predictions, and the statistics of reading them."""
    if task.params is None:
        params, notes = NO_RECORDS, ParamNotes()
    else:
        columns = task.predictor.columns
        params, notes = read_params(task.params, loaded, strict=task.strict, columns=columns)
    statistics = BlockStatistics(
        faulty_lines=notes.faulty,
        faulty_line_examples=Examples.of(loaded.begin, notes.faults),
        seqno_differs=notes.seqno_differs,
        seqno_examples=Examples.of(loaded.begin, notes.seqno_examples),
    )
    return task.predictor.predict(params, loaded.pes), statistics


def _add_examples(statistics: BlockStatistics, loaded: LoadedBlock, patched: Patched) -> None:
    """Add the first irregular SEBs to the block's statistics."""
    pieces = loaded.pieces
    begins = np.cumsum(pieces.counts) - pieces.counts
    for which in IRREGULAR:
        rows = patched.irregular(which)[:EXAMPLES]
        piece = np.searchsorted(begins, rows, side="right") - 1
        sebs = (rows - begins[piece] + pieces.firsts[piece]).tolist()
        places = zip(loaded.pes[piece].tolist(), sebs, strict=True)
        statistics.examples[which] = Examples.of(loaded.begin, places)
