"""The run time of a program before and after a rewrite: two replays in the same network."""

from __future__ import annotations

from dataclasses import replace
from functools import singledispatch
from typing import Any

from rewritelog.cores import limited_to
from rewritelog.errors import RewriteLogError
from rewritelog.progress import report_progress
from rewritelog.replaying.network import Network
from rewritelog.replaying.prepare import case_of, prepare, workload_of
from rewritelog.replaying.simulate import simulate
from rewritelog.replaying.traces import replayed
from rewritelog.rewriting.counts import BlockCount
from rewritelog.rewriting.options import RewriteOptions
from rewritelog.rewriting.report import RewriteReport, RunTime
from rewritelog.rewriting.run import predictor_of
from rewritelog.rewriting.trace_report import TraceReport
from rewritelog.rewriting.traces import prepared_task, task_of

MOST_SEBS = 1 << 20
"""Logs of more SEBs are replayed only if a network is given: it takes time and memory for each."""

MOST_NODES = 1 << 18
"""The same for nodes of traces."""


@singledispatch
def with_run_time(report: RewriteReport | TraceReport, network: Network, *, asked: bool) -> Any:
    """Return the report of a rewrite with the run time before and after."""
    raise NotImplementedError


@with_run_time.register
def _of_logs(report: RewriteReport, network: Network, *, asked: bool) -> RewriteReport:
    """Return the report of a rewrite with the run time before and after.

    Unless it was asked for, logs of more than `MOST_SEBS` are not replayed, nor those that cannot
    be: the report says why. Otherwise raise a `RewriteLogError` for these.
    """
    if not asked and report.count(BlockCount.SEBS) > MOST_SEBS:
        why = "logs of over a million SEBs are replayed with --network log or --machine only"
        return replace(report, no_run_time=why)
    try:
        return replace(report, run_time=_run_time(report, network))
    except RewriteLogError as error:
        if asked:
            raise
        return replace(report, no_run_time=str(error))


@with_run_time.register
def _of_traces(report: TraceReport, network: Network, *, asked: bool) -> TraceReport:
    if not asked and report.nodes > MOST_NODES:
        return report
    options = report.options
    plain, _ = prepared_task(report.logs, RewriteOptions(jobs=options.jobs))
    with limited_to(options.jobs):
        before = replayed(plain, network)
        after = replayed(task_of(report.logs, report.model, report.fitted, options), network)
    times = RunTime(before.predicted_s, after.predicted_s, network.text(), before.never)
    return replace(report, run_time=times)


def _run_time(report: RewriteReport, network: Network) -> RunTime:
    """Return the run times of the logs of a rewrite, with their own durations and the new ones."""
    options = report.options
    report_progress("replaying the logs as they are")
    plain = RewriteOptions(params=options.params, jobs=options.jobs)
    before = prepare(report.logs, plain)
    before_run = simulate(before.workload, before.case(network))
    before_s, never_ran = before_run.predicted_s, len(before.workload.sebs) - before_run.run
    del before, before_run  # they take memory
    report_progress("replaying the rewritten logs")
    predicts = report.model.uses_params
    workload = workload_of(report.logs, options, predictor_of(report), predicts=predicts)
    after = simulate(workload, case_of(options, network))
    return RunTime(before_s, after.predicted_s, network.text(), never_ran)
