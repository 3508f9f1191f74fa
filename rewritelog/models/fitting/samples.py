"""The usable samples of an event, and the scale by which the residual of each is divided.

Relative weights divide by the time itself, so that one timing line that is a hundred times too
short (torn, or rounded) weighs as much as ten thousand others, and pulls the fit towards itself
beyond what a robust loss can undo. Such short outliers are found with a rough fit of the
logarithms, in which too short a time is no worse than one that is too long; their residuals are
then divided by the expected time.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Literal, TypeAlias

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from rewritelog.arrays import (
    GOLDEN,
    Flags,
    Floats,
    Ints,
    Keys,
    column_range,
    median,
    mix,
    occurrences_before,
    sequence,
)
from rewritelog.core import DistinctPoints
from rewritelog.models.base import EventTimings
from rewritelog.models.fitting import tuning
from rewritelog.models.fitting.regression import Loss, least_squares, robust_deviation, row_weights
from rewritelog.running.locks import cached_property

Weighting: TypeAlias = Literal["relative", "uniform"]

MOST_ROUGH, ROUGH_ROUNDS, LEAST_ROUGH_DEVIATION = 4096, 10, 1e-3
"""The most samples in the rough fit, its rounds of reweighting, and what is added to the robust
standard deviation of its residuals, which is 0 if most of them are."""

COARSE = 10.0
"""A time of fewer steps of the clock may be off by a tenth or more."""

LEAST_STEP = 1e-9
"""Times that differ by less than this share of the longest differ by rounding."""

LEAST_SCALE_S = 1e-280
"""The least scale: the inverse of a smaller one could overflow."""


class Samples(Struct, frozen=True, dict=True):
    """Parameters and times of one event, all of them finite."""

    params: Floats
    """Shape (samples, parameters)."""
    seconds: Floats
    """Shape (samples,)."""
    sigma_s: Floats
    """What the residual of each sample is divided by, in seconds, shape (samples,): the time itself
    with relative weights, the mean of all times with uniform ones."""
    first: Flags
    """True for first calls of the event, which pay for cold caches."""
    relative: bool
    """Whether weights are relative."""

    def __len__(self) -> int:
        return len(self.seconds)

    @cached_property
    def distinct(self) -> DistinctPoints:
        """The distinct parameters: a point tells of others once, however often it was timed."""
        return DistinctPoints.of_rows(self.params)

    @cached_property
    def points(self) -> DistinctPoints:
        """The points that are held out: distinct parameters or, if these are few, single samples.

        With fewer than `FEWEST_TO_VALIDATE` distinct ones no point can be held out.
        """
        if len(self.distinct) < tuning.FEWEST_TO_VALIDATE:
            return DistinctPoints.of_rows(np.arange(len(self), dtype=np.float64)[:, None])
        return self.distinct

    @property
    def known_points(self) -> int:
        """How many points tell of a further one.

        If all whole numbers in the range were timed, there is no further one, and `points` count.
        """
        lowest, highest = self.range
        are_all = len(self.distinct) == np.prod(highest - lowest + 1)
        are_all = are_all and ((self.params - lowest) % 1 == 0).all()
        return len(self.points if are_all else self.distinct)

    @property
    def effective_count(self) -> int:
        """How many samples count in the choice of a function: points, if these were timed often.

        With at most two samples per point, on average, the second tells as much as another point.
        """
        return len(self) if len(self) <= 2 * len(self.points) else len(self.points)

    @classmethod
    def of(cls, timings: EventTimings, first: Flags, weighting: Weighting) -> Samples:
        """Return the samples of an event, all finite, with scales for relative or uniform weights.

        `first` is true for first calls of the event.

        Relative weights are Foster's *scaled* least squares, "Designing and Building Parallel
        Programs" (1995), 3.5.3: each residual is divided by its observation.
        """
        params, seconds = timings.params, timings.seconds
        if weighting == "uniform":
            mean = float(np.abs(seconds).mean()) if len(seconds) else 0.0
            return cls(params, seconds, np.full(len(seconds), mean or 1.0), first, relative=False)
        return cls(params, seconds, _scales_of(seconds), first, relative=True)

    @cached_property
    def times_s(self) -> Floats:
        """The times as functions in logarithms take them, above 0: the scale of relative weights.

        Shape (samples,).
        """
        return self.sigma_s if self.relative else _scales_of(self.seconds)

    @cached_property
    def range(self) -> tuple[Floats, Floats]:
        """The lowest and the highest value of each parameter; there must be a sample."""
        return column_range(self.params)

    def rank_correlations(self, numbers: Sequence[int]) -> dict[int, float]:
        """Return Spearman's rank correlation of each parameter with the times.

        It is 0 for a parameter or times that do not vary. `numbers` count from 1.
        """
        times = _midranks(self.seconds)
        ranks = {number: _midranks(self.params[:, number - 1]) for number in numbers}
        return {
            number: float(np.corrcoef(ranks_of_parameter, times)[0, 1])
            if np.ptp(ranks_of_parameter) and np.ptp(times)
            else 0.0
            for number, ranks_of_parameter in ranks.items()
        }

    def part(self, rows: Flags | Ints) -> Samples:
        """Return the samples that a mask or indices select, in their order."""
        return replace(
            self,
            params=self.params[rows],
            seconds=self.seconds[rows],
            sigma_s=self.sigma_s[rows],
            first=self.first[rows],
        )

    def random_part(self, most: int) -> Samples:
        """Return a pseudo-random part of at most this many samples, always the same one."""
        return self if len(self) <= most else self.part(self.random_rows(most))

    def random_rows(self, most: int) -> Ints:
        """Return the rows of a pseudo-random part of at most this many samples, ascending.

        Where few points have most of the samples, these do not keep out those of other points: a
        part has one sample of each point before it has a second one of any.
        """
        total, rows = len(self), random_rows(len(self), most)
        if total <= most:
            return rows
        points = DistinctPoints.of_rows(self.params[rows])  # sorting all may take a second
        if len(points) > 1 and not are_uneven(points.counts[points.point_of_row]):
            return rows
        order = np.argsort(sequence(total))
        turns = occurrences_before(self.distinct.point_of_row[order])
        return np.sort(order[np.argsort(turns, kind="stable")[:most]])


def are_uneven(counts: Ints) -> bool:
    """Return whether few points have most of the samples, given the number at each one's point."""
    return float((1 / counts).mean() * counts.mean()) > tuning.UNEVEN


