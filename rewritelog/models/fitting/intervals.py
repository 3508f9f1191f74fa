"""Prediction intervals from the ratios of measured to predicted times of held-out samples."""

from __future__ import annotations

import numpy as np

from rewritelog.arrays import Floats

LEVEL = 0.9
"""The nominal coverage of a prediction interval."""

ENDS = np.array([(1 - LEVEL) / 2, (1 + LEVEL) / 2])
"""The quantile levels of the two ends of an interval."""

ENOUGH_RATIOS = 20
"""Among this many ratios one lies beyond each end of a 90 % interval."""

WIDER_WITH_FEW = 0.25
"""How much wider intervals are, as a share of their logarithmic width, with half as many ratios."""


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
    found = ascending[np.clip(rank, 0, count - 1).astype(np.int64)]
    middle = float(np.median(ascending))
    if count >= ENOUGH_RATIOS or not middle > 0:
        return found
    wider = 1 + WIDER_WITH_FEW * (ENOUGH_RATIOS / count - 1)
    return np.where(found > 0, middle * np.maximum(found / middle, 0) ** wider, found)


def coverage(ratios: Floats) -> float | None:
    """Return the share of ratios within the 90 % interval of the other half; None for few."""
    finite = ratios[np.isfinite(ratios)]
    if len(finite) < ENOUGH_RATIOS:
        return None
    halves, inside = (finite[::2], finite[1::2]), 0
    for mine, others in (halves, halves[::-1]):
        low, high = quantiles(np.sort(others), ENDS)
        inside += int(((mine >= low) & (mine <= high)).sum())
    return inside / len(finite)
