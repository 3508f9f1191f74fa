"""The model `counters`: times as a linear function of performance counters, such as PAPI's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rewritelog.models.base import EventTimings, Model, Timings, option
from rewritelog.models.expressions import parse
from rewritelog.models.fitted_events import FitOptions, FittedEvents, fit_events
from rewritelog.models.fitting.bases.sums import fixed_terms
from rewritelog.models.fitting.event_fit import EventFit
from rewritelog.models.fitting.pipeline import FitConfig, fit_event


@dataclass(frozen=True)
class CountersOptions(FitOptions):
    """Options of the model of performance counters."""

    exact_match: Literal["auto", "always", "never"] = option(
        "never", "Whether the mean of samples with identical counters replaces the fit."
    )


class Counters(Model[CountersOptions]):
    """Fit a constant and the counters to each event's times, with non-negative coefficients.

    Choose it if the timing lines have performance counters (PAPI), which are the columns of this
    model's tables, in their order.
    """

    Options = CountersOptions
    columns = "counters"

    def fit(self, timings: Timings) -> FittedEvents:
        """Return a fit for each event."""
        return fit_events("counters", self.options, timings, self._fit_event)

    def _fit_event(self, timings: EventTimings) -> EventFit:
        count = timings.parameters
        terms = tuple(parse(text) for text in ("1", *(f"p{n}" for n in range(1, count + 1))))
        options = self.options
        families = {"counters": fixed_terms(terms, non_negative=True)}
        config = FitConfig(options.weights, options.loss, options.exact_match, families=families)
        return fit_event(timings, config)
