"""How far predicted times are from measured ones: the error measures of every report and test.

Arrays of predicted and measured times are paired entry by entry. A prediction that is not finite,
and a relative error of a time that is not above 0, counts nowhere; None stands for a measure of
nothing.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from rewritelog.arrays import Flags, Floats
from rewritelog.text import json_number


def relative_errors(predicted_s: Floats, measured_s: Floats) -> Floats:
    """Return |predicted − measured| / measured; NaN without a prediction or a time above 0."""
    with np.errstate(all="ignore"):
        errors = np.abs(predicted_s - measured_s) / measured_s
    return np.where((measured_s > 0) & np.isfinite(errors), errors, np.nan)


def mean_relative_error(predicted_s: Floats, measured_s: Floats) -> float | None:
    """Return the mean of the relative errors."""
    errors = relative_errors(predicted_s, measured_s)
    errors = errors[~np.isnan(errors)]
    return json_number(errors.mean()) if len(errors) else None


def rms_relative_error(predicted_s: Floats, measured_s: Floats, *, most: float) -> float | None:
    """Return the root of the mean square of the relative errors that are at most `most`."""
    errors = relative_errors(predicted_s, measured_s)
    near = errors[errors <= most]
    return json_number(np.sqrt((near**2).mean())) if len(near) else None


def sum_error(predicted_s: Floats, measured_s: Floats) -> float | None:
    """Return Σ predicted / Σ measured − 1, the relative error of the sum."""
    total = float(measured_s.sum())
    return json_number(float(predicted_s.sum()) / total - 1) if total > 0 else None


def r_squared(predicted_s: Floats, measured_s: Floats) -> float | None:
    """Return R², the share of the measured times' variation that is explained."""
    if not len(measured_s):
        return None
    unit = float(np.abs(measured_s).max()) or 1.0  # in which squares cannot overflow
    with np.errstate(over="ignore"):
        variation = float(((measured_s / unit - (measured_s / unit).mean()) ** 2).sum())
        unexplained = float((((predicted_s - measured_s) / unit) ** 2).sum())
    return explained_share(unexplained, variation)


def explained_share(unexplained: float, variation: float) -> float | None:
    """Return R² from the sums of the squares of the residuals and about the mean."""
    return json_number(1 - unexplained / variation) if variation > 0 else None


@dataclass(frozen=True)
class Score:
    """The errors of the predictions of some timing lines."""

    lines: int
    predicted: int
    """Lines that the model has a prediction for; all errors are theirs."""
    mean_relative_error: float | None
    median_relative_error: float | None
    sum_error: float | None
    """Of totals as `rewrite --total measured` keeps them."""
    later_sum_error: float | None
    """The sum's error without each event's first line, whose time often differs from the others."""
    r2: float | None
    negative: int
    """Lines for which the fit gives a time below zero; it counts as zero."""

    def to_json(self) -> dict[str, Any]:
        """Return the numbers in types that JSON has."""
        return asdict(self)


@dataclass(frozen=True)
class TimePairs:
    """Measured and predicted times of lines, one array entry each."""

    measured_s: Floats
    predicted_s: Floats
    """Never below zero; NaN where there is no prediction."""
    total_s: Floats
    """What each prediction adds to a sum: times the factor with which a rewrite's sums come out as
    measured."""
    first: Flags
    """True for the first line of an event that has a slow first call."""
    negative: Flags
    """True where the fit gave less than zero."""

    def part(self, rows: Any) -> TimePairs:
        """Return the pairs that a mask or indices select."""
        return TimePairs(
            self.measured_s[rows],
            self.predicted_s[rows],
            self.total_s[rows],
            self.first[rows],
            self.negative[rows],
        )

    @classmethod
    def joined(cls, parts: list[TimePairs]) -> TimePairs:
        """Return all parts one after the other."""
        return cls(
            np.concatenate([np.zeros(0), *(part.measured_s for part in parts)]),
            np.concatenate([np.zeros(0), *(part.predicted_s for part in parts)]),
            np.concatenate([np.zeros(0), *(part.total_s for part in parts)]),
            np.concatenate([np.zeros(0, np.bool_), *(part.first for part in parts)]),
            np.concatenate([np.zeros(0, np.bool_), *(part.negative for part in parts)]),
        )

    def relative_errors(self) -> Floats:
        """Return the relative error of each pair, NaN where it has none."""
        return relative_errors(self.predicted_s, self.measured_s)

    def score(self) -> Score:
        """Return the errors."""
        known = self.part(np.isfinite(self.predicted_s) & np.isfinite(self.measured_s))
        later = known.part(~known.first)
        errors = known.relative_errors()
        errors = errors[~np.isnan(errors)]
        return Score(
            lines=len(self.measured_s),
            predicted=len(known.measured_s),
            mean_relative_error=mean_relative_error(known.predicted_s, known.measured_s),
            median_relative_error=json_number(float(np.median(errors))) if len(errors) else None,
            sum_error=sum_error(known.total_s, known.measured_s),
            later_sum_error=sum_error(later.total_s, later.measured_s),
            r2=r_squared(known.predicted_s, known.measured_s),
            negative=int(np.count_nonzero(known.negative)),
        )
