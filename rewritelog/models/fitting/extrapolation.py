"""Beyond the samples' range: the growth that the upper part of the samples supports.

A function that is best among the samples may explode beyond them: a high power of a parameter that
hardly matters explains noise, and nothing there contradicts it. Families are therefore also fitted
to the samples with small values of a parameter and tried on those with large ones, and predictions
beyond the range continue from its edge as the families grow that did well in both: in the trial
and among the samples. Of two that did as well the one that grows less counts more.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from rewritelog.arrays import Floats, Ints
from rewritelog.models.expressions import Expression
from rewritelog.models.fitting.cross_validation import (
    CrossValidation,
    fit_family,
    solve_families,
)
from rewritelog.models.fitting.families import Family, SelectionSamples, slopes_of
from rewritelog.models.fitting.function import AnyFunction, growth_between

FEWEST = 12
"""With fewer samples nothing can be tried on large ones."""

LARGE = 0.75
"""Families are fitted to samples below this quantile of a parameter, and tried on those above."""

MOST_PARAMETERS = 2
"""Samples are divided by this many parameters at most, those that determine the time most."""

LEAST_CORRELATION = 0.3
"""A parameter whose ranks correlate less with those of the times divides nothing."""

LEAST_S = 1e-300
"""What no time at all counts as in logarithms."""

POWER_OF_ERRORS = 6.0
"""Shares in the growth fall with this power of a family's errors in the trial and held out."""

CREDIT_OF_OWN = 3.0
"""How much more than others a family counts for being what was selected among the samples."""

LEAST_PART = 0.05
"""Families of less weight than this part of the largest have no share."""

LEAST_ERROR = 1e-6
"""No error counts as less than this."""

LARGEST_ERROR = 5.0
"""In logarithms; a larger error counts as this."""

EXACT = 0.01
"""Held-out samples that are met within this mean error need no caution."""

UNTRIED_SHARE = 0.25
"""Of growth that nothing was tried on, this share is that of the family with most credit."""

WITHIN = 0.8
"""A power at the edge of the range is taken from this share of the largest value to there."""

LEAST_SHARE = 0.01
"""No time beyond the range is below this share of the shortest measured one."""


@dataclass(frozen=True)
class Growth:
    """How a function is continued beyond the samples' range."""

    function: AnyFunction | None
    """What it grows with; None where the function goes on by itself."""
    error: float | None
    """Nine in ten errors, as logarithms for each unit of `distance`, were smaller in the trial."""
    least_s: float
    """No prediction beyond the range is shorter."""
    most_s: float | None = None
    """The longest sample: no prediction is longer than it, or than that at the range's edge, times
    each parameter's excess to the power that it has there, in proportion at least."""

    def predict(
        self, inner: AnyFunction, params: Floats, lowest: Floats, highest: Floats
    ) -> Floats:
        """Return the seconds of rows beyond the range."""
        with np.errstate(all="ignore"):
            return self._predict(inner, params, lowest, highest)

    def _predict(
        self, inner: AnyFunction, params: Floats, lowest: Floats, highest: Floats
    ) -> Floats:
        edge = np.clip(params, lowest, highest)
        at_edge = inner.predict(edge)
        if self.function is None:
            seconds = inner.predict(params)
        else:
            seconds = at_edge * growth_between(self.function, edge, params)
        usable = np.isfinite(seconds) & (seconds > 0)
        known = np.where(usable, seconds, at_edge)
        if self.most_s is not None:
            function = inner if self.function is None else self.function
            limit = np.fmax(at_edge, self.most_s) * _supported(function, params, edge, highest)
            known = np.fmin(known, limit)
        return np.where(np.isnan(params).any(axis=1), np.nan, np.maximum(known, self.least_s))


def _supported(function: AnyFunction, params: Floats, edge: Floats, highest: Floats) -> Floats:
    """Return by which factor each row may be longer than what is known, for its large parameters.

    What has the power s of a parameter at the edge of the range may keep it beyond; a steeper term
    that hardly shows there may not take over.
    """
    factor = np.ones(len(params))
    for place in range(params.shape[1]):
        rows = np.flatnonzero((params[:, place] > highest[place]) & (highest[place] > 0))
        if not len(rows):
            continue
        inside = edge[rows].copy()
        inside[:, place] *= WITHIN
        growth = growth_between(function, inside, edge[rows])
        power = np.fmax(np.log(growth) / -math.log(WITHIN), 1.0)
        factor[rows] *= (params[rows, place] / highest[place]) ** power
    return factor


def distance(params: Floats, lowest: Floats, highest: Floats) -> Floats:
    """Return how far rows lie beyond the range: Σ log(p/bound), at twice the bound log 2."""
    edge = np.clip(params, lowest, highest)
    unit = np.where(edge != 0, np.abs(edge), np.maximum(highest - lowest, LEAST_S))
    return np.asarray(np.log1p(np.abs(params - edge) / unit).sum(axis=1))


