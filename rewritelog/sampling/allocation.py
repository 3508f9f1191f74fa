"""Allocation of a number of samples to groups."""

from __future__ import annotations

import numpy as np

from rewritelog.arrays import Floats, Ints

_ROUNDING = 1 + 1e-9
_HALVINGS = 200


def allocate(total: int, weights: Floats, least: Ints, most: Ints) -> Ints:
    """Divide `total` in proportion to the weights, each share being between `least` and `most`.

    Weights are positive. The shares, integers of shape (groups,), add up to `total` unless the
    bounds do not allow that; then all of them are at their lower, or upper, bounds.
    """
    if least.sum() >= total:
        return least
    if most.sum() <= total:
        return most
    shares = np.clip(_factor(total, weights, least, most) * weights, least, most)
    whole = np.minimum(np.floor(shares * _ROUNDING).astype(np.int64), most)
    fraction = np.where(whole < most, shares - whole, -np.inf)
    whole[np.argsort(-fraction, kind="stable")[: total - int(whole.sum())]] += 1
    return whole


def _factor(total: int, weights: Floats, least: Ints, most: Ints) -> float:
    """Return, by bisection, the factor of the weights with which bounded shares sum to `total`."""
    low, high = 0.0, float((most / weights).max())
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        enough = np.clip(middle * weights, least, most).sum() >= total
        low, high = (low, middle) if enough else (middle, high)
    return high
