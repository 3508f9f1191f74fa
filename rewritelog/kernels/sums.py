"""Compensated and exact sums of many durations.

Kernels add with Knuth's TwoSum (The Art of Computer Programming, vol. 2, 4.2.2), also found by
Møller (1965), and keep a high and a low part; `ExactSum` does not round at all.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from rewritelog.arrays import Floats, Ints
from tracebigsim.compiled import inner, kernel


@inner
def add_to(sums: Floats, row: int, column: int, value: float) -> None:
    """Add a value to one of many sums; `sums` has the shape (rows, columns, 2): high and low."""
    high = sums[row, column, 0]
    total = high + value
    part = total - high
    sums[row, column, 0] = total
    sums[row, column, 1] += (high - (total - part)) + (value - part)


@kernel(ns_per_byte=300)
def group_by_piece(pieces: Ints, events: Ints, count: int) -> tuple[Ints, Ints]:
    """Return the number of each row's distinct pair of piece and event, and each pair's event.

    There are `count` events. `pieces` is ascending; pairs are numbered in order of appearance.
    """
    last_piece = np.full(count, -1)
    last_group = np.zeros(count, dtype=np.int64)
    groups, group_event = np.empty_like(events), np.empty_like(events)
    known = 0
    for k in range(len(events)):
        event = events[k]
        if last_piece[event] != pieces[k]:
            last_piece[event], last_group[event] = pieces[k], known
            group_event[known] = event
            known += 1
        groups[k] = last_group[event]
    return groups, group_event[:known]


@kernel(ns_per_byte=350)
def add_by_group(groups: Ints, values: Floats, sums: Floats, column: int) -> None:
    """Add each value to its group's sum in a column of `sums`, shape (groups, columns, 2)."""
    for k in range(len(groups)):
        add_to(sums, groups[k], column, values[k])


@dataclass(frozen=True)
class ExactSum:
    """A sum of non-negative floats without rounding, independent of their order.

    The parts are an expansion as in J. Shewchuk, "Adaptive precision floating-point arithmetic and
    fast robust geometric predicates" (1997). A sum too large for a float is infinite.
    """

    parts: tuple[float, ...] = ()

    def plus(self, values: Iterable[float]) -> ExactSum:
        """Return the sum with more values added."""
        items = [*self.parts, *values]
        parts = []
        try:
            while (rest := math.fsum(items)) != 0.0:
                if not math.isfinite(rest):
                    return _TOO_LARGE
                parts.append(rest)
                items.append(-rest)
        except OverflowError:
            return _TOO_LARGE
        return ExactSum(tuple(parts))

    def __float__(self) -> float:
        return math.fsum(self.parts)


NOTHING = ExactSum()
_TOO_LARGE = ExactSum((math.inf,))
