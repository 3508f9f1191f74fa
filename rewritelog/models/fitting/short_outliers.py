"""Short outliers: implausibly short times, whose relative weight would dominate the fit.

Relative weights divide by the time itself, so that one timing line that is a hundred times too
short (torn, or rounded) weighs as much as ten thousand others, and pulls the fit towards itself
beyond what a robust loss can undo. Such samples are found with a rough fit of the logarithms, in
which too short a time is no worse than too long a one; their residuals are then divided by the
expected time.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rewritelog.arrays import Flags, Floats
from rewritelog.models.fitting import tuning
from rewritelog.models.fitting.regression import huber_weights, robust_spread
from rewritelog.models.fitting.samples import Samples
from rewritelog.models.parallel import map_in_threads

MOST_ROUGH = 4096
"""The rough fit uses at most this many samples."""

BLOCK_ROWS = 1 << 13
"""Rows that are compared with it at a time, few enough for the cache of a core."""

_ROUNDS = 10
"""Iterations of the reweighted least squares."""

_RIDGE = 1.0
"""Ridge penalty on all coefficients but the constant."""

_LEAST_SPREAD = 1e-3
"""Added to the robust standard deviation, which is 0 if most residuals are."""


def without_short_scales(samples: Samples) -> Samples:
    """Return the samples with the expected time as the scale of each short outlier."""
    if not samples.relative or len(samples) < tuning.FEWEST_FOR_SHORT_OUTLIERS:
        return samples
    part = samples.random_part(MOST_ROUGH)
    middles = np.median(np.abs(part.params), axis=0)
    positive = samples.range[0] > 0
    columns, logs = _columns(part.params, middles, positive), np.log(part.sigma_s)
    coefficients = _robust_ridge(columns, logs)
    spread = robust_spread(logs - columns @ coefficients, _LEAST_SPREAD)
    least = max(np.log(tuning.SHORT), tuning.SHORT_BY_SPREADS * spread)

    def scales_of(block: Samples) -> Floats:
        expected = _columns(block.params, middles, positive) @ coefficients
        short = np.log(block.sigma_s) < expected - least
        return np.where(short, np.exp(np.minimum(expected, 600.0)), block.sigma_s)

    scales = map_in_threads(scales_of, list(samples.blocks(BLOCK_ROWS)))
    return replace(samples, sigma_s=np.concatenate(list(scales)))


def _columns(params: Floats, middles: Floats, positive: Flags) -> Floats:
    """Return the regressors of the rough fit: 1, and each parameter's logarithm and its square.

    For a parameter that is not always positive the logarithm is replaced by arsinh(p/m), which is
    close to log(2p/m) above the median m of |p|, and to p/m below it.
    """
    units = params / np.where(middles > 0, middles, 1.0)
    some = np.ascontiguousarray(units[:, positive])
    units[:, positive] = np.log(np.maximum(some, 1e-300))
    units[:, ~positive] = np.arcsinh(np.ascontiguousarray(units[:, ~positive]))
    return np.column_stack((np.ones(len(params)), units, units**2))


def _robust_ridge(columns: Floats, logs: Floats) -> Floats:
    """Return the coefficients of a ridge regression with Huber-like weights.

    Weights are those of Huber's loss with its corner at one robust standard deviation.
    """
    ridge = _RIDGE * np.eye(columns.shape[1])
    ridge[0, 0] = 0.0
    weights = np.ones(len(logs))
    coefficients = np.zeros(columns.shape[1])
    for _ in range(_ROUNDS):
        weighted = columns * weights[:, None]
        inner = weighted.T @ columns + ridge
        coefficients = np.asarray(np.linalg.solve(inner, weighted.T @ logs), dtype=np.float64)
        rest = logs - columns @ coefficients
        weights = huber_weights(rest, robust_spread(rest, _LEAST_SPREAD))
    return coefficients
