"""The fitted model that consists of one fit for each event and number of parameters."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rewritelog.arrays import Floats
from rewritelog.models import fit_report
from rewritelog.models.base import (
    EventKey,
    FitByEvent,
    ParamNames,
    Prediction,
    TotalSpread,
    uncovered_text,
)
from rewritelog.models.fitting import tuning
from rewritelog.models.fitting.event_fit import EventFit
from rewritelog.models.form import as_json
from rewritelog.text import LABEL_WIDTH, json_number, merged, shorten_all

DOF = np.array([np.inf, 20, 10, 7, 5, 4, 3, 2, 1])
STUDENT_UPPER = np.array([1.6449, 1.7247, 1.8125, 1.8946, 2.0150, 2.1318, 2.3534, 2.9200, 6.3138])
"""The upper end of the 90 % interval of Student's t distribution with `DOF` degrees of freedom.
Interpolated in 1 / DOF, it is off by at most 0.1 %; scipy has it too, but is slow to import."""


@dataclass(frozen=True, eq=False)
class FittedEvents(FitByEvent):
    """The fits of all events."""

    unfitted: tuple[EventKey, ...] = ()
    """Events without a sample in which all numbers are finite."""
    notes: tuple[str, ...] = ()
    """What was noted when the fit was made, one sentence each."""

    def predict(self, event: str, params: Floats) -> Floats:
        """Return the seconds of each row; NaN for an event or parameter count without a fit."""
        return self.predict_detailed(event, params).seconds

    def predict_detailed(self, event: str, params: Floats) -> Prediction:
        """Return the seconds of each row with flags for how they came about."""
        fit = self.fits.get((event, params.shape[1]))
        if fit is None:
            none = np.zeros(len(params), dtype=np.bool_)
            return Prediction(np.full(len(params), np.nan), none, none, none)
        return fit.predict_detailed(params)

    def interval(self, event: str, params: Floats) -> tuple[Floats, Floats]:
        """Return the bounds in seconds of each row's 90 % interval, NaN without a fit."""
        fit = self.fits.get((event, params.shape[1]))
        return super().interval(event, params) if fit is None else fit.interval(params)

    def drawn_factors(self, event: str, params: Floats, uniforms: Floats) -> Floats | None:
        """Return a held-out ratio of measured to predicted time for each row, drawn by its number.

        None for an event without a fit, or with too few samples to hold any out.
        """
        fit = self.fits.get((event, params.shape[1]))
        if fit is None or not any(len(which.spread_ratios) for which in fit.classes):
            return None
        return fit.drawn_factors(params, uniforms)

    def retransformation(self, event: str, params: Floats) -> Floats | None:
        """Return the ratio of measured to predicted sums for each row; None without a fit."""
        fit = self.fits.get((event, params.shape[1]))
        return None if fit is None else fit.retransformation(params)

    def total_spread(self, event: str, parameters: int) -> TotalSpread | None:
        """Return the spreads of single errors and of the common one, from held-out samples.

        The common error is single / √n, that of a sum of n effective samples. Few points widen both
        by Student's t and for the terms fitted, and the common one for the choice of terms too. It
        is 1, as large as the time, where nothing is known of other points.
        """
        fit = self.fits.get((event, parameters))
        count = 0 if fit is None else min(fit.judged.points, len(fit.ratios))
        if fit is None or count < 2:
            return None
        exact, quality, ratios = None, fit.quality, fit.ratios
        terms = min(len(fit.judged.function.terms), count - 2)
        single = float(ratios.std(ddof=1)) * math.sqrt(count / max(count - terms, 1))
        upper = np.interp(1 / (count - 1), 1 / DOF, STUDENT_UPPER)
        single *= float(upper / STUDENT_UPPER[0])  # wider for few points
        common = single / math.sqrt(quality.effective_sample_size)
        common *= math.sqrt(max(tuning.ENOUGH / count, 1.0))
        common = common if fit.judged.knows_other_points else 1.0
        matches = fit.exact_matches
        if matches is not None and len(matches.ratios) > 1:
            of_one = float(matches.ratios.std(ddof=1))
            exact = TotalSpread(of_one, matches.common_error(of_one, single))
        return TotalSpread(single, common, quality.coverage, exact)

    def named(self, names: ParamNames) -> FittedEvents:
        """Return the fits with names of their parameters; those that a formula gives are kept.

        A note lists names that fit no event.
        """
        named = {
            key: fit if fit.names else fit.named(names.for_event(*key))
            for key, fit in self.fits.items()
        }
        kept = {key: fit.names for key, fit in self.fits.items() if fit.names}
        unused = names.unused((*self.fits, *self.unfitted), kept)
        return replace(self, fits=named, notes=(*self.notes, *unused))

    def describe(self) -> dict[str, Any]:
        """Return the options and all fits as a JSON object."""
        events = [event_in_report(fit) for fit in self.fits.values()]
        return {**self.options, "events": events}

    def summary(self) -> tuple[str, ...]:
        """Return each event's fit in a few lines."""
        return tuple(line for fit in self.fits.values() for line in fit_report.summarise(fit))

    def overview(self) -> tuple[str, ...]:
        """Return a table of the fits, worst first."""
        return tuple(fit_report.overview(self.fits.values()))

    def warnings(self) -> tuple[str, ...]:
        """Return the weak points of all fits; one that many events share is one warning."""
        nothing = (uncovered_text(*key) for key in self.unfitted)
        names = shorten_all([event for event, _ in self.fits], LABEL_WIDTH)
        by_name = zip(self.fits.values(), names, strict=True)
        remarks = (each for fit, name in by_name for each in fit_report.weak_points(fit, name))
        return (*nothing, *merged(remarks))


def event_in_report(fit: EventFit) -> dict[str, Any]:
    """Return a fit as the JSON object of a report: all but what only predictions need."""
    document: dict[str, Any] = as_json(fit, json_number, complete=True)
    if fit.left_out is None:
        del document["check"]
    for class_fit in document["classes"]:
        del class_fit["leverage_root"], class_fit["ratios"], class_fit["spread_ratios"]
        function = class_fit["function"]
        if function["kind"] == "corrected":
            del function["params"]
            for member in function["members"]:
                del member["correction"]["process"]["weights"]
    if fit.exact_matches is not None:
        weights, error = fit.exact_matches.weights, fit.exact_matches.mean_error
        mean = json_number(float(weights.mean())) if len(weights) else None
        document["exact_matches"] = {
            "sets": len(weights),
            "mean_weight": mean,
            "mean_relative_error": None if error is None else json_number(error),
        }
    return document