def growth_of(
    own: Mapping[str, float],
    families: Mapping[str, Family],
    given: SelectionSamples,
    validation: CrossValidation,
) -> Growth:
    """Return the growth that the samples support.

    `own` are the shares of the families selected among the samples.
    """
    samples = given.samples
    positive = samples.seconds[samples.seconds > 0]
    least_s = LEAST_SHARE * float(positive.min()) if len(positive) else 0.0
    most_s = float(positive.max()) if len(positive) else None
    logs: dict[str, list[Floats]] = {name: [] for name in families}
    distances: list[Floats] = []
    for below, above in _divisions(given):
        training = given.part(below)
        rows = samples.params[above]
        low, high = training.samples.params.min(axis=0), training.samples.params.max(axis=0)
        distances.append(distance(rows, low, high))
        for name, family in families.items():
            fitted = fit_family(family, training)
            grown = Growth(None, None, LEAST_S).predict(fitted, rows, low, high)
            logs[name].append(np.log(np.maximum(grown, LEAST_S) / samples.scale_s[above]))
    if not distances:
        careful = _cautious(own, families, given, validation)
        function = None if careful == own else solve_families(careful, families, given)
        return Growth(function, None, least_s, most_s)
    trial = {
        name: float(np.minimum(np.abs(np.concatenate(parts)), LARGEST_ERROR).mean())
        for name, parts in logs.items()
    }
    shares = _shares(own, trial, validation, families, given)
    residual = sum(share * np.concatenate(logs[name]) for name, share in shares.items())
    far = np.concatenate(distances) > 1e-9
    rate = np.abs(np.asarray(residual)[far]) / np.maximum(np.concatenate(distances)[far], 0.1)
    error = float(np.quantile(rate, 0.9)) if far.any() else None
    function = None if shares == own else solve_families(shares, families, given)
    return Growth(function, error, least_s, most_s)


def _cautious(
    own: Mapping[str, float],
    families: Mapping[str, Family],
    given: SelectionSamples,
    validation: CrossValidation,
) -> Mapping[str, float]:
    """Return the shares of an untried growth: one is of the family that knows most beforehand.

    Samples enough for a trial determine the growth by themselves, and so do those that are met
    exactly.
    """
    credited = max(families, key=lambda name: families[name].credit)
    if families[credited].credit <= 1 or len(given.samples) >= FEWEST:
        return own
    held_out_s = validation.predicted_by(own)
    if held_out_s is not None:
        errors = np.abs(held_out_s / given.samples.scale_s - 1)
        if float(errors.mean()) < EXACT:
            return own
    shares = {name: share * (1 - UNTRIED_SHARE) for name, share in own.items()}
    return shares | {credited: shares.get(credited, 0.0) + UNTRIED_SHARE}


def _shares(
    own: Mapping[str, float],
    trial: Mapping[str, float],
    validation: CrossValidation,
    families: Mapping[str, Family],
    given: SelectionSamples,
) -> Mapping[str, float]:
    """Return the shares of the families in the growth.

    Families that choose the same terms are one, with the mean of their weights.
    """
    before = {}
    for name, error in trial.items():
        held_out = max(validation.predictions[name].mean_error, LEAST_ERROR)
        before[name] = -POWER_OF_ERRORS * math.log(max(error, LEAST_ERROR) * held_out)
        before[name] += math.log1p((CREDIT_OF_OWN - 1) * own.get(name, 0.0))
    logs: dict[str, list[float]] = {}
    first: dict[tuple[Expression, ...], str] = {}
    least = -math.inf
    for name in sorted(before, key=lambda name: (-before[name], name not in own)):
        if before[name] < least:
            break
        fitted = fit_family(families[name], given)
        slopes = slopes_of([fitted.predict], given.parameters)
        log = before[name] - float((slopes**2).sum())
        logs.setdefault(first.setdefault(fitted.terms, name), []).append(log)
        least = max(least, log + math.log(LEAST_PART))
    largest = max(log for some in logs.values() for log in some)
    weights = {name: float(np.exp(np.array(some) - largest).mean()) for name, some in logs.items()}
    enough = LEAST_PART * max(weights.values())
    total = sum(weight for weight in weights.values() if weight >= enough)
    falling = sorted(weights, key=lambda name: -weights[name])
    return {name: weights[name] / total for name in falling if weights[name] >= enough}


def _divisions(given: SelectionSamples) -> Iterator[tuple[Ints, Ints]]:
    """Yield samples with small and with large values of each parameter that divides them."""
    samples = given.samples
    count = len(samples)
    if count < FEWEST:
        return
    times = _ranks(samples.seconds)
    correlations = {
        number: abs(float(np.corrcoef(_ranks(samples.params[:, number - 1]), times)[0, 1]))
        for number in given.parameters.used
    }
    strongest = sorted(correlations, key=lambda number: -correlations[number])
    for number in strongest[:MOST_PARAMETERS]:
        if correlations[number] >= LEAST_CORRELATION:
            order = np.argsort(samples.params[:, number - 1], kind="stable")
            yield np.sort(order[: int(LARGE * count)]), np.sort(order[int(LARGE * count) :])


def _ranks(values: Floats) -> Floats:
    """Return the ranks, those of equal values averaged."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    return np.asarray((ends - (counts + 1) / 2)[place])
