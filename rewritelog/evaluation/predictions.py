"""The predictions of a fitted model for rows of parameters, with all that reports need of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rewritelog.arrays import Flags, Floats
from rewritelog.formats import Columns
from rewritelog.models.base import EventTimings, ModelFit, has_slow_first_call
from rewritelog.models.checks import checked_interval, checked_prediction, total_seconds
from rewritelog.models.fitted_events import with_names
from rewritelog.models.metrics import TimePairs
from rewritelog.timings.texts import read_model_file, read_param_names


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


@dataclass(frozen=True)
class LinePredictor:
    """Predicts the times of lines with a fitted model."""

    name: str
    """The name of the model in reports: its file, or its own name."""
    fitted: ModelFit
    columns: Columns
    notes: tuple[str, ...] = ()
    """Warnings of names that belong to no event."""

    @classmethod
    def of(cls, path: Path) -> LinePredictor:
        """Read a model file; raise `ModelError` if it is invalid."""
        file = read_model_file(path)
        return cls(str(path), file.fitted, file.columns)

    def named(self, path: Path | None) -> LinePredictor:
        """Return the same with the names of parameters in a file, if there is one."""
        names = read_param_names(path)
        fitted = with_names(self.fitted, names)
        return replace(self, fitted=fitted, notes=getattr(fitted, "notes", ()) if names else ())

    def names_of(self, event: str, parameters: int) -> tuple[str, ...]:
        """Return the names of an event's parameters; empty if they have none."""
        fit = getattr(self.fitted, "fits", {}).get((event, parameters))
        return () if fit is None else tuple(fit.names)

    @property
    def events(self) -> frozenset[str]:
        """The events that the model has fits for, as far as it knows them."""
        keys = getattr(self.fitted, "fits", None) or getattr(self.fitted, "events", {})
        return frozenset(key[0] for key in keys if isinstance(key, tuple))

    def predict_rows(self, event: str, params: Floats) -> PredictedRows:
        """Return the predictions for rows of an event's parameters."""
        predicted = checked_prediction(self.fitted, self.name, event, params)
        determined_by = np.full(len(params), DeterminedBy.FIT, dtype=np.int8)
        determined_by[predicted.outside] = DeterminedBy.OUT_OF_RANGE
        determined_by[predicted.exact] = DeterminedBy.EXACT
        determined_by[np.isnan(predicted.seconds)] = DeterminedBy.NO_MODEL
        total_s = total_seconds(self.fitted, self.name, event, params, predicted)
        interval = checked_interval(self.fitted, self.name, event, params)
        negative = np.asarray(predicted.negative)
        return PredictedRows(predicted.seconds, total_s, determined_by, negative, *interval)
