"""The time before and after a rewrite: by event with its uncertainty, by part, and by PE.

The variance of a sum of predictions is Σ predicted² · single² + (Σ predicted)² · common², where
`single` and `common` are the relative standard deviations in `TotalSpread`: independent errors of
durations average out, the common error of their mean does not. The errors of different fits are
independent, so that their variances add up. Dilated durations count as certain.

The parts of all time are complete and disjoint, as in Lost Cycles analysis (Crovella and LeBlanc,
"Parallel performance prediction using lost cycles analysis", Supercomputing '94).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from rewritelog.arrays import Floats, Ints, rounded_sum
from rewritelog.models.fitted import Fitted
from rewritelog.rewriting.statistics import (
    BlockCount,
    BlockStatistics,
    DurationSum,
    EventStatistics,
)
from rewritelog.text import NO_VALUE, json_number, json_of, ratio_text, speedup, time_column

LEVEL = 0.9
"""The nominal probability that an interval contains the true sum."""

_ROUNDING = 1e-15
"""The relative rounding error of sums is smaller."""

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


def expected_of(fitted: Fitted, events: Mapping[str, EventStatistics]) -> dict[str, Expected]:
    """Return the expected sum of each event's brackets; raise `ModelError` if the model fails."""
    return {name: _event_expected(fitted, name, event) for name, event in events.items()}


def _event_expected(fitted: Fitted, event: str, statistics: EventStatistics) -> Expected:
    deviations: list[float | None] = []
    most_s, coverage = 0.0, None
    for parameters, sums in statistics.sums.items():
        predicted_s = float(sums.predicted_s)
        if not predicted_s > 0:
            continue
        spread = fitted.spread(event, parameters)
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
    paired_s = [float(event.total.new_s) for event in statistics.events.values()]
    others_s = left_of(statistics.seconds(DurationSum.BRACKETED_NEW), paired_s)
    seconds = rounded_sum([*(of_event.seconds for of_event in expected), others_s])
    known = [of_event.deviation_s for of_event in expected if of_event.seconds > 0]
    return Expected(seconds, _root_sum_square(known), None)


def _root_sum_square(deviations: list[float | None]) -> float | None:
    """Return the standard deviation of a sum of independent terms."""
    known = [deviation for deviation in deviations if deviation is not None]
    if not known or len(known) < len(deviations):
        return None
    return json_number(math.hypot(*known))


@dataclass(frozen=True)
class BusyTime:
    """The busy times of all PEs, the sums of the durations of their SEBs."""

    largest_s: float
    largest_pe: int | None
    """The lowest PE with that time; None without any PE."""
    mean_s: float

    @classmethod
    def of(cls, pes: Ints, seconds: Floats, mean_s: float) -> BusyTime:
        """Return those of the PEs that have any, with the mean of all."""
        if not len(pes):
            return cls(0.0, None, mean_s)
        largest = np.lexsort((pes, -seconds))[0]
        return cls(float(seconds[largest]), int(pes[largest]), mean_s)

    @property
    def imbalance(self) -> float | None:
        """The largest busy time divided by the mean; None if all are 0."""
        return json_number(self.largest_s / self.mean_s) if self.mean_s > 0 else None

    def cells(self) -> tuple[str, str, str, str]:
        """Return largest, its PE, mean and imbalance as cells of a table."""
        pe = NO_VALUE if self.largest_pe is None else str(self.largest_pe)
        largest, mean = time_column([self.largest_s, self.mean_s])
        return largest, pe, mean, ratio_text(self.imbalance)

    def to_json(self) -> dict[str, Any]:
        """Return the numbers as a JSON object."""
        told: dict[str, Any] = json_of({**vars(self), "imbalance": self.imbalance})
        return told


@dataclass(frozen=True)
class Share:
    """A part of the time of all SEBs."""

    old_s: float
    new_s: float
    old_share: float | None
    """Its share of all time before the rewrite, in [0, 1]; None without any time."""
    new_share: float | None
    """Its share of all time after the rewrite."""


