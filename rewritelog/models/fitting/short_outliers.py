"""Times far shorter than others of their size: no error is measured in units of such a time.

Relative weights divide by the time itself, so that one line that is a hundred times too short
(torn, or rounded) weighs as much as ten thousand others, and draws a fit to itself that no robust
loss can then draw back. A rough function in logarithms, in which a line too short is no worse than
one too long, tells them.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rewritelog.arrays import Flags, Floats, median
from rewritelog.models.fitting.samples import Samples

FEWEST = 8
"""With fewer samples an outlier cannot be distinguished from the function."""

MOST_ROUGH = 4096
"""The rough function is fitted to at most this many samples."""

SHORT = 3.0
"""An outlier is shorter than expected by at least this factor …"""

SPREADS = 6.0
"""… and by this many robust standard deviations of the logarithms."""

_ROUNDS = 10
_RIDGE = 1.0
_LEAST_SPREAD = 1e-3


def without_short_scales(samples: Samples) -> Samples:
    """Return the samples; the errors of those far too short are measured by what was expected."""
    if not samples.relative or len(samples) < FEWEST:
        return samples
    drawn = samples.drawn(MOST_ROUGH)
    middles = np.median(np.abs(drawn.params), axis=0)
    positive = samples.params.min(axis=0) > 0
    columns, logs = _columns(drawn.params, middles, positive), np.log(drawn.scale_s)
    coefficients = _rough_function(columns, logs)
    spread = _spread(logs - columns @ coefficients)
    least = max(np.log(SHORT), SPREADS * spread)
    scales = []
    for block in samples.blocks():
        expected = _columns(block.params, middles, positive) @ coefficients
        short = np.log(block.scale_s) < expected - least
        scales.append(np.where(short, np.exp(np.minimum(expected, 600.0)), block.scale_s))
    return replace(samples, scale_s=np.concatenate(scales))


def _columns(params: Floats, middles: Floats, positive: Flags) -> Floats:
    """Return 1, and of each parameter its logarithm with its square.

    Where parameters are 0 or below, it is arsinh(p/m), near log(2p/m) above the middle value m and
    near p/m below.
    """
    units = params / np.where(middles > 0, middles, 1.0)
    logs = np.where(positive, np.log(np.maximum(units, 1e-300)), np.arcsinh(units))
    return np.column_stack((np.ones(len(params)), logs, logs**2))


def _rough_function(columns: Floats, logs: Floats) -> Floats:
    """Return the coefficients of a robust ridge regression; the constant is free."""
    ridge = _RIDGE * np.eye(columns.shape[1])
    ridge[0, 0] = 0.0
    weights = np.ones(len(logs))
    coefficients = np.zeros(columns.shape[1])
    for _ in range(_ROUNDS):
        weighted = columns * weights[:, None]
        inner = weighted.T @ columns + ridge
        coefficients = np.asarray(np.linalg.solve(inner, weighted.T @ logs), dtype=np.float64)
        rest = logs - columns @ coefficients
        weights = np.minimum(1.0, _spread(rest) / np.maximum(np.abs(rest), 1e-300))
    return coefficients


def _spread(rest: Floats) -> float:
    """Return the standard deviation that the median of the sizes suggests."""
    return 1.4826 * median(np.abs(rest)) + _LEAST_SPREAD
