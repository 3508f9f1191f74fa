"""The replay of traces: how long the run takes, what bounds it, and what is free."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from rewritelog.arrays import Floats
from rewritelog.cores import limited_to
from rewritelog.errors import UsageError
from rewritelog.formats.traces import Traces, Unit
from rewritelog.formats.unit_events import UnitEvents, load_unit
from rewritelog.replaying.collectives import Kind
from rewritelog.replaying.gains import Gain, gain, questions
from rewritelog.replaying.network import Network
from rewritelog.replaying.options import ReplayOptions
from rewritelog.replaying.path import CriticalPath, find_critical_path
from rewritelog.replaying.simulate import Case, ReplayedRun, simulate
from rewritelog.replaying.trace_graph import TraceGraph, graph_of
from rewritelog.rewriting.traces import TraceTask, new_durations, prepared_task
from rewritelog.running.engines import map_blocks
from rewritelog.text import (
    Readable,
    TextTable,
    count_text,
    faster_text,
    percent_text,
    printable,
    time_column,
    time_text,
    wrapped,
)

_PATH_ROWS = 10
_LANES = 8


@dataclass(frozen=True, repr=False)
class TraceReplay(Readable):
    """The results of a replay of traces."""

    traces: Traces
    network: Network
    graph: TraceGraph
    outcome: ReplayedRun
    path: CriticalPath
    gains: tuple[Gain, ...]
    remarks: tuple[str, ...]

    @property
    def report(self) -> TraceReplay:
        """The report, which is this."""
        return self

    def compared_with(self, before: object) -> TraceReplayComparison:
        """Return the comparison with another replay, as the state before."""
        if not isinstance(before, TraceReplay):
            raise UsageError("--against takes traces of the same format")
        return TraceReplayComparison(before, self)

    @property
    def predicted_s(self) -> float:
        """The end of the last node."""
        return self.outcome.predicted_s

    @property
    def exposed_s(self) -> float:
        """The part of the critical path in messages and collectives."""
        path = self.path.path
        return float(path.ran_s[self.graph.is_network[path.seb]].sum())

    @property
    def never(self) -> int:
        """The nodes and collectives that never ran."""
        return len(self.graph.workload.sebs) - self.outcome.run

    def busy(self) -> list[tuple[str, int, float]]:
        """Return each lane, its nodes and its busy seconds, the busiest first."""
        sebs, lanes = self.graph.workload.sebs, self.graph.lanes
        seconds = np.bincount(sebs.pe, self.outcome.busy_s, len(lanes.rank))
        counts = np.bincount(sebs.pe, minlength=len(lanes.rank))
        order = [lane for lane in np.argsort(-seconds, kind="stable").tolist() if counts[lane]]
        return [(lanes.name(lane), int(counts[lane]), float(seconds[lane])) for lane in order]

    @property
    def warnings(self) -> tuple[str, ...]:
        """The warnings, one sentence each."""
        graph, said = self.graph, list(self.remarks)
        if self.never:
            nodes = count_text(self.never, "node")
            said.append(f"{nodes} never ran: the predicted time does not include them (`check`)")
        if graph.missing:
            deps = count_text(graph.missing, "dependency", "dependencies")
            said.append(f"{deps} on nodes that are not there: ignored")
        if graph.unmatched:
            received = count_text(graph.unmatched, "message")
            said.append(f"{received} received that no rank sends: received at once")
        if graph.alone and not self.network.recorded:
            many = count_text(graph.alone, "collective")
            said.append(
                f"{many} of one rank only, which take no time: give the traces of all ranks"
            )
        return tuple(said)

    def to_json(self) -> dict[str, Any]:
        """Return the report as a JSON object."""
        return {
            "logs": str(self.traces.path),
            "network": self.network.to_json(),
            "predicted_s": self.predicted_s,
            "ranks": len(self.traces.units),
            "nodes": len(self.graph.workload.sebs),
            "collectives": self.graph.collectives,
            "exposed_communication_s": self.exposed_s,
            "lanes": [{"lane": n, "nodes": k, "busy_s": s} for n, k, s in self.busy()],
            "critical_path": {"nodes": self.path.length, "by_name_s": self.path.by_name_s},
            "gains": [vars(each) for each in self.gains],
            "never_run": self.never,
            "warnings": list(self.warnings),
        }

    def text(self) -> str:
        """Return the report as text."""
        whole = self.predicted_s
        ranks = count_text(len(self.traces.units), "rank")
        on_path = count_text(self.path.length, "node")
        exposed = percent_text(_share(self.exposed_s, whole), 1)
        collectives = count_text(self.graph.collectives, "collective")
        recorded = self.network.recorded
        modelled = "as recorded" if recorded else "as rings and trees without congestion"
        lines = [
            f"Predicted run time: {time_text(whole, 6)} on {ranks}",
            f"  {on_path} on the critical path, {exposed} of it in communication",
            f"  {collectives}, {modelled}: a simulator knows better",
        ]
        if not recorded:
            lines.append(f"  network: {printable(self.network.text())}")
        on_path_s = list(self.path.by_name_s.values())
        path = [
            (name, text, percent_text(_share(time_s, whole), 1))
            for name, text, time_s in zip(
                self.path.by_name_s, time_column(on_path_s), on_path_s, strict=True
            )
        ]
        busy_s = time_column([each.busy_s for each in self.gains])
        gained_s = time_column([each.gain_s for each in self.gains])
        free = [
            (each.name, busy, gained, percent_text(_share(each.gain_s, whole), 1))
            for each, busy, gained in zip(self.gains, busy_s, gained_s, strict=True)
        ]
        by_lane = self.busy()
        lanes = [
            (name, f"{count:,}", text, percent_text(_share(time_s, whole), 1))
            for (name, count, time_s), text in zip(
                by_lane, time_column([time_s for _, _, time_s in by_lane]), strict=True
            )
        ]
        tables = [
            TextTable(("Critical path", "time", "share"), path, most_rows=_PATH_ROWS),
            TextTable(("If these nodes were free", "busy", "gain", "of the run"), free),
            TextTable(("Runs on", "nodes", "busy", "of the run"), lanes, most_rows=_LANES),
        ]
        parts = ["\n".join(map(wrapped, lines)), *(str(table) for table in tables if table.rows)]
        return "\n\n".join(parts)


def _share(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 0.0


@dataclass(frozen=True, repr=False)
class TraceReplayComparison(Readable):
    """Two replays of traces on the same network."""

    before: TraceReplay
    after: TraceReplay

    @property
    def warnings(self) -> tuple[str, ...]:
        """The warnings of both."""
        return (
            *(f"before: {warning}" for warning in self.before.warnings),
            *(f"after: {warning}" for warning in self.after.warnings),
        )

    @property
    def speedup(self) -> float | None:
        """The predicted time before divided by that after."""
        after = self.after.predicted_s
        return self.before.predicted_s / after if after > 0 else None

    def to_json(self) -> dict[str, Any]:
        """Return the second report as a JSON object, with the first one under `against`."""
        against = self.before.to_json()
        return {**self.after.to_json(), "against": against, "speedup": self.speedup}

    def text(self) -> str:
        """Return the comparison and the second report as text."""
        times = f"{time_text(self.before.predicted_s, 6)} → {time_text(self.after.predicted_s, 6)}"
        ratio = f", {faster_text(self.speedup)}"
        return f"After against before: {times}{ratio}\n\n{self.after.text()}"


def replay_traces(
    traces: Traces, network: Network | None = None, options: ReplayOptions | None = None
) -> TraceReplay:
    """Replay traces; memory is needed for all of their nodes.

    Raise `UsageError` for options that traces have no use for, `DamagedLogError` for damage.
    """
    options, network = options or ReplayOptions(), network or Network()
    if options.write is not None or options.lost_as:
        name = "--lost-as" if options.lost_as else "--write"
        raise UsageError(f"{name} is for bgTrace logs: {traces.path} has {traces.title}")
    task, remarks = prepared_task(traces, options)
    with limited_to(options.jobs):
        return replayed(task, network, options.gains, remarks)


def replayed(
    task: TraceTask, network: Network, most_gains: int | None = 0, remarks: tuple[str, ...] = ()
) -> TraceReplay:
    """Replay the traces of a task with their new durations."""
    traces, work = task.traces, partial(_loaded, task)
    units, durations = list[UnitEvents](), list[Floats]()
    for _, (events, new_s) in map_blocks(work, traces.units, "reading", traces.size_bytes):
        units.append(events)
        durations.append(new_s)
    kinds = Kind(*(traces.types.index(name) for name in traces.communicating))
    graph = graph_of(units, durations, kinds, network)
    outcome = simulate(graph.workload, Case(network, _unscaled))
    names = len(graph.workload.names)
    busy: Floats = np.bincount(graph.workload.sebs.name, outcome.busy_s, names).astype(np.float64)
    most = most_gains if outcome.run else 0
    asked, _, _ = questions(graph.workload, busy, np.zeros(0), most)
    gains = sorted((gain(outcome, each) for each in asked), key=lambda each: -each.gain_s)
    path = find_critical_path(outcome)
    return TraceReplay(traces, network, graph, outcome, path, tuple(gains), remarks)


def starts_of(replayed: TraceReplay) -> dict[int, Floats]:
    """Return when each node of each rank starts; NaN for one that never ran."""
    starts = replayed.outcome.times.start_s
    ranks = (unit.rank for unit in replayed.traces.units)
    return {rank: starts[seb] for rank, seb in zip(ranks, replayed.graph.seb_of, strict=True)}


def _unscaled(name: str) -> float:  # noqa: ARG001 - durations are predicted already
    return 1.0


def _loaded(task: TraceTask, unit: Unit) -> tuple[UnitEvents, Floats]:
    return load_unit(task.traces, unit), new_durations(task, unit)
