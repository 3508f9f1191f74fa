"""Synthetic timelines: every SEB in closed form, so that timelines are independent of each other.

All PEs repeat the same iteration of `slots` SEBs. The row of a slot determines what its SEBs do, a
hash of seed, PE and position their durations, and the slot when they start. A message of iteration
k starts a SEB of a neighbour in iteration k + 1, which computes the send time in the same way as
the sender. Times are integers in nanoseconds until they are written.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rewritelog.arrays import Bytes, Ints
from rewritelog.hashing import GOLDEN
from rewritelog.kernels.hashing import mix
from tracebigsim.compiled import inner

(
    ROW_SENDS,
    ROW_FIRST_SEND,
    ROW_EVENT,
    ROW_STARTED,
    ROW_ROOT,
    ROW_BACKWARD,
    ROW_FORWARD,
    ROW_AT_NS,
    ROW_LEAST_NS,
    ROW_SPREAD_NS,
    ROW_TIME_1,
    ROW_TIME_2,
) = range(12)
ROW_SIZE = 12
"""A row: number of messages, number of the first one, event (−1: no bracket), index of the starting
message (−1: none), whether the SEB starts by itself, numbers of dependencies, start in the
iteration,
range of durations without a bracket, and byte offsets of the times of its events (0: none)."""

NEIGHBOURS = 6
OTHER_WORKER = 6
"""The directions of messages: ±x, ±y, ±z, and on nodes with several workers the next worker."""

EVENT_CONSTANT, EVENT_PARAMS = 0, 1
EVENT_PARAM_SIZE = 4
PARAM_LOW, PARAM_SPAN, PARAM_LINEAR, PARAM_SQUARE = range(2, 2 + EVENT_PARAM_SIZE)

BEGIN_LEAST_NS, BEGIN_SPREAD_NS = 200, 1800
TAIL_LEAST_NS, TAIL_SPREAD_NS = 300, 900
JITTER_NS = 64
NOISE_LEAST, NOISE_SPREAD, NOISE_UNIT = 972, 105, 256_000
"""The emulating machine takes four times the duration of an event, ±5 %."""
_LATENCY_NS, _LATENCY_STEP_NS = 155, 10
EXTRA_COUNTER = 1 << 40
"""The number hashed for an extra SEB in place of its position; its iteration is added."""

_S33 = np.uint64(33)


class SyntheticProgram(NamedTuple):
    """The program that all PEs run."""

    seed: int
    big: bool
    """Whether integers are big-endian."""
    slots: int
    """The number of SEBs of an iteration; then come the rows of the extra SEB and PE 0's first
    one."""
    length: int
    """The number of SEBs of a timeline without the extra ones."""
    x: int
    y: int
    z: int
    workers: int
    directions: int
    period_ns: int
    sends: int
    """The number of messages of an iteration."""
    broadcasts: int
    """The number of broadcasts of PE 0's first SEB, which start the SEBs of iteration 0."""
    largest: int
    """The size of the largest SEB in bytes."""
    rows: Ints
    begins: Ints
    """The offset of each row's SEB in `bytes`, and their end; shape (rows + 1,)."""
    bytes: Bytes
    """A SEB for each row, without the fields that differ from SEB to SEB."""
    starters: Ints
    """The starting messages: slot, index in it, number; shape (started, 3)."""
    events: Ints
    """The bracketed events: picoseconds, number of parameters, then four integers for each one."""
    names: Bytes
    """Their names, padded with NULs."""


@inner
def key_of(seed: int, pe: int, counter: int) -> np.uint64:
    """Return the hash from which all random numbers of a SEB are derived."""
    word = mix(np.uint64(seed) + GOLDEN * np.uint64(pe + 1))
    return mix(word + GOLDEN * np.uint64(counter + 1))


@inner
def draw(key: np.uint64, which: int, span: int) -> int:
    """Return a random integer from 0 to below `span`, which is less than 2³¹."""
    return int(mix(key + GOLDEN * np.uint64(which + 1)) >> _S33) % span


@inner
def event_param(events: Ints, event: int, which: int, key: np.uint64) -> int:
    """Return a parameter of an event."""
    at = which * EVENT_PARAM_SIZE
    return int(events[event, at + PARAM_LOW] + draw(key, 4 + which, events[event, at + PARAM_SPAN]))


