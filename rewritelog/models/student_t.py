"""The quantiles of Student's t distribution, without the time that importing scipy takes.

Formulas are from M. Abramowitz and I. Stegun, Handbook of Mathematical Functions, chapter 26.
"""

from __future__ import annotations

import math
from statistics import NormalDist

_MANY = 100
"""Degrees of freedom from which the expansion is exact to eleven digits."""

_CONVERGED = 1e-14


def upper_quantile(probability: float, degrees: int) -> float:
    """Return the t below which a value of t lies with this probability, of 0.5 to 0.99.

    `degrees` of freedom are at least 1.
    """
    if degrees >= _MANY:
        return _expanded(NormalDist().inv_cdf(probability), degrees)
    t, step = NormalDist().inv_cdf(probability), math.inf
    while step > _CONVERGED * t:  # Newton's steps, from below on a concave function
        step = (probability - _cumulative(t, degrees)) / _density(t, degrees)
        t += step
    return t


def _expanded(z: float, degrees: int) -> float:
    """Return the quantile from that of the normal distribution (26.7.5)."""
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return z + sum(term / float(degrees) ** power for power, term in enumerate(terms, 1))


def _cumulative(t: float, degrees: int) -> float:
    """Return the probability of less than t, above 0 (26.7.3 and 26.7.4)."""
    theta = math.atan(t / math.sqrt(degrees))
    odd = degrees % 2
    cosine = math.cos(theta)
    term, total = (cosine, 0.0) if odd else (1.0, 0.0)
    for power in range(odd, degrees - 1, 2):
        total += term
        term *= cosine**2 * (power + 1) / (power + 2)
    within = math.sin(theta) * total
    if odd:
        within = (theta + within) * 2 / math.pi
    return (1 + within) / 2


def _density(t: float, degrees: int) -> float:
    log_scale = math.lgamma((degrees + 1) / 2) - math.lgamma(degrees / 2)
    scale = math.exp(log_scale) / math.sqrt(degrees * math.pi)
    return float(scale * (1 + t * t / degrees) ** (-(degrees + 1) / 2))
