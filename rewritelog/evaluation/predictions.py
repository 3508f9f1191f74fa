"""The predictions of a fitted model for rows of parameters, with all that reports need of them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rewritelog.arrays import Flags, Floats
from rewritelog.models.base import EventTimings, has_slow_first_call
from rewritelog.models.fitted import Fitted
from rewritelog.models.metrics import TimePairs


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
    def of(cls, fitted: Fitted, event: str, params: Floats) -> PredictedRows:
        """Return the predictions for rows of an event's parameters."""
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

    def pairs_with(self, samples: EventTimings, *, is_first: bool) -> TimePairs:
        """Return them beside measured times; `is_first`: the first row is the event's first."""
        first = np.zeros(len(samples.seconds), dtype=np.bool_)
        first[:1] = is_first and has_slow_first_call(samples.event)
        return TimePairs(samples.seconds, self.predicted_s, self.total_s, first, self.negative)
