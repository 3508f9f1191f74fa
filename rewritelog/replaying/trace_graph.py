"""Traces as the workload of a replay: each thread and stream of a rank runs one node at a time.

All nodes of a collective become one, which starts when the last rank is ready for it. A message is
received when it has been sent and its time has passed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from rewritelog.arrays import Flags, Floats, Ints
from rewritelog.core import core
from rewritelog.formats.traces import MISSING, UnitEvents, followers
from rewritelog.replaying.collectives import Collective, Kind, seconds_of
from rewritelog.replaying.network import Network
from rewritelog.replaying.simulate import delays_s
from rewritelog.replaying.workload import Irregularities, Messages, PairedRegions, Sebs, Workload

DEVICE, HOST, NETWORK = range(3)
"""What a lane of a rank belongs to."""


@dataclass(frozen=True)
class Lanes:
    """Where nodes run; arrays of equal length."""

    rank: Ints
    where: Ints
    """`DEVICE`, `HOST` or `NETWORK`."""
    number: Ints

    def used_by(self, lane: Ints) -> tuple[Lanes, Ints]:
        """Return the lanes that nodes run on, and that of each node among them."""
        used, lane_of = np.unique(lane, return_inverse=True)
        return Lanes(self.rank[used], self.where[used], self.number[used]), lane_of

    @property
    def names(self) -> tuple[str, ...]:
        """The name of each lane."""
        kinds = ("stream {}", "CPU thread {}", "network")
        columns = (self.rank.tolist(), self.where.tolist(), self.number.tolist())
        return tuple(f"rank {r} {kinds[w].format(n)}" for r, w, n in zip(*columns, strict=True))


@dataclass(frozen=True)
class TraceGraph:
    """A workload made of traces."""

    workload: Workload
    lanes: Lanes
    rank: Ints
    """The rank of each of its SEBs; of a collective the first."""
    is_network: Flags
    """Whether each of its SEBs is a message or a collective."""
    seb_of: tuple[Ints, ...]
    """The SEB of each node, for each unit."""
    collectives: int
    alone: int
    """The collectives that only one rank takes part in, which take no time on a network."""
    unmatched: int
    """The messages received that no rank sends."""
    missing: int
    """The dependencies on nodes that are not there."""


@dataclass(frozen=True)
class _Nodes:
    """The nodes of all units, one after the other."""

    units: Sequence[UnitEvents]
    first: Ints
    rank: Ints
    type: Ints
    on_host: Flags
    duration_s: Floats

    @classmethod
    def of(cls, units: Sequence[UnitEvents], durations: Sequence[Floats]) -> _Nodes:
        lengths = [len(events) for events in units]
        ranks = np.array([events.unit.rank for events in units], dtype=np.int64)
        return cls(
            units,
            np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
            np.repeat(ranks, lengths),
            _joined(events.type for events in units),
            np.concatenate([np.zeros(0, np.bool_), *(events.on_host for events in units)]),
            np.concatenate([np.zeros(0), *durations]),
        )

    def of_device(self, kind: int) -> Ints:
        """Return the nodes of a type that a CPU does not run."""
        return np.flatnonzero((self.type == kind) & ~self.on_host)

    def number(self, name: str) -> Floats:
        return np.concatenate([np.zeros(0), *(events.numbers[name] for events in self.units)])


def _joined(columns: Iterable[Ints]) -> Ints:
    return np.concatenate([np.zeros(0, np.int64), *columns])


def graph_of(
    units: Sequence[UnitEvents], durations: Sequence[Floats], kinds: Kind, network: Network
) -> TraceGraph:
    """Return the workload of units with the durations of their nodes."""
    nodes = _Nodes.of(units, durations)
    duration_s = nodes.duration_s.copy()
    together, alone = _collectives(nodes, kinds, network, duration_s)
    before, after, missing = _dependencies(nodes)
    sends, receives, unmatched = _messages(nodes, kinds, network, duration_s)
    before, after = np.concatenate([before, sends]), np.concatenate([after, receives])
    before, after = together[before], together[after]
    apart = before != after
    lanes, lane = lanes_of(units, kinds)
    is_network = lanes.where[lane] == NETWORK
    used = np.flatnonzero(together == np.arange(len(together)))
    order = used[np.argsort(lane[used], kind="stable")]
    lanes, lane_of = lanes.used_by(lane[order])
    seb = np.full(len(together), -1, dtype=np.int64)
    seb[order] = np.arange(len(order))
    names, name = names_of(units)
    workload = _workload(
        duration_s[order],
        name[order],
        names,
        lane_of,
        len(lanes.rank),
        seb[before[apart]],
        seb[after[apart]],
    )
    seb_of = np.split(seb[together], nodes.first[1:-1])
    return TraceGraph(
        workload,
        lanes,
        nodes.rank[order],
        is_network[order],
        tuple(seb_of),
        int(np.isin(used, nodes.of_device(kinds.collective)).sum()),
        alone,
        unmatched,
        missing,
    )


def _dependencies(nodes: _Nodes) -> tuple[Ints, Ints, int]:
    before, after, missing = list[Ints](), list[Ints](), 0
    for events, first in zip(nodes.units, nodes.first.tolist(), strict=False):
        known = events.deps != MISSING
        before.append(events.deps[known] + first)
        after.append(events.waiting[known] + first)
        missing += int(np.count_nonzero(~known))
    return _joined(before), _joined(after), missing


def _collectives(
    nodes: _Nodes, kinds: Kind, network: Network, duration_s: Floats
) -> tuple[Ints, int]:
    """Return the first node of each node's collective, itself for others; set their durations.

    The nodes of a collective are those with the same place among those of their group, on each
    rank.
    """
    together = np.arange(len(nodes.rank))
    kind, size = nodes.number("comm_type"), nodes.number("comm_size")
    members: dict[tuple[str, int], list[int]] = {}
    for events, first in zip(nodes.units, nodes.first.tolist(), strict=False):
        place = Counter[str]()
        for node in np.flatnonzero((events.type == kinds.collective) & ~events.on_host).tolist():
            group = events.groups[events.group[node]]
            members.setdefault((group, place[group]), []).append(first + node)
            place[group] += 1
    alone = 0
    for own in members.values():
        rows = np.array(own)
        together[rows] = own[0]
        alone += len(own) == 1
        recorded_s = float(nodes.duration_s[rows].max())
        asked = Collective(kind[own[0]], np.nanmax([0.0, *size[rows]]), len(own))
        duration_s[own[0]] = recorded_s if network.recorded else seconds_of(asked, network)
    return together, alone


def _messages(
    nodes: _Nodes, kinds: Kind, network: Network, duration_s: Floats
) -> tuple[Ints, Ints, int]:
    """Return the nodes that send and receive each message; set the time that receiving takes."""
    to, by, tag, size = (nodes.number(f"comm_{n}") for n in ("dst", "src", "tag", "size"))
    waiting: dict[tuple[float, float, float], list[int]] = {}
    for node in nodes.of_device(kinds.send).tolist():
        key = float(nodes.rank[node]), to[node], float(np.nan_to_num(tag[node]))
        waiting.setdefault(key, []).append(node)
    for queue in waiting.values():
        queue.reverse()
    sends, receives, unmatched = list[int](), list[int](), 0
    for node in nodes.of_device(kinds.receive).tolist():
        key = by[node], float(nodes.rank[node]), float(np.nan_to_num(tag[node]))
        if waiting.get(key):
            sends.append(waiting[key].pop())
            receives.append(node)
        else:
            unmatched += 1
    if not network.recorded:
        duration_s[nodes.of_device(kinds.send)] = 0.0
        received = nodes.of_device(kinds.receive)
        duration_s[received] = delays_s(network, np.nan_to_num(size[received]))
    return np.array(sends, np.int64), np.array(receives, np.int64), unmatched


def lanes_of(units: Sequence[UnitEvents], kinds: Kind) -> tuple[Lanes, Ints]:
    """Return all lanes, and that of each node of the units."""
    rows = [np.zeros((0, 3), dtype=np.int64)]
    for events in units:
        communicates = np.isin(events.type, [kinds.collective, kinds.send, kinds.receive])
        is_network = communicates & ~events.on_host
        where = np.where(is_network, NETWORK, np.where(events.on_host, HOST, DEVICE))
        number = np.where(is_network, events.type, events.lane)
        rows.append(np.stack([np.full(len(events), events.unit.rank), where, number], axis=1))
    different, lane = np.unique(np.concatenate(rows), axis=0, return_inverse=True)
    return Lanes(*different.T), lane.reshape(-1)


def names_of(units: Sequence[UnitEvents]) -> tuple[tuple[str, ...], Ints]:
    """Return the distinct names, and the number of each node's."""
    known: dict[str, int] = {}
    numbers = []
    for events in units:
        renumbered = [known.setdefault(name, len(known)) for name in events.names]
        numbers.append(np.array(renumbered, dtype=np.int64)[events.name])
    return tuple(known), _joined(numbers)


