"""Two modes among the ratios of measured to predicted times, which no parameter explains."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rewritelog.arrays import Floats
from rewritelog.models.fitting.diagnosis import OUTLIER_FACTOR

FEWEST = 20
"""Among fewer ratios two modes cannot be distinguished from one."""

LEAST_SHARE = 0.05
"""A smaller share of the calls is called interrupted, not a mode."""

LEAST_EXPLAINED = 0.8
"""Two modes explain this share of the variance of the logarithms, a normal distribution 0.64."""

LEAST_FACTOR = 1.2


@dataclass(frozen=True)
class Modes:
    """Two kinds of calls, by the ratio of measured to predicted time."""

    shares: tuple[float, float]
    centres: tuple[float, float]


def modes_of(ratios: Floats) -> Modes | None:
    """Return the two modes of ratios, None where there is one.

    The division is that with the largest variance between both parts: N. Otsu, "A threshold
    selection method from gray-level histograms" (1979), on logarithms.
    """
    logs = np.log(ratios[ratios > 0])
    count = len(logs)
    if count < FEWEST or not logs.var() > 0:
        return None
    below = np.arange(1, count)
    sums = np.cumsum(logs)
    lower, upper = sums[:-1] / below, (sums[-1] - sums[:-1]) / (count - below)
    between = below * (count - below) * (upper - lower) ** 2 / count**2
    best = int(np.argmax(between))
    share = (best + 1) / count
    if (
        between[best] < LEAST_EXPLAINED * logs.var()
        or not LEAST_SHARE <= share <= 1 - LEAST_SHARE
        or upper[best] - lower[best] < np.log(LEAST_FACTOR)
    ):
        return None
    return Modes((share, 1 - share), (float(np.exp(lower[best])), float(np.exp(upper[best]))))


def interrupted_share(ratios: Floats) -> float:
    """Return the share of calls that took more than twice their prediction."""
    return float((ratios > OUTLIER_FACTOR).mean()) if len(ratios) else 0.0
