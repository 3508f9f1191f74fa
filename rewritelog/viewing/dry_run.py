"""Comparison of the logs with what a dry run would write, block by block in memory."""

from __future__ import annotations

from dataclasses import dataclass, replace

from rewritelog.cores import cores, limited_to
from rewritelog.diffing.blocks import compare_loaded
from rewritelog.diffing.pairs import LoadedPair
from rewritelog.diffing.totals import Totals
from rewritelog.formats.bgtrace.blocks import Block, plan_in_turn, read_block
from rewritelog.formats.bgtrace.params import ParamFolder, list_params
from rewritelog.rewriting.block import RewriteTask, rewrite_part
from rewritelog.rewriting.report import RewriteReport
from rewritelog.rewriting.run import task_without_output
from rewritelog.rewriting.running_sums import RunningSums
from rewritelog.running.engines import map_blocks


def compare_dry_run(report: RewriteReport) -> Totals:
    """Rewrite the logs of a report again without writing, and compare each block with the original.

    Takes memory for two blocks per thread. Raise what reading the logs raises.
    """
    logs, options = report.logs, report.options
    params = list_params(logs.folder) if report.params is None else report.params
    work = _DryRun(task_without_output(report), params if params.pes else None)
    blocks = plan_in_turn(logs.files, options.block_bytes)
    totals = Totals()
    with limited_to(options.jobs or cores()):
        for _, of_block in map_blocks(work, blocks, "comparing", logs.timelines_bytes):
            totals.add(of_block)
    return totals


@dataclass(frozen=True)
class _DryRun:
    """Compares blocks with what a rewrite makes of them."""

    task: RewriteTask
    params: ParamFolder | None

    def __call__(self, block: Block, /) -> Totals:
        task = self.task
        file = task.logs.files[block.file]
        totals, running = Totals(), RunningSums()
        for loaded in read_block(file, block, task.logs.layout, task.block_bytes):
            old = replace(loaded, buffer=loaded.buffer.copy())
            rewrite_part(task, loaded, running)
            totals.add(compare_loaded(LoadedPair(old, loaded), self.params))
        return totals
