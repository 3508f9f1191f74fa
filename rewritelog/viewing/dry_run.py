"""Comparison of the logs with what a dry run would write, block by block in memory."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial

from rewritelog.cores import cores, in_order
from rewritelog.diffing.blocks import DiffTask, compare_loaded
from rewritelog.diffing.pairs import LoadedPair
from rewritelog.diffing.rules import rules_of
from rewritelog.diffing.totals import Totals
from rewritelog.logs.blocks import Block, Buffer, load_blocks, plan_in_turn
from rewritelog.logs.files import InputFile
from rewritelog.logs.params import list_params
from rewritelog.progress import report_progress
from rewritelog.rewriting.block import RewriteTask, rewrite_part
from rewritelog.rewriting.report import Report
from rewritelog.rewriting.run import task_without_output
from rewritelog.rewriting.running_sums import RunningSums


def compare_dry_run(report: Report) -> Totals:
    """Rewrite the logs of a report again without writing, and compare each block with the original.

    Takes memory for two blocks per thread. Raise what reading the logs raises.
    """
    logs, options = report.logs, report.options
    params = list_params(logs.folder) if report.params is None else report.params
    rules = rules_of(logs.layout, logs.layout)
    comparing = DiffTask(logs, logs, params if params.pes else None, rules, options.block_bytes)
    work = partial(_compare_block, task_without_output(report), comparing)
    threads = cores(options.jobs)
    totals = Totals()
    with ThreadPoolExecutor(threads) as executor:
        blocks = plan_in_turn(logs.files, options.block_bytes)
        for number, found in enumerate(in_order(executor, work, blocks, 2 * threads), 1):
            totals.add(found)
            report_progress(f"comparing, block {number:,}")
    return totals


def _compare_block(rewriting: RewriteTask, comparing: DiffTask, block: Block) -> Totals:
    file, layout = rewriting.logs.files[block.file], rewriting.logs.layout
    totals, running = Totals(), RunningSums()
    with InputFile(file.path) as source:
        old, new = (
            load_blocks(source, file, block, layout, Buffer(), rewriting.block_bytes)
            for _ in range(2)
        )
        for a, b in zip(old, new, strict=True):
            rewrite_part(rewriting, b, running)
            totals.add(compare_loaded(comparing, LoadedPair(a.pes, a, b)))
    return totals
