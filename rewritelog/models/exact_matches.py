"""Exact matches: mean times of the same parameters, and their weight beside the fit."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from rewritelog.arrays import Flags, Floats, Ints
from rewritelog.core import DistinctPoints
from rewritelog.models.base import EventTimings
from rewritelog.models.fitting import tuning
from rewritelog.models.fitting.diagnosis import ratios_of
from rewritelog.models.form import Form, ParameterRows, misfit, require_shape
from rewritelog.models.metrics import relative_errors
from rewritelog.running.locks import cached_property

ExactMatch: TypeAlias = Literal["auto", "always", "never"]


class ExactMatches(Form, frozen=True, dict=True, rename={"rows": "params", "counts": "samples"}):
    """The distinct parameter sets of one event's samples, each with the mean of its times."""

    seconds: Floats
    """Mean time of each set, shape (sets,)."""
    counts: Ints
    """Number of samples of each set, shape (sets,)."""
    rows: ParameterRows
    """The sets, shape (sets, parameters)."""
    weights: Floats
    """The weight of each set's mean, in [0, 1]; the fit has the rest."""
    ratios: Floats
    """Measured / predicted seconds of samples measured again, ascending: each is predicted by the
    others with its parameters, and the fit."""

    def __post_init__(self) -> None:
        require_shape(".seconds", self.seconds, len(self.rows))
        require_shape(".samples", self.counts, len(self.rows))
        require_shape(".weights", self.weights, len(self.rows))
        require_shape(".ratios", self.ratios, len(self.ratios))
        if not ((self.weights >= 0) & (self.weights <= 1)).all():
            raise misfit("must be between 0 and 1", ".weights")

    @cached_property
    def points(self) -> DistinctPoints:
        """The sets, which all differ."""
        return DistinctPoints.of_rows(self.rows)

    @property
    def mean_error(self) -> float | None:
        """Mean of |predicted − measured| / measured over the samples measured again."""
        positive = self.ratios[self.ratios > 0]
        return float(np.abs(1 / positive - 1).mean()) if len(positive) else None

    def blend(self, params: Floats, seconds: Floats) -> tuple[Floats, Flags]:
        """Return the weighted means of the fit's and the measured seconds; flag exact matches."""
        index = self.points.find(params)
        known = index >= 0
        weight = np.where(known, self.weights[index], 0.0)
        means = np.where(known, self.seconds[index], 0.0)
        blended = np.where(weight == 1, means, seconds + weight * (means - seconds))
        unknown = np.isnan(seconds) & known & (weight > 0)
        return np.where(unknown, means, blended), known & (weight >= tuning.DETERMINED)


def exact_matches_of(
    usable: EventTimings, mode: ExactMatch, held_out: EventTimings, predicted_s: Floats
) -> ExactMatches | None:
    """Return the measured times with their weights; None if they have none.

    `predicted_s` are the seconds of the held-out samples, each predicted by a fit without it.
    With `always` measured times have all the weight. With `auto` their weight is found with the
    samples that were measured repeatedly: each one is predicted by the mean of the others with its
    parameters, and by the fit. The mean of k measurements has the variance σ²/k and the fit τ², so
    that the weighted mean of least variance has the weight λk / (1 + λk) on the measured mean,
    where λ = τ²/σ². The λ chosen is that with the least errors on those samples, and 0 unless
    another one is clearly better.
    """
    if mode == "never" or (mode == "auto" and len(held_out.seconds) < tuning.FEWEST_AGAIN):
        return None
    points, variance_ratio = DistinctPoints.of_rows(usable.params), np.inf
    means = mean_times(points, usable.seconds)
    again = _timed_again(means, points, held_out, predicted_s)
    if mode == "auto":
        variance_ratio = _variance_ratio(again)
    if variance_ratio == 0:
        return None
    # in an order that does not depend on that of the samples
    order = np.lexsort((means, *points.params.T))
    counts = points.counts[order]
    weights = _weight(variance_ratio, counts)
    ratios = ratios_of(again.measured_s, again.blended(variance_ratio))
    return ExactMatches(means[order], counts, points.params[order], weights, ratios)


def mean_times(points: DistinctPoints, seconds: Floats) -> Floats:
    """Return the mean of the times of each point, which have to be finite.

    They are added in the order of the samples, so that the result is the same to the bit for the
    same samples. The mean of equal times is exactly that time.
    """
    base = seconds[points.rows.first]
    weights = seconds - base[points.point_of_row]
    sums = np.bincount(points.point_of_row, weights=weights, minlength=len(points))
    return np.asarray(base + sums / points.counts)


def _weight(variance_ratio: float, counts: Ints) -> Floats:
    if np.isinf(variance_ratio):
        return np.ones(len(counts))
    return np.asarray(variance_ratio * counts / (1 + variance_ratio * counts))


class _TimedAgain(NamedTuple):
    """The held-out samples with parameters that others have too."""

    measured_s: Floats
    predicted_s: Floats
    """What a fit without the sample predicts."""
    mean_s: Floats
    """The mean of the other samples with its parameters."""
    others: Ints
    """Their number."""

    def blended(self, variance_ratio: float) -> Floats:
        """Return the weighted means of what the fit and the others predict."""
        weights = _weight(variance_ratio, self.others)
        return self.predicted_s + weights * (self.mean_s - self.predicted_s)


def _timed_again(
    means: Floats, points: DistinctPoints, held_out: EventTimings, predicted_s: Floats
) -> _TimedAgain:
    index = points.find(held_out.params)
    again = (index >= 0) & (points.counts[index] > 1) & (held_out.seconds > 0)
    index, measured_s = index[again], held_out.seconds[again]
    others = points.counts[index] - 1
    mean_s = (means[index] * points.counts[index] - measured_s) / others
    return _TimedAgain(measured_s, predicted_s[again], mean_s, others)


def _variance_ratio(again: _TimedAgain) -> float:
    """Return λ, the variance of the fit's errors divided by that of a single measurement."""
    if len(again.measured_s) < tuning.FEWEST_AGAIN:
        return 0.0
    best, least = 0.0, _limited_errors(again.predicted_s, again.measured_s)
    for variance_ratio in tuning.VARIANCE_RATIOS[1:]:
        errors = _limited_errors(again.blended(variance_ratio), again.measured_s)
        gain = least - errors
        if gain.mean() > gain.std() / np.sqrt(len(gain)):
            best, least = variance_ratio, errors
    return best


def _limited_errors(predicted: Floats, measured: Floats) -> Floats:
    """Return the relative errors, each limited to 1, which is that of no prediction."""
    return np.fmin(relative_errors(predicted, measured), 1.0)
