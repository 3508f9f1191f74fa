"""The whole job of a replay: load, replay, and say what the time is made of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from rewritelog.logs.logset import LogSet
from rewritelog.replaying.blocked import find_never_run
from rewritelog.replaying.categories import LostAs, lost_cycles
from rewritelog.replaying.loading import Progress
from rewritelog.replaying.network import Network
from rewritelog.replaying.options import ReplayOptions
from rewritelog.replaying.page import check_page, write_page
from rewritelog.replaying.path import find_critical_path
from rewritelog.replaying.prepare import Prepared, prepare
from rewritelog.replaying.report import BusyPe, Gain, ReplayReport
from rewritelog.replaying.simulate import Case, Outcome, run_times, simulate
from rewritelog.replaying.write import write_replayed

WORST_PES = 5
"""How many of the busiest PEs are named."""


def replay(
    logs: LogSet | str | Path,
    network: Network | None = None,
    options: ReplayOptions | None = None,
    progress: Progress | None = None,
) -> ReplayReport:
    """Predict how long the whole program takes, from its logs, and what the time is made of.

    Raise a `RewriteLogError` for whatever is wrong.
    """
    options = options or ReplayOptions()
    network = network or Network()
    lost_as = LostAs(options.lost_as)
    if options.html is not None:
        check_page(options.html)
    prepared = prepare(logs, options.rewrite, progress)
    case = prepared.case(network)
    outcome = simulate(prepared.workload, case)
    report = _report(prepared, network, outcome, lost_as)
    gains = _gains(prepared, case, report.predicted_s, outcome, options, progress)
    if options.write is not None:
        write_replayed(prepared, outcome, options.write, progress)
    report = report.with_gains(gains)
    if options.html is not None:
        write_page(report, outcome, options.html)
    return report


def _report(
    prepared: Prepared, network: Network, outcome: Outcome, lost_as: LostAs
) -> ReplayReport:
    workload = prepared.workload
    return ReplayReport(
        logs=prepared.logs,
        network=network,
        predicted_s=float(outcome.predicted_s),
        recorded_s=workload.recorded_s,
        pes=workload.pes,
        sebs=workload.sebs,
        messages=workload.messages,
        busy_s=float(outcome.durations_s.sum()),
        lost=lost_cycles(outcome, lost_as),
        path=find_critical_path(outcome),
        worst_pes=_worst_pes(outcome),
        blocked=find_never_run(outcome),
        remarks=(*prepared.warnings, *workload.faults.warnings(recorded=network.recorded)),
    )


def _worst_pes(outcome: Outcome) -> tuple[BusyPe, ...]:
    """Return the PEs that are busy longest."""
    sebs = outcome.workload.program.sebs
    busy = np.bincount(sebs.pe, outcome.durations_s, minlength=outcome.workload.pes)
    counts = np.diff(sebs.first_of_pe)
    worst = np.argsort(-busy, kind="stable")[:WORST_PES]
    return tuple(BusyPe(int(pe), float(busy[pe]), int(counts[pe])) for pe in worst)


def _gains(
    prepared: Prepared,
    case: Case,
    predicted_s: float,
    outcome: Outcome,
    options: ReplayOptions,
    progress: Progress | None,
) -> tuple[Gain, ...]:
    """Return what is gained were each of the largest names free, by replay."""
    workload = prepared.workload
    totals: Any = np.bincount(
        workload.program.sebs.name, outcome.durations_s, minlength=len(workload.names)
    )
    largest = [int(k) for k in np.argsort(-totals, kind="stable")[: options.gains] if totals[k] > 0]
    cases = (Case(case.network, case.factor_of, workload.names[k]) for k in largest)
    gains = []
    times = run_times(workload, cases, options.rewrite.jobs)
    for done, (k, time_s) in enumerate(zip(largest, times, strict=True), 1):
        gains.append(Gain(workload.names[k], float(totals[k]), predicted_s - time_s))
        if progress is not None:
            progress("replaying without a name", done, len(largest))
    return tuple(sorted(gains, key=lambda gain: -gain.gain_s))
