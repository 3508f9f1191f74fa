"""The complete job of a replay: load, replay, analyse and report."""

from __future__ import annotations

import dataclasses
import operator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from rewritelog.commands.runs import ReplayCommand, ReplayOptions
from rewritelog.errors import UsageError, spelled
from rewritelog.formats.bgtrace.logset import LogSet
from rewritelog.formats.bgtrace.params import params_folder
from rewritelog.formats.traces import AnyTraces
from rewritelog.progress import report_progress
from rewritelog.replaying.analysis import (
    Blocked,
    CriticalPath,
    Gain,
    GainCandidate,
    find_blocked,
    find_critical_path,
    gain_candidates,
    gain_of,
)
from rewritelog.replaying.lost_cycles import NO_LOST_CYCLES, LostCycles, lost_cycles
from rewritelog.replaying.network import Network
from rewritelog.replaying.replay import Prepared, ReplayedRun, prepare, replay_workload
from rewritelog.replaying.report import BusyPe, ReplayComparison, ReplayedRuns, ReplayReport
from rewritelog.replaying.workload import NETWORK, Workload
from rewritelog.running.engines import Threads, cores, in_order
from rewritelog.text import share_of

WORST_PES = 5
"""The number of busiest PEs in a report."""


class Replayed(Struct, frozen=True):
    """The report of a replay, with the times of all SEBs."""

    report: ReplayReport
    outcome: ReplayedRun
    before: ReplayReport | None = None
    """The replay that it is compared with."""

    @property
    def shown(self) -> ReplayReport | ReplayComparison:
        """The report, or the comparison."""
        return ReplayComparison(self.before, self.report) if self.before else self.report


def replay_runs(command: ReplayCommand) -> Replayed | ReplayedRuns:
    """Replay a log set, and compare it with another one if that is given; or compare several."""
    if command.write is None:
        command.check_unused(spelled("write"))
    other, all_logs = command.against, [*command.logs, *filter(None, [command.against])]
    if len({logs.title for logs in all_logs}) > 1:
        listed = ", ".join(f"{logs.path} has {logs.title}" for logs in all_logs)
        raise UsageError(f"runs of one format are compared: {listed}")
    network, plain = command.read_network(), dataclasses.replace(command, gains=0, write=None)
    if len(command.logs) == 1:
        (logs,) = command.logs
        if other is None:
            return replay_whole(logs, network, command)
        files, others = ({file.path.resolve() for file in of.files} for of in (logs, other))
        earlier = plain.as_recorded() if files == others else plain
        before = replay_whole(other, network, _with_params(earlier, other, logs)).report
        after = replay_whole(logs, network, _with_params(command, logs, other))
        return replace(after, before=before)
    for name in ("against", "write", "gains"):
        if getattr(command, name) is not None:
            raise UsageError(f"{spelled(name)} is for one log set; of several, all are compared")
    return ReplayedRuns(tuple(replay_whole(each, network, plain).report for each in command.logs))


def _with_params(options: ReplayCommand, logs: AnyTraces, other: AnyTraces) -> ReplayCommand:
    """Return the options, with the params folder of `other` if `logs` left its params there."""
    if options.params is None and isinstance(logs, LogSet) and isinstance(other, LogSet):
        return dataclasses.replace(options, params=params_folder(logs, other))
    return options


def replay_whole(
    source: AnyTraces | str | Path, network: Network, options: ReplayOptions
) -> Replayed:
    """Predict the run time of the whole program from its logs or traces, and how it is spent.

    The result holds the times of each SEB or node, in memory. Raise a `RewriteLogError` for any
    invalid input.
    """
    prepared = prepare(source, options, recorded=network.recorded)
    return replay_prepared(prepared, network, options)


def replay_prepared(prepared: Prepared, network: Network, options: ReplayOptions) -> Replayed:
    """Replay as `replay_whole` does, with logs or traces that have been loaded."""
    report_progress("replaying")
    outcome = replay_workload(prepared.workload, prepared.case(network))
    warnings = prepared.warnings_of([outcome], [network])
    report = _report(prepared.logs, outcome, options, warnings)
    if options.write is not None:
        from rewritelog.replaying.write import write_replayed  # noqa: PLC0415 - few runs need it

        write_replayed(prepared, outcome, options.write, options)
    return Replayed(report, outcome)


