"""Writing of a log set with replayed times, in which the SEBs of a PE do not overlap."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from rewritelog.arrays import Floats, Ints
from rewritelog.cores import cores, in_order
from rewritelog.errors import DamagedLogError, Location
from rewritelog.kernels.walk import FAULT_SIZE
from rewritelog.logs.blocks import (
    Block,
    Buffer,
    LoadedBlock,
    load_blocks,
    plan_in_turn,
    raise_fault,
)
from rewritelog.logs.files import InputFile
from rewritelog.logs.params import list_params
from rewritelog.output import OutputFile
from rewritelog.progress import report_progress
from rewritelog.replaying.kernels.interface import RUN_ROW, Times, times_of
from rewritelog.replaying.kernels.shift import place_never_run, write_times
from rewritelog.replaying.prepare import Prepared
from rewritelog.replaying.simulate import ReplayedRun
from rewritelog.rewriting.block import RewriteTask, rewrite_part
from rewritelog.rewriting.run import new_output, rewrite_task
from rewritelog.rewriting.running_sums import RunningSums

_AHEAD = 2


@dataclass(frozen=True)
class _WriteTask:
    """What is needed to write any block."""

    prepared: Prepared
    outcome: ReplayedRun
    rewrite: RewriteTask | None
    """The task that first rewrites the durations of a block; None if these do not change."""
    durations_s: Floats
    draft: Path


def write_replayed(prepared: Prepared, outcome: ReplayedRun, out: Path) -> None:
    """Write the logs to the folder `out` with replayed times.

    SEBs that never ran are placed after the end of the run. Raise `OutputError` if `out` exists and
    may not be replaced, or cannot be written; it is then not changed.
    """
    options, logs = prepared.options, prepared.logs
    if outcome.run < outcome.workload.sebs:
        outcome = replace(outcome, times=_all_times(outcome))
    with new_output(logs, out, options) as draft:
        task = _WriteTask(prepared, outcome, _rewrite_task(prepared), outcome.durations_s(), draft)
        workers = cores(options.jobs)
        done = 0
        with ThreadPoolExecutor(workers) as executor:
            blocks = plan_in_turn(logs.files)
            for size in in_order(executor, partial(_write, task), blocks, _AHEAD * workers):
                done += size
                report_progress("writing", done, logs.timelines_bytes, "bytes")


def _all_times(outcome: ReplayedRun) -> Times:
    """Return the times of all SEBs, with those that never ran one by one after the end."""
    workload, known = outcome.workload, outcome.times
    times = times_of(np.empty(workload.sebs, dtype=RUN_ROW), known.order)
    for mine, found in zip(times[:3], known[:3], strict=True):
        mine[:] = found
    place_never_run(workload.program, outcome.scale, times, workload.pes, outcome.predicted_s)
    return times


def _rewrite_task(prepared: Prepared) -> RewriteTask | None:
    options = replace(prepared.options, recv="shift")  # each message keeps its transit time
    workload = prepared.workload
    predicts = len(workload.program.sebs.fixed_s) > 0
    if not predicts and options.general_dilation == 1 and not options.dilation_for:
        return None
    params = list_params(options.params or prepared.logs.folder) if predicts else None
    return rewrite_task(prepared.logs, prepared.predictor, params, options)


def _write(task: _WriteTask, block: Block) -> int:
    """Write a block, or each of its parts; return its size in bytes."""
    logs = task.prepared.logs
    file = logs.files[block.file]
    running = RunningSums()
    with InputFile(file.path) as source:
        for loaded in load_blocks(source, file, block, logs.layout, Buffer()):
            if task.rewrite is not None:
                rewrite_part(task.rewrite, loaded, running)
            _shift(task, loaded)
            flush = task.prepared.options.flush
            with OutputFile(task.draft / file.path.name, flush=flush) as out:
                out.write(loaded.buffer, loaded.block.offset)
    return block.size_bytes


def _shift(task: _WriteTask, loaded: LoadedBlock) -> None:
    outcome, lay = task.outcome, task.prepared.logs.layout.kernel
    program = outcome.workload.program
    bounds = program.sebs.first_of_pe.astype(np.int64)
    _check_counts(loaded, np.diff(bounds)[loaded.pes])
    firsts = bounds[loaded.pes] + loaded.pieces.firsts
    fault = np.zeros(FAULT_SIZE, dtype=np.int64)
    write_times(
        loaded.buffer,
        loaded.pieces,
        lay,
        firsts,
        program,
        outcome.scale,
        outcome.delays,
        outcome.times,
        task.durations_s,
        fault,
    )
    raise_fault(fault, loaded)


def _check_counts(loaded: LoadedBlock, expected: Ints) -> None:
    """Raise `DamagedLogError` if a timeline has another number of SEBs than in the replay."""
    for piece in np.flatnonzero(loaded.totals != expected).tolist():
        problem = (
            f"{loaded.totals[piece]:,} SEBs now, and {expected[piece]:,} when it was read first"
        )
        location = Location(loaded.file.path, pe=int(loaded.pes[piece]), field="count")
        raise DamagedLogError(location, problem, "count")
