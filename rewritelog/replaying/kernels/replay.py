"""The replay: SEBs in the order in which they become ready, each PE running one at a time.

A SEB that starts at a time can make others ready at that time or later, never earlier. So one
queue of ready SEBs over all PEs gives them in the order of their readiness (as Dijkstra's algorithm
does), and a SEB starts when it is ready and all that its PE had before it have ended.
"""

from __future__ import annotations

import numpy as np

from rewritelog.arrays import Bytes, Floats
from rewritelog.replaying.kernels.interface import (
    BY_DEPENDENCY,
    BY_ITSELF,
    BY_MESSAGE,
    BY_PREVIOUS,
    NO_MESSAGE,
    WAITS_FOR_PREVIOUS,
    Causes,
    Delays,
    Numbers,
    Program,
    Scale,
    Sebs,
    State,
    Times,
)
from tracebigsim.compiled import inner, kernel


@inner
def duration_of(program: Program, scale: Scale, seb: int) -> float:
    """Return how long a SEB takes."""
    name = program.sebs.name[seb]
    duration = program.sebs.scaled_s[seb] * scale.scaled[name]
    if len(program.sebs.fixed_s) > 0:
        duration += program.sebs.fixed_s[seb] * scale.fixed[name]
    return duration


@inner
def sent_at(
    program: Program, scale: Scale, name: int, start: float, end: float, message: int
) -> float:
    """Return when a SEB of that name, running from `start` to `end`, sends a message."""
    offset = program.messages.scaled_s[message] * scale.scaled[name]
    if len(program.messages.fixed_s) > 0:
        offset += program.messages.fixed_s[message] * scale.fixed[name]
    return min(start + offset, end)


@inner
def network_delay(delays: Delays, transit_s: float, size_bytes: int) -> float:
    """Return how long a message takes from one node to another."""
    if delays.recorded:
        return transit_s if transit_s > 0.0 else 0.0
    size = max(float(size_bytes), 0.0)
    delay = delays.latency_s + size / delays.bandwidth_bytes_per_s
    if delays.packet_bytes > 0.0:
        delay += delays.cost_per_packet_s * max(np.ceil(size / delays.packet_bytes), 1.0)
    return delay


@inner
def delay_between(program: Program, delays: Delays, message: int, sender: int, to: int) -> float:
    """Return how long a message takes from PE to PE."""
    if sender == to:
        return 0.0
    if sender // delays.workers == to // delays.workers:
        return delays.node_latency_s
    messages = program.messages
    return network_delay(delays, messages.transit_s[message], messages.size_bytes[message])


@inner
def comes_before(times: Floats, ids: Numbers, a: int, time: float, seb: int) -> bool:
    """Return whether the queue's entry `a` comes before a SEB that is ready at `time`."""
    return times[a] < time or (times[a] == time and ids[a] < seb)


@inner
def push(times: Floats, ids: Numbers, size: int, time: float, seb: int) -> None:
    """Put a SEB into a binary heap of `size` entries."""
    at = size
    while at > 0:
        parent = (at - 1) >> 1
        if comes_before(times, ids, parent, time, seb):
            break
        times[at], ids[at] = times[parent], ids[parent]
        at = parent
    times[at], ids[at] = time, seb


@inner
def drop_first(times: Floats, ids: Numbers, size: int) -> None:
    """Take the first entry out of a binary heap of `size` entries."""
    time, seb = times[size - 1], ids[size - 1]
    at, left = 0, size - 1
    while True:
        child = 2 * at + 1
        if child >= left:
            break
        if child + 1 < left and comes_before(times, ids, child + 1, times[child], ids[child]):
            child += 1
        if not comes_before(times, ids, child, time, seb):
            break
        times[at], ids[at] = times[child], ids[child]
        at = child
    times[at], ids[at] = time, seb


@inner
def begin(sebs: Sebs, state: State) -> None:
    """Fill in how many inputs each SEB waits for."""
    for seb in range(len(state.missing)):
        wanted = sebs.first_dependency[seb + 1] - sebs.first_dependency[seb]
        wanted += sebs.starter[seb] != NO_MESSAGE
        wanted += (sebs.flags[seb] & WAITS_FOR_PREVIOUS) != 0
        state.missing[seb], state.ready_s[seb], state.pe[seb] = wanted, 0.0, sebs.pe[seb]


@inner
def arrive(seb: int, time: float, state: State, times: Floats, ids: Numbers, size: int) -> int:
    """Give a SEB one of its inputs, and put it into the queue when it has all; return its size."""
    ready = max(state.ready_s[seb], time)
    state.ready_s[seb] = ready
    left = state.missing[seb] - 1
    state.missing[seb] = left
    if left > 0:
        return size
    push(times, ids, size, ready, seb)
    return size + 1


@inner
def follows(sebs: Sebs, seb: int) -> bool:
    """Return whether the SEB after one waits for it."""
    return seb + 1 < len(sebs.flags) and (sebs.flags[seb + 1] & WAITS_FOR_PREVIOUS) != 0