def _workload(
    duration_s: Floats,
    name: Ints,
    names: tuple[str, ...],
    lane: Ints,
    lanes: int,
    before: Ints,
    after: Ints,
) -> Workload:
    count, none = len(duration_s), np.zeros(0, dtype=np.int32)
    waiting, first = followers(before, after, count)
    links = np.zeros(count + 1, dtype=core.structs["seb_links"])
    links["first_waiting"] = first
    sebs = Sebs(
        scaled_s=duration_s,
        fixed_s=np.zeros(0),
        name=name.astype(np.int32),
        pe=lane.astype(np.int32),
        starter=np.full(count, -1, dtype=np.int32),
        inputs=np.bincount(after, minlength=count).astype(np.int32),
        links=links,
        waiting=waiting.astype(np.int32),
        first_of_pe=np.searchsorted(lane, np.arange(lanes + 1)),
    )
    empty = np.zeros(0)
    return Workload(
        sebs=sebs,
        messages=Messages(empty, empty, empty, none, np.zeros(1, dtype=np.int32), none),
        regions=PairedRegions(none, none, empty, empty, empty, empty),
        names=names,
        events=(),
        workers=1,
        recorded_s=0.0,
        irregular=Irregularities(none, none.reshape(0, 2), none.reshape(0, 2)),
    )
