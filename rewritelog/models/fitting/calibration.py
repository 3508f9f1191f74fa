"""One factor for each function that makes the sum of its predictions that of the measured times."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rewritelog.models.fitting.function import FittedFunction
from rewritelog.models.fitting.samples import Samples

OUTLIER = 6.0
"""Samples beyond this many robust standard deviations are outliers to a robust calibration."""

FEWEST = 30
"""With fewer samples the sum is known no better than the function."""


def calibrate(function: FittedFunction, samples: Samples, spread: float = np.inf) -> FittedFunction:
    """Return the function with the one factor that gives its predictions the sum of the times.

    Relative weights bias that sum a little. The event's first call stays out of both sums, and so
    do samples off by more than two times, or by more than `OUTLIER` times the spread of a robust
    fit: one of them can shift the sum by per cents.
    """
    if not samples.relative or len(samples) < FEWEST:
        return function
    measured = predicted = 0.0
    for block in samples.blocks():
        seconds = function.predict(block.params)
        with np.errstate(all="ignore"):
            fair = ~block.first & (block.seconds < 2 * seconds) & (seconds < 2 * block.seconds)
            fair &= np.abs(seconds - block.seconds) <= OUTLIER * spread * block.scale_s
        measured += float(block.seconds[fair].sum())
        predicted += float(seconds[fair].sum())
    return replace(function, calibration=measured / predicted if predicted > 0 else 1.0)
