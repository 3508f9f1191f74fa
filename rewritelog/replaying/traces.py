"""The replay of traces: nodes are the workload, threads and streams take the place of PEs."""

from __future__ import annotations

from dataclasses import dataclass

from rewritelog.arrays import Floats
from rewritelog.cores import limited_to
from rewritelog.errors import UsageError
from rewritelog.formats.traces import Traces, UnitEvents
from rewritelog.replaying.collectives import Kind
from rewritelog.replaying.network import Network
from rewritelog.replaying.options import ReplayOptions
from rewritelog.replaying.path import CriticalPath
from rewritelog.replaying.simulate import Case, ReplayedRun, simulate
from rewritelog.replaying.trace_graph import TraceGraph, graph_of
from rewritelog.rewriting.fits import fit_model, read_model
from rewritelog.rewriting.run import trace_task
from rewritelog.rewriting.traces import TraceTask
from rewritelog.running.engines import map_blocks
from rewritelog.text import count_text


@dataclass(frozen=True)
class ReplayedTraces:
    """Traces that have been replayed with new durations."""

    traces: Traces
    network: Network
    graph: TraceGraph
    outcome: ReplayedRun

    @property
    def starts_s(self) -> dict[int, Floats]:
        """When each node of each rank starts; NaN for one that never ran."""
        starts, ranks = self.outcome.times.start_s, (unit.rank for unit in self.traces.units)
        return {rank: starts[seb] for rank, seb in zip(ranks, self.graph.seb_of, strict=True)}

    def communication_s(self, path: CriticalPath) -> float:
        """Return the part of the critical path in messages and collectives."""
        return float(path.path.ran_s[self.graph.is_network[path.path.seb]].sum())

    @property
    def notes(self) -> tuple[str, ...]:
        """How collectives are replayed."""
        collectives = count_text(self.graph.collectives, "collective")
        how = "as recorded" if self.network.recorded else "as rings and trees without congestion"
        return (f"{collectives}, {how}: a simulator knows better",)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the traces lack, one sentence each."""
        graph, warnings = self.graph, list[str]()
        if graph.missing:
            deps = count_text(graph.missing, "dependency", "dependencies")
            warnings.append(f"{deps} on nodes that are not there: ignored")
        if graph.unmatched:
            received = count_text(graph.unmatched, "message")
            warnings.append(f"{received} received that no rank sends: received at once")
        if graph.alone and not self.network.recorded:
            collectives = count_text(graph.alone, "collective")
            warnings.append(
                f"{collectives} of one rank only, which take no time: give the traces of all ranks"
            )
        return tuple(warnings)


def prepared_task(traces: Traces, options: ReplayOptions) -> tuple[TraceTask, tuple[str, ...]]:
    """Return the task for the options, and the warnings of the model's fit.

    Raise `UsageError` for options that traces have no use for.
    """
    if options.write is not None or options.lost_as:
        name = "--lost-as" if options.lost_as else "--write"
        raise UsageError(f"{name} is for bgTrace logs: {traces.path} has {traces.title}")
    options.check_for(traces)
    model = read_model(options)
    read, fitted = fit_model(model, options)
    said = (*(() if read is None else read.warnings()), *fitted.warnings())
    return trace_task(traces, model, fitted, options), said


@dataclass(frozen=True)
class LoadedTraces:
    """Traces that have been read for any number of replays."""

    traces: Traces
    units: tuple[UnitEvents, ...]
    new_s: tuple[Floats, ...]
    """The new durations of the nodes of each unit."""

    def replayed(self, network: Network, *, as_recorded: bool = False) -> ReplayedTraces:
        """Replay them with their new durations, or with those that are recorded."""
        durations = [events.duration_s for events in self.units] if as_recorded else self.new_s
        graph = graph_of(self.units, durations, Kind.of(self.traces), network)
        outcome = simulate(graph.workload, Case(network, _unscaled))
        return ReplayedTraces(self.traces, network, graph, outcome)


def load_task(task: TraceTask, jobs: int = 0) -> LoadedTraces:
    """Read the traces of a task; memory is needed for all of their nodes."""
    traces, loaded = task.logs, list[tuple[UnitEvents, Floats]]()
    with limited_to(jobs):
        for _, unit in map_blocks(task.load_unit, traces.units, "reading", traces.size_bytes):
            loaded.append(unit)
    return LoadedTraces(
        traces, tuple(events for events, _ in loaded), tuple(new_s for _, new_s in loaded)
    )


def replay_task(task: TraceTask, network: Network, jobs: int = 0) -> ReplayedTraces:
    """Replay traces with their new durations; memory is needed for all of their nodes."""
    return load_task(task, jobs).replayed(network)


def _unscaled(name: str) -> float:  # noqa: ARG001 - durations are predicted already
    return 1.0
