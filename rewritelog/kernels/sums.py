"""Compensated sums in kernels; see `rewritelog.sums`."""

from __future__ import annotations

from rewritelog.arrays import Floats
from tracebigsim.compiled import inner


@inner
def add_to(sums: Floats, row: int, column: int, value: float) -> None:
    """Add a value to one of many sums; `sums` has the shape (rows, columns, 2): high and low."""
    high = sums[row, column, 0]
    total = high + value
    part = total - high
    sums[row, column, 0] = total
    sums[row, column, 1] += (high - (total - part)) + (value - part)
