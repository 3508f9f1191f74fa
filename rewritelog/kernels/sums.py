"""Sums of many durations that lose nothing: a high and a low part, in order (Møller, Knuth)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tracebigsim._compiled import inner, kernel

Floats = NDArray[np.float64]


@inner
def add_to(sums: Floats, row: int, column: int, value: float) -> None:
    """Add a value to the pair (high, low) that stands at `row` and `column` of `sums`."""
    high = sums[row, column]
    total = high + value
    part = total - high
    sums[row, column] = total
    sums[row, column + 1] += (high - (total - part)) + (value - part)


@kernel
def sum_by_group(groups: NDArray[np.int64], values: Floats, count: int) -> Floats:
    """Return the sum of the values of each group as (high, low), shape (count, 2)."""
    sums = np.zeros((count, 2))
    for k in range(len(groups)):
        add_to(sums, groups[k], 0, values[k])
    return sums
