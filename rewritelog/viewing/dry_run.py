"""Comparison of the logs with what a dry run would write, block by block in memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial, singledispatch
from typing import Any

from rewritelog.cores import cores, limited_to
from rewritelog.diffing.records import Totals, compare_loaded
from rewritelog.diffing.run import compare_units
from rewritelog.formats.bgtrace.blocks import Block, read_block
from rewritelog.formats.bgtrace.params import ParamFolder, list_params
from rewritelog.formats.traces import Unit
from rewritelog.rewriting.block import RewriteTask, rewrite_part
from rewritelog.rewriting.report import Task
from rewritelog.rewriting.running_sums import RunningSums
from rewritelog.rewriting.traces import TraceTask
from rewritelog.running.engines import map_blocks


def compare_dry_run(task: Task, jobs: int = 0) -> Totals:
    """Rewrite the logs of a task again without writing, and compare each block with the original.

    Takes memory for two blocks per thread. Raise what reading the logs raises.
    """
    totals, work = Totals(), _dry_run(task)
    with limited_to(jobs or cores()):
        for _, of_block in map_blocks(work, task.blocks, "comparing", task.size_bytes):
            totals.add(of_block)
    return totals


@singledispatch
def _dry_run(task: Task) -> Callable[[Any], Totals]:
    """Return what compares blocks with what a rewrite makes of them."""
    raise NotImplementedError


@_dry_run.register
def _dry_run_of_traces(task: TraceTask) -> Callable[[Unit], Totals]:
    return partial(_unit_compared, task)


def _unit_compared(task: TraceTask, unit: Unit) -> Totals:
    events, new_s = task.load_unit(unit)
    return compare_units(task.logs, events, replace(events, duration_s=new_s))


@_dry_run.register
def _dry_run_of_logs(task: RewriteTask) -> Callable[[Block], Totals]:
    params = list_params(task.logs.folder) if task.params is None else task.params
    return partial(_block_compared, task, params if params.pes else None)


def _block_compared(task: RewriteTask, params: ParamFolder | None, block: Block) -> Totals:
    file = task.logs.files[block.file]
    totals, running = Totals(), RunningSums()
    for loaded in read_block(file, block, task.logs.layout, task.block_bytes):
        old = replace(loaded, buffer=loaded.buffer.copy())
        rewrite_part(task, loaded, running)
        totals.add(compare_loaded((old, loaded), params))
    return totals
