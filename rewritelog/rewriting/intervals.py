"""Intervals for the sums that a rewrite predicts, according to the fits.

The variance of a sum of predictions is Σ predicted² · single² + (Σ predicted)² · common², where
`single` and `common` are the relative standard deviations in `TotalSpread`: independent errors of
durations average out, the common error of their mean does not. The errors of different fits are
independent, so that their variances add up. Dilated durations count as certain.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import NormalDist

from rewritelog.models.base import ModelFit
from rewritelog.models.checks import checked_spread
from rewritelog.rewriting.counts import DurationSum
from rewritelog.rewriting.statistics import BlockStatistics, EventStatistics, difference_s, total_of
from rewritelog.text import json_number

LEVEL = 0.9
"""The nominal probability that an interval contains the true sum."""

_REACH = NormalDist().inv_cdf((1 + LEVEL) / 2)
"""Half an interval's width in standard deviations."""


@dataclass(frozen=True)
class Expected:
    """The expectation of a sum of new durations, before any spread, with its uncertainty."""

    seconds: float
    deviation_s: float | None
    """The standard deviation of the sum; None if a fit does not know it, or without any fit."""
    coverage: float | None
    """The coverage of the intervals of the fit with the most time, on held-out lines."""

    @property
    def interval_s(self) -> tuple[float, float] | None:
        """The bounds of the interval for the true sum; None if unknown."""
        if self.deviation_s is None:
            return None
        reach = _REACH * self.deviation_s
        return max(0.0, self.seconds - reach), self.seconds + reach


def expected_of(
    fitted: ModelFit, model_name: str, events: Mapping[str, EventStatistics]
) -> dict[str, Expected]:
    """Return the expected sum of each event's brackets; raise `ModelError` if the model fails."""
    return {
        name: _event_expected(fitted, model_name, name, event) for name, event in events.items()
    }


def _event_expected(
    fitted: ModelFit, model_name: str, event: str, statistics: EventStatistics
) -> Expected:
    deviations: list[float | None] = []
    most_s, coverage = 0.0, None
    for parameters, sums in statistics.sums.items():
        predicted_s = float(sums.predicted_s)
        if not predicted_s > 0:
            continue
        spread = checked_spread(fitted, model_name, event, parameters)
        if spread is None:
            deviations.append(None)
            continue
        single_s = spread.single * math.sqrt(float(sums.squares_s2))
        deviations.append(math.hypot(single_s, spread.common * predicted_s))
        if predicted_s > most_s:
            most_s, coverage = predicted_s, spread.coverage
    total = statistics.total
    seconds = float(total.predicted_s.plus(total.dilated_new_s.parts))
    return Expected(seconds, _root_sum_square(deviations), coverage)


def bracketed_expected(statistics: BlockStatistics, events: Iterable[Expected]) -> Expected:
    """Return the expected sum of all brackets, given that of each event."""
    expected = list(events)
    paired = total_of(event.total.new_s for event in statistics.events.values())
    others_s = difference_s(statistics.sums[DurationSum.BRACKETED_NEW], paired)
    seconds = math.fsum([*(of_event.seconds for of_event in expected), others_s])
    known = [of_event.deviation_s for of_event in expected if of_event.seconds > 0]
    return Expected(seconds, _root_sum_square(known), None)


def _root_sum_square(deviations: list[float | None]) -> float | None:
    """Return the standard deviation of a sum of independent terms."""
    known = [deviation for deviation in deviations if deviation is not None]
    if not known or len(known) < len(deviations):
        return None
    return json_number(math.hypot(*known))
