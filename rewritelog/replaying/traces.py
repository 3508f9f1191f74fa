"""Traces as a workload of replays: nodes in place of SEBs, threads and streams in place of PEs.

Each thread or stream of a rank runs one node at a time: of the ready ones, that with the lowest id.
All nodes of a collective become one, which starts when the last rank is ready for it. Collectives
of a group run one after the other, those of different groups side by side. A message takes the time
of its send, and is received at the end of that time.

On a network, the time of a collective of p ranks depends only on latency and bandwidth (Hockney's α
and β), and on the n bytes that each rank contributes. In a ring, a reduce-scatter or an all-to-all
takes p − 1 steps of n/p bytes, an all-reduce twice as many, and an all-gather p − 1 steps of n
bytes. The others take ⌈log2 p⌉ steps of n bytes in a binomial tree. Congestion, topology and
overlap of chunks are not modelled.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial

import numpy as np

from rewritelog.arrays import Floats, Ints, occurrences_before, paired
from rewritelog.core import core
from rewritelog.formats.traces import NO_ROW, Events, Traces, joined
from rewritelog.replaying.workload import (
    DEVICE,
    HOST,
    NETWORK,
    Lanes,
    Nodes,
    Sebs,
    Seconds,
    Transfers,
    Workload,
    grouped,
)
from rewritelog.rewriting.traces import TraceTask, load_events
from rewritelog.text import matching, shorten_all

_ALL_REDUCE, _ALL_GATHER, _BARRIER = 0, 2, 9
_GROUP_WIDTH = 20
_RING = (_ALL_GATHER, 6, 7, 8)
"""All-gather, all-to-all and the two forms of reduce-scatter, by `comm_type`."""


def lanes_of(traces: Traces, events: Events) -> tuple[Lanes, Ints]:
    """Return all lanes, and the index of the lane of each event."""
    kind, kinds = events["type"], traces.communicating
    is_network = np.isin(kind, kinds) & ~events["on_host"]
    where = np.where(is_network, NETWORK, np.where(events["on_host"], HOST, DEVICE))
    of_group = np.where(kind == kinds[0], len(traces.types) + events["group"].number, kind)
    number = np.where(is_network, of_group, events["lane"])
    numbers, place = np.unique(number, return_inverse=True)
    size = max(1, len(numbers))
    keys, lane = np.unique((3 * events["rank"] + where) * size + place, return_inverse=True)
    rank, where = np.divmod(keys // size, 3)
    groups = shorten_all(events["group"].distinct, _GROUP_WIDTH)
    networks = [*(f", {type_name}" for type_name in traces.types)]
    networks += [f", group {group}" if group else "" for group in groups]
    words = ("stream {}", "CPU thread {}", "network{}")
    rows = zip(where.tolist(), numbers[keys % size].tolist(), strict=True)
    tracks = [words[at].format(networks[of] if at == NETWORK else of) for at, of in rows]
    return Lanes(rank, where, np.array(tracks, dtype=np.str_)), lane


def load_traces(tasks: Sequence[TraceTask]) -> tuple[Workload, tuple[str, ...]]:
    """Load traces for replays, with the durations that each task gives them.

    Tasks differ only in these. Also return warnings of missing ranks and unused options. Memory is
    needed for all nodes. Raise `DamagedLogError`, or `ModelError`.
    """
    task, named = tasks[0], {f"new_s {number}": each for number, each in enumerate(tasks)}
    events = joined(list(task.logs.map(partial(load_events, named))))
    workload, absent = workload_of(task.logs, events, [*named]), task.logs.absent
    remarks = [f"{absent}: nothing waits for what is missing"] if absent else []
    if task.params is not None:
        remarks += task.params.unused(matching(task.params.rules, workload.names))
    return workload, tuple(remarks)


def workload_of(traces: Traces, events: Events, durations: Sequence[str]) -> Workload:
    """Return all events of traces as SEBs that send no messages, with the columns `durations`."""
    sends, receives, together, transfers = _communication(traces, events)
    sent, received = _messages(events, sends, receives)
    deps = events.deps()
    known = deps != NO_ROW
    kind = np.nan_to_num(events["comm_type"], nan=_ALL_REDUCE)
    lanes, lane = lanes_of(traces, events)
    joint = transfers.seb[: len(transfers.ranks)]
    lane[joint] = _first_of_group(lane[joint], events["group"].number[joint])
    used = np.flatnonzero(together == np.arange(len(events)))
    order = used[np.lexsort((events["id"][used], lane[used]))]
    seb = np.empty(len(events), dtype=np.int32)
    seb[order] = np.arange(len(order))
    seb = seb[together]
    before = seb[np.concatenate([deps[known], sent])]
    after = seb[np.concatenate([events.waiting[known], received])]
    used_lanes, pe = np.unique(lane[order], return_inverse=True)
    links = np.zeros(len(order) + 1, dtype=core.structs["seb_links"])
    links["first_waiting"], waiting = grouped(before, after, len(order))
    first = np.searchsorted(events["rank"], traces.pes).tolist()
    nodes = Nodes(
        Lanes._make(column[used_lanes] for column in lanes),
        transfers._replace(seb=seb[transfers.seb]),
        seb,
        dict(zip(traces.pes, first, strict=True)),
        received=seb[receives],
        missing=len(known) - int(np.count_nonzero(known)),
        unmatched=len(receives) - len(received),
        mismatched=len(np.unique(together[kind != kind[together]])),
    )
    sebs = Sebs(
        name=events["name"].number[order].astype(np.int32),
        pe=pe.astype(np.int32),
        starter=np.full(len(order), -1, dtype=np.int32),
        inputs=np.bincount(after, minlength=len(order)).astype(np.int32),
        links=links,
        waiting=waiting,
        first_of_pe=np.searchsorted(pe, np.arange(len(used_lanes) + 1)).astype(np.int32),
    )
    uncovered = Counter(events["name"][events["uncovered"]].tolist())
    seconds = tuple(Seconds(nodes.durations_s(events[name])) for name in durations)
    names = events["name"].distinct
    return Workload(sebs, seconds, names=names, uncovered=uncovered, nodes=nodes)


def _first_of_group(lane: Ints, group: Ints) -> Ints:
    """Return the lane of each collective: that of the lowest rank on which its group has any."""
    lowest = np.full(group.max(initial=-1) + 1, lane.max(initial=0))
    np.minimum.at(lowest, group, lane)
    return lowest[group]


def _communication(traces: Traces, events: Events) -> tuple[Ints, Ints, Ints, Transfers]:
    """Return all sends, all receives, the first event of each one's collective, and the transfers.

    The k-th nodes of a group on all its ranks make up a collective. Nodes are counted by their ids,
    since not every file has them in that order. An event of another type is the first and only one
    of its own.
    """
    on_device = ~events["on_host"]
    rows = (np.flatnonzero(on_device & (events["type"] == kind)) for kind in traces.communicating)
    collectives, sends, receives = (
        row[np.lexsort((events["id"][row], events["rank"][row]))] for row in rows
    )
    group = events["group"].number[collectives]
    place = occurrences_before(events["rank"][collectives] * len(events["group"].distinct) + group)
    _, first, collective = np.unique(
        np.stack([group, place], axis=1), axis=0, return_index=True, return_inverse=True
    )
    together = np.arange(len(events))
    together[collectives] = collectives[first][collective.reshape(-1)]
    size_bytes = np.maximum(np.nan_to_num(events["comm_size"]), 0.0)
    np.maximum.at(size_bytes, together[collectives], size_bytes[collectives])
    ranks = np.bincount(together[collectives], minlength=len(events))
    joint = np.flatnonzero(ranks)
    steps, step_bytes = _steps(events["comm_type"][joint], size_bytes[joint], ranks[joint])
    transfers = Transfers(
        np.concatenate([joint, sends, receives]),
        np.concatenate([steps, np.ones(len(sends)), np.zeros(len(receives))]),
        np.concatenate([step_bytes, size_bytes[sends], size_bytes[receives]]),
        ranks[joint],
    )
    return sends, receives, together, transfers


def _steps(kind: Floats, size_bytes: Floats, ranks: Ints) -> tuple[Floats, Floats]:
    """Return the number of steps of collectives, and the bytes of a step; NaN is an all-reduce."""
    is_reduce = np.isnan(kind) | (kind == _ALL_REDUCE)
    is_ring = is_reduce | np.isin(kind, _RING)
    steps = np.where(is_ring, (1 + is_reduce) * (ranks - 1), np.ceil(np.log2(ranks)))
    shares = np.where(is_ring & (kind != _ALL_GATHER), ranks, 1)
    return steps, np.where(kind == _BARRIER, 0.0, size_bytes / shares)


def _messages(events: Events, sends: Ints, receives: Ints) -> tuple[Ints, Ints]:
    """Return the nodes that send and receive each message, paired in the order of their ids."""
    rank, tag = events["rank"].astype(np.float64), np.nan_to_num(events["comm_tag"])
    to, by = (np.nan_to_num(events[f"comm_{end}"], nan=-1.0) for end in ("dst", "src"))
    ends = np.concatenate(
        [np.stack([rank, to, tag])[:, sends], np.stack([by, rank, tag])[:, receives]], axis=1
    )
    _, number = np.unique(ends, axis=1, return_inverse=True)
    sent, received = paired(*np.split(number.reshape(-1), [len(sends)]))
    return sends[sent], receives[received]
