"""Prediction intervals from the ratios of measured to predicted times of held-out samples."""

from __future__ import annotations

import math

import numpy as np

from rewritelog.arrays import Floats
from rewritelog.models.fitting import tuning

LEVEL = 0.9
"""The nominal coverage of a prediction interval."""

ENDS = np.array([(1 - LEVEL) / 2, (1 + LEVEL) / 2])
"""The quantile levels of the two ends of an interval."""


def quantiles(ascending: Floats, levels: Floats) -> Floats:
    """Return conservative quantiles of a sample, given in ascending order, for a further value.

    Levels from 0.5 use the order statistic of rank ⌈(n + 1)·level⌉, those below it the one of rank
    ⌊(n + 1)·level⌋: a further value of the same distribution then lies between two of them with at
    least the nominal probability. Fewer than `ENOUGH_RATIOS` values have no order statistics that
    far out: positive quantiles are then moved away from the median.
    """
    count = len(ascending)
    upper = np.ceil((count + 1) * levels) - 1
    lower = np.floor((count + 1) * levels) - 1
    rank = np.where(levels < 0.5, lower, upper)
    quantiles = ascending[np.clip(rank, 0, count - 1).astype(np.int64)]
    middle = float(np.median(ascending))
    if count >= tuning.ENOUGH_RATIOS or not middle > 0:
        return quantiles
    wider = 1 + tuning.WIDER_WITH_FEW * (tuning.ENOUGH_RATIOS / count - 1)
    return np.where(quantiles > 0, middle * np.maximum(quantiles / middle, 0) ** wider, quantiles)


def widening_rate(ratios: Floats, tried: Floats, distances: Floats) -> float | None:
    """Return how fast intervals have to widen beyond the range, in logarithms per unit of distance.

    In a trial `tried` are the measured over the predicted times of samples at these `distances`
    beyond the range. Nine in ten of them lie within the intervals that widen at this rate, at the
    rank that `quantiles` uses; `ratios` are the ascending ones within the range. It is at least
    `LEAST_RATE`, and None without a sample beyond the range.
    """
    far = distances > 0
    if not far.any():
        return None
    low, high = quantiles(ratios, ENDS) if len(ratios) else (1.0, 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(tried[far])
        outside = np.fmax(np.fmax(logs - np.log(high), np.log(low) - logs), 0.0)
    rates = np.sort(outside / np.maximum(distances[far], tuning.NEAREST))
    rank = min(math.ceil((len(rates) + 1) * LEVEL), len(rates))
    return max(float(rates[rank - 1]), tuning.LEAST_RATE)


def coverage(ratios: Floats) -> float | None:
    """Return the share of ratios within the 90 % interval of the other half; None for few."""
    finite = ratios[np.isfinite(ratios)]
    if len(finite) < tuning.ENOUGH_RATIOS:
        return None
    halves, inside = (finite[::2], finite[1::2]), 0
    for mine, others in (halves, halves[::-1]):
        low, high = quantiles(np.sort(others), ENDS)
        inside += int(((mine >= low) & (mine <= high)).sum())
    return inside / len(finite)
