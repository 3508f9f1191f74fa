"""The predictions of a fitted model for rows of parameters, with all that reports need of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rewritelog.arrays import Flags, Floats
from rewritelog.models.base import EventTimings, is_measured
from rewritelog.models.fitted import Fitted
from rewritelog.models.metrics import (
    mean_relative_error,
    r_squared,
    relative_errors,
    sum_error,
)
from rewritelog.text import NO_VALUE, json_number, percent_text


class DeterminedBy(IntEnum):
    """The origin of a prediction."""

    FIT = 0
    EXACT = 1
    """Measured times of exactly these parameters."""
    OUT_OF_RANGE = 2
    """The fit, with a parameter outside the range of the samples."""
    NO_MODEL = 3
    """None: the model does not cover the event with this number of parameters."""

    def __str__(self) -> str:
        return self.name.lower().replace("_", " ")


@dataclass(frozen=True)
class PredictedRows:
    """Predictions with their origins, one array entry for each."""

    predicted_s: Floats
    """Typical times, at least 0; NaN without a prediction."""
    total_s: Floats
    """The contribution of each to a sum, corrected as by `rewrite --total measured`."""
    determined_by: NDArray[np.int8]
    """The `DeterminedBy` of each."""
    negative: Flags
    """Where the fit is negative."""
    low_s: Floats
    high_s: Floats
    """The 90 % interval of measured times; NaN where it is unknown."""

    @classmethod
    def of(cls, fitted: Fitted | None, event: str, params: Floats) -> PredictedRows:
        """Return the predictions for rows of an event's parameters; unknown ones without a fit."""
        if fitted is None:
            return cls.unknown(len(params))
        predicted = fitted.prediction(event, params)
        determined_by = np.full(len(params), DeterminedBy.FIT, dtype=np.int8)
        determined_by[predicted.outside] = DeterminedBy.OUT_OF_RANGE
        determined_by[predicted.exact] = DeterminedBy.EXACT
        determined_by[np.isnan(predicted.seconds)] = DeterminedBy.NO_MODEL
        total_s = fitted.total_seconds(event, params, predicted)
        negative = np.asarray(predicted.negative)
        bounds = fitted.bounds(event, params)
        return cls(predicted.seconds, total_s, determined_by, negative, *bounds)

    @classmethod
    def unknown(cls, rows: int) -> PredictedRows:
        """Return rows without a prediction, to be filled in."""
        predicted, total, low, high = np.full((4, rows), np.nan)
        origin = np.full(rows, DeterminedBy.NO_MODEL, dtype=np.int8)
        return cls(predicted, total, origin, np.zeros(rows, dtype=np.bool_), low, high)

    def part(self, rows: Any) -> PredictedRows:
        """Return the predictions for some of the rows."""
        return PredictedRows(*(column[rows] for column in vars(self).values()))


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
    coverage: float | None
    """The share of times within their 90 % intervals; None without intervals."""

    def cells(self, sign: str = "+") -> dict[str, str]:
        """Return the errors as the cells of a table's row, by their heads; see `ERRORS_TEXT`."""
        return {
            "lines": f"{self.lines:,}",
            "no model": f"{self.lines - self.predicted:,}",
            "R²": NO_VALUE if self.r2 is None else f"{self.r2:.4f}",
            "mean": percent_text(self.mean_relative_error),
            "median": percent_text(self.median_relative_error),
            "sum": percent_text(self.sum_error, sign=sign),
            "later": percent_text(self.later_sum_error, sign=sign),
            "in 90 %": percent_text(self.coverage, 1),
            "below 0": f"{self.negative:,}",
        }


ERRORS_TEXT = (
    "mean, median: relative errors of single calls; sum: that of the total, predicted as by "
    "rewrite --total measured; later: without each event's first line, which is often slow"
)
"""What these errors are."""


@dataclass(frozen=True)
class PredictedLines:
    """Timing lines beside their predictions."""

    measured_s: Floats
    first: Flags
    """True for the first line of an event that has a slow first call."""
    rows: PredictedRows

    @classmethod
    def of(cls, fitted: Fitted | None, samples: EventTimings, *, is_first: bool) -> PredictedLines:
        """Return an event's lines; `is_first`: the first one is the event's first."""
        first = np.zeros(len(samples.seconds), dtype=np.bool_)
        first[:1] = is_first and is_measured(samples.event)
        rows = PredictedRows.of(fitted, samples.event, samples.params)
        return cls(samples.seconds, first, rows)

    @classmethod
    def joined(cls, parts: Sequence[PredictedLines]) -> PredictedLines:
        """Return the concatenation of the parts."""
        parts = [cls(np.zeros(0), np.zeros(0, dtype=np.bool_), PredictedRows.unknown(0)), *parts]
        columns = zip(*(vars(part.rows).values() for part in parts), strict=True)
        return cls(
            np.concatenate([part.measured_s for part in parts]),
            np.concatenate([part.first for part in parts]),
            PredictedRows(*map(np.concatenate, columns)),
        )

    def relative_errors(self) -> Floats:
        """Return the relative error of each line, NaN where it is undefined."""
        return relative_errors(self.rows.predicted_s, self.measured_s)

    def score(self) -> Score:
        """Return the error measures of the lines."""
        known = np.isfinite(self.rows.predicted_s) & np.isfinite(self.measured_s)
        rows, measured_s, later = self.rows.part(known), self.measured_s[known], ~self.first[known]
        errors = self.relative_errors()
        errors = errors[~np.isnan(errors)]
        has_interval = ~np.isnan(rows.low_s + rows.high_s)
        inside = ((measured_s >= rows.low_s) & (measured_s <= rows.high_s))[has_interval]
        return Score(
            lines=len(self.measured_s),
            predicted=len(measured_s),
            mean_relative_error=mean_relative_error(rows.predicted_s, measured_s),
            median_relative_error=json_number(float(np.median(errors))) if len(errors) else None,
            sum_error=sum_error(rows.total_s, measured_s),
            later_sum_error=sum_error(rows.total_s[later], measured_s[later]),
            r2=r_squared(rows.predicted_s, measured_s),
            negative=int(np.count_nonzero(rows.negative)),
            coverage=float(inside.mean()) if len(inside) else None,
        )