@kernel
def replay(
    program: Program,
    scale: Scale,
    delays: Delays,
    pes: int,
    state: State,
    start_s: Floats,
    end_s: Floats,
    order: Numbers,
) -> tuple[float, int]:
    """Run the program; return when the last SEB ends, and how many have run.

    Fill in when SEBs were ready (NaN for one that never was), started and ended, and their order;
    the last three only where they have entries.
    """
    sebs, messages, dependents = program.sebs, program.messages, program.dependents
    count = len(sebs.pe)
    begin(sebs, state)
    times, ids = np.empty(count), np.empty(count, dtype=np.int32)
    free = np.zeros(pes)
    size = run = 0
    latest = 0.0
    for seb in range(count):
        if state.missing[seb] == 0:
            push(times, ids, size, 0.0, seb)
            size += 1
    while size > 0:
        seb, ready = ids[0], times[0]
        drop_first(times, ids, size)
        size -= 1
        pe, name = sebs.pe[seb], sebs.name[seb]
        start = max(ready, free[pe])
        end = start + duration_of(program, scale, seb)
        free[pe] = end
        latest = max(latest, end)
        if len(order) > 0:
            start_s[seb], end_s[seb], order[run] = start, end, seb
        run += 1
        for message in range(sebs.first_message[seb], sebs.first_message[seb + 1]):
            first, last = messages.first_receiver[message], messages.first_receiver[message + 1]
            if first == last:
                continue
            sent = sent_at(program, scale, name, start, end, message)
            for k in range(first, last):
                to = messages.receivers[k]
                arrived = sent + delay_between(program, delays, message, pe, state.pe[to])
                size = arrive(to, arrived, state, times, ids, size)
        for k in range(dependents.first[seb], dependents.first[seb + 1]):
            size = arrive(dependents.sebs[k], end, state, times, ids, size)
        if follows(sebs, seb):
            size = arrive(seb + 1, end, state, times, ids, size)
    for seb in range(count):
        if state.missing[seb] > 0:
            state.ready_s[seb] = np.nan
    return latest, run


@inner
def credit(causes: Causes, times: Times, seb: int, kind: int, source: int, time: float) -> None:
    """Note that an input which came at `time` made a SEB ready, where it was the last to come."""
    if time == times.ready_s[seb] and kind >= causes.kind[seb]:
        causes.kind[seb], causes.seb[seb] = kind, source


@kernel
def find_causes(
    program: Program, scale: Scale, delays: Delays, times: Times, causes: Causes, pes: int
) -> None:
    """Fill in what made each SEB ready, which had been `BY_ITSELF`, and what ran before it."""
    sebs, messages, dependents = program.sebs, program.messages, program.dependents
    last_run = np.full(pes, -1, dtype=np.int32)
    for seb in range(len(sebs.pe)):
        causes.kind[seb], causes.seb[seb], causes.previous[seb] = BY_ITSELF, -1, -1
    for k in range(len(times.order)):
        seb = times.order[k]
        pe, name = sebs.pe[seb], sebs.name[seb]
        start, end = times.start_s[seb], times.end_s[seb]
        causes.previous[seb] = last_run[pe]
        last_run[pe] = seb
        for message in range(sebs.first_message[seb], sebs.first_message[seb + 1]):
            sent = sent_at(program, scale, name, start, end, message)
            first, last = messages.first_receiver[message], messages.first_receiver[message + 1]
            for at in range(first, last):
                to = messages.receivers[at]
                arrived = sent + delay_between(program, delays, message, pe, sebs.pe[to])
                credit(causes, times, to, BY_MESSAGE, seb, arrived)
        for at in range(dependents.first[seb], dependents.first[seb + 1]):
            credit(causes, times, dependents.sebs[at], BY_DEPENDENCY, seb, end)
        if follows(sebs, seb):
            credit(causes, times, seb + 1, BY_PREVIOUS, seb, end)


@kernel
def find_blocked(program: Program, times: Times, root: Numbers, direct: Bytes) -> None:
    """Find for each SEB that never ran the one that blocks it.

    `direct` marks the SEBs that lack something which the log does not hold; `root`, −1 to begin
    with, becomes the first of these that each waits for, and stays −1 in circles and behind them.
    """
    sebs, messages, dependents = program.sebs, program.messages, program.dependents
    count = len(sebs.pe)
    waiting = np.empty(count, dtype=np.int32)
    for origin in range(count):
        if direct[origin] == 0 or root[origin] >= 0:
            continue
        root[origin], waiting[0], left = origin, origin, 1
        while left > 0:
            left -= 1
            seb = waiting[left]
            low = messages.first_receiver[sebs.first_message[seb]]
            high = messages.first_receiver[sebs.first_message[seb + 1]]
            for k in range(low, high):
                left = block(messages.receivers[k], origin, times, root, direct, waiting, left)
            for k in range(dependents.first[seb], dependents.first[seb + 1]):
                left = block(dependents.sebs[k], origin, times, root, direct, waiting, left)
            if follows(sebs, seb):
                left = block(seb + 1, origin, times, root, direct, waiting, left)


@inner
def block(
    seb: int, origin: int, times: Times, root: Numbers, direct: Bytes, waiting: Numbers, left: int
) -> int:
    """Note what blocks a SEB where that is not known yet; return how many wait to be looked at."""
    if root[seb] >= 0 or direct[seb] != 0 or not np.isnan(times.ready_s[seb]):
        return left
    root[seb] = origin
    waiting[left] = seb
    return left + 1
