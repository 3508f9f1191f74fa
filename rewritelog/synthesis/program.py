"""Synthetic timelines: every SEB in closed form, so that timelines are independent of each other.

All PEs repeat the same iteration of `slots` SEBs. The row of a slot determines what its SEBs do, a
hash of seed, PE and position their durations, and the slot when they start. A message of iteration
k starts a SEB of a neighbour in iteration k + 1, which computes the send time in the same way as
the sender. Times are integers in nanoseconds until they are written.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import astuple, dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np

from rewritelog.arrays import Flags, Ints, Keys, Table
from rewritelog.commands.logs import CELLS_OF_A_PE
from rewritelog.hashing import GOLDEN, mix, sequence

_FIELDS = (
    "sends", "first_send", "broadcasts", "event", "started", "root", "backward", "forward",
    "zero_length", "at_ns", "least_ns", "spread_ns", "time_1", "time_2",
)  # fmt: skip
ROW = np.dtype([*((name, np.int64) for name in _FIELDS), ("name", "S20")])
"""A row: number of messages to neighbours, number of the first one, and of those to all PEs before
them; event (−1: no bracket), index of the starting message (−1: none), whether the SEB starts by
itself, numbers of dependencies, whether it takes no time, start in the iteration, range of
durations without a bracket, and byte offsets of the times of its events (0: none)."""

NEIGHBOURS = 6
_OTHER_WORKER = 6
"""The directions of messages: ±x, ±y, ±z, and on nodes with several workers the next worker."""

BEGIN_LEAST_NS, BEGIN_SPREAD_NS = 200, 1800
TAIL_LEAST_NS, TAIL_SPREAD_NS = 300, 900
JITTER_NS = 64
NOISE_LEAST, NOISE_SPREAD, NOISE_UNIT = 972, 105, 256_000
"""The emulating machine takes four times the duration of an event, ±5 %."""
_LATENCY_NS, _LATENCY_STEP_NS = 155, 10
_EXTRA_COUNTER = 1 << 40
"""The number hashed for an extra SEB in place of its position; its iteration is added."""

_MASK = (1 << 64) - 1


@dataclass(frozen=True)
class SyntheticProgram:
    """The program that all PEs run."""

    seed: int
    slots: int
    """The number of SEBs of an iteration; then come the rows of the extra SEB and PE 0's first
    one."""
    length: int
    """The number of SEBs of a timeline without the extra ones."""
    shape: tuple[int, int, int]
    """The number of nodes in each dimension."""
    workers: int
    period_ns: int
    sends: int
    """The number of messages of an iteration."""
    broadcasts: int
    """The number of broadcasts of PE 0's first SEB, which start the SEBs of iteration 0."""
    rows: Table
    """What the SEBs do, with the fields of `ROW`."""
    records: tuple[bytes, ...]
    """A SEB for each row, without the fields that differ from SEB to SEB."""
    starters: Ints
    """The starting messages: slot, index in it, number; shape (started, 3)."""
    events: tuple[SynthEvent, ...]
    """The bracketed events."""

    @cached_property
    def constants(self) -> Ints:
        """The constant part of the duration of each event, in picoseconds."""
        return np.array([event.constant for event in self.events])

    @cached_property
    def params(self) -> Ints:
        """Low, span, linear and square cost of the parameters of each event.

        Those that it lacks have spans of 1; shape (events, most parameters, 4).
        """
        most = max(len(event.params) for event in self.events)
        params = np.zeros((len(self.events), most, 4), dtype=np.int64)
        params[:, :, 1] = 1
        for event, rows in zip(self.events, params, strict=True):
            rows[: len(event.params)] = [astuple(param) for param in event.params]
        return params

    @property
    def iterations(self) -> int:
        """The number of iterations, of which the last may be incomplete."""
        return -(-self.length // self.slots)

    @property
    def directions(self) -> int:
        """The number of directions of messages."""
        return NEIGHBOURS + (self.workers > 1)

    def keys(self, pe: Ints, position: Ints) -> Keys:
        """Return the hashes from which all random numbers of SEBs are derived."""
        words = mix(np.uint64(self.seed) + GOLDEN * (pe + 1).astype(np.uint64))
        return mix(words + GOLDEN * (position + 1).astype(np.uint64))

    def extra_keys(self, pe: Ints, iteration: Ints) -> Keys:
        """Return the hashes of the extra SEBs after iterations."""
        return self.keys(pe, _EXTRA_COUNTER + iteration)

    def has_extra(self, pe: Ints, iteration: Ints) -> Flags:
        """Return whether PEs have extra SEBs after iterations, with probability ½."""
        is_whole = (iteration + 1) * self.slots <= self.length
        return np.asarray(is_whole & (draw(self.extra_keys(pe, iteration), 1, 2) == 1))

    def event_params(self, event: Ints, keys: Keys) -> Ints:
        """Return the parameters of brackets, shape (brackets, most parameters)."""
        kinds = self.params[event]
        values = [kinds[:, k, 0] + draw(keys, 4 + k, kinds[:, k, 1]) for k in range(kinds.shape[1])]
        return np.stack(values, axis=1)

    def regions(self, row: Ints, keys: Keys) -> Ints:
        """Return the lengths of SEBs in ns before, in and after the bracket, shape (3, SEBs).

        Without a bracket the last two are 0.
        """
        rows = self.rows[row]
        begin = rows["least_ns"] + draw(keys, 1, rows["spread_ns"] + 1)
        middle, tail = np.zeros_like(begin), np.zeros_like(begin)
        marked = np.flatnonzero(rows["event"] >= 0)
        event, keys = rows["event"][marked], keys[marked]
        values, kinds = self.event_params(event, keys), self.params[event]
        costs = values * (kinds[:, :, 2] + values * kinds[:, :, 3])
        noise = NOISE_LEAST + draw(keys, 2, NOISE_SPREAD)
        picoseconds = self.constants[event] + costs.sum(axis=1)
        begin[marked] = BEGIN_LEAST_NS + draw(keys, 1, BEGIN_SPREAD_NS)
        middle[marked] = np.maximum(1, picoseconds * noise // NOISE_UNIT)
        tail[marked] = TAIL_LEAST_NS + draw(keys, 3, TAIL_SPREAD_NS)
        return np.stack([begin, middle, tail])

    def start_ns(self, row: Ints, iteration: Ints, keys: Keys) -> Ints:
        """Return the starts of SEBs in ns."""
        at_ns = iteration * self.period_ns + self.rows["at_ns"][row]
        return np.asarray(at_ns + draw(keys, 0, JITTER_NS))

    def send_ns(self, pe: Ints, iteration: Ints, slot: Ints, which: Ints) -> Ints:
        """Return the send times of messages `which` of any SEBs of any PEs, in ns."""
        first = (pe == 0) & (iteration == 0) & (slot == 0)
        count = self.rows["sends"][slot] + np.where(first, self.broadcasts, 0)
        keys = self.keys(pe, iteration * self.slots + slot)
        offset = send_offset(self.regions(slot, keys), which, count)
        return np.asarray(self.start_ns(slot, iteration, keys) + offset)

    def neighbours(self, pe: Ints, direction: Ints, sign: int) -> Ints:
        """Return the neighbours of PEs on the torus, or those opposite to them for `sign` −1."""
        node, worker = np.divmod(pe, self.workers)
        step = np.where(direction % 2 == 0, sign, -sign)
        there, stride = np.zeros_like(pe), 1
        for axis, length in enumerate(self.shape):
            there += (node // stride + step * (direction // 2 == axis)) % length * stride
            stride *= length
        there = there * self.workers + worker
        beside = node * self.workers + (worker + sign) % self.workers
        return np.asarray(np.where(direction == _OTHER_WORKER, beside, there))

    def latency_ns(self, sender: Ints, receiver: Ints, direction: Ints) -> Ints:
        """Return the transit times of messages in ns."""
        same = sender // self.workers == receiver // self.workers
        return np.where(same, 0, _LATENCY_NS + _LATENCY_STEP_NS * direction)

    def numbers(self, pe: Ints, iteration: Ints, send: Ints) -> Ints:
        """Return the numbers of messages to neighbours; PE 0 has sent its broadcasts before."""
        return np.where(pe == 0, self.broadcasts, 0) + iteration * self.sends + send


def draw(keys: Keys, which: int, span: Ints | int) -> Ints:
    """Return random integers from 0 to below `span`, which is less than 2³¹."""
    step = np.uint64(int(GOLDEN) * (which + 1) & _MASK)
    return np.asarray((mix(keys + step) >> np.uint64(33)).astype(np.int64) % span)


def send_offset(regions: Ints, which: Ints, count: Ints) -> Ints:
    """Return the send times of messages `which` of `count`, in ns after the start of their SEBs.

    Of several messages of a bracketed SEB the first is sent before the bracket, the last after it.
    """
    begin, middle, tail = regions
    several = (middle > 0) & (count > 1)
    offset = np.where(middle == 0, 0, begin)
    offset += np.where(middle == 0, begin, middle) * (which + 1) // (count + 1)
    last = several & (which == count - 1)
    offset[last] = (begin + middle + tail // 2)[last]
    first = several & (which == 0)
    offset[first] = begin[first] // 2
    return offset


_TIMINGS_STREAM = 1 << 62
_NOISE_STEPS, _NOISE_UNIT, _NOISE_DRAWS = 401, 10_000, 3


@dataclass(frozen=True)
class Param:
    """A parameter: its range of integers, and the coefficients of its cost in picoseconds."""

    low: int
    span: int
    linear: int
    square: int = 0


@dataclass(frozen=True)
class SynthEvent:
    """A bracketed kernel, whose true duration is a polynomial in its parameters."""

    name: str
    constant: int
    """In picoseconds."""
    params: tuple[Param, ...]

    def picoseconds(self, values: tuple[int, ...]) -> int:
        """Return the true duration on the machine that was timed, in picoseconds."""
        costs = zip(self.params, values, strict=True)
        return self.constant + sum(p.linear * v + p.square * v * v for p, v in costs)

    @property
    def most_ns(self) -> int:
        """The longest duration of a SEB with this kernel in a synthetic log."""
        longest = self.picoseconds(tuple(p.low + p.span - 1 for p in self.params))
        noisy = longest * (NOISE_LEAST + NOISE_SPREAD) // NOISE_UNIT
        begin = BEGIN_LEAST_NS + BEGIN_SPREAD_NS
        return noisy + begin + TAIL_LEAST_NS + TAIL_SPREAD_NS


EVENTS: Final = (
    SynthEvent("Cell::pairForces", 1_200_000, (Param(40, 120, 25_000, 900), Param(5, 17, 180_000))),
    SynthEvent("Cell::bonded", 800_000, (Param(40, 120, 400_000),)),
    SynthEvent(
        "Lattice::relax",
        2_500_000,
        (Param(8, 25, 150_000), Param(8, 25, 90_000, 4_000), Param(1, 6, 1_100_000)),
    ),
    SynthEvent("calc_self", 650_000, (Param(16, 112, 60_000, 250), Param(0, 9, 300_000))),
)


def events_for(cells: int) -> tuple[SynthEvent, ...]:
    """Return the events of PEs with this many cells: their parameters grow in proportion."""

    def scaled(number: int) -> int:
        return max(number * cells // CELLS_OF_A_PE, min(number, 1))

    def scaled_event(event: SynthEvent) -> SynthEvent:
        params = (replace(p, low=scaled(p.low), span=scaled(p.span)) for p in event.params)
        return replace(event, params=tuple(params))

    return tuple(map(scaled_event, EVENTS))


def timing_lines(seed: int, count: int, events: tuple[SynthEvent, ...] = EVENTS) -> Iterator[str]:
    """Yield timing lines of all events, with noise as on a real machine."""
    lines = np.arange(count, dtype=np.uint64) * GOLDEN + np.uint64(seed + _TIMINGS_STREAM)
    for k, start in enumerate(mix(lines).tolist()):
        event = events[k % len(events)]
        numbers = sequence(len(event.params) + _NOISE_DRAWS, start) >> np.uint64(33)
        draws = iter(numbers.tolist())
        values = tuple(p.low + next(draws) % p.span for p in event.params)
        noise = sum(draw % _NOISE_STEPS - _NOISE_STEPS // 2 for draw in draws)
        picoseconds = event.picoseconds(values) * (_NOISE_UNIT + noise) // _NOISE_UNIT
        nanoseconds = (picoseconds + 500) // 1000
        time = f"{nanoseconds // 10**9}.{nanoseconds % 10**9:09d}"
        params = " ".join(f"{value}.000000" for value in values)
        yield f"TRACEBIGSIM: event:{{ {event.name} }}  time:{{ {time} }}  params:{{ {params} }}\n"
