"""Calibration: the factor that makes the predictions of a fit add up to the measured times."""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace

from rewritelog.arrays import Floats
from rewritelog.models.fitting.candidates import ONE
from rewritelog.models.fitting.function import FittedFunction
from rewritelog.models.fitting.samples import Samples

OUTLIER = 6.0
"""Residuals beyond this many robust standard deviations are left out of a robust calibration."""

FEWEST = 30
"""The sum of fewer samples is no more certain than the fitted function itself."""


def calibrate(
    function: FittedFunction,
    samples: Samples,
    spread: float = np.inf,
    columns: Floats | None = None,
) -> FittedFunction:
    """Return the function with the factor Σ measured / Σ predicted.

    Least squares with relative weights biases the sum a little. Both sums leave out the
    event's first call and outliers, a single one of which can shift a sum by several per cent:
    samples off by more than a factor of two, or by more than `OUTLIER` times `spread`. `spread` is
    the robust standard deviation of the residuals in units of each sample's scale, infinite
    without a robust fit. The function is returned as it is with uniform weights or too few samples.
    `columns` are the values of its terms for the samples, where they are known. A constant that
    was fitted robustly becomes the median of the times, however few they are: relative weights
    would put it far below the middle of times that vary by a factor.
    """
    if not samples.relative:
        return function
    if len(samples) > 1 and np.isfinite(spread) and all(term == ONE for term in function.terms):
        constant = float(function.predict(samples.params[:1])[0])
        median = float(np.median(samples.seconds))
        return replace(function, calibration=median / constant) if constant > 0 else function
    if len(samples) < FEWEST:
        return function
    measured = predicted = 0.0
    for block in samples.blocks() if columns is None else (samples,):
        seconds = function.predict(block.params, columns)
        with np.errstate(all="ignore"):
            included = ~block.first & (block.seconds < 2 * seconds) & (seconds < 2 * block.seconds)
            included &= np.abs(seconds - block.seconds) <= OUTLIER * spread * block.sigma_s
        measured += float(block.seconds[included].sum())
        predicted += float(seconds[included].sum())
    return replace(function, calibration=measured / predicted if predicted > 0 else 1.0)