@inner
def event_picoseconds(events: Ints, event: int, key: np.uint64) -> int:
    """Return the true duration of an event: a polynomial in its parameters."""
    total = int(events[event, EVENT_CONSTANT])
    for which in range(events[event, EVENT_PARAMS]):
        at = which * EVENT_PARAM_SIZE
        value = event_param(events, event, which, key)
        total += value * (
            events[event, at + PARAM_LINEAR] + value * events[event, at + PARAM_SQUARE]
        )
    return total


@inner
def regions(program: SyntheticProgram, row: int, key: np.uint64) -> tuple[int, int, int]:
    """Return the lengths in ns before, in and after a SEB's bracket; 0, 0 without a bracket."""
    event = program.rows[row, ROW_EVENT]
    if event < 0:
        spread = program.rows[row, ROW_SPREAD_NS]
        return program.rows[row, ROW_LEAST_NS] + draw(key, 1, spread + 1), 0, 0
    noise = NOISE_LEAST + draw(key, 2, NOISE_SPREAD)
    return (
        BEGIN_LEAST_NS + draw(key, 1, BEGIN_SPREAD_NS),
        max(1, event_picoseconds(program.events, event, key) * noise // NOISE_UNIT),
        TAIL_LEAST_NS + draw(key, 3, TAIL_SPREAD_NS),
    )


@inner
def start_ns(program: SyntheticProgram, row: int, iteration: int, key: np.uint64) -> int:
    """Return the start of a SEB in ns."""
    at = iteration * program.period_ns + program.rows[row, ROW_AT_NS]
    return int(at + draw(key, 0, JITTER_NS))


@inner
def send_offset(begin: int, middle: int, tail: int, which: int, count: int) -> int:
    """Return the send time of message `which` of `count`, in ns after the start of its SEB.

    Of several messages of a bracketed SEB the first is sent before the bracket, the last after it.
    """
    if middle == 0:
        return begin * (which + 1) // (count + 1)
    if count > 1 and which == 0:
        return begin // 2
    if count > 1 and which == count - 1:
        return begin + middle + tail // 2
    return begin + middle * (which + 1) // (count + 1)


@inner
def send_ns(program: SyntheticProgram, pe: int, iteration: int, slot: int, which: int) -> int:
    """Return the send time of message `which` of any SEB of any PE, in ns."""
    count = program.rows[slot, ROW_SENDS]
    if pe == 0 and iteration == 0 and slot == 0:
        count += program.broadcasts
    key = key_of(program.seed, pe, iteration * program.slots + slot)
    begin, middle, tail = regions(program, slot, key)
    start = start_ns(program, slot, iteration, key)
    return start + send_offset(begin, middle, tail, which, count)


@inner
def neighbour(program: SyntheticProgram, pe: int, direction: int, sign: int) -> int:
    """Return the neighbour of a PE in a direction on the torus, or opposite to it for `sign` −1."""
    node, worker = pe // program.workers, pe % program.workers
    if direction == OTHER_WORKER:
        return node * program.workers + (worker + sign) % program.workers
    step = sign if direction % 2 == 0 else -sign
    x = node % program.x
    y = node // program.x % program.y
    z = node // (program.x * program.y)
    if direction // 2 == 0:
        x = (x + step) % program.x
    elif direction // 2 == 1:
        y = (y + step) % program.y
    else:
        z = (z + step) % program.z
    return (x + program.x * (y + program.y * z)) * program.workers + worker


@inner
def latency_ns(program: SyntheticProgram, sender: int, receiver: int, direction: int) -> int:
    """Return the transit time of a message in ns."""
    if sender // program.workers == receiver // program.workers:
        return 0
    return _LATENCY_NS + _LATENCY_STEP_NS * direction


@inner
def first_number(program: SyntheticProgram, pe: int) -> int:
    """Return the number of the first message that a PE sends to a neighbour."""
    return program.broadcasts if pe == 0 else 0


@inner
def has_extra(program: SyntheticProgram, pe: int, iteration: int) -> bool:
    """Return whether a PE has an extra SEB after an iteration, with probability ½."""
    return draw(key_of(program.seed, pe, EXTRA_COUNTER + iteration), 1, 2) == 1
