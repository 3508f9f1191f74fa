"""How far the sums that a rewrite predicts may be from the truth, as far as the fits can tell.

The variance of a sum of predictions is Σ predicted² · single² + (Σ predicted)² · common², where
`single` and `common` are the relative spreads of `TotalSpread`: durations that err on their own
average out, the error of their mean does not. Different fits err independently, so that their
variances add. What is dilated counts as certain.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import NormalDist

from rewritelog.models.base import FittedModel
from rewritelog.models.checks import checked_spread
from rewritelog.rewriting.kernels.interface import DurationSum
from rewritelog.rewriting.statistics import BlockStatistics, EventStatistics, rest_s, total_of
from rewritelog.text import json_number

LEVEL = 0.9
"""How often an interval is to hold the true sum."""

_REACH = NormalDist().inv_cdf((1 + LEVEL) / 2)
"""Half an interval's width in standard deviations."""


@dataclass(frozen=True)
class Expected:
    """A sum of new durations before any spread, in seconds, and how far off it may be."""

    seconds: float
    deviation_s: float | None
    """The sum's standard deviation; None where a fit cannot tell, or where no fit takes part."""
    coverage: float | None
    """Share of held-out lines in intervals of that level; of the fit with most of the time."""

    @property
    def interval_s(self) -> tuple[float, float] | None:
        """Return the bounds that the true sum is to lie between."""
        if self.deviation_s is None:
            return None
        reach = _REACH * self.deviation_s
        return max(0.0, self.seconds - reach), self.seconds + reach


def expected_of(
    fitted: FittedModel, model_name: str, statistics: BlockStatistics
) -> dict[str, Expected]:
    """Return what each event's brackets are to take; raise `ModelError` where the model fails."""
    return {
        name: _event_expected(fitted, model_name, name, event)
        for name, event in statistics.events.items()
    }


def _event_expected(
    fitted: FittedModel, model_name: str, event: str, statistics: EventStatistics
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
    """Return what all brackets together are to take, given what those of each event are."""
    found = list(events)
    paired = total_of(event.total.new_s for event in statistics.events.values())
    others_s = rest_s(statistics.sums[DurationSum.BRACKETED_NEW], paired)
    seconds = math.fsum([*(one.seconds for one in found), others_s])
    known = [one.deviation_s for one in found if one.seconds > 0]
    return Expected(seconds, _root_sum_square(known), None)


def _root_sum_square(deviations: list[float | None]) -> float | None:
    """Return the standard deviation of a sum of independent terms."""
    known = [one for one in deviations if one is not None]
    if not known or len(known) < len(deviations):
        return None
    return json_number(math.hypot(*known))
