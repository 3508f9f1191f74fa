"""The causes of idle time: chains of the SEBs that a SEB waited for, and sums along them.

The chain of a SEB x goes back from the time when x was ready to time 0. Its first link leads to the
SEB v that produced the last input of x, the next one from v to the SEB of its last input, and so
on. The link from v to x covers the time between the readiness of the two: v waiting for its PE
(load imbalance), v running, and a message in transit (communication). `Chains` holds the sums of
these kinds along each chain. Their amounts in an interval before x was ready are then differences
of two sums. The SEB in whose link the interval begins is found with jump pointers (Myers, "An
applicative random-access stack", 1983), in a time that grows with the logarithm of the chain's
length.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rewritelog.arrays import Floats
from rewritelog.kernels.prefetch import prefetch
from rewritelog.kernels.sums import add_to
from rewritelog.replaying.kernels.interface import (
    BY_MESSAGE,
    Causes,
    Numbers,
    Program,
    Scale,
    Times,
)
from rewritelog.replaying.kernels.replay import sent_at
from tracebigsim.compiled import inner, kernel

START, END, COMMUNICATION, ALONE, SHARED, IMBALANCE = range(6)
"""The columns of idle time; `ALONE` while exactly one PE is busy, `SHARED` while more are."""
IDLE_KINDS = 6


class BusyAlone(NamedTuple):
    """The intervals in which exactly one PE is busy."""

    begins_s: Floats
    ends_s: Floats
    before_s: Floats
    """The length of all such intervals before each one."""


CHAIN_ROW = np.dtype(
    [
        ("communication_s", np.float64),
        ("alone_s", np.float64),
        ("imbalance_s", np.float64),
        ("depth", np.int32),
        ("jump", np.int32),
    ],
    align=True,
)
"""The sums along a SEB's chain, in one row for fewer cache misses: a chain visits many PEs."""

AHEAD = 16
"""The prefetch distance in SEBs for a SEB's own data; half of it for data that it points to."""


class Chains(NamedTuple):
    """The columns of a table of `CHAIN_ROW`: sums by kind along chains, depths, jump pointers."""

    communication_s: Floats
    alone_s: Floats
    imbalance_s: Floats
    depth: Numbers
    jump: Numbers
    """A SEB further down the chain; the SEB itself at the end of the chain."""

    @classmethod
    def of(cls, sebs: int) -> Chains:
        """Return empty chains."""
        table = np.zeros(sebs, dtype=CHAIN_ROW)
        return cls(*(table[name] for name in CHAIN_ROW.names or ()))


@kernel(ns_per_byte=500)
def busy_runs(program: Program, times: Times, pes: int) -> tuple[Floats, Floats]:
    """Return the begin and end times of the busy intervals of all PEs, unsorted."""
    last_end = np.full(pes, -1.0)
    runs = 0
    begins, ends = np.empty(len(times.order)), np.empty(len(times.order))
    current = np.full(pes, -1, dtype=np.int32)
    for k in range(len(times.order)):
        seb = times.order[k]
        start, end = times.start_s[seb], times.end_s[seb]
        if end > start:
            pe = program.sebs.pe[seb]
            if last_end[pe] == start and current[pe] >= 0:
                ends[current[pe]] = end
            else:
                begins[runs], ends[runs], current[pe] = start, end, runs
                runs += 1
            last_end[pe] = end
    return begins[:runs].copy(), ends[:runs].copy()


@kernel(ns_per_byte=500)
def find_alone(begins: Floats, ends: Floats) -> BusyAlone:
    """Return the intervals in which exactly one PE is busy, given sorted begin and end times."""
    alone_begins, alone_ends = np.empty(2 * len(begins)), np.empty(2 * len(begins))
    before = np.empty(2 * len(begins) + 1)
    found = k = m = 0
    total = 0.0
    while m < len(ends):
        time = ends[m] if k == len(begins) else min(begins[k], ends[m])
        while k < len(begins) and begins[k] == time:
            k += 1
        while m < len(ends) and ends[m] == time:
            m += 1
        if k - m == 1:
            until = ends[m] if k == len(begins) else min(begins[k], ends[m])
            alone_begins[found], alone_ends[found], before[found] = time, until, total
            total += until - time
            found += 1
    return BusyAlone(alone_begins[:found].copy(), alone_ends[:found].copy(), before[:found].copy())


