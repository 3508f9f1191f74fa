"""The replay of traces: nodes are the workload, threads and streams take the place of PEs.

Each thread and stream of a rank runs one node at a time. All nodes of a collective become one,
which starts when the last rank is ready for it; those of a group run one after the other, and
groups beside each other. The time of a message is that of its send, and it is received once that
has passed.

Collectives take their times on a network with latency and bandwidth alone (Hockney's α and β), n
being the bytes that each rank puts in. A ring of p ranks: a reduce-scatter or an all-to-all takes
p − 1 steps of n/p bytes, an all-reduce twice that, and an all-gather p − 1 steps of n bytes. A
binomial tree: the others take ⌈log2 p⌉ steps of n bytes. Nothing else is in it: no congestion, no
topology, no overlap of chunks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from rewritelog.arrays import Floats, Ints, Texts, paired, times_before
from rewritelog.commands.runs import ReplayOptions
from rewritelog.core import core
from rewritelog.cores import limited_to
from rewritelog.formats.traces import MISSING, Events, Traces, joined
from rewritelog.replaying.network import Network
from rewritelog.replaying.simulate import (
    Case,
    ReplayedRun,
    delays_s,
    run_time,
    simulate,
)
from rewritelog.replaying.workload import (
    DEVICE,
    HOST,
    NETWORK,
    Lanes,
    Messages,
    PairedRegions,
    Sebs,
    Workload,
    grouped,
)
from rewritelog.rewriting.predicting import (
    fit_warnings,
    fitted_predictor,
    warnings_of_uncovered,
    warnings_of_unused,
)
from rewritelog.rewriting.traces import trace_task
from rewritelog.running.engines import map_blocks
from rewritelog.text import count_text, matching
from rewritelog.timings.traces import EventParams

_ALL_REDUCE, _ALL_GATHER, _BARRIER = 0, 2, 9
_RING = (_ALL_GATHER, 6, 7, 8)
"""All-gather, all-to-all and the two forms of reduce-scatter, by `comm_type`."""


def lanes_of(traces: Traces, events: Events) -> tuple[Lanes, Ints]:
    """Return all lanes, and that of each event."""
    kind, kinds = events["type"], _communicating(traces)
    is_network = np.isin(kind, kinds) & ~events["on_host"]
    where = np.where(is_network, NETWORK, np.where(events["on_host"], HOST, DEVICE))
    of_group = np.where(kind == kinds[0], len(traces.types) + events["group"].number, kind)
    number = np.where(is_network, of_group, events["lane"])
    numbers, place = np.unique(number, return_inverse=True)
    size = max(1, len(numbers))
    keys, lane = np.unique((3 * events["rank"] + where) * size + place, return_inverse=True)
    rank, where = np.divmod(keys // size, 3)
    return Lanes(rank, where, numbers[keys % size]), lane


def _communicating(traces: Traces) -> list[int]:
    """Return the types of collectives, sends and receives, as indices into the traces' types."""
    return list(map(traces.types.index, traces.communicating))


@dataclass(frozen=True)
class ReplayedTraces:
    """Traces that have been replayed with new durations."""

    outcome: ReplayedRun
    starts_s: dict[int, Floats]
    """When each node of each rank starts; NaN for one that never ran."""
    notes: tuple[str, ...]
    """How collectives are replayed."""
    warnings: tuple[str, ...]
    """Of the fit, and of what the traces lack, one sentence each."""
    recorded_s: Floats
    """The durations that are recorded, of each node in the workload."""

    def before_s(self) -> float:
        """Return the run time with the recorded durations."""
        workload = self.outcome.workload
        recorded = replace(workload, sebs=replace(workload.sebs, scaled_s=self.recorded_s))
        return run_time(recorded, self.outcome.case).predicted_s


def replayed(traces: Traces, events: Events, network: Network) -> ReplayedTraces:
    """Replay all events of traces with their durations `new_s`."""
    kinds = _communicating(traces)
    on_device = ~events["on_host"]
    collectives, sends, receives = (
        np.flatnonzero(on_device & (events["type"] == kind)) for kind in kinds
    )
    together = _together(events, collectives)
    ranks = np.bincount(together[collectives], minlength=len(events))
    joint = np.flatnonzero(ranks)
    durations_s = np.stack([events["new_s"], events["duration_s"]])
    sent, received = _messages(events, sends, receives)
    durations_s[:, received] = 0.0
    if network.recorded:
        for column in durations_s:
            np.maximum.at(column, together[collectives], column[collectives])
    else:
        size_bytes = np.nan_to_num(events["comm_size"])
        np.maximum.at(size_bytes, together[collectives], size_bytes[collectives])
        kind, of_joint = events["comm_type"][joint], np.maximum(size_bytes[joint], 0.0)
        durations_s[:, joint] = _collectives_s(kind, of_joint, ranks[joint], network)
        durations_s[:, sends] = delays_s(network, size_bytes[sends])
        durations_s[:, receives] = 0.0
    known = events["deps"] != MISSING
    before = together[np.concatenate([events["deps"][known], sent])]
    after = together[np.concatenate([events.waiting[known], received])]
    lanes, lane = lanes_of(traces, events)
    used = np.flatnonzero(together == np.arange(len(events)))
    order = used[np.argsort(lane[used], kind="stable")]
    used_lanes, lane_of = np.unique(lane[order], return_inverse=True)
    seb = np.full(len(events), -1, dtype=np.int32)
    seb[order] = np.arange(len(order))
    names = events["name"][order]
    workload = _workload(durations_s[0, order], names, lane_of, seb[before], seb[after])
    workload = replace(workload, lanes=Lanes._make(column[used_lanes] for column in lanes))
    outcome = simulate(workload, Case(network))
    start_s = outcome.times.start_s[seb[together]]
    how = "as recorded" if network.recorded else "as rings and trees without congestion"
    lacking = {
        "missing": len(known) - int(np.count_nonzero(known)),
        "unmatched": len(receives) - len(received),
        "alone": 0 if network.recorded else int(np.count_nonzero(ranks == 1)),
    }
    return ReplayedTraces(
        outcome,
        {unit.rank: start_s[events["rank"] == unit.rank] for unit in traces.units},
        (f"{count_text(len(joint), 'collective')}, {how}: a simulator knows better",),
        tuple(_warnings(**lacking)),
        durations_s[1, order],
    )


