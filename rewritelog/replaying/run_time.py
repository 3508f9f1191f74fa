"""The run time of a program before and after a rewrite: two replays in the same network."""

from __future__ import annotations

from dataclasses import replace

from rewritelog.commands.durations import RewriteOptions
from rewritelog.errors import RewriteLogError
from rewritelog.progress import report_progress
from rewritelog.replaying.loading import load_workload
from rewritelog.replaying.network import Network
from rewritelog.replaying.simulate import Case, prepare, run_time
from rewritelog.replaying.traces import load_task
from rewritelog.rewriting.report import RewriteReport, RunTime
from rewritelog.rewriting.statistics import BlockCount
from rewritelog.rewriting.traces import TraceTask

MOST_SEBS = 1 << 20
"""Logs of more SEBs are replayed only if a network is given: it takes time and memory for each."""


def with_run_time(report: RewriteReport, network: Network, *, asked: bool) -> RewriteReport:
    """Return the report of a rewrite with the run time before and after.

    Unless it was asked for, logs of more than `MOST_SEBS` are not replayed, nor those that cannot
    be: the report says why. Otherwise raise a `RewriteLogError` for these.
    """
    if not asked and report.count(BlockCount.SEBS) > MOST_SEBS:
        item = report.terms.item
        why = f"logs of over a million {item}s are replayed with --network log or --machine only"
        return replace(report, no_run_time=why)
    try:
        return replace(report, run_time=_run_time(report, network))
    except RewriteLogError as error:
        if asked:
            raise
        return replace(report, no_run_time=str(error))


def _run_time(report: RewriteReport, network: Network) -> RunTime:
    """Return the run times with the durations before and after."""
    task, options = report.task, report.options
    if isinstance(task, TraceTask):
        loaded = load_task(task, options.jobs)
        before = loaded.replayed(network, as_recorded=True).outcome
        after = before if report.changes_nothing else loaded.replayed(network).outcome
        never_ran = len(before.workload.sebs) - before.run
        text = network.text(report.terms.recorded)
        return RunTime(before.predicted_s, after.predicted_s, text, never_ran)
    report_progress("replaying the logs as they are")
    plain = prepare(task.logs, RewriteOptions(params=options.params, jobs=options.jobs))
    before_s, never_ran = run_time(plain.workload, plain.case(network))
    if report.changes_nothing:
        return RunTime(before_s, before_s, network.text(), never_ran)
    del plain  # it takes memory
    report_progress("replaying the rewritten logs")
    workload = load_workload(task.logs, task.predictor, options)
    after_s, _ = run_time(workload, Case(network, options.dilations))
    return RunTime(before_s, after_s, network.text(), never_ran)