def usable_samples(timings: EventTimings) -> tuple[EventTimings, Flags]:
    """Return the samples that are finite, and which of them are first calls of the event.

    Their order is pseudo-random and depends on their numbers alone. Folds and parts are drawn by
    position, and sums are rounded in order: in the order of the lines a fit would depend on which
    rank happened to print first. Last bits, in which versions of numpy differ, decide between
    samples only where all other bits are equal.
    """
    usable = timings.usable()
    half = np.uint64(32)
    keys = _hashes(usable, np.float32) >> half << half | _hashes(usable, np.float64) >> half
    order = np.argsort(keys, kind="stable")
    return usable.part(order), usable.are_first[order]


def _hashes(samples: EventTimings, precision: type[np.floating[Any]]) -> Keys:
    """Return a hash of the numbers of each sample, rounded to a precision."""
    hashes = np.zeros(len(samples.seconds), dtype=np.uint64)
    for column in (*samples.params.T, samples.seconds):
        with np.errstate(over="ignore"):
            rounded = column.astype(precision).astype(np.float64) + 0.0  # -0 + 0 is 0
        hashes = mix((hashes + GOLDEN) ^ rounded.view(np.uint64))
    return hashes


def coarse_step(seconds: Floats) -> float:
    """Return the clock's step in seconds if half of the times are below `COARSE` steps, else 0.

    It is the least difference between distinct times, 0 among them, and 0 unless many repeat.
    """
    middle, distinct = median(seconds), np.unique(np.append(seconds, 0.0))
    if len(distinct) > len(seconds) / 2:
        return 0.0
    steps = np.diff(distinct)
    step = float(steps[steps > LEAST_STEP * distinct[-1]].min(initial=np.inf))
    return step if middle < COARSE * step < np.inf else 0.0


@lru_cache(maxsize=8)
def random_rows(total: int, count: int) -> Ints:
    """Return the rows of the `count` smallest of the first `total` pseudo-random numbers."""
    if total <= count:
        return np.arange(total)
    numbers = sequence(total)
    rows = np.sort(np.argpartition(numbers, count)[:count])
    rows.flags.writeable = False
    return rows


def _scales_of(seconds: Floats) -> Floats:
    """Return the sizes of the times, at least a share of their median, which stands for a 0."""
    size = np.abs(seconds)
    positive = size[size > 0]
    middle = max(median(positive), LEAST_SCALE_S) if len(positive) else 1.0
    return np.where(size > 0, np.maximum(size, tuning.LEAST_SHARE_OF_MEDIAN * middle), middle)


def _midranks(values: Floats) -> Floats:
    """Return the ranks, averaged over equal values (midranks)."""
    _, index, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    return np.asarray((ends - (counts + 1) / 2)[index])


def without_short_scales(samples: Samples, loss: Loss) -> Samples:
    """Return the samples with the expected time as the scale of each short outlier.

    A rough fit to the times above 0 says what is expected. The scale of a time of 0 is the expected
    time if that is longer than the median. Where less than a thousandth of the median is expected,
    a scale may be as short. Without a robust loss, relative weights or enough samples, scales stay
    as they are.
    """
    fewest = tuning.FEWEST_PER_NUMBER * (1 + 2 * samples.params.shape[1])
    sizes = np.abs(samples.seconds)
    if loss != "huber" or not samples.relative or np.count_nonzero(sizes) < fewest:
        return samples
    part = samples.part(sizes > 0).random_part(MOST_ROUGH)
    units = np.where(part.params != 0, np.abs(part.params), np.inf).min(axis=0)
    columns, logs = _rough_columns(part.params, units), np.log(part.sigma_s)
    weights, deviation = np.ones(len(logs)), 0.0
    for _ in range(ROUGH_ROUNDS):
        coefficients = least_squares(columns * weights[:, None], logs * weights)
        rest = logs - columns @ coefficients
        deviation = robust_deviation(rest, LEAST_ROUGH_DEVIATION)
        weights = row_weights(rest, deviation)
    least = max(np.log(tuning.SHORT), tuning.SHORT_BY_DEVIATIONS * deviation)

    expected = (_rough_columns(samples.params, units) @ coefficients).clip(-600.0, 600.0)
    expected_s, own_s = np.exp(expected), samples.sigma_s
    scales_s = np.where(sizes > 0, expected_s.clip(sizes, own_s), np.maximum(expected_s, own_s))
    short = np.log(scales_s) < expected - least
    return replace(samples, sigma_s=np.where(short, expected_s, scales_s))


def _rough_columns(params: Floats, units: Floats) -> Floats:
    """Return the regressors of the rough fit: 1, and arsinh(p/u) of each parameter and its square.

    With u the least size that is not 0, that is close to log(2p/u) for all positive parameters.
    """
    logs = np.arcsinh(np.clip(params / units, -1e300, 1e300))
    return np.column_stack((np.ones(len(params)), logs, logs**2))
