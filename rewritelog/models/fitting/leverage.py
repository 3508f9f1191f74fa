"""How far a row of parameters reaches beyond the samples, seen by a function's terms."""

from __future__ import annotations

import numpy as np

from rewritelog.arrays import Floats
from rewritelog.models.fitting.columns import columns_of, lengths_of
from rewritelog.models.fitting.function import AnyFunction


def leverage_root(triangle: Floats) -> Floats:
    """Return L such that |L·t|² is tᵀ(XᵀX)⁻¹t, from R of X's QR decomposition."""
    lengths = lengths_of(triangle)
    lengths[lengths == 0] = 1.0
    units = triangle / lengths
    inverse = units if units.shape == (1, 1) else np.linalg.pinv(units, rcond=1e-12)
    root: Floats = inverse.T / lengths  # the inverse of ±1 is itself
    return root


def leverages(function: AnyFunction, root: Floats, params: Floats) -> Floats:
    """Return each row's leverage, its weight being that of the time that the function predicts."""
    return leverages_of(columns_of(function.terms, params), function.predict(params), root)


def leverages_of(columns: Floats, predicted_s: Floats, root: Floats) -> Floats:
    """Return the same, from the values of the terms and the times predicted."""
    with np.errstate(all="ignore"):
        weighted = columns / np.abs(predicted_s)[:, None]
        sizes: Floats = (weighted @ root.T) ** 2 @ np.ones(root.shape[0])
    return sizes
