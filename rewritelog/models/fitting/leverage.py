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
    root: Floats = np.linalg.pinv(triangle / lengths, rcond=1e-12).T / lengths
    return root


def leverages(function: AnyFunction, root: Floats, params: Floats) -> Floats:
    """Return each row's leverage, its weight being that of the time that the function predicts."""
    with np.errstate(all="ignore"):
        columns = columns_of(function.terms, params) / np.abs(function.predict(params))[:, None]
        sizes: Floats = (columns @ root.T) ** 2 @ np.ones(root.shape[0])
    return sizes
