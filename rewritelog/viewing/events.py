"""What a page shows of each event: its lines, their predictions, and the terms tried."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import cast

import numpy as np

from rewritelog.arrays import Flags, Floats
from rewritelog.models import fit_report
from rewritelog.models.base import EventTimings, ModelFit
from rewritelog.models.fitted_events import FittedEvents
from rewritelog.models.fitting.diagnosis import OUTLIER_FACTOR
from rewritelog.models.fitting.event_fit import EventFit
from rewritelog.models.fitting.function import CorrectedFunction
from rewritelog.models.fitting.regression import Loss
from rewritelog.models.fitting.samples import Weighting
from rewritelog.models.fitting.single_terms import SingleTermFunctions, single_term_functions
from rewritelog.models.metrics import mean_relative_error, r_squared
from rewritelog.models.parallel import map_in_processes
from rewritelog.progress import report_progress
from rewritelog.sampling.replicates import ReplicateSpread, spread_of
from rewritelog.text import event_label
from rewritelog.timings.read import TimingsRead

MOST_EVENTS = 1_000
"""A page has at most this many events, those whose lines took the most time."""


@dataclass(frozen=True)
class EventView:
    """One event with one number of parameters."""

    timings: EventTimings
    predicted_s: Floats
    low_s: Floats
    high_s: Floats
    """`low_s` and `high_s` are the 90 % interval of measured times; NaN if it is unknown."""
    single_terms: SingleTermFunctions
    spread: ReplicateSpread
    fit: EventFit | None
    """None for a model that is not a sum of terms."""
    r2: float | None
    error: float | None
    """The mean relative error; if there is a fit, it and R² are those of held-out lines."""
    predict: Callable[[Floats], Floats]
    """Predicts seconds for a table of parameters, shape (lines, parameters)."""
    where: Callable[[int], str]
    """Returns the location of a line, as `file:line`."""
    left_out: Flags | None = None
    """Which lines were excluded from the fit; None if none were."""

    @property
    def label(self) -> str:
        """Return the event's name on the page."""
        return event_label(self.timings.event, self.parameters, names=self.names)

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the parameters, empty if they are unknown."""
        return () if self.fit is None else self.fit.names

    @property
    def parameters(self) -> int:
        """Return the number of parameters."""
        return self.timings.parameters

    def formula_alone(self, params: Floats) -> Floats:
        """Return the seconds of a corrected fit without its correction; NaN for another model."""
        function = None if self.fit is None else self.fit.whole.function
        if isinstance(function, CorrectedFunction):
            return function.formula.predict(params)
        return np.full(len(params), np.nan)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return the warnings about the fit, without the event's name."""
        if self.fit is None:
            return ()
        head = f"{self.label}: "
        return tuple(text.removeprefix(head) for text in fit_report.warn(self.fit))

    @property
    def outliers(self) -> Flags:
        """Return which lines differ from the fit by more than a factor of 2."""
        measured, predicted = self.timings.seconds, self.predicted_s
        near = (measured <= OUTLIER_FACTOR * predicted) & (predicted <= OUTLIER_FACTOR * measured)
        known = np.isfinite(measured) & np.isfinite(predicted)
        if self.left_out is not None:
            known &= ~self.left_out
        return np.asarray(known & ~near)


def view_of(
    timings: EventTimings,
    fitted: ModelFit,
    single_terms: SingleTermFunctions,
    where: Callable[[int], str],
    *,
    unseen: bool = False,
) -> EventView:
    """Return what a page shows of an event; `unseen`: the fit was not made from these lines."""
    fit = fitted.fits.get(timings.key) if isinstance(fitted, FittedEvents) else None

    def predict(params: Floats) -> Floats:
        seconds = fit.predict(params) if fit else fitted.predict(timings.event, params)
        return np.where(seconds < 0, 0.0, seconds)

    predicted = predict(timings.params)
    low, high = fitted.interval(timings.event, timings.params)
    if fit is None or unseen:
        known = np.isfinite(predicted) & np.isfinite(timings.seconds)
        quality = (
            r_squared(predicted[known], timings.seconds[known]),
            mean_relative_error(predicted[known], timings.seconds[known]),
        )
    else:
        quality = fit.whole.quality.held_out_r2, fit.whole.quality.held_out_error
    spread = spread_of(timings)
    return EventView(
        timings, predicted, low, high, single_terms, spread, fit, *quality, predict, where
    )


def events_shown(timings: Sequence[EventTimings]) -> str:
    """Return a sentence on which events a page has, empty if it has all."""
    if len(timings) <= MOST_EVENTS:
        return ""
    return (
        f"Of {len(timings):,} events, the {MOST_EVENTS:,} whose lines took the most time are shown."
    )


def views_of(read: TimingsRead, fitted: ModelFit, *, unseen: bool = False) -> list[EventView]:
    """Return the views of at most `MOST_EVENTS` events; `unseen`: not from the fit's own lines."""
    entries = _longest(read.timings)
    single_terms = _all_single_terms([read.timings[entry] for entry in entries], fitted)
    return [
        view_of(read.timings[entry], fitted, tried, partial(read.where, entry), unseen=unseen)
        for entry, tried in zip(entries, single_terms, strict=True)
    ]


def _longest(timings: Sequence[EventTimings]) -> list[int]:
    """Return the indices of the events whose lines took the most time, in ascending order."""
    if len(timings) <= MOST_EVENTS:
        return list(range(len(timings)))
    totals = np.array([event.seconds[np.isfinite(event.seconds)].sum() for event in timings])
    longest = np.argsort(-totals, kind="stable")[:MOST_EVENTS]
    return [int(place) for place in np.sort(longest)]


def _all_single_terms(
    timings: Sequence[EventTimings], fitted: ModelFit
) -> list[SingleTermFunctions]:
    """Return the functions of one term of all events, with the fit's weights if it records them."""
    options = fitted.options if isinstance(fitted, FittedEvents) else {}
    weights = cast(Weighting, options.get("weights", "relative"))
    loss = cast(Loss, options.get("loss", "huber"))
    functions = []
    for single_terms in map_in_processes(
        lambda event: single_term_functions(event, weights, loss), list(timings)
    ):
        functions.append(single_terms)
        report_progress("trying functions of event term, event", len(functions), len(timings))
    return functions
