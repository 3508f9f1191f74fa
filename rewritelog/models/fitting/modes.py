"""Bimodal ratios of measured to predicted times: two kinds of calls that no parameter explains."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rewritelog.arrays import Floats
from rewritelog.models.fitting import tuning
from rewritelog.models.fitting.diagnosis import OUTLIER_FACTOR


@dataclass(frozen=True)
class Modes:
    """Two kinds of calls, the faster one first."""

    shares: tuple[float, float]
    """Shares of the calls, whose sum is 1."""
    centres: tuple[float, float]
    """Geometric means of measured / predicted time."""


def modes_of(ratios: Floats) -> Modes | None:
    """Return the two modes of ratios measured / predicted, given in ascending order; None for one.

    The logarithms are divided where the variance between the two parts is largest (N. Otsu, "A
    threshold selection method from gray-level histograms", 1979).
    """
    logs = np.log(ratios[ratios > 0])
    count = len(logs)
    if count < tuning.FEWEST_FOR_MODES or not logs.var() > 0:
        return None
    below = np.arange(1, count)
    sums = np.cumsum(logs)
    lower, upper = sums[:-1] / below, (sums[-1] - sums[:-1]) / (count - below)
    between = below * (count - below) * (upper - lower) ** 2 / count**2
    best = int(np.argmax(between))
    share = (best + 1) / count
    if (
        between[best] < tuning.LEAST_EXPLAINED * logs.var()
        or not tuning.LEAST_SHARE_OF_MODE <= share <= 1 - tuning.LEAST_SHARE_OF_MODE
        or upper[best] - lower[best] < np.log(tuning.LEAST_FACTOR)
    ):
        return None
    return Modes((share, 1 - share), (float(np.exp(lower[best])), float(np.exp(upper[best]))))


def interrupted_share(ratios: Floats) -> float:
    """Return the share of calls that took more than `OUTLIER_FACTOR` times their prediction."""
    return float((ratios > OUTLIER_FACTOR).mean()) if len(ratios) else 0.0
