"""Error measures of predicted times, which all reports and tests use.

Arrays of predicted and measured times are paired entry by entry. Predictions that are not finite,
and measured times that are not positive, are left out of relative errors; a measure without any
entries is None.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rewritelog.arrays import Flags, Floats
from rewritelog.text import json_number


def relative_errors(predicted_s: Floats, measured_s: Floats) -> Floats:
    """Return |predicted − measured| / measured; NaN without a prediction or a positive time."""
    with np.errstate(all="ignore"):
        errors = np.abs(predicted_s - measured_s) / measured_s
    return np.where((measured_s > 0) & np.isfinite(errors), errors, np.nan)


def mean_relative_error(predicted_s: Floats, measured_s: Floats) -> float | None:
    """Return the mean of the relative errors."""
    errors = relative_errors(predicted_s, measured_s)
    errors = errors[~np.isnan(errors)]
    return json_number(errors.mean()) if len(errors) else None


def sum_error(predicted_s: Floats, measured_s: Floats) -> float | None:
    """Return Σ predicted / Σ measured − 1, the relative error of the sum."""
    total = float(measured_s.sum())
    return json_number(float(predicted_s.sum()) / total - 1) if total > 0 else None


def r_squared(predicted_s: Floats, measured_s: Floats) -> float | None:
    """Return R², the share of the variance of the measured times that is explained."""
    if not len(measured_s):
        return None
    unit = float(np.abs(measured_s).max()) or 1.0  # in this unit squares cannot overflow
    with np.errstate(over="ignore"):
        variation = float(((measured_s / unit - (measured_s / unit).mean()) ** 2).sum())
        unexplained = float((((predicted_s - measured_s) / unit) ** 2).sum())
    return explained_share(unexplained, variation)


def explained_share(unexplained: float, variation: float) -> float | None:
    """Return R² = 1 − unexplained / variation, the sums of squared residuals and deviations."""
    return json_number(1 - unexplained / variation) if variation > 0 else None


@dataclass(frozen=True)
class Score:
    """The errors of the predictions of some timing lines."""

    lines: int
    predicted: int
    """The number of lines with a prediction; all errors refer to them."""
    mean_relative_error: float | None
    median_relative_error: float | None
    sum_error: float | None
    """The relative error of the sum, corrected as by `rewrite --total measured`."""
    later_sum_error: float | None
    """The sum's error without each event's first line, whose time often differs from the others."""
    r2: float | None
    negative: int
    """The number of lines with a negative prediction, which counts as 0."""


@dataclass(frozen=True)
class TimePairs:
    """Measured and predicted times of lines, one array entry each."""

    measured_s: Floats
    predicted_s: Floats
    """At least 0; NaN without a prediction."""
    total_s: Floats
    """What each prediction contributes to a sum: `predicted_s` times the factor that corrects sums
    in a rewrite."""
    first: Flags
    """True for the first line of an event that has a slow first call."""
    negative: Flags
    """True where the prediction of the fit was negative."""

    def part(self, rows: Any) -> TimePairs:
        """Return the pairs that a mask or indices select."""
        return TimePairs(*(column[rows] for column in vars(self).values()))

    @classmethod
    def joined(cls, parts: Sequence[TimePairs]) -> TimePairs:
        """Return the concatenation of the parts."""
        columns = zip(*(vars(part).values() for part in (_NO_PAIRS, *parts)), strict=True)
        return cls(*map(np.concatenate, columns))

    def relative_errors(self) -> Floats:
        """Return the relative error of each pair, NaN where it is undefined."""
        return relative_errors(self.predicted_s, self.measured_s)

    def score(self) -> Score:
        """Return the error measures of the pairs."""
        is_known = np.isfinite(self.predicted_s) & np.isfinite(self.measured_s)
        known = self if is_known.all() else self.part(is_known)
        later = ~known.first
        errors = known.relative_errors()
        errors = errors[~np.isnan(errors)]
        return Score(
            lines=len(self.measured_s),
            predicted=len(known.measured_s),
            mean_relative_error=mean_relative_error(known.predicted_s, known.measured_s),
            median_relative_error=json_number(float(np.median(errors))) if len(errors) else None,
            sum_error=sum_error(known.total_s, known.measured_s),
            later_sum_error=sum_error(known.total_s[later], known.measured_s[later]),
            r2=r_squared(known.predicted_s, known.measured_s),
            negative=int(np.count_nonzero(known.negative)),
        )


_NO_PAIRS = TimePairs(*(np.zeros(0, kind) for kind in (float, float, float, bool, bool)))