@dataclass(frozen=True)
class Overheads:
    """The parts of the time of all SEBs, and the time that no model covers."""

    events: dict[str, Share]
    """The brackets of each event, by name."""
    other_brackets: Share
    """Brackets without a param record."""
    around_brackets: Share
    """The time outside of brackets in SEBs that have any."""
    sebs_without_brackets: Share
    """SEBs without brackets, or with irregular marks."""
    untouched: Share
    """Nodes of types that the rewrite leaves as they are."""
    by_dilation: Share
    """The time that only dilation determines: the first three, and brackets not covered."""


def overheads_of(statistics: BlockStatistics) -> Overheads:
    """Return the breakdown of the time of all SEBs."""
    sides = []
    for side in ("old", "new"):
        all_s, bracketed_s, around_s, without_s = (
            statistics.seconds(DurationSum[f"{part}{side.upper()}"])
            for part in ("", "BRACKETED_", "AROUND_", "WITHOUT_")
        )
        totals = [event.total for _, event in sorted(statistics.events.items())]
        events_s = [float(getattr(total, f"{side}_s")) for total in totals]
        dilated_s = rounded_sum(float(getattr(total, f"dilated_{side}_s")) for total in totals)
        others_s = 0.0
        if statistics.count(BlockCount.BRACKETS_WITHOUT_RECORD):
            others_s = left_of(bracketed_s, events_s)
        untouched_s = left_of(all_s, (bracketed_s, around_s, without_s))
        by_dilation_s = others_s + around_s + without_s + dilated_s
        parts_s = [others_s, around_s, without_s, untouched_s, by_dilation_s, *events_s]
        whole_s = all_s if 0 < all_s < math.inf else math.nan
        sides.append([(seconds, json_number(seconds / whole_s)) for seconds in parts_s])
    pairs = zip(*sides, strict=True)
    shares = [Share(old_s, new_s, old, new) for (old_s, old), (new_s, new) in pairs]
    return Overheads(dict(zip(sorted(statistics.events), shares[5:], strict=True)), *shares[:5])


def left_of(whole_s: float, parts_s: Iterable[float]) -> float:
    """Return what parts leave of a sum, in seconds; 0 if that is only rounding."""
    if not math.isfinite(whole_s):
        return math.nan
    left_s = math.fsum([whole_s, *(-part_s for part_s in parts_s)])
    return left_s if left_s > _ROUNDING * whole_s else 0.0


@dataclass(frozen=True)
class EventLine:
    """The counts and sums of one event."""

    event: str
    records: int
    by_model: int
    by_exact: int
    dilated: int
    """The number of brackets with a record that the model does not cover."""
    not_used: int
    uncounted: int
    """The number of those without counters, for a model of counters."""
    negative: int
    """The number of predictions that are negative before the bounds of the fit apply."""
    outside: int
    """The number of predictions with a parameter outside the range of the samples."""
    remote: int
    """The number of those within all ranges, but with more leverage than any sample."""
    not_spread: int
    """The number of predictions that were not spread because there are no residuals."""
    old_s: float
    new_s: float
    expected: Expected
    """The expectation of `new_s`, before any spread, with its uncertainty."""

    @property
    def extrapolated(self) -> float | None:
        """The share of extrapolated predictions; None without predictions."""
        predictions = self.by_model + self.by_exact
        return (self.outside + self.remote) / predictions if predictions else None

    def to_json(self) -> dict[str, Any]:
        """Return the row as a JSON object, with null for numbers that are not finite."""
        row = {
            **vars(self),
            "speedup": speedup(self.old_s, self.new_s),
            "extrapolated": self.extrapolated,
            **expected_json(self.expected),
            "coverage": self.expected.coverage,
        }
        del row["expected"]
        told: dict[str, Any] = json_of(row)
        return told


def event_line(name: str, event: EventStatistics, expected: Expected) -> EventLine:
    """Return the row of an event, given its statistics and the expected sum."""
    total, counted = event.total, {name: event.counts[name] for name in _COUNTED}
    return EventLine(
        name, **counted, old_s=float(total.old_s), new_s=float(total.new_s), expected=expected
    )


_COUNTED = [field.name for field in dataclasses.fields(EventLine) if field.type == "int"]


def expected_json(expected: Expected) -> dict[str, float | None]:
    """Return an expected sum with its interval as a JSON object."""
    low_s, high_s = expected.interval_s or (None, None)
    return {"expected_s": json_number(expected.seconds), "low_s": low_s, "high_s": high_s}
