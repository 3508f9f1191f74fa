"""What a rewrite counts and adds up, and the time before and after it by event, part and PE.

Durations are added with twice the digits of a double: those of a timeline in the order of its SEBs,
those of the records of one event and number of parameters in their order in a block. These sums
are then added exactly, so that the result does not depend on how the work is divided.

The variances of the sums of an event's predictions (`TotalSpread.deviation_s`) add up, since the
errors of different fits are independent. Dilated durations count as certain.

The parts of all time are complete and disjoint, as in Lost Cycles analysis (Crovella and LeBlanc,
"Parallel performance prediction using lost cycles analysis", Supercomputing '94).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct, field
from msgspec.structs import asdict, replace
from numpy.typing import NDArray

from rewritelog.arrays import ZERO_SUM, ExactSum, Floats, Ints, rounded_sum
from rewritelog.core import core
from rewritelog.formats.traces import NOT_ROUNDED, Events, Rounding
from rewritelog.models.base import interval_of_sum
from rewritelog.models.fitted import Fitted
from rewritelog.text import json_number, json_of, ratio_text, speedup, time_column


class BlockCount(IntEnum):
    """The counts of a block."""

    SEBS = core.SEBS
    MESSAGES = core.MESSAGES
    BY_MODEL = core.SEBS_BY_MODEL
    BY_EXACT = core.SEBS_BY_EXACT
    BY_DILATION = core.SEBS_BY_DILATION
    UNCHANGED = core.SEBS_UNCHANGED
    UNCLOSED = core.SEBS_UNCLOSED
    ZERO_LENGTH = core.SEBS_ZERO_LENGTH
    BRACKETS = core.BRACKETS
    BRACKETS_WITHOUT_RECORD = core.BRACKETS_WITHOUT_RECORD
    MARKS_IRREGULAR = core.SEBS_MARKS_IRREGULAR
    RECORDS_MISMATCHED = core.SEBS_RECORDS_MISMATCHED
    UNMARKED_WITH_RECORD = core.SEBS_UNMARKED_WITH_RECORD
    MESSAGES_OUTSIDE = core.MESSAGES_OUTSIDE
    RECV_RAISED = core.MESSAGES_RECV_RAISED
    TRACER_REPLACES = core.PATCH_COUNTS
    """SEBs with a predicted duration that TraceR ignores because of their names."""


class DurationSum(IntEnum):
    """The sums of durations of a timeline, in seconds."""

    OLD = core.SUM_OLD
    NEW = core.SUM_NEW
    BRACKETED_OLD = core.SUM_BRACKETED_OLD
    BRACKETED_NEW = core.SUM_BRACKETED_NEW
    AROUND_OLD = core.SUM_AROUND_OLD
    """The time outside of brackets in SEBs that have any."""
    AROUND_NEW = core.SUM_AROUND_NEW
    WITHOUT_OLD = core.SUM_WITHOUT_OLD
    """The time of SEBs without brackets, or with irregular marks."""
    WITHOUT_NEW = core.SUM_WITHOUT_NEW


IRREGULAR = (
    BlockCount.MARKS_IRREGULAR,
    BlockCount.RECORDS_MISMATCHED,
    BlockCount.UNMARKED_WITH_RECORD,
)
"""The counts of irregular SEBs; outcomes have a flag for each."""

EXAMPLES = 5
"""The number of places that are kept of each irregularity."""

DEPENDENCIES_PER_EVENT = 16
"""This many dependencies take as much memory in a replay as an event."""


class EventSums(NamedTuple):
    """Sums over the brackets of one event with one number of parameters, in seconds."""

    old_s: ExactSum = ZERO_SUM
    new_s: ExactSum = ZERO_SUM
    dilated_old_s: ExactSum = ZERO_SUM
    """The sum over brackets that the model does not cover."""
    dilated_new_s: ExactSum = ZERO_SUM
    predicted_s: ExactSum = ZERO_SUM
    """The sum of predictions before any spread."""
    squares_s2: ExactSum = ZERO_SUM
    """The sum of the squares of the predictions in `predicted_s`."""
    widened_s: ExactSum = ZERO_SUM
    """The sum of what extrapolation adds to the half widths of the intervals of the predictions."""
    exact_old_s: ExactSum = ZERO_SUM
    """The sum over exact matches, whose errors are not the fit's; a page shows their share."""
    exact_new_s: ExactSum = ZERO_SUM
    exact_squares_s2: ExactSum = ZERO_SUM

    def __add__(self, other: tuple[Any, ...]) -> EventSums:
        return EventSums(*(a + b for a, b in zip(self, other, strict=True)))


