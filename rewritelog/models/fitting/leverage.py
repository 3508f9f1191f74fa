"""Leverage: how far a row of parameters is from the samples, in the space of a function's terms.

A row with term values t, divided by its predicted time as relative weights do, has the leverage
tᵀ(XᵀX)⁻¹t, where X is the weighted design matrix of the samples.
"""

from __future__ import annotations

import numpy as np

from rewritelog.arrays import Floats
from rewritelog.models.fitting.columns import columns_of, lengths_of
from rewritelog.models.fitting.function import AnyFunction


def leverage_root(triangle: Floats) -> Floats:
    """Return L with |L·t|² = tᵀ(XᵀX)⁻¹t, from R of the QR decomposition of X; L = (R⁺)ᵀ."""
    lengths = lengths_of(triangle)
    lengths[lengths == 0] = 1.0
    units = triangle / lengths
    # a 1×1 matrix of length 1 is ±1, its own inverse
    inverse = units if units.shape == (1, 1) else np.linalg.pinv(units, rcond=1e-12)
    root: Floats = inverse.T / lengths
    return root


def leverages(function: AnyFunction, root: Floats, params: Floats) -> Floats:
    """Return each row's leverage, weighted with the inverse of its predicted time."""
    return leverages_of(columns_of(function.terms, params), function.predict(params), root)


def leverages_of(columns: Floats, predicted_s: Floats, root: Floats) -> Floats:
    """Return each row's leverage from the values of its terms and its predicted seconds."""
    with np.errstate(all="ignore"):
        weighted = columns / np.abs(predicted_s)[:, None]
        sizes: Floats = (weighted @ root.T) ** 2 @ np.ones(root.shape[0])
    return sizes
