"""Exact matches: usual times of parameters that were timed, and their weight against the fit."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from rewritelog.arrays import Flags, Floats, Ints
from rewritelog.core import DistinctPoints
from rewritelog.models.base import EventTimings
from rewritelog.models.fitting import tuning
from rewritelog.models.fitting.diagnosis import ratios_of, thinned, total_ratio_of
from rewritelog.models.fitting.samples import coarse_step
from rewritelog.models.form import (
    Form,
    NotNegative,
    ParameterRows,
    defect,
    require_ascending,
    require_shape,
)
from rewritelog.models.metrics import relative_errors
from rewritelog.running.locks import cached_property

ExactMatch: TypeAlias = Literal["auto", "always", "never"]


ROUNDING = 1e-9
"""What is left of a sum of times without one of them is 0 below this share of the sum."""


class ExactMatches(Form, frozen=True, dict=True, rename={"rows": "params", "counts": "samples"}):
    """The distinct parameter sets of one event's samples, each with its usual time."""

    seconds: Floats
    """The median of the times of each set, or their mean with `always`, shape (sets,)."""
    counts: Ints
    """Number of samples of each set, shape (sets,)."""
    rows: ParameterRows
    """The sets, shape (sets, parameters)."""
    weights: Floats
    """The weight of each set's time, in [0, 1]; the fit has the rest."""
    ratios: Floats
    """Measured / predicted seconds, ascending, of replicates: the fit, blended with the other
    times of the set, predicts each of them. Empty if these samples are too few."""
    total_ratio: NotNegative = 1.0
    """The factor that corrects sums of medians of three times or more (`total_ratio_of`)."""

    def __post_init__(self) -> None:
        require_shape(".seconds", self.seconds, len(self.rows))
        require_shape(".samples", self.counts, len(self.rows))
        require_shape(".weights", self.weights, len(self.rows))
        require_ascending(".ratios", self.ratios)
        if not ((self.weights >= 0) & (self.weights <= 1)).all():
            raise defect("must be between 0 and 1", ".weights")

    @cached_property
    def points(self) -> DistinctPoints:
        """The sets, which all differ."""
        return DistinctPoints.of_rows(self.rows)

    @property
    def mean_error(self) -> float | None:
        """Mean of |predicted − measured| / measured over the replicates."""
        positive = self.ratios[self.ratios > 0]
        with np.errstate(over="ignore"):  # of a damaged file
            return float(np.abs(1 / positive - 1).mean()) if len(positive) else None

    @property
    def are_exact(self) -> Flags:
        """Which sets have enough weight for exact matches, shape (sets,)."""
        return np.asarray(self.weights >= tuning.DETERMINED)

    @property
    def total_ratios(self) -> Floats:
        """The factor of each set's time for sums; medians of one or two times are their means."""
        return np.where(self.counts > 2, self.total_ratio, 1.0)

    def is_in(self, params: Floats, sets: Flags) -> Flags:
        """Return which rows of `params` are one of the sets that the mask `sets` selects."""
        return np.asarray(np.append(sets, False)[self.points.find(params)])

    def common_error(self, of_one: float, of_fit: float) -> float:
        """Return the relative standard error of the sum of the sets' times, one call of each.

        The error of a set with k samples is `of_one` / √k, but `of_fit` with a single one, which
        does not show how much times vary.
        """
        errors = np.where(self.counts > 1, of_one / np.sqrt(self.counts), of_fit)
        sizes = np.abs(self.seconds)
        sizes /= sizes.max(initial=0.0) or 1.0
        return float(np.linalg.norm(sizes * errors) / (sizes.sum() or 1.0))

    def blend(self, params: Floats, seconds: Floats) -> tuple[Floats, Flags]:
        """Return the fit's `seconds` blended with measured ones; also which rows are exact."""
        index = self.points.find(params)
        known = index >= 0
        weight = np.where(known, self.weights[index], 0.0)
        timed_s = np.where(known, self.seconds[index], 0.0)
        blended = np.where(weight == 1, timed_s, seconds + weight * (timed_s - seconds))
        unknown = np.isnan(seconds) & known & (weight > 0)
        return np.where(unknown, timed_s, blended), np.append(self.are_exact, False)[index]

    @np.errstate(all="ignore")  # extreme numbers may overflow
    def measured_shares(self, seconds: Floats) -> Floats:
        """Return the share of the measured time in each set's blend with the fit's `seconds`."""
        blended_s, _ = self.blend(self.rows, seconds)
        shares = np.where(blended_s > 0, self.weights * self.seconds / blended_s, 0.0)
        return np.where(np.isnan(seconds), 1.0, np.minimum(shares, 1.0))


