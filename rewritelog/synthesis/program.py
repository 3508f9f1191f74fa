"""Synthetic timelines: every SEB in closed form, so that timelines are independent of each other.

All PEs repeat the same iteration of `slots` SEBs. The row of a slot determines what its SEBs do, a
hash of seed, PE and position their durations, and the slot when they start. A message of iteration
k starts a SEB of a neighbour in iteration k + 1, which computes the send time in the same way as
the sender. Times are integers in nanoseconds until they are written.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from typing import Final

import numpy as np
from msgspec import Struct

from rewritelog.arrays import GOLDEN, Flags, Ints, Keys, Table, mix
from rewritelog.commands.logs import CELLS_OF_A_PE

_FIELDS = (
    "sends", "first_send", "broadcasts", "event", "started", "root", "backward", "forward",
    "zero_length", "at_ns", "least_ns", "spread_ns", "time_1", "time_2",
)  # fmt: skip
ROW = np.dtype([*((name, np.int64) for name in _FIELDS), ("name", "S20")])
"""A row: count of messages to neighbours, number of the first one, count of broadcasts before
them; event (−1: no bracket), index of the starting message (−1: none), whether the SEB starts by
itself, numbers of dependencies, whether it takes no time, start in the iteration, least duration
without a bracket and width of its range, and byte offsets of the log events' times (0: none)."""

NODE_DIRECTIONS = 6
"""The directions to nodes: ±x, ±y, ±z; the one with this index is to the next worker thread."""

BEGIN_LEAST_NS, BEGIN_SPREAD_NS = 200, 1800
TAIL_LEAST_NS, TAIL_SPREAD_NS = 300, 900
JITTER_NS = 64
NOISE_LEAST, NOISE_SPREAD, NOISE_UNIT = 972, 105, 256_000
"""The host takes four times the true duration of a kernel, ±5 %."""
_LATENCY_NS, _LATENCY_STEP_NS = 155, 10
PARAM_DRAW = 4
"""The draw of the first parameter of a bracket; those before are for times."""
_EXTRA_COUNTER = 1 << 40
"""The number hashed for an extra SEB in place of its position; its iteration is added."""


