"""The fitted model that consists of one fit for each event and number of parameters."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

import numpy as np

from rewritelog.arrays import Floats
from rewritelog.errors import ModelError
from rewritelog.models import fit_report
from rewritelog.models.base import (
    EventKey,
    EventTimings,
    ModelFit,
    Prediction,
    Timings,
    TotalSpread,
    option,
    uncovered_text,
)
from rewritelog.models.checks import errors_as_model_errors
from rewritelog.models.fit_json import event_in_report
from rewritelog.models.fitting import tuning
from rewritelog.models.fitting.event_fit import EventFit
from rewritelog.models.formulas import ParamNames
from rewritelog.models.parallel import map_in_processes, one_blas_thread
from rewritelog.progress import part_of, report_progress
from rewritelog.text import LABEL_WIDTH, merged, shorten, shorten_all

FEW = 3
"""A fit of so few samples takes less time than its transfer from another process."""

DOF = np.array([np.inf, 20, 10, 7, 5, 4, 3, 2, 1])
STUDENT_UPPER = np.array([1.6449, 1.7247, 1.8125, 1.8946, 2.0150, 2.1318, 2.3534, 2.9200, 6.3138])
"""The upper end of the 90 % interval of Student's t distribution, by degrees of freedom. What is
interpolated by their inverses is off by at most 0.1 %; scipy, which knows it, is slow to import."""


@dataclass(frozen=True)
class FittedEvents(ModelFit):
    """The fits of all events."""

    model: str
    """The name of the model that made them."""
    options: Mapping[str, Any]
    """The options of that model, as a JSON object."""
    fits: Mapping[EventKey, EventFit]
    unfitted: tuple[EventKey, ...] = ()
    """Events without a sample in which all numbers are finite."""
    notes: tuple[str, ...] = ()
    """Further warnings, one sentence each."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Further keys of the JSON report."""

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

    def drawn_factors(self, event: str, params: Floats, numbers: Floats) -> Floats | None:
        """Return a held-out ratio of measured to predicted time for each row, drawn by its number.

        None for an event without a fit, or with too few samples to hold any out.
        """
        fit = self.fits.get((event, params.shape[1]))
        if fit is None or not any(len(which.ratios) for which in fit.classes):
            return None
        return fit.drawn_factors(params, numbers)

    def retransformation(self, event: str, params: Floats) -> Floats | None:
        """Return the ratio of measured to predicted sums for each row; None without a fit."""
        fit = self.fits.get((event, params.shape[1]))
        return None if fit is None else fit.retransformation(params)

    def total_spread(self, event: str, parameters: int) -> TotalSpread | None:
        """Return the spread of single errors and of the common one, from held-out samples.

        The common error is that of a sum of n effective samples, single / √n. Both are wider for
        few samples: by Student's t, for the terms fitted, and for the choice of terms.
        """
        fit = self.fits.get((event, parameters))
        if fit is None or len(fit.whole.ratios) < 2:
            return None
        quality, ratios, count = fit.whole.quality, fit.whole.ratios, len(fit.whole.ratios)
        terms = min(len(fit.whole.function.terms), count - 2)
        single = float(ratios.std(ddof=1)) * math.sqrt(count / max(count - terms, 1))
        upper = np.interp(1 / (count - 1), 1 / DOF, STUDENT_UPPER)
        single *= float(upper / STUDENT_UPPER[0])  # wider for few samples
        common = single / math.sqrt(quality.effective_sample_size)
        common *= math.sqrt(max(tuning.ENOUGH / count, 1.0))
        return TotalSpread(single, common, quality.coverage)

    def named(self, names: ParamNames) -> FittedEvents:
        """Return the fits with names of their parameters; those that a formula gives are kept."""
        named = {
            (event, count): fit if fit.names else fit.named(names.for_event(event, count))
            for (event, count), fit in self.fits.items()
        }
        unused = names.unused((*self.fits, *self.unfitted))
        return replace(self, fits=named, notes=(*self.notes, *unused))

    def describe(self) -> dict[str, Any]:
        """Return the options and all fits as a JSON object."""
        events = [event_in_report(fit) for fit in self.fits.values()]
        return {**self.options, **self.extra, "events": events}

    def summary(self) -> tuple[str, ...]:
        """Return each event's fit in a few lines."""
        return tuple(line for fit in self.fits.values() for line in fit_report.summarise(fit))

    def overview(self) -> tuple[str, ...]:
        """Return a table of the fits, worst first."""
        return tuple(fit_report.overview(self.fits.values()))

    def warnings(self) -> tuple[str, ...]:
        """Return the weak points of all fits, event by event; those of many events once."""
        nothing = (uncovered_text(*key) for key in self.unfitted)
        names = shorten_all([event for event, _ in self.fits], LABEL_WIDTH)
        by_name = zip(self.fits.values(), names, strict=True)
        weak_points = (point for fit, name in by_name for point in fit_report.warn(fit, name))
        return (*nothing, *self.notes, *merged(weak_points))


@dataclass(frozen=True)
class FitOptions:
    """Options of every model that fits."""

    weights: Literal["relative", "uniform"] = option(
        "relative", "Whether errors count relative to the measured time, or in seconds."
    )
    loss: Literal["huber", "squares"] = option(
        "huber",
        "Whether residuals count by Huber's loss, which limits outliers, or by their square.",
    )
    exact_match: Literal["auto", "always", "never"] = option(
        "auto",
        "Whether the mean of samples with identical parameters replaces the fit: weighted by their "
        "number and variation, always, or never.",
    )


def fit_events(
    model: str, options: Any, timings: Timings, fit: Callable[[EventTimings], EventFit]
) -> FittedEvents:
    """Fit each event, in parallel processes if there are many.

    Raise `ModelError` if an event and parameter count is duplicated, or if a fit fails.
    """
    usable: dict[EventKey, EventTimings] = {}
    unfitted: list[EventKey] = []
    for samples in timings:
        key = samples.key
        if key in usable or key in unfitted:
            raise ModelError(f"samples of {key[0]} with {key[1]} parameters are duplicated")
        if len(samples.usable().seconds):
            usable[key] = samples
        else:
            unfitted.append(key)

    def fit_one(samples: EventTimings) -> EventFit:
        with (
            part_of(f"fitting {shorten(samples.event, 24)}", len(fits), len(usable), "event"),
            errors_as_model_errors(f"model {model!r}, event {samples.event!r}"),
        ):
            return fit(samples)

    def report(unfinished: Sequence[EventTimings]) -> None:
        names = " and ".join(shorten(samples.event, 24) for samples in unfinished[:2])
        done = len(usable) - len(unfinished)
        report_progress(f"fitting {names}, events done", done, len(usable))

    fits: dict[EventKey, EventFit] = {}
    long = [samples for samples in usable.values() if len(samples.seconds) > FEW]
    with one_blas_thread():
        others = map_in_processes(fit_one, long, report=report)
        for key, samples in usable.items():
            fits[key] = next(others) if len(samples.seconds) > FEW else fit_one(samples)
    return FittedEvents(model, asdict(options), fits, tuple(unfitted))