def exact_matches_of(
    usable: EventTimings,
    mode: ExactMatch,
    held_out: EventTimings,
    predicted_s: Floats,
    *,
    knows_other_points: bool = True,
) -> ExactMatches | None:
    """Return the usual measured times with their weights; None if these are 0.

    `predicted_s` are the seconds of the held-out samples, each predicted by a fit without it. With
    `always` the usual time is the mean, with all the weight. With `auto` it is the median, which a
    disturbed sample hardly moves. Its weight is found with samples of repeated parameters: each one
    is predicted by the median of the others with its parameters, and by the fit. The median of k
    samples has about the variance σ²/k, and the fit τ²; the weighted mean of both has the least
    variance if the median has the weight λk / (1 + λk), where λ = τ²/σ². λ is the value with the
    least errors on those samples, and 0 unless another value is clearly better. If it is unknown
    whether the fit is right for other parameters (not `knows_other_points`), and there are
    enough replicates, all the weight is on the median or, with a coarse clock, on the mean.
    """
    if mode == "never":
        return None
    times, variance_ratio = _Times.of(usable), np.inf
    are_means = mode == "always" or (not knows_other_points and coarse_step(usable.seconds) > 0)
    means = mean_times(times.points, usable.seconds) if are_means else None
    replicates = _replicates_of(times, held_out, predicted_s, means)
    are_few = len(replicates.measured_s) < tuning.FEWEST_REPLICATES
    if mode == "auto" and knows_other_points and not are_few:
        variance_ratio = _variance_ratio(replicates)
    if variance_ratio == 0 or (mode == "auto" and are_few):
        return None
    seconds = times.medians() if means is None else means
    ratios, total_ratio = np.zeros(0), 1.0
    if not are_few:
        blended_s = replicates.blended(variance_ratio)
        ratios = thinned(ratios_of(replicates.measured_s, blended_s, replicates.others + 1))
        if means is None:
            point = times.points.point_of_row
            rows = (times.points.counts[point] > 2) & ~usable.are_first
            point = point[rows]
            total_ratio = total_ratio_of(usable.seconds[rows], seconds[point], point)
    # in an order that does not depend on that of the samples
    order = np.lexsort((seconds, *times.points.params.T))
    counts = times.points.counts[order]
    return ExactMatches(
        seconds[order],
        counts,
        times.points.params[order],
        _weight(variance_ratio, counts),
        ratios,
        total_ratio,
    )


class _Times(NamedTuple):
    """The times of each point, a distinct set of parameters."""

    points: DistinctPoints
    ascending: Floats
    """The times of the first point in ascending order, then those of the second one, and so on."""
    starts: Ints
    """The index at which the times of each point begin, and finally the number of times."""

    @classmethod
    def of(cls, samples: EventTimings) -> _Times:
        points = DistinctPoints.of_rows(samples.params)
        order, starts = points.in_order(samples.seconds)
        return cls(points, samples.seconds[order], starts)

    def medians(self) -> Floats:
        """Return the median of each point's times."""
        first, counts = self.starts[:-1], self.points.counts
        low, high = first + (counts - 1) // 2, first + counts // 2
        return np.asarray((self.ascending[low] + self.ascending[high]) / 2)

    def medians_of_others(self, index: Ints, seconds: Floats) -> Floats:
        """Return, for each point's index and one of its times, the median of its other times."""
        starts, others = self.starts[index], self.points.counts[index] - 1
        low, high = (
            self.ascending[place + (self.ascending[place] >= seconds)]
            for place in (starts + (others - 1) // 2, starts + others // 2)
        )
        return np.asarray((low + high) / 2)


def mean_times(points: DistinctPoints, seconds: Floats) -> Floats:
    """Return the mean of each point's times, which have to be finite.

    Times are added in the order of the samples, so that the same samples give the same bits. The
    mean of equal times is exactly that time.
    """
    base = seconds[points.rows.first]
    return np.asarray(base + points.means(seconds - base[points.point_of_row]))


def _weight(variance_ratio: float, counts: Ints) -> Floats:
    if np.isinf(variance_ratio):
        return np.ones(len(counts))
    return np.asarray(variance_ratio * counts / (1 + variance_ratio * counts))


class _Replicates(NamedTuple):
    """The held-out samples whose parameters other samples share, without first calls."""

    measured_s: Floats
    predicted_s: Floats
    """What a fit without the sample predicts."""
    others_s: Floats
    """The median, or mean, of the other samples with its parameters."""
    others: Ints
    """The number of these others."""

    def blended(self, variance_ratio: float) -> Floats:
        """Return the weighted means of `predicted_s` and `others_s`."""
        weights = _weight(variance_ratio, self.others)
        blended_s = self.predicted_s + weights * (self.others_s - self.predicted_s)
        return np.where(weights == 1, self.others_s, blended_s)


def _replicates_of(
    times: _Times, held_out: EventTimings, predicted_s: Floats, means: Floats | None
) -> _Replicates:
    """Return the held-out replicates; without `means` of points, others count by medians."""
    index, counts = times.points.find(held_out.params), times.points.counts
    are_replicated = (index >= 0) & (counts[index] > 1) & (held_out.seconds > 0)
    are_replicated &= ~held_out.are_first
    index, measured_s = index[are_replicated], held_out.seconds[are_replicated]
    others = counts[index] - 1
    if means is None:
        others_s = times.medians_of_others(index, measured_s)
    else:
        sums_s = means[index] * counts[index]
        rest_s = sums_s - measured_s
        others_s = np.where(np.abs(rest_s) > ROUNDING * sums_s, rest_s, 0.0) / others
    return _Replicates(measured_s, predicted_s[are_replicated], others_s, others)


def _variance_ratio(replicates: _Replicates) -> float:
    """Return λ, the variance of the fit's errors divided by that of a single measurement."""
    best, least = 0.0, _limited_errors(replicates.predicted_s, replicates.measured_s)
    for variance_ratio in tuning.VARIANCE_RATIOS[1:]:
        errors = _limited_errors(replicates.blended(variance_ratio), replicates.measured_s)
        gain = least - errors
        if gain.mean() > gain.std() / np.sqrt(len(gain)):
            best, least = variance_ratio, errors
    return best


def _limited_errors(predicted: Floats, measured: Floats) -> Floats:
    """Return the relative errors, at most 1, which is also the error without a prediction."""
    return np.fmin(relative_errors(predicted, measured), 1.0)
