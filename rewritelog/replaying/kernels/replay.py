"""The replay: SEBs run in the order in which they become ready, one at a time on each PE.

A SEB can only make others ready at its start or later. One queue of ready SEBs for all PEs
therefore yields them in the order of the times when they are ready, as in Dijkstra's algorithm. A
SEB starts as soon as it is ready and all earlier SEBs of its PE have ended.
"""

from __future__ import annotations

import numpy as np

from rewritelog.arrays import Bytes, Floats
from rewritelog.kernels.prefetch import prefetch
from rewritelog.replaying.kernels.interface import (
    BY_DEPENDENCY,
    BY_ITSELF,
    BY_MESSAGE,
    BY_PREVIOUS,
    NO_MESSAGE,
    WAITS_FOR_PREVIOUS,
    Delays,
    Numbers,
    Program,
    Record,
    Scale,
    Sebs,
    State,
    Times,
)
from rewritelog.replaying.kernels.queue import IN_HEAP, Queue, add, drop_first, refill
from tracebigsim.compiled import inner, kernel


@inner
def duration_of(program: Program, scale: Scale, seb: int) -> float:
    """Return the duration of a SEB in seconds."""
    name = program.sebs.name[seb]
    duration = program.sebs.scaled_s[seb] * scale.scaled[name]
    if len(program.sebs.fixed_s) > 0:
        duration += program.sebs.fixed_s[seb] * scale.fixed[name]
    return duration


@inner
def sent_at(
    program: Program, scale: Scale, name: int, start: float, end: float, message: int
) -> float:
    """Return when a SEB with this name, running from `start` to `end`, sends a message."""
    offset = program.messages.scaled_s[message] * scale.scaled[name]
    if len(program.messages.fixed_s) > 0:
        offset += program.messages.fixed_s[message] * scale.fixed[name]
    return min(start + offset, end)


@inner
def network_delay(delays: Delays, transit_s: float, size_bytes: int) -> float:
    """Return the delay of a message between two nodes, in seconds."""
    if delays.recorded:
        return transit_s if transit_s > 0.0 else 0.0
    size = max(float(size_bytes), 0.0)
    delay = delays.latency_s + size / delays.bandwidth_bytes_per_s
    if delays.packet_bytes > 0.0:
        delay += delays.cost_per_packet_s * max(np.ceil(size / delays.packet_bytes), 1.0)
    return delay


@inner
def delay_between(program: Program, delays: Delays, message: int, sender: int, to: int) -> float:
    """Return the delay of a message between two PEs, in seconds."""
    if sender == to:
        return 0.0
    if delays.workers > 1 and sender // delays.workers == to // delays.workers:
        return delays.node_latency_s
    messages = program.messages
    return network_delay(delays, messages.transit_s[message], messages.size_bytes[message])


@inner
def initialise(sebs: Sebs, state: State, record: Record) -> None:
    """Initialise the state: the number of inputs that each SEB waits for."""
    for seb in range(len(state.missing)):
        wanted = sebs.first_dependency[seb + 1] - sebs.first_dependency[seb]
        wanted += sebs.starter[seb] != NO_MESSAGE
        wanted += (sebs.flags[seb] & WAITS_FOR_PREVIOUS) != 0
        state.missing[seb], state.ready_s[seb], state.pe[seb] = wanted, 0.0, sebs.pe[seb]
        if record.wanted:
            record.causes.seb[seb], record.causes.kind[seb] = -1, BY_ITSELF


@inner
def arrive(
    seb: int, time: float, kind: int, source: int, state: State, record: Record, queue: Queue
) -> None:
    """Deliver one of its inputs to a SEB, which enters the queue when it has all of them.

    Of simultaneous last inputs the kind decides on the recorded cause, and then the order of
    delivery.
    """
    ready = state.ready_s[seb]
    if record.wanted:
        causes = record.causes
        if time > ready or (time == ready and kind >= causes.kind[seb]):
            causes.seb[seb], causes.kind[seb] = source, kind
    if time > ready:
        state.ready_s[seb] = ready = time
    left = state.missing[seb] - 1
    state.missing[seb] = left
    if left <= 0:
        add(queue, ready, seb)


@inner
def follows(sebs: Sebs, seb: int) -> bool:
    """Return whether the next SEB of the timeline waits for this one."""
    return seb + 1 < len(sebs.flags) and (sebs.flags[seb + 1] & WAITS_FOR_PREVIOUS) != 0


