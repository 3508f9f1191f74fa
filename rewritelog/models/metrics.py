"""Error measures of predicted times, which all reports and tests use.

Arrays of predicted and measured times are paired entry by entry. Predictions that are not finite,
and measured times that are not positive, are left out of relative errors; a measure without any
entries is None.
"""

from __future__ import annotations

import numpy as np

from rewritelog.arrays import Floats
from rewritelog.text import json_number


def relative_errors(predicted_s: Floats, measured_s: Floats) -> Floats:
    """Return |predicted − measured| / measured; NaN without a prediction or a positive time."""
    with np.errstate(all="ignore"):
        errors = np.abs(predicted_s - measured_s) / measured_s
    return np.where((measured_s > 0) & np.isfinite(errors), errors, np.nan)


@np.errstate(over="ignore")
def mean_relative_error(predicted_s: Floats, measured_s: Floats) -> float | None:
    """Return the mean of the relative errors."""
    errors = relative_errors(predicted_s, measured_s)
    errors = errors[~np.isnan(errors)]
    return json_number(errors.mean()) if len(errors) else None


@np.errstate(over="ignore")
def sum_error(predicted_s: Floats, measured_s: Floats) -> float | None:
    """Return Σ predicted / Σ measured − 1, the relative error of the sum."""
    total = float(measured_s.sum())
    return json_number(float(predicted_s.sum()) / total - 1) if total > 0 else None


def r_squared(predicted_s: Floats, measured_s: Floats) -> float | None:
    """Return R² = 1 − Σ (predicted − measured)² / Σ (measured − mean of measured)²."""
    if not len(measured_s):
        return None
    unit = float(np.abs(measured_s).max()) or 1.0  # in this unit squares cannot overflow
    with np.errstate(over="ignore"):
        variation = float(((measured_s / unit - (measured_s / unit).mean()) ** 2).sum())
        unexplained = float((((predicted_s - measured_s) / unit) ** 2).sum())
    return json_number(1 - unexplained / variation) if variation > 0 else None