class SyntheticProgram(Struct, frozen=True):
    """The program that all PEs run."""

    seed: int
    slots: int
    """The number of SEBs of an iteration."""
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
    """What the SEB of each slot does, then the extra SEB, and PE 0's first one; fields of `ROW`."""
    records: tuple[bytes, ...]
    """A SEB for each row, without the fields that differ from SEB to SEB."""
    starters: Ints
    """The starting messages: slot, index in its SEB, number; shape (started, 3)."""
    kernels: Kernels
    """The bracketed events."""

    @property
    def iterations(self) -> int:
        """The number of iterations, of which the last may be incomplete."""
        return -(-self.length // self.slots)

    @property
    def directions(self) -> int:
        """The number of directions of messages."""
        return NODE_DIRECTIONS + (self.workers > 1)

    def keys(self, pe: Ints, position: Ints) -> Keys:
        """Return the hashes from which all random numbers of SEBs are derived."""
        words = mix(np.uint64(self.seed) + GOLDEN * (pe + 1).astype(np.uint64))
        return mix(words + GOLDEN * (position + 1).astype(np.uint64))

    def extra_keys(self, pe: Ints, iteration: Ints) -> Keys:
        """Return the hashes of the extra SEBs after iterations."""
        return self.keys(pe, _EXTRA_COUNTER + iteration)

    def has_extra(self, pe: Ints, iteration: Ints) -> Flags:
        """Return whether PEs have an extra SEB after iterations: if whole, with probability ½."""
        is_whole = (iteration + 1) * self.slots <= self.length
        return np.asarray(is_whole & (random_integers(self.extra_keys(pe, iteration), 1, 2) == 1))

    def regions(self, row: Ints, keys: Keys) -> Ints:
        """Return the durations of SEBs before, in and after the bracket, in ns, shape (3, SEBs).

        Without a bracket the last two are 0.
        """
        rows = self.rows[row]
        begin = rows["least_ns"] + random_integers(keys, 1, rows["spread_ns"] + 1)
        middle, tail = np.zeros_like(begin), np.zeros_like(begin)
        marked = np.flatnonzero(rows["event"] >= 0)
        event, keys = rows["event"][marked], keys[marked]
        picoseconds = self.kernels.picoseconds(event, self.kernels.params(event, keys, PARAM_DRAW))
        noise = NOISE_LEAST + random_integers(keys, 2, NOISE_SPREAD)
        begin[marked] = BEGIN_LEAST_NS + random_integers(keys, 1, BEGIN_SPREAD_NS)
        middle[marked] = np.maximum(1, picoseconds * noise // NOISE_UNIT)
        tail[marked] = TAIL_LEAST_NS + random_integers(keys, 3, TAIL_SPREAD_NS)
        return np.stack([begin, middle, tail])

    def start_ns(self, row: Ints, iteration: Ints, keys: Keys) -> Ints:
        """Return the starts of SEBs in ns."""
        at_ns = iteration * self.period_ns + self.rows["at_ns"][row]
        return np.asarray(at_ns + random_integers(keys, 0, JITTER_NS))

    def send_ns(self, pe: Ints, iteration: Ints, slot: Ints, index_in_seb: Ints) -> Ints:
        """Return the send times of messages `index_in_seb` of any SEBs of any PEs, in ns."""
        first = (pe == 0) & (iteration == 0) & (slot == 0)
        count = self.rows["sends"][slot] + np.where(first, self.broadcasts, 0)
        keys = self.keys(pe, iteration * self.slots + slot)
        offset = send_offset(self.regions(slot, keys), index_in_seb, count)
        return np.asarray(self.start_ns(slot, iteration, keys) + offset)

    def neighbours(self, pe: Ints, direction: Ints, sign: int) -> Ints:
        """Return the neighbours of PEs on the torus, in the opposite direction for `sign` −1."""
        node, worker = np.divmod(pe, self.workers)
        step = np.where(direction % 2 == 0, sign, -sign)
        node_neighbour, stride = np.zeros_like(pe), 1
        for axis, length in enumerate(self.shape):
            node_neighbour += (node // stride + step * (direction // 2 == axis)) % length * stride
            stride *= length
        node_neighbour = node_neighbour * self.workers + worker
        worker_neighbour = node * self.workers + (worker + sign) % self.workers
        return np.asarray(np.where(direction == NODE_DIRECTIONS, worker_neighbour, node_neighbour))

    def latency_ns(self, sender: Ints, receiver: Ints, direction: Ints) -> Ints:
        """Return the transit times of messages in ns."""
        same = sender // self.workers == receiver // self.workers
        return np.where(same, 0, _LATENCY_NS + _LATENCY_STEP_NS * direction)

    def numbers(self, pe: Ints, iteration: Ints, send: Ints) -> Ints:
        """Return the numbers of messages to neighbours; on PE 0 they follow its broadcasts."""
        return np.where(pe == 0, self.broadcasts, 0) + iteration * self.sends + send


def random_integers(keys: Keys, draw: Ints | int, span: Ints | int) -> Ints:
    """Return random integers in [0, `span`); `span` is less than 2³¹."""
    steps = np.multiply(GOLDEN, np.asarray(draw + 1, dtype=np.uint64))
    return np.asarray((mix(keys + steps) >> np.uint64(33)).astype(np.int64) % span)


def send_offset(regions: Ints, index_in_seb: Ints, count: Ints) -> Ints:
    """Return when messages `index_in_seb` of `count` are sent, in ns after their SEBs start.

    Of several messages of a bracketed SEB the first is sent before the bracket, the last after it.
    """
    begin, middle, tail = regions
    several = (middle > 0) & (count > 1)
    offset = np.where(middle == 0, 0, begin)
    offset += np.where(middle == 0, begin, middle) * (index_in_seb + 1) // (count + 1)
    last = several & (index_in_seb == count - 1)
    offset[last] = (begin + middle + tail // 2)[last]
    first = several & (index_in_seb == 0)
    offset[first] = begin[first] // 2
    return offset


_TIMINGS_STREAM = 1 << 62
_NOISE_STEPS, _NOISE_UNIT, _NOISE_DRAWS = 401, 10_000, 3


EVENTS: Final[dict[str, tuple[int, list[tuple[int, int, int, int]]]]] = {
    "Cell::pairForces": (1_200_000, [(40, 120, 25_000, 900), (5, 17, 180_000, 0)]),
    "Cell::bonded": (800_000, [(40, 120, 400_000, 0)]),
    "Lattice::relax": (
        2_500_000,
        [(8, 25, 150_000, 0), (8, 25, 90_000, 4_000), (1, 6, 1_100_000, 0)],
    ),
    "calc_self": (650_000, [(16, 112, 60_000, 250), (0, 9, 300_000, 0)]),
}
"""Kernels by name: the constant cost, and for each parameter the lowest value, the number of
values, and the costs per unit of the parameter and of its square; costs are in picoseconds."""


class Kernels(Struct, frozen=True):
    """Kernels as arrays, whose true durations are polynomials in their parameters.

    `low` to `square` have the shape (kernels, most parameters); parameters that a kernel lacks cost
    nothing.
    """

    names: tuple[str, ...]
    parameters: Ints
    """The number of parameters of each kernel."""
    constant: Ints
    low: Ints
    span: Ints
    linear: Ints
    square: Ints

    def params(self, kernel: Ints, keys: Keys, draw: int) -> Ints:
        """Return random parameters, from draw `draw` on, shape (keys, most parameters)."""
        low, span = self.low[kernel], self.span[kernel]
        return np.asarray(
            low + random_integers(keys[:, None], draw + np.arange(low.shape[1]), span)
        )

    def picoseconds(self, kernel: Ints, values: Ints) -> Ints:
        """Return the true durations on the machine that was timed, in picoseconds."""
        costs = values * (self.linear[kernel] + values * self.square[kernel])
        return np.asarray(self.constant[kernel] + costs.sum(axis=1))

    @property
    def most_ns(self) -> Ints:
        """The longest duration of a SEB with each kernel in a synthetic log."""
        longest = self.picoseconds(np.arange(len(self.names)), self.low + self.span - 1)
        begin = BEGIN_LEAST_NS + BEGIN_SPREAD_NS
        noisy = longest * (NOISE_LEAST + NOISE_SPREAD) // NOISE_UNIT
        return np.asarray(noisy + begin + TAIL_LEAST_NS + TAIL_SPREAD_NS)


def kernels_for(cells: int) -> Kernels:
    """Return the kernels of PEs with this many cells: their parameters grow in proportion."""
    constants, params = zip(*EVENTS.values(), strict=True)
    low, span, linear, square = np.array([*zip_longest(*params, fillvalue=(0, 1, 0, 0))]).T
    low, span = (np.maximum(n * cells // CELLS_OF_A_PE, np.minimum(n, 1)) for n in (low, span))
    counts = np.array([len(of) for of in params])
    return Kernels(tuple(EVENTS), counts, np.array(constants), low, span, linear, square)


def timing_lines(seed: int, count: int, kernels: Kernels) -> Iterator[str]:
    """Yield timing lines of all events, with noise as on a real machine."""
    keys = mix(np.arange(count, dtype=np.uint64) * GOLDEN + np.uint64(seed + _TIMINGS_STREAM))
    kernel = np.arange(count) % len(kernels.names)
    values = kernels.params(kernel, keys, 0)
    noise_draws = kernels.parameters[kernel][:, None] + np.arange(_NOISE_DRAWS)
    noise = random_integers(keys[:, None], noise_draws, _NOISE_STEPS) - _NOISE_STEPS // 2
    noisy = _NOISE_UNIT + noise.sum(axis=1)
    nanoseconds = (kernels.picoseconds(kernel, values) * noisy // _NOISE_UNIT + 500) // 1000
    rows = zip(kernel.tolist(), nanoseconds.tolist(), values.tolist(), strict=True)
    for index, time_ns, numbers in rows:
        name, parameters = kernels.names[index], kernels.parameters[index]
        time = f"{time_ns // 10**9}.{time_ns % 10**9:09d}"
        params = " ".join(f"{number}.000000" for number in numbers[:parameters])
        yield f"TRACEBIGSIM: event:{{ {name} }}  time:{{ {time} }}  params:{{ {params} }}\n"
