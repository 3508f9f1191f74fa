"""The replay of traces: nodes are the workload, threads and streams take the place of PEs.

Each thread and stream of a rank runs one node at a time. All nodes of a collective become one,
which starts when the last rank is ready for it. A message is received when it has been sent and its
time has passed.

Collectives take their times on a network with latency and bandwidth alone (Hockney's α and β). A
ring of p ranks: an all-gather, a reduce-scatter or an all-to-all of n bytes takes p − 1 steps of
n/p bytes, an all-reduce twice that. A binomial tree: the others take ⌈log2 p⌉ steps of n bytes.
Nothing else is in it: no congestion, no topology, no overlap of chunks.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rewritelog.arrays import Floats, Ints
from rewritelog.commands.runs import ReplayOptions
from rewritelog.core import core
from rewritelog.cores import limited_to
from rewritelog.errors import UsageError
from rewritelog.formats.traces import MISSING, Traces, UnitEvents, followers, joined_texts
from rewritelog.replaying.analysis import CriticalPath
from rewritelog.replaying.network import Network
from rewritelog.replaying.simulate import Case, ReplayedRun, delays_s, simulate
from rewritelog.replaying.workload import Messages, PairedRegions, Sebs, Workload
from rewritelog.rewriting.predicting import fit_warnings, fitted_predictor, warnings_of_unused
from rewritelog.rewriting.traces import TraceTask, trace_task
from rewritelog.running.engines import map_blocks
from rewritelog.text import count_text, matching

_ALL_REDUCE, _BARRIER = 0, 9
_RING = {2, 6, 7, 8}
"""All-gather, all-to-all and the two forms of reduce-scatter, by `comm_type`."""

DEVICE, HOST, NETWORK = range(3)
"""What a lane of a rank belongs to."""


@dataclass(frozen=True)
class Lanes:
    """Where nodes run; arrays of equal length."""

    rank: Ints
    where: Ints
    """`DEVICE`, `HOST` or `NETWORK`."""
    number: Ints

    @property
    def names(self) -> tuple[str, ...]:
        """The name of each lane."""
        kinds = ("stream {}", "CPU thread {}", "network")
        columns = (self.rank.tolist(), self.where.tolist(), self.number.tolist())
        return tuple(f"rank {r} {kinds[w].format(n)}" for r, w, n in zip(*columns, strict=True))


@dataclass(frozen=True)
class ReplayedTraces:
    """Traces that have been replayed with new durations."""

    outcome: ReplayedRun
    lanes: Lanes
    starts_s: dict[int, Floats]
    """When each node of each rank starts; NaN for one that never ran."""
    notes: tuple[str, ...]
    """How collectives are replayed."""
    warnings: tuple[str, ...]
    """Of the fit, and of what the traces lack, one sentence each."""

    def communication_s(self, path: CriticalPath) -> float:
        """Return the part of the critical path in messages and collectives."""
        lane = self.outcome.workload.sebs.pe[path.seb]
        return float(path.ran_s[self.lanes.where[lane] == NETWORK].sum())


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
        nodes = _Nodes(self.traces, self.units, durations, network)
        together, alone = nodes.joined_collectives()
        before, after, missing = nodes.dependencies()
        sends, receives, unmatched = nodes.messages()
        before = together[np.concatenate([before, sends])]
        after = together[np.concatenate([after, receives])]
        lanes, lane = lanes_of(self.traces, self.units)
        used = np.flatnonzero(together == np.arange(len(together)))
        order = used[np.argsort(lane[used], kind="stable")]
        lanes_used, lane_of = np.unique(lane[order], return_inverse=True)
        seb = np.full(len(together), -1, dtype=np.int64)
        seb[order] = np.arange(len(order))
        names, name = joined_texts((events.names, events.name) for events in self.units)
        apart = before != after
        links = seb[before[apart]], seb[after[apart]]
        workload = _workload(nodes.duration_s[order], name[order], names, lane_of, *links)
        ranks = [events.unit.rank for events in self.units]
        collectives = count_text(int(np.isin(used, nodes.collectives).sum()), "collective")
        how = "as recorded" if network.recorded else "as rings and trees without congestion"
        outcome = simulate(workload, Case(network))
        starts_s = np.split(outcome.times.start_s[seb[together]], nodes.first[1:-1])
        return ReplayedTraces(
            outcome,
            Lanes(lanes.rank[lanes_used], lanes.where[lanes_used], lanes.number[lanes_used]),
            dict(zip(ranks, starts_s, strict=True)),
            (f"{collectives}, {how}: a simulator knows better",),
            tuple(_warnings(missing, unmatched, 0 if network.recorded else alone)),
        )


def load_task(task: TraceTask, jobs: int = 0) -> LoadedTraces:
    """Read the traces of a task; memory is needed for all of their nodes."""
    traces = task.logs
    with limited_to(jobs):
        read = map_blocks(task.load_unit, traces.units, "reading", traces.size_bytes)
        units, new_s = zip(*(unit for _, unit in read), strict=True)
    return LoadedTraces(traces, units, new_s)


def replay_traces(
    traces: Traces, network: Network | None = None, options: ReplayOptions | None = None
) -> ReplayedTraces:
    """Replay traces with the durations of the options; memory is needed for all of their nodes.

    Raise `UsageError` for options that traces have no use for.
    """
    options = options or ReplayOptions()
    if options.write is not None or options.lost_as:
        name = "--lost-as" if options.lost_as else "--write"
        raise UsageError(f"{name} is for bgTrace logs: {traces.path} has {traces.title}")
    options.check_for(traces)
    model, read, predictor = fitted_predictor(options)
    task = trace_task(traces, predictor, options)
    run = load_task(task, options.jobs).replayed(network or Network())
    said = fit_warnings(read, predictor.fitted)
    matched = matching(options.dilation_for, run.outcome.workload.names)
    unused = warnings_of_unused(options, model, traces.terms, matched)
    return replace(run, warnings=(*said, *unused, *run.warnings))


def _warnings(missing: int, unmatched: int, alone: int) -> Iterator[str]:
    if missing:
        deps = count_text(missing, "dependency", "dependencies")
        yield f"{deps} on nodes that are not there: ignored"
    if unmatched:
        received = count_text(unmatched, "message")
        yield f"{received} received that no rank sends: received at once"
    if alone:
        collectives = count_text(alone, "collective")
        yield f"{collectives} of one rank only, which take no time: give the traces of all ranks"


class _Nodes:
    """The nodes of all units, one after the other, with the durations that a network gives them."""

    def __init__(
        self,
        traces: Traces,
        units: Sequence[UnitEvents],
        durations: Sequence[Floats],
        network: Network,
    ) -> None:
        self._units, self._network = units, network
        lengths = [len(events) for events in units]
        self.first = np.concatenate([[0], np.cumsum(lengths)])
        self._rank = np.repeat([events.unit.rank for events in units], lengths)
        kind = np.concatenate([events.type for events in units])
        on_host = np.concatenate([events.on_host for events in units])
        self.collectives, self._sends, self._receives = (
            np.flatnonzero((kind == of) & ~on_host) for of in _communicating(traces)
        )
        self.duration_s = np.concatenate(durations)

    def _number(self, name: str) -> Floats:
        return np.concatenate([events.numbers[name] for events in self._units])

    def dependencies(self) -> tuple[Ints, Ints, int]:
        """Return which nodes are waited for, by which, and how many of the former are missing."""
        before = np.concatenate([events.deps for events in self._units])
        after = np.concatenate([events.waiting for events in self._units])
        first = np.repeat(self.first[:-1], [len(events.deps) for events in self._units])
        known = before != MISSING
        return (before + first)[known], (after + first)[known], int(np.count_nonzero(~known))

    def joined_collectives(self) -> tuple[Ints, int]:
        """Return the first node of each node's collective, itself for others; set their durations.

        The nodes of a collective are those with the same place among those of their group, on each
        rank. The second result is the number of those that only one rank takes part in.
        """
        together = np.arange(len(self._rank))
        kind, size = self._number("comm_type"), self._number("comm_size")
        members, place = defaultdict[tuple[str, int], list[int]](list), Counter[tuple[int, str]]()
        units = np.searchsorted(self.first, self.collectives, side="right") - 1
        for node, unit in zip(self.collectives.tolist(), units.tolist(), strict=True):
            events = self._units[unit]
            group = events.groups[events.group[node - self.first[unit]]]
            members[group, place[unit, group]].append(node)
            place[unit, group] += 1
        for own in members.values():
            together[own] = own[0]
            if self._network.recorded:
                self.duration_s[own[0]] = self.duration_s[own].max()
            else:
                most_bytes = np.nanmax([0.0, *size[own]])
                seconds = _collective_s(kind[own[0]], most_bytes, len(own), self._network)
                self.duration_s[own[0]] = seconds
        return together, sum(len(own) == 1 for own in members.values())

    def messages(self) -> tuple[Ints, Ints, int]:
        """Return the nodes that send and receive each message; set the time that receiving takes.

        The third result is the number of messages received that no rank sends.
        """
        to, by, tag, size = (self._number(f"comm_{n}") for n in ("dst", "src", "tag", "size"))
        sender, receiver, tag = self._rank.astype(np.float64), by, np.nan_to_num(tag)
        waiting = defaultdict[tuple[float, ...], deque[int]](deque)
        for node in self._sends.tolist():
            waiting[sender[node], to[node], tag[node]].append(node)
        pairs = list[tuple[int, int]]()
        for node in self._receives.tolist():
            sent = waiting[receiver[node], self._rank[node], tag[node]]
            if sent:
                pairs.append((sent.popleft(), node))
        if not self._network.recorded:
            self.duration_s[self._sends] = 0.0
            received = np.nan_to_num(size[self._receives])
            self.duration_s[self._receives] = delays_s(self._network, received)
        sends, receives = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
        return sends, receives, len(self._receives) - len(pairs)


def _collective_s(kind: float, size_bytes: float, ranks: int, network: Network) -> float:
    """Return how long a collective takes, 0 for a single rank; a `kind` of NaN is an all-reduce."""
    if ranks < 2:
        return 0.0
    if kind in _RING:
        steps, step_bytes = ranks - 1, size_bytes / ranks
    elif kind == _ALL_REDUCE or math.isnan(kind):
        steps, step_bytes = 2 * (ranks - 1), size_bytes / ranks
    else:
        steps, step_bytes = math.ceil(math.log2(ranks)), 0.0 if kind == _BARRIER else size_bytes
    return float(steps * delays_s(network, np.array([step_bytes]))[0])


def _communicating(traces: Traces) -> list[int]:
    """Return the types of collectives, sends and receives, as indices into the traces' types."""
    return list(map(traces.types.index, traces.communicating))


