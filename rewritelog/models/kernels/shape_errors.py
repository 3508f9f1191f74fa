"""The errors of c0 + c1 · shape for each of many shapes of a product, compiled."""

from __future__ import annotations

import math

import numpy as np

from rewritelog.arrays import Floats
from tracebigsim.compiled import inner, kernel

PLAIN_NS_PER_BYTE = 150
"""Approximate uncompiled time for each byte of `logs`."""


@inner
def _line(
    ones: float, level: float, cross: float, square: float, along: float
) -> tuple[float, float]:
    """Return the non-negative least-squares c0 and c1 from weighted sums of products."""
    determinant = ones * square - cross * cross
    if determinant > 0:
        constant = (square * level - cross * along) / determinant
        slope = (ones * along - cross * level) / determinant
        if constant > 0 and slope > 0:
            return constant, slope
        if constant > 0:
            return level / ones, 0.0
    return 0.0, along / square


@kernel(ns_per_byte=PLAIN_NS_PER_BYTE)
def shape_errors(logs: Floats, fixed: Floats, weights: Floats, target: Floats) -> Floats:
    """Return the mean weighted error of c0 + c1 · exp(fixed + column) for each column of `logs`.

    `logs` has the shape (samples, shapes); `fixed`, `weights` and `target`, the weighted times,
    have the shape (samples,). c0 and c1 are the non-negative weighted least-squares solution.
    Errors above 1, and NaN, count as 1, so that outliers do not determine the shape.
    """
    count = len(target)
    errors = np.empty(logs.shape[1])
    shape = np.empty(count)
    ones = level = 0.0
    for i in range(count):
        ones += weights[i] * weights[i]
        level += weights[i] * target[i]
    for j in range(logs.shape[1]):
        middle = 0.0
        for i in range(count):
            middle += (fixed[i] + logs[i, j]) / count
        if not math.isfinite(middle):
            errors[j] = 1.0
            continue
        cross = square = along = 0.0
        for i in range(count):
            shape[i] = math.exp(min(fixed[i] + logs[i, j] - middle, 300.0)) * weights[i]
            cross += weights[i] * shape[i]
            square += shape[i] * shape[i]
            along += target[i] * shape[i]
        constant, slope = _line(ones, level, cross, square, along)
        total = 0.0
        for i in range(count):
            error = abs(constant * weights[i] + slope * shape[i] - target[i])
            total += error if error < 1.0 else 1.0
        errors[j] = total / count
    return errors
