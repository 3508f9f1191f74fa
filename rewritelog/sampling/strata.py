"""Strata: the records of a run by event, number of parameters and category; and how times vary."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from rewritelog.arrays import Flags, Floats, Ints
from rewritelog.errors import ModelError
from rewritelog.models.base import EventKey, EventTimings, Timings
from rewritelog.models.equal_rows import DistinctPoints
from rewritelog.models.formulas import EventFormula, Formulas
from rewritelog.sampling.records import RunRecords
from rewritelog.sampling.selection import Stratum
from rewritelog.text import printable

LARGE_SPREAD = 0.03
"""Measurements of the same thing that vary by more than 2 or 3 per cent should not be relied on
before the reason is known (I. Foster, "Designing and Building Parallel Programs", 1995, 3.5.2)."""

LARGEST_FACTOR = 2.0
"""A time that differs by more than this factor from the median of its point is an outlier."""

MOST_REPLICATES = 10
"""The most replicates of a point."""


@dataclass(frozen=True)
class ReplicateSpread:
    """The variation of one event's times with identical parameters."""

    event: str
    parameters: int
    lines: int
    """The number of timing lines at points measured more than once, without outliers."""
    points: int
    left_out: int
    """The number of outliers."""
    relative: float | None
    """The pooled standard deviation in units of each point's mean; None without repeated points."""

    @property
    def is_large(self) -> bool:
        """Whether points should be measured more than once."""
        return self.relative is not None and self.relative > LARGE_SPREAD

    @property
    def replicates(self) -> int:
        """How often to measure a point for a standard error of at most `LARGE_SPREAD`."""
        if self.relative is None or not self.is_large:
            return 1
        return min(max(2, math.ceil((self.relative / LARGE_SPREAD) ** 2)), MOST_REPLICATES)


def spread_of(timings: EventTimings) -> ReplicateSpread:
    """Return the spread of an event's times, pooled over the points measured repeatedly."""
    points = DistinctPoints.of_rows(timings.params)
    point, seconds = points.point_of_row, timings.seconds
    usable = (points.counts[point] > 1) & (seconds > 0)
    middle = _medians(point, seconds, usable, len(points))[point]
    near = usable & (seconds <= LARGEST_FACTOR * middle) & (seconds >= middle / LARGEST_FACTOR)
    counts = np.bincount(point[near], minlength=len(points))
    twice = near & (counts[point] > 1)
    repeated = counts > 1
    freedom = int((counts[repeated] - 1).sum())
    relative = None
    if freedom:
        sums = np.bincount(point[twice], weights=seconds[twice], minlength=len(points))
        means = sums[point[twice]] / counts[point[twice]]
        relative = math.sqrt(float(((seconds[twice] / means - 1) ** 2).sum()) / freedom)
    return ReplicateSpread(
        timings.event,
        timings.parameters,
        lines=int(np.count_nonzero(twice)),
        points=int(np.count_nonzero(repeated)),
        left_out=int(np.count_nonzero(usable & ~near)),
        relative=relative,
    )


def _medians(point: Ints, seconds: Floats, usable: Flags, points: int) -> Floats:
    """Return the (upper) median of each point's usable times, NaN for a point without any."""
    rows = np.flatnonzero(usable)
    order = rows[np.lexsort((seconds[rows], point[rows]))]
    counts = np.bincount(point[rows], minlength=points)
    middle = np.cumsum(counts) - counts + counts // 2
    medians = np.full(points, np.nan)
    medians[counts > 0] = seconds[order[middle[counts > 0]]]
    return medians


MOST_CATEGORIES = 1000
"""An event with more categories probably has the wrong formula."""


@dataclass(frozen=True, kw_only=True)
class RunStratum(Stratum):
    """Records of one event with one number of parameters, or one category of them."""

    event: str
    category: float | None
    """The value of the formula's category; None for an event without categories."""
    records: Ints
    """The indices of the records in the run, ascending."""

    @property
    def parameters(self) -> int:
        """The number of parameters."""
        return int(self.params.shape[1])


def strata_of(
    run: RunRecords,
    timings: Timings,
    spreads: Mapping[EventKey, ReplicateSpread],
    formulas: Formulas | None,
    replicates: int,
) -> tuple[RunStratum, ...]:
    """Return the strata of a run: events in order of appearance, categories ascending.

    Points are measured `replicates` times, or more often if the spread calls for it. Raise
    `ModelError` for a formula that divides an event into too many categories.
    """
    timed = {samples.key: samples.params for samples in timings}
    kinds, kind = run.kinds()
    groups = np.split(np.argsort(kind, kind="stable"), np.cumsum(np.bincount(kind))[:-1])
    strata: list[RunStratum] = []
    for (event, parameters), rows in zip(kinds, groups, strict=True):
        formula = None if formulas is None else formulas.for_event(event, parameters)
        known = timed.get((event, parameters), np.zeros((0, parameters)))
        params, spread = run.table(rows, parameters), spreads.get((event, parameters))
        times = max(replicates, spread.replicates if spread is not None else 1)
        for category, members, same in _categories(event, formula, params, known):
            label = f"{parameters} {'' if category is None else repr(category)} {event}"
            terms = () if formula is None else formula.terms
            chosen = label, params[members], known[same], terms, times
            records = rows[members]
            strata.append(RunStratum(*chosen, event=event, category=category, records=records))
    return tuple(strata)


def _categories(
    event: str, formula: EventFormula | None, params: Floats, timed: Floats
) -> Iterator[tuple[float | None, Ints, Flags]]:
    """Yield each category of an event with the rows of `params` and `timed` that belong to it."""
    if formula is None or formula.category is None:
        yield None, np.arange(len(params)), np.ones(len(timed), dtype=np.bool_)
        return
    of_rows, of_timed = formula.category.evaluate(params), formula.category.evaluate(timed)
    values, category_index = np.unique(of_rows, return_inverse=True)
    if len(values) > MOST_CATEGORIES:
        raise ModelError(
            f"{formula.where}: the category splits the event {printable(event)!r} "
            f"into {len(values)} classes; at most {MOST_CATEGORIES}"
        )
    order = np.argsort(category_index, kind="stable")
    counts = np.bincount(category_index, minlength=len(values))
    for value, members in zip(values, np.split(order, np.cumsum(counts)[:-1]), strict=True):
        yield float(value), members, np.isnan(of_timed) if np.isnan(value) else of_timed == value