def replay_traces(
    traces: Traces, network: Network | None = None, options: ReplayOptions | None = None
) -> ReplayedTraces:
    """Replay traces with the durations of the options; memory is needed for all of their nodes."""
    options = options or ReplayOptions()
    predictor, read = fitted_predictor(options)
    task = trace_task(traces, predictor, options)
    with limited_to(options.jobs):
        units = map_blocks(task.load, traces.units, "reading", traces.size_bytes)
        events = joined([of_unit for _, of_unit in units])
    run = replayed(traces, events, network or Network())
    of_fit = fit_warnings(read, predictor.fitted)
    params = task.params or EventParams()
    matched = matching((*options.dilation_for, *params.rules), events["name"].distinct)
    unused = warnings_of_unused(options, predictor.fitted, traces.terms, matched)
    uncovered = Counter(events["name"][events["uncovered"]].tolist())
    lacking = warnings_of_uncovered(uncovered, predictor.fitted, traces.terms)
    unused_params = params.unused(matched)
    return replace(run, warnings=(*of_fit, *unused, *unused_params, *lacking, *run.warnings))


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


def _together(events: Events, collectives: Ints) -> Ints:
    """Return the first node of each node's collective, and itself for any other node.

    The nodes of a collective are those with the same place among those of their group, on each
    rank.
    """
    group = events["group"].number[collectives]
    place = times_before(events["rank"][collectives] * len(events["group"].distinct) + group)
    _, first, own = np.unique(
        np.stack([group, place], axis=1), axis=0, return_index=True, return_inverse=True
    )
    together = np.arange(len(events))
    together[collectives] = collectives[first][own.reshape(-1)]
    return together


def _collectives_s(kind: Floats, size_bytes: Floats, ranks: Ints, network: Network) -> Floats:
    """Return how long collectives take, 0 with a single rank; a `kind` of NaN is an all-reduce."""
    is_reduce = np.isnan(kind) | (kind == _ALL_REDUCE)
    is_ring = is_reduce | np.isin(kind, _RING)
    steps = np.where(is_ring, (1 + is_reduce) * (ranks - 1), np.ceil(np.log2(ranks)))
    shares = np.where(is_ring & (kind != _ALL_GATHER), ranks, 1)
    step_bytes = np.where(kind == _BARRIER, 0.0, size_bytes / shares)
    return np.where(ranks < 2, 0.0, steps * delays_s(network, step_bytes))


def _messages(events: Events, sends: Ints, receives: Ints) -> tuple[Ints, Ints]:
    """Return the nodes that send and receive each message, paired in the order of each rank."""
    rank, tag = events["rank"].astype(np.float64), np.nan_to_num(events["comm_tag"])
    to, by = (np.nan_to_num(events[f"comm_{end}"], nan=-1.0) for end in ("dst", "src"))
    ends = np.concatenate(
        [np.stack([rank, to, tag])[:, sends], np.stack([by, rank, tag])[:, receives]], axis=1
    )
    _, number = np.unique(ends, axis=1, return_inverse=True)
    sent, received = paired(*np.split(number.reshape(-1), [len(sends)]))
    return sends[sent], receives[received]


def _workload(duration_s: Floats, name: Texts, lane: Ints, before: Ints, after: Ints) -> Workload:
    """Return nodes, sorted by their lanes, as SEBs without messages, and what waits for what."""
    count, none, empty = len(duration_s), np.zeros(0, dtype=np.int32), np.zeros(0)
    links = np.zeros(count + 1, dtype=core.structs["seb_links"])
    links["first_waiting"], waiting = grouped(before, after, count)
    sebs = Sebs(
        scaled_s=duration_s,
        fixed_s=empty,
        name=name.number.astype(np.int32),
        pe=lane.astype(np.int32),
        starter=np.full(count, -1, dtype=np.int32),
        inputs=np.bincount(after, minlength=count).astype(np.int32),
        links=links,
        waiting=waiting,
        first_of_pe=np.searchsorted(lane, np.arange(lane.max(initial=-1) + 2)),
    )
    return Workload(
        sebs=sebs,
        messages=Messages(empty, empty, empty, none, np.zeros(1, dtype=np.int32), none),
        regions=PairedRegions(none, none, empty, empty, empty, empty),
        names=name.distinct,
        events=(),
        workers=1,
        recorded_s=0.0,
        not_sent=none.reshape(0, 3),
        beyond=none.reshape(0, 2),
    )
