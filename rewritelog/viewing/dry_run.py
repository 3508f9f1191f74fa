"""Comparison of the logs with what a dry run would write, block by block in memory."""

from __future__ import annotations

from dataclasses import dataclass

from rewritelog.cores import cores, limited_to
from rewritelog.diffing.blocks import compare_loaded
from rewritelog.diffing.pairs import LoadedPair
from rewritelog.diffing.totals import Totals
from rewritelog.logs.blocks import Block, Buffer, load_blocks, plan_in_turn
from rewritelog.logs.files import InputFile
from rewritelog.logs.params import ParamFolder, list_params
from rewritelog.rewriting.block import RewriteTask, rewrite_part
from rewritelog.rewriting.report import Report
from rewritelog.rewriting.run import task_without_output
from rewritelog.rewriting.running_sums import RunningSums
from rewritelog.running.engines import map_blocks


def compare_dry_run(report: Report) -> Totals:
    """Rewrite the logs of a report again without writing, and compare each block with the original.

    Takes memory for two blocks per thread. Raise what reading the logs raises.
    """
    logs, options = report.logs, report.options
    params = list_params(logs.folder) if report.params is None else report.params
    work = _DryRun(task_without_output(report), params if params.pes else None)
    blocks = plan_in_turn(logs.files, options.block_bytes)
    totals = Totals()
    with limited_to(options.jobs or cores()):
        for _, found in map_blocks(work, blocks, "comparing", logs.timelines_bytes):
            totals.add(found)
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
        with InputFile(file.path) as source:
            old, new = (
                load_blocks(source, file, block, task.logs.layout, Buffer(), task.block_bytes)
                for _ in range(2)
            )
            for a, b in zip(old, new, strict=True):
                rewrite_part(task, b, running)
                totals.add(compare_loaded(LoadedPair(a, b), self.params))
        return totals