@inner
def alone_before(alone: BusyAlone, time: float) -> float:
    """Return for how long exactly one PE was busy before a time."""
    low, high = 0, len(alone.begins_s)
    while low < high:
        middle = (low + high) // 2
        if alone.begins_s[middle] <= time:
            low = middle + 1
        else:
            high = middle
    if low == 0:
        return 0.0
    return alone.before_s[low - 1] + min(time, alone.ends_s[low - 1]) - alone.begins_s[low - 1]


@inner
def split_link(
    program: Program,
    scale: Scale,
    times: Times,
    causes: Causes,
    alone: BusyAlone,
    seb: int,
    since: float,
) -> tuple[float, float, float]:
    """Return the seconds of each kind in the first link of a SEB's chain, from `since` on.

    The kinds are communication, running while no other PE was busy, and load imbalance; the rest of
    the link is running while others were busy, too.
    """
    source = causes.seb[seb]
    start, end, ready = times.start_s[source], times.end_s[source], times.ready_s[seb]
    left = ready
    if causes.kind[seb] == BY_MESSAGE:
        name, message = program.sebs.name[source], program.sebs.starter[seb]
        left = min(sent_at(program, scale, name, start, end, message), ready)
    ran_from = max(start, since)
    alone_s = 0.0
    if left > ran_from:
        alone_s = alone_before(alone, left) - alone_before(alone, ran_from)
    return ready - max(left, since), alone_s, max(start - max(since, times.ready_s[source]), 0.0)


