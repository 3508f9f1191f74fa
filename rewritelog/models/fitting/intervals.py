"""Prediction intervals from the ratios of measured to predicted times of held-out samples."""

from __future__ import annotations

import numpy as np

from rewritelog.arrays import Floats

LEVEL = 0.9
"""The share of measurements that a prediction interval is to hold."""

ENDS = np.array([(1 - LEVEL) / 2, (1 + LEVEL) / 2])
"""The levels of an interval's two ends."""

ENOUGH_RATIOS = 20
"""Among as many ratios there is one beyond each end of an interval for nine in ten."""

WIDER_WITH_FEW = 0.25
"""How much wider, in logarithms, intervals of half as many ratios are."""


def quantiles(rising: Floats, levels: Floats) -> Floats:
    """Return values of a sample such that a further one lies below with at least that chance.

    Levels below a half are taken from below, so that intervals are never too narrow. Few values
    have no places far enough out, and those above 0 lie the further from their median for it.
    """
    count = len(rising)
    upper = np.ceil((count + 1) * levels) - 1
    lower = np.floor((count + 1) * levels) - 1
    place = np.where(levels < 0.5, lower, upper)
    found = rising[np.clip(place, 0, count - 1).astype(np.int64)]
    middle = float(np.median(rising))
    if count >= ENOUGH_RATIOS or not middle > 0:
        return found
    wider = 1 + WIDER_WITH_FEW * (ENOUGH_RATIOS / count - 1)
    return np.where(found > 0, middle * np.maximum(found / middle, 0) ** wider, found)


def coverage(ratios: Floats) -> float | None:
    """Return the share of ratios within the interval that the other half of them gives."""
    finite = ratios[np.isfinite(ratios)]
    if len(finite) < ENOUGH_RATIOS:
        return None
    halves, inside = (finite[::2], finite[1::2]), 0
    for mine, others in (halves, halves[::-1]):
        low, high = quantiles(np.sort(others), ENDS)
        inside += int(((mine >= low) & (mine <= high)).sum())
    return inside / len(finite)