@inner
def take(program: Program, record: Record, queue: Queue) -> tuple[float, int]:
    """Remove the first SEB of the queue, which is not empty, and prefetch the next ones."""
    sebs, messages = program.sebs, program.messages
    times, ids, numbers = queue.heap_times, queue.heap_sebs, queue.numbers
    ready, first = times[0], ids[0]
    left = numbers[IN_HEAP]
    drop_first(times, ids, left)
    numbers[IN_HEAP] = left - 1
    if left == 1 and refill(queue):
        for k in range(numbers[IN_HEAP]):
            prefetch(sebs.scaled_s, ids[k])
            prefetch(sebs.first_message, ids[k] + 1)
            if record.wanted:
                prefetch(record.times.start_s, ids[k])
    if numbers[IN_HEAP] > 0:
        prefetch(messages.scaled_s, sebs.first_message[ids[0]])
    return ready, first


@inner
def deliver(
    program: Program,
    scale: Scale,
    delays: Delays,
    seb: int,
    start: float,
    end: float,
    state: State,
    record: Record,
    queue: Queue,
) -> None:
    """Deliver the messages and the end of a SEB to all SEBs that wait for them."""
    sebs, messages, dependents = program.sebs, program.messages, program.dependents
    pe, name = sebs.pe[seb], sebs.name[seb]
    for message in range(sebs.first_message[seb], sebs.first_message[seb + 1]):
        first, last = messages.first_receiver[message], messages.first_receiver[message + 1]
        if first == last:
            continue
        sent = sent_at(program, scale, name, start, end, message)
        for k in range(first, last):
            to = messages.receivers[k]
            arrived = sent + delay_between(program, delays, message, pe, state.pe[to])
            arrive(to, arrived, BY_MESSAGE, seb, state, record, queue)
    for k in range(dependents.first[seb], dependents.first[seb + 1]):
        arrive(dependents.sebs[k], end, BY_DEPENDENCY, seb, state, record, queue)
    if follows(sebs, seb):
        arrive(seb + 1, end, BY_PREVIOUS, seb, state, record, queue)


@inner
def record_times(times: Times, seb: int, run: int, start: float, end: float) -> None:
    """Record start and end of a SEB, the `run`th of all."""
    times.start_s[seb], times.end_s[seb], times.order[run] = start, end, seb


@inner
def forget_never_run(state: State, record: Record) -> None:
    """Set the times of SEBs that never ran to NaN, and remove their causes."""
    for seb in range(len(state.missing)):
        if state.missing[seb] > 0:
            state.ready_s[seb] = np.nan
            if record.wanted:
                record.times.start_s[seb] = record.times.end_s[seb] = np.nan
                record.causes.seb[seb], record.causes.kind[seb] = -1, BY_ITSELF


@kernel(ns_per_byte=7_000)
def replay(
    program: Program,
    scale: Scale,
    delays: Delays,
    free: Floats,
    state: State,
    record: Record,
    queue: Queue,
) -> tuple[float, int]:
    """Run the program; return the end of the last SEB in seconds, and how many have run.

    `free`, the time when each PE can run its next SEB, is initially zeros. Fill in the times when
    SEBs were ready (NaN for one that never was), and the record if it is wanted.
    """
    sebs = program.sebs
    initialise(sebs, state, record)
    for seb in range(len(sebs.pe)):
        if state.missing[seb] == 0:
            add(queue, 0.0, seb)
    run, latest = 0, 0.0
    while refill(queue):
        ready, seb = take(program, record, queue)
        pe = sebs.pe[seb]
        start = max(ready, free[pe])
        end = start + duration_of(program, scale, seb)
        free[pe] = end
        latest = max(latest, end)
        if record.wanted:
            record_times(record.times, seb, run, start, end)
        run += 1
        deliver(program, scale, delays, seb, start, end, state, record, queue)
    forget_never_run(state, record)
    return latest, run


@kernel(ns_per_byte=2_000)
def find_blocked(program: Program, times: Times, root: Numbers, direct: Bytes) -> None:
    """Find the root SEB that blocks each SEB that never ran.

    `direct` marks the SEBs that wait for something that the log does not contain. `root`, initially
    −1, becomes the first of these that each SEB waits for; it stays −1 in cycles and behind them.
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
    """Record the root of a SEB if it is not known yet; return the new size of the work list."""
    if root[seb] >= 0 or direct[seb] != 0 or not np.isnan(times.ready_s[seb]):
        return left
    root[seb] = origin
    waiting[left] = seb
    return left + 1