def lanes_of(traces: Traces, units: Sequence[UnitEvents]) -> tuple[Lanes, Ints]:
    """Return all lanes, and that of each node of the units."""
    rows = []
    for events in units:
        is_network = np.isin(events.type, _communicating(traces)) & ~events.on_host
        where = np.where(is_network, NETWORK, np.where(events.on_host, HOST, DEVICE))
        number = np.where(is_network, events.type, events.lane)
        rows.append(np.stack([np.full(len(events), events.unit.rank), where, number], axis=1))
    different, lane = np.unique(np.concatenate(rows), axis=0, return_inverse=True)
    return Lanes(*different.T), lane.reshape(-1)


def _workload(
    duration_s: Floats, name: Ints, names: tuple[str, ...], lane: Ints, before: Ints, after: Ints
) -> Workload:
    """Return nodes, sorted by their lanes, as SEBs without messages, and what waits for what."""
    count, none, empty = len(duration_s), np.zeros(0, dtype=np.int32), np.zeros(0)
    waiting, first = followers(before, after, count)
    links = np.zeros(count + 1, dtype=core.structs["seb_links"])
    links["first_waiting"] = first
    sebs = Sebs(
        scaled_s=duration_s,
        fixed_s=empty,
        name=name.astype(np.int32),
        pe=lane.astype(np.int32),
        starter=np.full(count, -1, dtype=np.int32),
        inputs=np.bincount(after, minlength=count).astype(np.int32),
        links=links,
        waiting=waiting.astype(np.int32),
        first_of_pe=np.searchsorted(lane, np.arange(lane.max(initial=-1) + 2)),
    )
    return Workload(
        sebs=sebs,
        messages=Messages(empty, empty, empty, none, np.zeros(1, dtype=np.int32), none),
        regions=PairedRegions(none, none, empty, empty, empty, empty),
        names=names,
        events=(),
        workers=1,
        recorded_s=0.0,
        not_sent=none.reshape(0, 3),
        beyond=none.reshape(0, 2),
    )
