"""The complete job of a replay: load, replay, analyse and report."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from rewritelog.arrays import Floats
from rewritelog.cores import cores, in_order
from rewritelog.formats.bgtrace.logset import LogSet
from rewritelog.formats.traces import Traces
from rewritelog.progress import report_progress
from rewritelog.replaying.analysis import (
    Blocked,
    CriticalPath,
    Gain,
    find_critical_path,
    find_never_run,
    gain,
    questions,
)
from rewritelog.replaying.lost_cycles import (
    NO_LOST_CYCLES,
    LostAs,
    LostCycles,
    lost_cycles,
    region_lengths,
)
from rewritelog.replaying.network import Network
from rewritelog.replaying.options import ReplayOptions
from rewritelog.replaying.prepare import Prepared, prepare
from rewritelog.replaying.report import BusyPe, ReplayReport
from rewritelog.replaying.simulate import ReplayedRun, simulate

if TYPE_CHECKING:
    from rewritelog.replaying.traces import Lanes

WORST_PES = 5
"""The number of busiest PEs in a report."""


@dataclass(frozen=True)
class Replayed:
    """The report of a replay, with the times of all SEBs."""

    report: ReplayReport
    outcome: ReplayedRun
    lanes: Lanes | None = None
    """The threads and streams of traces, which take the place of PEs."""


def replay(
    logs: LogSet | str | Path,
    network: Network | None = None,
    options: ReplayOptions | None = None,
) -> ReplayReport:
    """Predict the run time of the whole program from its logs, and how it is spent.

    Raise a `RewriteLogError` for any invalid input.
    """
    return replay_whole(logs, network, options).report


def replay_whole(
    logs: LogSet | str | Path,
    network: Network | None = None,
    options: ReplayOptions | None = None,
) -> Replayed:
    """Replay as `replay` does; return the times of all SEBs, too, which take memory for each."""
    options = options or ReplayOptions()
    LostAs(options.lost_as)  # to raise its errors before the work begins
    prepared = prepare(logs, options)
    return replay_prepared(prepared, network or Network(), options)


def replay_traces(
    traces: Traces, network: Network | None = None, options: ReplayOptions | None = None
) -> Replayed:
    """Replay traces; memory is needed for all of their nodes.

    Raise `UsageError` for options that traces have no use for, `DamagedLogError` for damage.
    """
    options, network = options or ReplayOptions(), network or Network()
    from rewritelog.replaying.traces import prepared_task, replay_task  # noqa: PLC0415 - not of logs

    task, said = prepared_task(traces, options)
    run = replay_task(task, network, options.jobs)
    report = _report(traces, run.outcome, None, options, (*said, *run.warnings))
    report = replace(
        report,
        pes=len(traces.units),
        communication_s=run.communication_s(report.path),
        lane_names=run.lanes.names,
        notes=run.notes,
    )
    return Replayed(report, run.outcome, run.lanes)


def replay_opened(source: LogSet | Traces, network: Network, options: ReplayOptions) -> Replayed:
    """Replay what has been opened."""
    if isinstance(source, Traces):
        return replay_traces(source, network, options)
    return replay_whole(source, network, options)


def replay_prepared(prepared: Prepared, network: Network, options: ReplayOptions) -> Replayed:
    """Replay as `replay_whole` does, with a log set that has been loaded."""
    case = prepared.case(network)
    report_progress("replaying")
    outcome = simulate(prepared.workload, case)
    said = (*prepared.warnings, *prepared.workload.warnings(recorded=network.recorded))
    report = _report(prepared.logs, outcome, LostAs(options.lost_as), options, said)
    if options.write is not None:
        from rewritelog.replaying.write import write_replayed  # noqa: PLC0415 - few runs need it

        write_replayed(prepared, outcome, options.write, options)
    return Replayed(report, outcome)


def _report(
    logs: LogSet | Traces,
    outcome: ReplayedRun,
    lost_as: LostAs | None,
    options: ReplayOptions,
    remarks: tuple[str, ...],
) -> ReplayReport:
    """Return the report; replays for gains run in parallel to the analysis of this one.

    The time of PEs is divided into categories unless `lost_as` is None.
    """
    workload = outcome.workload
    busy = _Busy.of(outcome)
    most = options.gains if outcome.run else 0
    names, events, left_out = questions(workload, busy.name_s, busy.event_s, most)
    asked = (*names, *events)
    workers = cores(options.jobs)
    with ThreadPoolExecutor(workers) as executor:
        analysis = executor.submit(_analysis, outcome, lost_as)
        ask = partial(gain, outcome)
        answers = []
        for answer in in_order(executor, ask, asked, workers):
            answers.append(answer)
            report_progress("replaying without a name or event", len(answers), len(asked))
        lost, path, blocked = analysis.result()
    return ReplayReport(
        logs=logs,
        network=outcome.case.network,
        predicted_s=outcome.predicted_s,
        recorded_s=workload.recorded_s,
        pes=workload.pes,
        sebs=len(workload.sebs),
        messages=len(workload.messages),
        busy_s=busy.total_s,
        lost=lost,
        path=path,
        communication_s=sum(share.seconds for share in path.messages),
        worst_pes=busy.worst_pes(outcome),
        blocked=blocked,
        remarks=remarks,
        gains=_largest_first(answers[: len(names)]),
        event_gains=_largest_first(answers[len(names) :]),
        gains_left_out=left_out,
    )


def _analysis(
    outcome: ReplayedRun, lost_as: LostAs | None
) -> tuple[LostCycles, CriticalPath, Blocked]:
    lost = NO_LOST_CYCLES if lost_as is None else lost_cycles(outcome, lost_as)
    return lost, find_critical_path(outcome), find_never_run(outcome)


def _largest_first(gains: list[Gain]) -> tuple[Gain, ...]:
    return tuple(sorted(gains, key=lambda gain: -gain.gain_s))


@dataclass(frozen=True)
class _Busy:
    """The busy time of a replay: total, and by PE, name and event."""

    total_s: float
    pe_s: Floats
    name_s: Floats
    event_s: Floats

    @classmethod
    def of(cls, outcome: ReplayedRun) -> _Busy:
        workload, durations = outcome.workload, outcome.busy_s
        sebs, regions = workload.sebs, workload.regions
        pe_s: Floats = np.bincount(sebs.pe, durations, workload.pes).astype(np.float64)
        name_s: Floats = np.bincount(sebs.name, durations, len(workload.names)).astype(np.float64)
        middle = region_lengths(outcome)
        event_s: Floats = np.bincount(regions.event, middle, len(workload.events)).astype(
            np.float64
        )
        return cls(float(durations.sum()), pe_s, name_s, event_s)

    def worst_pes(self, outcome: ReplayedRun) -> tuple[BusyPe, ...]:
        """Return the PEs with the most busy time."""
        counts = np.diff(outcome.workload.sebs.first_of_pe)
        worst = np.argsort(-self.pe_s, kind="stable")[:WORST_PES]
        return tuple(BusyPe(int(pe), float(self.pe_s[pe]), int(counts[pe])) for pe in worst)
