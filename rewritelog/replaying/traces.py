"""Traces as a workload of replays: nodes in place of SEBs, threads and streams in place of PEs.

Each thread or stream of a rank runs one node at a time: of the ready ones, that with the lowest id.
A rank that begins a collective waits for the others, and all end it together. A message takes the
time of its send, and is received at the end of that time.

On a network, a rank takes part in one collective or sends one message at a time. As recorded, when
they may have overlapped, it does so for each group, and for messages.

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
from msgspec.structs import replace

from rewritelog.arrays import Floats, Ints, Table, Texts, occurrences_before, pair_keys, paired
from rewritelog.core import core
from rewritelog.formats.traces import (
    NO_ROW,
    Collective,
    Events,
    Traces,
    communicating,
    joined,
    kinds_of,
)
from rewritelog.models.base import EventKey
from rewritelog.replaying.workload import (
    DEVICE,
    HOST,
    NETWORK,
    Lanes,
    Nodes,
    Numbers,
    Sebs,
    Seconds,
    Transfers,
    Workload,
    grouped,
)
from rewritelog.rewriting.predicting import LACKING
from rewritelog.rewriting.traces import TraceTask, load_events
from rewritelog.text import count_text, matching, shorten_all

_GROUP_WIDTH = 20
_RING = (
    Collective.ALL_GATHER,
    Collective.ALL_TO_ALL,
    Collective.REDUCE_SCATTER,
    Collective.REDUCE_SCATTER_BLOCK,
)
"""The collectives in rings, besides all-reduces."""


def lanes_of(traces: Traces, events: Events, *, by_group: bool) -> tuple[Lanes, Ints]:
    """Return all lanes, and the index of the lane of each event.

    The collectives of a rank have a lane for each group, and its sends one, or all have the same.
    """
    kind, (collectives, _, receives) = events["type"], traces.communicating
    is_network = np.isin(kind, traces.communicating) & ~events["on_host"]
    where = np.where(is_network, NETWORK, np.where(events["on_host"], HOST, DEVICE))
    network = np.where(kind == collectives, len(traces.types) + events["group"].number, kind)
    if not by_group:
        network[kind != receives] = len(traces.types) + len(events["group"].distinct)
    number = np.where(is_network, network, events["lane"])
    numbers, place = np.unique(number, return_inverse=True)
    size = max(1, len(numbers))
    keys, lane = np.unique((3 * events["rank"] + where) * size + place, return_inverse=True)
    rank, where = np.divmod(keys // size, 3)
    groups = shorten_all(events["group"].distinct, _GROUP_WIDTH)
    networks = [*(f", {type_name}" for type_name in traces.types)]
    networks += [*(f", group {group}" if group else "" for group in groups), ""]
    words = ("stream {}", "CPU thread {}", "network{}")
    rows = zip(where.tolist(), numbers[keys % size].tolist(), strict=True)
    tracks = [words[at].format(networks[of] if at == NETWORK else of) for at, of in rows]
    return Lanes(rank, where, np.array(tracks, dtype=np.str_)), lane


def load_traces(tasks: Sequence[TraceTask], *, recorded: bool) -> tuple[Workload, tuple[str, ...]]:
    """Load traces for replays, with the durations that each task gives them.

    Tasks differ only in these. Also return warnings of unused options and of missing parameters.
    Memory is needed for all nodes. Raise `DamagedLogError`, or `ModelError`.
    """
    task, named = tasks[0], {f"new_s {number}": each for number, each in enumerate(tasks)}
    ranks = [*task.logs.map(partial(load_events, named))]
    lacking, events = sum(rank.lacking for rank in ranks), joined([rank.events for rank in ranks])
    names, remarks = events["name"], [*task.about_types(int(events["chosen"].sum()))]
    remarks += [LACKING.format(count_text(lacking, "node"))] if lacking else []
    remarks += task.params.unused(matching(task.params.rules, names.distinct))
    names = task.params.grouped(names)
    workload = workload_of(task.logs, events, names, [*named], recorded=recorded)
    asked = frozenset[str]().union(*(rank.asked for rank in ranks))
    uncovered = sum((rank.uncovered for rank in ranks), Counter[EventKey]())
    return replace(workload, asked=asked, uncovered=uncovered), tuple(remarks)


def workload_of(
    traces: Traces, events: Events, names: Texts, durations: Sequence[str], *, recorded: bool
) -> Workload:
    """Return all events of traces as SEBs that send no messages, with the columns `durations`.

    The SEBs have these names. It is for replays with communication as recorded, or for those on a
    network.
    """
    parts, sends, receives = (communicating(events, kind) for kind in traces.communicating)
    sent, received = _messages(events, sends, receives)
    deps = events.dependencies()
    lanes, lane = lanes_of(traces, events, by_group=recorded)
    order = np.lexsort((events["id"], lane))
    pe, seb = lane[order], np.empty(len(order), dtype=np.int32)
    seb[order] = np.arange(len(order))
    before = seb[np.concatenate([deps.named[deps.followed], sent])]
    after = seb[np.concatenate([deps.waiting[deps.followed], received])]
    links = np.zeros(len(order) + 1, dtype=core.structs["seb_links"])
    links["first_waiting"], waiting = grouped(before, after, len(order))
    first = np.searchsorted(events["rank"], traces.pes).tolist()
    first_part, collective = _collectives(events, parts)
    kinds, overridden = kinds_of(events, parts), 0
    if not recorded:
        rows = np.concatenate([parts, sends, receives])
        are_new = [events[name][rows] != events["duration_s"][rows] for name in durations]
        overridden = int(np.count_nonzero(np.any(are_new, axis=0)))
    differs = (kinds != kinds[:, first_part][:, collective]).any(axis=0)
    on_device = (events["type"] == traces.computing) & ~events["on_host"]
    is_leaf = on_device & ~deps.needed(len(events))
    nodes = Nodes(
        lanes,
        _transfers(events, seb, (parts, sends, receives), first_part, collective),
        _linked(seb[parts], collective, len(order)),
        np.bincount(collective),
        recorded,
        events["name"][events["chosen"]].distinct,
        seb,
        dict(zip(traces.pes, first, strict=True)),
        absent=traces.absent,
        received=seb[receives],
        missing=int(np.count_nonzero(~deps.followed & ~deps.by_control)),
        ignored=int(np.count_nonzero(~deps.followed & deps.by_control)),
        absent_control=int(np.count_nonzero((deps.named == NO_ROW) & deps.by_control)),
        on_device=int(np.count_nonzero(on_device)),
        leaves=int(np.count_nonzero(is_leaf)) if events["on_host"].any() else 0,
        unmatched=len(receives) - len(received),
        mismatched=len(np.unique(collective[differs])),
        overridden=overridden,
    )
    sebs = Sebs(
        name=names.number[order].astype(np.int32),
        pe=pe.astype(np.int32),
        starter=np.full(len(order), -1, dtype=np.int32),
        inputs=np.bincount(after, minlength=len(order)).astype(np.int32),
        links=links,
        waiting=waiting,
        first_of_pe=np.searchsorted(pe, np.arange(len(lanes.rank) + 1)).astype(np.int32),
    )
    seconds = tuple(Seconds(events[name][order]) for name in durations)
    return Workload(sebs, seconds, names=names.distinct, nodes=nodes)


def _collectives(events: Events, parts: Ints) -> tuple[Ints, Ints]:
    """Return the index of the first part of each collective, and the collective of each part.

    The k-th nodes of a group on all its ranks make up a collective.
    """
    group = events["group"].number[parts]
    place = occurrences_before(events["rank"][parts] * len(events["group"].distinct) + group)
    return np.unique(pair_keys(group, place), return_index=True, return_inverse=True)[1:]


def _linked(seb: Numbers, collective: Ints, count: int) -> Table:
    """Return the core's struct `collective_part` for each SEB, given those that are parts."""
    linked = np.zeros(count, dtype=core.structs["collective_part"])
    linked["next"] = np.arange(count)
    order = np.argsort(collective, kind="stable")
    last = np.cumsum(np.bincount(collective)) - 1
    following = np.roll(seb[order], -1)
    following[last] = np.roll(following[last], 1)
    linked["next"][seb[order]] = following
    linked["collective"][seb] = collective
    return linked


