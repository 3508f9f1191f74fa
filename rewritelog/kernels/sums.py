"""Sums of many durations that lose nothing: a high and a low part, in order (Møller, Knuth)."""

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
    """Return the number of each row's pair of piece and event, and the event of each number.

    There are `count` events; the pairs are numbered as they come, the pieces rising.
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
    """A sum of floats from 0 up without any rounding, in whatever order (after Shewchuk).

    It is infinite where it is too large for a float.
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
