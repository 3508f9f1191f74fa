"""The run time of a program before and after a rewrite: two replays in the same network."""

from __future__ import annotations

from dataclasses import replace
from functools import singledispatch

from rewritelog.errors import RewriteLogError
from rewritelog.progress import report_progress
from rewritelog.replaying.network import Network
from rewritelog.replaying.prepare import case_of, prepare, workload_of
from rewritelog.replaying.simulate import simulate
from rewritelog.replaying.traces import load_task
from rewritelog.rewriting.block import RewriteTask
from rewritelog.rewriting.options import RewriteOptions
from rewritelog.rewriting.report import RewriteReport, RunTime, Task
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
        return replace(report, run_time=_run_time(report.task, report, network))
    except RewriteLogError as error:
        if asked:
            raise
        return replace(report, no_run_time=str(error))


@singledispatch
def _run_time(task: Task, report: RewriteReport, network: Network) -> RunTime:
    """Return the run times with the durations before and after."""
    raise NotImplementedError


@_run_time.register
def _run_time_of_traces(task: TraceTask, report: RewriteReport, network: Network) -> RunTime:
    loaded = load_task(task, report.options.jobs)
    before = loaded.replayed(network, as_recorded=True).outcome
    after = loaded.replayed(network).outcome
    never_ran = len(before.workload.sebs) - before.run
    return RunTime(before.predicted_s, after.predicted_s, network.text(), never_ran)


@_run_time.register
def _run_time_of_logs(task: RewriteTask, report: RewriteReport, network: Network) -> RunTime:
    options = report.options
    report_progress("replaying the logs as they are")
    plain = RewriteOptions(params=options.params, jobs=options.jobs)
    before = prepare(task.logs, plain)
    before_run = simulate(before.workload, before.case(network))
    before_s, never_ran = before_run.predicted_s, len(before.workload.sebs) - before_run.run
    del before, before_run  # they take memory
    report_progress("replaying the rewritten logs")
    predicts = report.model.uses_params
    workload = workload_of(task.logs, options, task.predictor, predicts=predicts)
    after = simulate(workload, case_of(options, network))
    return RunTime(before_s, after.predicted_s, network.text(), never_ran)
