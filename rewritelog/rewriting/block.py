"""The rewrite of one block: read, predict, patch, write and count."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rewritelog.arrays import Floats
from rewritelog.kernels.walk import FAULT_SIZE
from rewritelog.logs.blocks import Block, Buffer, LoadedBlock, load_blocks, raise_fault
from rewritelog.logs.files import InputFile
from rewritelog.logs.logset import LogSet
from rewritelog.logs.params import NO_RECORDS, ParamFolder, ParamNotes, read_params
from rewritelog.output import OutputFile
from rewritelog.rewriting.dilations import DilationRules
from rewritelog.rewriting.kernels.interface import (
    EXAMPLES,
    WITH_EXAMPLES,
    BlockCount,
    BlockRecords,
    BlockTotals,
    DurationSum,
)
from rewritelog.rewriting.kernels.patch import patch
from rewritelog.rewriting.predicting import Predicted, Predictor
from rewritelog.rewriting.running_sums import RunningSums
from rewritelog.rewriting.statistics import BlockStatistics, EventStatistics, Examples


@dataclass(frozen=True)
class RewriteTask:
    """What is needed to rewrite any block of a log set; it can be pickled for another process."""

    logs: LogSet
    predictor: Predictor
    params: ParamFolder | None
    """None if the model predicts nothing, so that no param file is read."""
    dilations: DilationRules
    keep_recv: bool
    strict: bool
    block_bytes: int
    """The largest size of a part of a long timeline, unless one SEB is larger."""
    output: Path | None
    """The folder with the files to write into; None to write nothing."""
    flush: bool
    """Whether the output is flushed to the disk, by each host for what it has written."""


_local = threading.local()


def rewrite_block(task: RewriteTask, block: Block) -> BlockStatistics:
    """Rewrite a block and write it at its offset; return its statistics.

    Raise `DamagedLogError` with its location, `TimingError` for param records that cannot be used,
    `ModelError`, or `OSError` if the output cannot be written.
    """
    if not hasattr(_local, "buffer"):
        _local.buffer = Buffer()
    file = task.logs.files[block.file]
    statistics, running = BlockStatistics(), RunningSums()
    with InputFile(file.path) as source:
        parts = load_blocks(source, file, block, task.logs.layout, _local.buffer, task.block_bytes)
        for loaded in parts:
            statistics.add(rewrite_part(task, loaded, running))
    return statistics


def rewrite_part(task: RewriteTask, loaded: LoadedBlock, running: RunningSums) -> BlockStatistics:
    """Rewrite a loaded block or part in place, as `rewrite_block` does; return its statistics."""
    layout = task.logs.layout
    records, statistics = _predicted(task, loaded)
    totals = BlockTotals(
        statistics.counts,
        running.begin(len(loaded.pes)),
        np.zeros((len(BlockCount), EXAMPLES, 2), dtype=np.int64),
    )
    begins = np.searchsorted(records.piece, np.arange(len(loaded.pes) + 1))
    rows = BlockRecords(begins, records.kernel)
    fault = np.zeros(FAULT_SIZE, dtype=np.int64)
    dilation = task.dilations.for_block(loaded, layout.kernel)
    patch(
        loaded.buffer, loaded.pieces, layout.kernel, dilation, task.keep_recv, rows, totals, fault
    )
    raise_fault(fault, loaded, absolute=True)
    if task.output is not None:
        with OutputFile(task.output / loaded.file.path.name, flush=task.flush) as out:
            out.write(loaded.buffer, loaded.block.offset)
    statistics.size_bytes = loaded.block.size_bytes
    done = loaded.block.part is None or loaded.block.part.last
    statistics.matched_patterns = task.dilations.matched(dilation)
    statistics.sums = running.durations(totals.sums, done=done)
    if done:
        old_s, new_s = (_busy(totals.sums, which) for which in (DurationSum.OLD, DurationSum.NEW))
        statistics.busy = [(loaded.pes.copy(), old_s, new_s)]
    _add_examples(statistics, totals, loaded)
    records.add_to(statistics, loaded)
    sums = running.events(records.kinds, records.kind, records.piece, records.values(), done=done)
    for (event, param_count), added in sums.items():
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


def _add_examples(statistics: BlockStatistics, totals: BlockTotals, loaded: LoadedBlock) -> None:
    """Add the kernel's examples to the block's statistics."""
    for which in WITH_EXAMPLES:
        known = min(statistics.count(which), EXAMPLES)
        examples = totals.examples[which, :known].tolist()
        found = ((int(loaded.pes[piece]), seb) for piece, seb in examples)
        statistics.examples[which] = Examples.of(loaded.begin, found)