@inner
def load_ahead(program: Program, times: Times, causes: Causes, chains: Chains, k: int) -> None:
    """Prefetch the data for the chains of SEBs that ran after the `k`th one."""
    order = times.order
    if k + AHEAD < len(order):
        seb = order[k + AHEAD]
        prefetch(times.ready_s, seb)
        prefetch(causes.seb, seb)
        prefetch(program.sebs.starter, seb)
        prefetch(chains.depth, seb)
    if k + AHEAD // 2 < len(order):
        seb = order[k + AHEAD // 2]
        source, message = causes.seb[seb], program.sebs.starter[seb]
        if source >= 0:
            prefetch(times.ready_s, source)
            prefetch(times.end_s, source)
            prefetch(chains.communication_s, source)
            prefetch(program.sebs.name, source)
        if message >= 0:
            prefetch(program.messages.scaled_s, message)


@kernel(ns_per_byte=5_000)
def build_chains(
    program: Program, scale: Scale, times: Times, causes: Causes, alone: BusyAlone, chains: Chains
) -> None:
    """Fill in the chains, initially zeros, of all SEBs that have run."""
    for k in range(len(times.order)):
        load_ahead(program, times, causes, chains, k)
        seb = times.order[k]
        source = causes.seb[seb]
        if source < 0:
            chains.jump[seb] = seb
            continue
        communication, alone_s, imbalance = split_link(
            program, scale, times, causes, alone, seb, times.ready_s[source]
        )
        chains.communication_s[seb] = chains.communication_s[source] + communication
        chains.alone_s[seb] = chains.alone_s[source] + alone_s
        chains.imbalance_s[seb] = chains.imbalance_s[source] + imbalance
        chains.depth[seb] = chains.depth[source] + 1
        jump = chains.jump[source]
        further = chains.jump[jump]
        as_far = chains.depth[source] - chains.depth[jump] == (
            chains.depth[jump] - chains.depth[further]
        )
        chains.jump[seb] = further if as_far else source


@inner
def chain_at(causes: Causes, chains: Chains, times: Times, seb: int, since: float) -> int:
    """Return the SEB of a chain whose first link contains a time."""
    while causes.seb[seb] >= 0 and times.ready_s[causes.seb[seb]] > since:
        jump = chains.jump[seb]
        seb = jump if times.ready_s[jump] > since else causes.seb[seb]
    return seb


@inner
def add_idle(
    program: Program,
    scale: Scale,
    times: Times,
    causes: Causes,
    alone: BusyAlone,
    chains: Chains,
    seb: int,
    since: float,
    sums: Floats,
    pe: int,
) -> None:
    """Add the idle time of a PE, from `since` until a SEB is ready, to the sums by kind."""
    ready = times.ready_s[seb]
    first = chain_at(causes, chains, times, seb, since)
    communication = chains.communication_s[seb] - chains.communication_s[first]
    alone_s = chains.alone_s[seb] - chains.alone_s[first]
    imbalance = chains.imbalance_s[seb] - chains.imbalance_s[first]
    if causes.seb[first] >= 0:
        more = split_link(program, scale, times, causes, alone, first, since)
        communication += more[0]
        alone_s += more[1]
        imbalance += more[2]
    add_to(sums, pe, COMMUNICATION, communication)
    add_to(sums, pe, ALONE, alone_s)
    add_to(sums, pe, IMBALANCE, imbalance)
    add_to(sums, pe, SHARED, ready - since - communication - alone_s - imbalance)


@kernel(ns_per_byte=1_500)
def split_idle(
    program: Program,
    scale: Scale,
    times: Times,
    causes: Causes,
    alone: BusyAlone,
    chains: Chains,
    pes: int,
    until: float,
) -> Floats:
    """Return the idle seconds of each PE from 0 to `until` by kind, shape (PEs, `IDLE_KINDS`)."""
    sums = np.zeros((pes, IDLE_KINDS, 2))
    last_end = np.full(pes, -1.0)
    for k in range(len(times.order)):
        seb = times.order[k]
        pe = program.sebs.pe[seb]
        if last_end[pe] < 0.0:
            add_to(sums, pe, START, times.start_s[seb])
        elif times.start_s[seb] > last_end[pe]:
            add_idle(program, scale, times, causes, alone, chains, seb, last_end[pe], sums, pe)
        last_end[pe] = times.end_s[seb]
    for pe in range(pes):
        if last_end[pe] < 0.0:
            add_to(sums, pe, START, until)
        else:
            add_to(sums, pe, END, until - last_end[pe])
    idle = np.empty((pes, IDLE_KINDS))
    for pe in range(pes):
        for kind in range(IDLE_KINDS):
            idle[pe, kind] = max(sums[pe, kind, 0] + sums[pe, kind, 1], 0.0)
    return idle


@kernel(ns_per_byte=1_000)
def add_by_code(
    pe: Numbers, code: Numbers, seconds: Floats, group_of_pe: Numbers, table: Floats
) -> None:
    """Add durations to the sums of their PE's group and code, shape (groups, codes)."""
    lost = np.zeros_like(table)
    for k in range(len(pe)):
        p, c = group_of_pe[pe[k]], code[k]
        before = table[p, c]
        total = before + seconds[k]
        part = total - before
        table[p, c] = total
        lost[p, c] += (before - (total - part)) + (seconds[k] - part)
    for p in range(table.shape[0]):
        for c in range(table.shape[1]):
            table[p, c] += lost[p, c]


class Path(NamedTuple):
    """The critical path from its end backwards: SEBs, and the messages between them."""

    seb: Numbers
    ran_s: Floats
    """The seconds of the path in each SEB, from the start of the SEB."""
    message: Numbers
    """The message by which the path came to the SEB, −1 if it came otherwise."""
    transit_s: Floats
    """The transit time of that message."""


@kernel(ns_per_byte=300)
def run_before(program: Program, order: Numbers, pes: int) -> Numbers:
    """Return the SEB that ran on the same PE before each one, −1 for none."""
    before = np.full(len(program.sebs.pe), -1, dtype=np.int32)
    last = np.full(pes, -1, dtype=np.int32)
    for k in range(len(order)):
        seb = order[k]
        pe = program.sebs.pe[seb]
        before[seb], last[pe] = last[pe], seb
    return before


@kernel(ns_per_byte=300)
def critical_path(
    program: Program, scale: Scale, times: Times, causes: Causes, before: Numbers, last: int
) -> Path:
    """Return the path that ends with the SEB `last`.

    Its predecessor at a SEB that had to wait for its PE is the SEB that ran there before, and
    otherwise the SEB of the last input. The path therefore has no gap from 0 to the end.
    """
    room = len(times.order)
    path = Path(
        np.empty(room, dtype=np.int32),
        np.empty(room),
        np.empty(room, dtype=np.int32),
        np.empty(room),
    )
    length = 0
    seb, until = last, times.end_s[last]
    while seb >= 0:
        start, ready = times.start_s[seb], times.ready_s[seb]
        path.seb[length], path.ran_s[length] = seb, until - start
        path.message[length], path.transit_s[length] = -1, 0.0
        until = start
        if start > ready:
            following = before[seb]
        else:
            following = causes.seb[seb]
            if following >= 0 and causes.kind[seb] == BY_MESSAGE:
                message = program.sebs.starter[seb]
                until = sent_at(
                    program,
                    scale,
                    program.sebs.name[following],
                    times.start_s[following],
                    times.end_s[following],
                    message,
                )
                path.message[length], path.transit_s[length] = message, ready - until
        seb = following
        length += 1
    return Path(
        path.seb[:length].copy(),
        path.ran_s[:length].copy(),
        path.message[:length].copy(),
        path.transit_s[:length].copy(),
    )
