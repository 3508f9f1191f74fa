"""The model `counters`: times as a linear function of performance counters, such as PAPI's."""

from __future__ import annotations

from dataclasses import dataclass

from msgspec import structs

from rewritelog.models.base import EventTimings, option
from rewritelog.models.exact_matches import ExactMatch
from rewritelog.models.expressions import parse
from rewritelog.models.fitting.bases.sums import fixed_terms
from rewritelog.models.fitting.pipeline import FitConfig
from rewritelog.models.term_model import FitOptions, TermModel


@dataclass(frozen=True)
class CountersOptions(FitOptions):
    """Options of the model `counters`."""

    exact_match: ExactMatch = option(
        "never", "Whether times measured with the same counters replace the fit."
    )


class Counters(TermModel[CountersOptions]):
    """Fit a constant and the counters to each event's times, with non-negative coefficients.

    Choose it if the timing lines have performance counters (PAPI), which are the columns of this
    model's tables, in their order.
    """

    name = "counters"
    Options = CountersOptions
    columns = "counters"

    def config(self, timings: EventTimings) -> FitConfig:
        """Return how an event is fitted: the terms are a constant and the counters."""
        count = timings.parameters
        terms = tuple(parse(text) for text in ("1", *(f"p{n}" for n in range(1, count + 1))))
        families = {"counters": fixed_terms(terms, non_negative=True)}
        return structs.replace(super().config(timings), families=families)
