"""How much times of identical parameters vary."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from rewritelog.arrays import Flags, Floats, Ints
from rewritelog.models.base import EventTimings
from rewritelog.models.equal_rows import DistinctPoints

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
    timings = timings.usable()
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
    """Return the median of each point's usable times, NaN for a point without any.

    Of two times it is the longer one: if they differ by more than `LARGEST_FACTOR`, either may be
    wrong, and the point says nothing.
    """
    rows = np.flatnonzero(usable)
    rising = seconds[rows[np.lexsort((seconds[rows], point[rows]))]]
    counts = np.bincount(point[rows], minlength=points)
    first, medians = np.cumsum(counts) - counts, np.full(points, np.nan)
    some, upper = counts > 0, first + counts // 2
    lower = np.where(counts > 2, first + (counts - 1) // 2, upper)
    medians[some] = (rising[lower[some]] + rising[upper[some]]) / 2
    return medians
