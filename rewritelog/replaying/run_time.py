"""The run time of a program before and after a rewrite: two replays in the same network."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from dataclasses import replace

from msgspec import structs

from rewritelog.commands.durations import NO_DILATION
from rewritelog.commands.logs import RewriteCommand
from rewritelog.errors import RewriteLogError, spelled
from rewritelog.formats.traces import joined
from rewritelog.progress import listening, report_progress
from rewritelog.replaying.loading import load_workload
from rewritelog.replaying.network import Network
from rewritelog.replaying.replay import Case, run_time
from rewritelog.rewriting.block import RewriteTask
from rewritelog.rewriting.report import RewriteReport, RunTime
from rewritelog.rewriting.run import rewrite
from rewritelog.rewriting.statistics import BlockCount

MOST_SEBS = 1 << 20
"""Logs of more SEBs are replayed only if a network is given: each SEB takes time and memory.

Traces of 16 times as many dependencies take as much memory.
"""


def rewrite_and_replay(command: RewriteCommand) -> RewriteReport:
    """Rewrite logs or traces, and return the report with the run time before and after.

    Without a network, logs of more than `MOST_SEBS` and those that cannot be replayed have no run
    time, and the report says why. With a network, raise a `RewriteLogError` for the latter. OUT
    gets its name after the replays, so that it is unchanged if one of them fails or is interrupted.
    """
    network, is_given = command.read_network(), command.describes_network
    most = sys.maxsize if is_given else MOST_SEBS

    def with_run_time(report: RewriteReport) -> RewriteReport:
        if not is_given and report.statistics.replay_size > MOST_SEBS:
            is_long = report.count(BlockCount.SEBS) > MOST_SEBS
            amount = f"a million {report.terms.item}s" if is_long else "16 million dependencies"
            network_log = spelled("network", "log")
            why = f"over {amount} are replayed only if a network is given, as in {network_log}"
            return replace(report, no_run_time=why)
        try:
            return replace(report, run_time=_run_time(report, network))
        except RewriteLogError as error:
            if is_given:
                raise
            return replace(report, no_run_time=str(error))

    with nullcontext() if command.progress is None else listening(command.progress):
        return rewrite(command.logs, command.out, command, most, with_run_time)


def _run_time(report: RewriteReport, network: Network) -> RunTime:
    task, text = report.task, network.text(report.terms.recorded)
    report_progress("replaying what was and what is rewritten")
    if isinstance(task, RewriteTask):
        plain = structs.replace(task, params=None, dilations=NO_DILATION)
        tasks = (plain, task)[: 1 + (not report.changes_nothing)]
        workload = load_workload(tasks, task.params)
    else:
        from rewritelog.replaying.traces import workload_of  # noqa: PLC0415 - not of logs

        durations = ("duration_s", "new_s")[: 1 + (not report.changes_nothing)]
        events = joined(report.statistics.kept)
        workload = workload_of(
            task.logs, events, events["name"], durations, recorded=network.recorded
        )
        report.statistics.kept.clear()  # they take memory
    runs = [run_time(workload, Case(network, seconds)) for seconds in workload.seconds]
    warnings = tuple(workload.warnings([network], runs))
    return RunTime(runs[0].predicted_s, runs[-1].predicted_s, text, runs[0].never_ran, warnings)