class EventStatistics(Struct):
    """The param records of one event."""

    counts: Counter[str] = field(default_factory=Counter)
    """How many records have each property that `Predicted.properties` names."""
    sums: dict[int, EventSums] = {}
    """The sums by number of parameters."""

    @property
    def total(self) -> EventSums:
        """The sums over all brackets of the event."""
        return sum(self.sums.values(), EventSums())

    def __add__(self, other: EventStatistics) -> EventStatistics:
        return EventStatistics(self.counts + other.counts, _added(self.sums, other.sums))


class Irregularity(Struct, frozen=True):
    """How often something irregular was met, and the first few places."""

    count: int
    first: tuple[tuple[tuple[int, int], str], ...]
    """Each place after that of its block, file and offset, by which places are sorted."""

    @classmethod
    def of(cls, block: tuple[int, int], count: int, places: Sequence[str]) -> Irregularity:
        """Return the count and the first places of a block, given its position."""
        return cls(count, tuple((block, place) for place in places[:EXAMPLES]))

    def __add__(self, other: Irregularity) -> Irregularity:
        first = sorted(self.first + other.first, key=itemgetter(0))[:EXAMPLES]
        return Irregularity(self.count + other.count, tuple(first))


class BlockStatistics(Struct):
    """The counts and sums of one block, or of all blocks, and what is irregular."""

    counts: NDArray[np.int64] = field(
        default_factory=lambda: np.zeros(len(BlockCount), dtype=np.int64)
    )
    sums: dict[DurationSum, ExactSum] = field(
        default_factory=lambda: dict.fromkeys(DurationSum, ZERO_SUM)
    )
    events: dict[str, EventStatistics] = {}
    irregularities: dict[str, Irregularity] = {}
    """The irregularities of params and SEBs, by kind."""
    size_bytes: int = 0
    busy: list[tuple[Ints, Floats, Floats]] = []
    """Arrays of PEs, and their busy seconds before and after the rewrite."""
    matched_patterns: frozenset[str] = frozenset()
    """The patterns of dilations that match the name of a SEB, or of a node of a chosen type."""
    matched_rules: frozenset[str] = frozenset()
    """The patterns of event params that match the name of a node."""
    rounding: Rounding = NOT_ROUNDED
    on_device_s: float = 0.0
    """The new seconds of nodes that compute on devices; 0 for logs."""
    chosen: int = 0
    """The number of nodes of the chosen types; 0 for logs."""
    untimed: int = 0
    """The number of nodes of duration 0 to which the model gives one; 0 for logs."""
    untimed_s: float = 0.0
    """The new seconds of these nodes."""
    dependencies: int = 0
    """The dependencies of events; those of SEBs are not counted."""
    kept: list[Events] = []
    """The events of each unit with their new durations, if they are kept for a replay."""

    def count(self, which: BlockCount) -> int:
        """Return a count."""
        return int(self.counts[which])

    @property
    def replay_size(self) -> int:
        """The memory that a replay takes, as a number of SEBs or events."""
        return max(self.count(BlockCount.SEBS), self.dependencies // DEPENDENCIES_PER_EVENT)

    def seconds(self, which: DurationSum) -> float:
        """Return a sum of durations in seconds, rounded once."""
        return float(self.sums[which])

    def busy_of_pes(self) -> tuple[Ints, Floats, Floats]:
        """Return PEs, unsorted, with their busy seconds before and after the rewrite."""
        pes, old_s, new_s = map(np.concatenate, zip(*self.busy, strict=True))
        return pes, old_s, new_s

    def set_durations(self, pes: Ints, sums: Floats) -> None:
        """Set sums and busy times from those of PEs' timelines, shape (PEs, DurationSum, 2)."""
        for which in DurationSum:
            self.sums[which] = exact_sum(sums[:, which])
        old_s, new_s = (sums[:, w].sum(axis=1) for w in (DurationSum.OLD, DurationSum.NEW))
        self.busy = [(pes, old_s, new_s)]

    def add(self, other: BlockStatistics) -> None:
        """Add the statistics of the next block."""
        for name, more in asdict(other).items():
            setattr(self, name, _added(getattr(self, name), more))


def _added(first: Any, second: Any) -> Any:
    """Return two counts, sums or collections as one; values of the same key are added."""
    if isinstance(first, dict):
        common = {key: _added(first[key], second[key]) for key in first.keys() & second.keys()}
        return first | second | common
    if isinstance(first, frozenset):
        return first | second
    first += second
    return first


def exact_sum(pairs: Floats) -> ExactSum:
    """Return the exact sum of numbers that are given as high and low parts."""
    return ExactSum().plus(pairs.ravel().tolist())


class Expected(Struct, frozen=True):
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
        return interval_of_sum(self.seconds, self.deviation_s)


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
        parts = sums.squares_s2, sums.widened_s, sums.exact_new_s, sums.exact_squares_s2
        deviations.append(spread.deviation_s(predicted_s, *map(float, parts)))
        if predicted_s > most_s:
            most_s, coverage = predicted_s, spread.coverage
    total = statistics.total
    seconds = float(total.predicted_s.plus(total.dilated_new_s.parts))
    return Expected(seconds, _root_sum_square(deviations), coverage)


def predicted_expected(statistics: BlockStatistics, expected: Mapping[str, Expected]) -> Expected:
    """Return the expected sum of all predictions, given that of each event's brackets."""
    sums_s = {name: float(event.total.predicted_s) for name, event in statistics.events.items()}
    deviations = [expected[name].deviation_s for name, sum_s in sums_s.items() if sum_s > 0]
    return Expected(rounded_sum(sums_s.values()), _root_sum_square(deviations), None)


def bracketed_expected(statistics: BlockStatistics, expected: Mapping[str, Expected]) -> Expected:
    """Return the expected sum of all brackets, given that of each event's brackets."""
    paired_s = [float(event.total.new_s) for event in statistics.events.values()]
    others_s = remainder_s(statistics.seconds(DurationSum.BRACKETED_NEW), paired_s)
    seconds = rounded_sum([*(of_event.seconds for of_event in expected.values()), others_s])
    return replace(predicted_expected(statistics, expected), seconds=seconds)


def _root_sum_square(deviations: list[float | None]) -> float | None:
    """Return the standard deviation of a sum of independent terms."""
    known = [deviation for deviation in deviations if deviation is not None]
    if not known or len(known) < len(deviations):
        return None
    return json_number(math.hypot(*known))


class BusyTime(Struct, frozen=True):
    """The busy times of all PEs, the sums of the durations of their SEBs."""

    largest_s: float
    largest_pe: int
    """The lowest PE with that time."""
    mean_s: float

    @classmethod
    def of(cls, pes: Ints, seconds: Floats, mean_s: float) -> BusyTime:
        """Return the largest of the busy times of some PEs, with the mean over all PEs."""
        largest = np.lexsort((pes, -seconds))[0]
        return cls(float(seconds[largest]), int(pes[largest]), mean_s)

    @property
    def imbalance(self) -> float | None:
        """The largest busy time divided by the mean; None if all are 0."""
        return json_number(self.largest_s / self.mean_s) if self.mean_s > 0 else None

    def cells(self) -> tuple[str, str, str, str]:
        """Return largest, its PE, mean and imbalance as cells of a table."""
        largest, mean = time_column([self.largest_s, self.mean_s])
        return largest, str(self.largest_pe), mean, ratio_text(self.imbalance)

    def to_json(self) -> dict[str, Any]:
        """Return the numbers as a JSON object."""
        row_json: dict[str, Any] = json_of({**asdict(self), "imbalance": self.imbalance})
        return row_json


class Share(Struct, frozen=True):
    """A part of the time of all SEBs."""

    old_s: float
    new_s: float
    old_share: float | None
    """Its share of all time before the rewrite, in [0, 1]; None without any time."""
    new_share: float | None
    """Its share of all time after the rewrite."""


class Overheads(Struct, frozen=True):
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
    """The time that only dilation determines: all but untouched nodes and covered brackets."""


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
            others_s = remainder_s(bracketed_s, events_s)
        untouched_s = remainder_s(all_s, (bracketed_s, around_s, without_s))
        by_dilation_s = others_s + around_s + without_s + dilated_s
        parts_s = [others_s, around_s, without_s, untouched_s, by_dilation_s, *events_s]
        whole_s = all_s if 0 < all_s < math.inf else math.nan
        sides.append([(seconds, json_number(seconds / whole_s)) for seconds in parts_s])
    pairs = zip(*sides, strict=True)
    shares = [Share(old_s, new_s, old, new) for (old_s, old), (new_s, new) in pairs]
    return Overheads(dict(zip(sorted(statistics.events), shares[5:], strict=True)), *shares[:5])


_ROUNDING = 1e-15
"""A bound for the relative rounding error of sums."""


def remainder_s(whole_s: float, parts_s: Iterable[float]) -> float:
    """Return what parts leave of a sum, in seconds; 0 if that is only rounding."""
    if not math.isfinite(whole_s):
        return math.nan
    remainder = math.fsum([whole_s, *(-part_s for part_s in parts_s)])
    return remainder if remainder > _ROUNDING * whole_s else 0.0


class EventLine(Struct, frozen=True):
    """The counts and sums of one event."""

    event: str
    records: int
    by_model: int
    by_exact: int
    dilated: int
    """The number of brackets with a record that the model does not cover."""
    not_used: int
    uncounted: int
    """The number of dilated brackets without counters, for a model of counters."""
    negative: int
    """The number of predictions that are negative before the bounds of the fit apply."""
    outside: int
    """The number of predictions with a parameter outside the range of the samples."""
    remote: int
    """The number of predictions within all ranges, but with more leverage than any sample."""
    not_spread: int
    """The number of predictions that were not spread because there are no residuals."""
    old_s: float
    new_s: float
    expected: Expected
    """The expectation of `new_s`, before any spread, with its uncertainty."""

    @property
    def used(self) -> int:
        """The number of records whose brackets the times are of."""
        return self.records - self.not_used

    @property
    def extrapolated(self) -> float | None:
        """The share of extrapolated predictions; None without predictions."""
        predictions = self.by_model + self.by_exact
        return (self.outside + self.remote) / predictions if predictions else None

    def to_json(self) -> dict[str, Any]:
        """Return the row as a JSON object, with null for numbers that are not finite."""
        row = {
            **asdict(self),
            "speedup": speedup(self.old_s, self.new_s),
            "extrapolated": self.extrapolated,
            **expected_json(self.expected),
            "coverage": self.expected.coverage,
        }
        del row["expected"]
        row_json: dict[str, Any] = json_of(row)
        return row_json


def event_line(name: str, event: EventStatistics, expected: Expected) -> EventLine:
    """Return the row of an event, given its statistics and the expected sum."""
    total, counted = event.total, {name: event.counts[name] for name in _COUNTED}
    return EventLine(
        name, **counted, old_s=float(total.old_s), new_s=float(total.new_s), expected=expected
    )


_COUNTED = [name for name, kind in EventLine.__annotations__.items() if kind == "int"]


def expected_json(expected: Expected) -> dict[str, float | None]:
    """Return an expected sum with its interval as a JSON object."""
    low_s, high_s = expected.interval_s or (None, None)
    return {"expected_s": json_number(expected.seconds), "low_s": low_s, "high_s": high_s}