def _report(
    logs: AnyTraces, outcome: ReplayedRun, options: ReplayOptions, remarks: tuple[str, ...]
) -> ReplayReport:
    """Return the report; lost cycles are only for logs, not for the threads of traces."""
    workload, busy_s = outcome.workload, outcome.busy_s
    sebs, nodes = workload.sebs, workload.nodes
    name_s = np.bincount(sebs.name, busy_s, len(workload.names))
    event_s = np.bincount(workload.regions.event, outcome.regions_s[1], len(workload.events))
    most = options.gains if len(outcome.times.order) else 0
    names, events, left_out = gain_candidates(workload, name_s, event_s, most)
    gains, (lost, path, blocked) = _analysed(outcome, names, events, options)
    pe_s = np.bincount(sebs.pe, busy_s, workload.pes)
    computing_s = pe_s if nodes is None else pe_s[nodes.lanes.computing]
    whole_s = len(computing_s) * outcome.predicted_s
    if nodes is not None and len(computing_s) and not computing_s.any():
        given = f"{spelled('timings')} gives durations"
        remarks += (f"computation takes no time, since none is recorded: {given}",)
    communication_s, communicating = _communication(workload, path)
    return ReplayReport(
        logs=logs,
        network=outcome.case.network,
        predicted_s=outcome.predicted_s,
        recorded_s=workload.recorded_s,
        pes=len(logs.pes),
        sebs=len(sebs),
        messages=len(workload.messages),
        busy_s=float(busy_s.sum()),
        utilisation=share_of(float(computing_s.sum()), whole_s),
        lost=lost,
        path=path,
        communication_s=communication_s,
        communicating=communicating,
        worst_pes=_busiest(workload, pe_s),
        blocked=blocked,
        remarks=remarks,
        gains=_largest_first(gains[: len(names)]),
        event_gains=_largest_first(gains[len(names) :]),
        gains_left_out=left_out,
        notes=() if nodes is None else nodes.notes,
    )


def _analysed(
    outcome: ReplayedRun,
    names: list[GainCandidate],
    events: list[GainCandidate],
    options: ReplayOptions,
) -> tuple[list[Gain], tuple[LostCycles, CriticalPath, Blocked]]:
    """Return the gains of names and events, replayed in parallel, and the rest of the analysis."""
    cases = [replace(outcome.case, free_name=candidate.name) for candidate in names]
    cases += [replace(outcome.case, free_event=candidate.name) for candidate in events]
    pairs = zip((*names, *events), cases, strict=True)
    replays = [partial(gain_of, outcome, candidate, case) for candidate, case in pairs]
    divided = outcome.workload.nodes is None

    def analysis() -> tuple[LostCycles, CriticalPath, Blocked]:
        lost = lost_cycles(outcome, options.lost_as) if divided else NO_LOST_CYCLES
        return lost, find_critical_path(outcome), find_blocked(outcome)

    gains, workers = list[Gain](), cores()
    with Threads(workers) as executor:
        analysing = executor.submit(analysis)
        for gain in in_order(executor, operator.call, replays, workers):
            gains.append(gain)
            report_progress("replaying without a name or event", len(gains), len(replays))
        return gains, analysing.result()


def _busiest(workload: Workload, pe_s: Any) -> tuple[BusyPe, ...]:
    """Return the PEs, or threads and streams, with the most busy time."""
    counts, nodes = np.diff(workload.sebs.first_of_pe), workload.nodes
    return tuple(
        BusyPe(pe, float(pe_s[pe]), int(counts[pe]), nodes.lanes.names[pe] if nodes else f"PE {pe}")
        for pe in np.argsort(-pe_s, kind="stable")[:WORST_PES].tolist()
    )


def _communication(workload: Workload, path: CriticalPath) -> tuple[float, frozenset[str]]:
    """Return the part of the critical path in messages and collectives, and these by name."""
    if workload.nodes is None:
        return sum(share.seconds for share in path.messages), frozenset()
    communicates = workload.nodes.lanes.where[workload.sebs.pe[path.seb]] == NETWORK
    names = set(workload.sebs.name[path.seb[communicates]].tolist())
    seconds = float(path.ran_s[communicates].sum())
    return seconds, frozenset(workload.names[name] for name in names)


def _largest_first(gains: list[Gain]) -> tuple[Gain, ...]:
    return tuple(sorted(gains, key=lambda gain: -gain.gain_s))
