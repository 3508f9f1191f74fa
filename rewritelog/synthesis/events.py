"""The bracketed kernels of synthetic logs, and their timing lines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import astuple, dataclass, replace
from typing import Final

import numpy as np

from rewritelog.arrays import Ints
from rewritelog.hashing import GOLDEN, mix, sequence
from rewritelog.synthesis import program
from rewritelog.synthesis.options import CELLS_OF_A_PE

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
        noisy = longest * (program.NOISE_LEAST + program.NOISE_SPREAD) // program.NOISE_UNIT
        begin = program.BEGIN_LEAST_NS + program.BEGIN_SPREAD_NS
        return noisy + begin + program.TAIL_LEAST_NS + program.TAIL_SPREAD_NS


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


def event_params(made: tuple[SynthEvent, ...]) -> Ints:
    """Return the parameters of events in the form that `SyntheticProgram` has them."""
    params = np.zeros((len(made), max(len(event.params) for event in made), 4), dtype=np.int64)
    params[:, :, 1] = 1
    for event, rows in zip(made, params, strict=True):
        rows[: len(event.params)] = [astuple(param) for param in event.params]
    return params


def timing_lines(seed: int, count: int, made: tuple[SynthEvent, ...] = EVENTS) -> Iterator[str]:
    """Yield timing lines of all events, with noise as on a real machine."""
    lines = np.arange(count, dtype=np.uint64) * GOLDEN + np.uint64(seed + _TIMINGS_STREAM)
    for k, start in enumerate(mix(lines).tolist()):
        event = made[k % len(made)]
        numbers = sequence(len(event.params) + _NOISE_DRAWS, start) >> np.uint64(33)
        draws = iter(numbers.tolist())
        values = tuple(p.low + next(draws) % p.span for p in event.params)
        noise = sum(draw % _NOISE_STEPS - _NOISE_STEPS // 2 for draw in draws)
        picoseconds = event.picoseconds(values) * (_NOISE_UNIT + noise) // _NOISE_UNIT
        nanoseconds = (picoseconds + 500) // 1000
        time = f"{nanoseconds // 10**9}.{nanoseconds % 10**9:09d}"
        params = " ".join(f"{value}.000000" for value in values)
        yield f"TRACEBIGSIM: event:{{ {event.name} }}  time:{{ {time} }}  params:{{ {params} }}\n"
