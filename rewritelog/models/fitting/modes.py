"""Bimodal ratios of measured to predicted times: two kinds of calls that no parameter explains."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rewritelog.arrays import Floats
from rewritelog.models.fitting.diagnosis import OUTLIER_FACTOR

FEWEST = 20
"""With fewer ratios two modes cannot be distinguished from one."""

LEAST_SHARE = 0.05
"""A smaller share of the calls is no mode, but counts as interrupted."""

LEAST_EXPLAINED = 0.8
"""Least share of the variance of the logarithms that the division explains; the best division of a
normal distribution explains 2/π = 0.64."""

LEAST_FACTOR = 1.2
"""Least quotient of the centres of the two modes."""


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
    """Return the share of calls that took more than `OUTLIER_FACTOR` times their prediction."""
    return float((ratios > OUTLIER_FACTOR).mean()) if len(ratios) else 0.0