def _transfers(
    events: Events, seb: Numbers, rows: Sequence[Ints], first_part: Ints, collective: Ints
) -> Transfers:
    """Return the transfers of the parts of collectives, the sends and the receives."""
    parts, sends, receives = rows
    size_bytes = np.maximum(np.nan_to_num(events["comm_size"]), 0.0)
    largest = np.zeros(len(first_part))
    np.maximum.at(largest, collective, size_bytes[parts])
    kind, ranks = events["comm_type"][parts[first_part]], np.bincount(collective)
    steps, step_bytes = _steps(kind, largest, ranks)
    return Transfers(
        seb[np.concatenate(rows)],
        np.concatenate([steps[collective], np.ones(len(sends)), np.zeros(len(receives))]),
        np.concatenate([step_bytes[collective], size_bytes[sends], size_bytes[receives]]),
    )


def _steps(kind: Floats, size_bytes: Floats, ranks: Ints) -> tuple[Floats, Floats]:
    """Return the number of steps of collectives, and the bytes of a step; NaN is an all-reduce."""
    is_reduce = np.isnan(kind) | (kind == Collective.ALL_REDUCE)
    is_ring = is_reduce | np.isin(kind, _RING)
    steps = np.where(is_ring, (1 + is_reduce) * (ranks - 1), np.ceil(np.log2(ranks)))
    shares = np.where(is_ring & (kind != Collective.ALL_GATHER), ranks, 1)
    return steps, np.where(kind == Collective.BARRIER, 0.0, size_bytes / shares)


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
