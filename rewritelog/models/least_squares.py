"""The model that fits each event's times to its parameters by ordinary least squares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rewritelog.errors import ModelError
from rewritelog.models import fit_report
from rewritelog.models.base import FittedModel, Floats, Model, Prediction, Timings
from rewritelog.models.exact import ExactTimes
from rewritelog.models.options import LeastSquaresOptions
from rewritelog.models.regression import EventFit, fit_event, usable

Key = tuple[str, int]
"""An event's name and its number of parameters; each pair has a fit of its own."""


@dataclass(frozen=True)
class FittedLeastSquares(FittedModel):
    """One fit for each event and parameter count, and maybe the means of exact matches."""

    options: LeastSquaresOptions
    fits: Mapping[Key, EventFit]
    exact: Mapping[Key, ExactTimes]
    """Empty unless exact matches were asked for."""
    unfitted: tuple[Key, ...] = ()
    """Events whose samples all hold numbers that are not finite, or that have no samples."""

    def predict(self, event: str, params: Floats) -> Floats:
        """Return the seconds of each row; NaN for an event or parameter count without a fit."""
        return self.judge(event, params).seconds

    def judge(self, event: str, params: Floats) -> Prediction:
        """Return the seconds of each row, exact matches replacing the fit's value if asked for."""
        key = (event, params.shape[1])
        rows = len(params)
        exact = np.zeros(rows, dtype=np.bool_)
        if key not in self.fits:
            return Prediction(np.full(rows, np.nan), exact, np.zeros(rows, dtype=np.bool_))
        fit = self.fits[key]
        seconds = fit.predict(params)
        if key in self.exact:
            means, exact = self.exact[key].lookup(params)
            seconds = np.where(exact, means, seconds)
        return Prediction(seconds, exact, fit.outside(params))

    def describe(self) -> dict[str, Any]:
        """Return the basis and the fits in full."""
        return {
            "basis": self.options.basis,
            "exact_match": self.options.exact_match,
            "events": [self.describe_event(key) for key in self.fits],
        }

    def describe_event(self, key: Key) -> dict[str, Any]:
        """Return one event's fit, with its number of distinct parameter sets for exact matches."""
        described = fit_report.describe(self.fits[key])
        described["exact_sets"] = len(self.exact[key].seconds) if key in self.exact else None
        return described

    def summary(self) -> tuple[str, ...]:
        """Return each event's fit in a few lines."""
        return tuple(line for fit in self.fits.values() for line in fit_report.summarise(fit))

    def warnings(self) -> tuple[str, ...]:
        """Return what the samples leave open, event by event."""
        nothing = tuple(
            f"{fit_report.label(event, count)}: no usable timing sample, so it is not covered; "
            "add timing lines"
            for event, count in self.unfitted
        )
        return (*nothing, *(text for fit in self.fits.values() for text in fit_report.warn(fit)))


class LeastSquares(Model[LeastSquaresOptions]):
    """Fit 1, p and p² of each parameter to the times, for each event and parameter count."""

    Options = LeastSquaresOptions

    def fit(self, timings: Timings) -> FittedLeastSquares:
        """Return the fits; raise `ModelError` where one event and parameter count stands twice."""
        fits: dict[Key, EventFit] = {}
        exact: dict[Key, ExactTimes] = {}
        unfitted: list[Key] = []
        for samples in timings:
            key = (samples.event, samples.params.shape[1])
            if key in fits or key in unfitted:
                raise ModelError(f"samples of {key[0]} with {key[1]} parameters stand apart")
            finite = usable(samples)
            if not len(finite.seconds):
                unfitted.append(key)
                continue
            fits[key] = fit_event(samples, self.options.basis)
            if self.options.exact_match:
                exact[key] = ExactTimes.from_timings(finite)
        return FittedLeastSquares(self.options, fits, exact, tuple(unfitted))
