"""Functions of one term in one parameter, which a person can compare with the fit of all."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rewritelog.arrays import Flags, Floats, Ints
from rewritelog.models.base import EventTimings, has_slow_first_call
from rewritelog.models.expressions import Expression
from rewritelog.models.fitting.candidates import Ignored, Parameters
from rewritelog.models.fitting.cross_validation import folds_of
from rewritelog.models.fitting.event_fit import usable_part
from rewritelog.models.fitting.samples import Samples, Weighting
from rewritelog.models.fitting.short_outliers import without_short_scales
from rewritelog.models.fitting.solving import HUBER, Loss, robust_spread
from rewritelog.models.metrics import mean_relative_error, r_squared

MOST_SAMPLES = 4096
"""Functions are fitted to a pseudo-random part of at most this many samples."""

FEWEST_SAMPLES = 4
"""With fewer samples there is nothing to hold out."""

ROUNDS = 3
"""Iterations of the reweighted least squares with Huber's loss."""


@dataclass(frozen=True)
class SingleTermFunction:
    """seconds = constant + slope · term, where the term is a function of one parameter."""

    parameter: int
    """Counted from 1."""
    term: Expression
    constant_s: float
    slope_s: float
    """Seconds per unit of the term."""
    held_out_r2: float | None
    """R² over held-out samples."""
    held_out_error: float | None
    """Mean of |predicted − measured| / measured over held-out samples."""

    def predict(self, params: Floats) -> Floats:
        """Return the seconds of each row, shape (rows, parameters)."""
        return self.constant_s + self.slope_s * self.term.evaluate(params)


@dataclass(frozen=True)
class SingleTermFunctions:
    """All functions of one term that were tried for an event."""

    functions: tuple[SingleTermFunction, ...]
    ignored: tuple[Ignored, ...]
    """Parameters that no term uses, and why."""

    def of(self, parameter: int) -> tuple[SingleTermFunction, ...]:
        """Return the functions of a parameter, the one with the largest held-out R² first."""
        mine = [one for one in self.functions if one.parameter == parameter]
        return tuple(sorted(mine, key=_by_r2))


def _by_r2(function: SingleTermFunction) -> float:
    return np.inf if function.held_out_r2 is None else -function.held_out_r2


def single_term_functions(
    timings: EventTimings, weights: Weighting = "relative", loss: Loss = "huber"
) -> SingleTermFunctions:
    """Fit each function of a single parameter, with a constant, and cross-validate it.

    The folds are those of the choice of a family.
    """
    usable = usable_part(timings)
    samples = Samples.weighted(
        usable.params, usable.seconds, weights, slow_first=has_slow_first_call(usable.event)
    ).drawn(MOST_SAMPLES)
    if not len(samples) or not samples.params.shape[1]:
        return SingleTermFunctions((), ())
    with np.errstate(all="ignore"):
        robust = loss == "huber"
        samples = without_short_scales(samples) if robust else samples
        parameters = Parameters.of_samples(samples.params)
        tried = [
            _fit_term(number, term, samples, robust=robust)
            for number in parameters.used
            for term in parameters.functions(number)
        ]
    return SingleTermFunctions(tuple(one for one in tried if one is not None), parameters.ignored)


def _fit_term(
    parameter: int, term: Expression, samples: Samples, *, robust: bool
) -> SingleTermFunction | None:
    """Return the function of a term; None if the term is constant or not finite."""
    values = term.evaluate(samples.params)
    middle, width = float(values.mean()), float(values.std())
    if not (np.isfinite(width) and width > 0):
        return None
    folds = folds_of(len(samples)) if len(samples) >= FEWEST_SAMPLES else None
    level, slope = _fit_lines((values - middle) / width, samples, folds, robust=robust)
    r2 = error = None
    if folds is not None:
        predicted = level[folds] + slope[folds] * (values - middle) / width
        r2 = r_squared(predicted, samples.seconds)
        error = mean_relative_error(predicted, samples.seconds)
    slope_s = float(slope[-1]) / width
    constant_s = float(level[-1]) - slope_s * middle
    if not (np.isfinite(slope_s) and np.isfinite(constant_s)):
        return None
    return SingleTermFunction(parameter, term, constant_s, slope_s, r2, error)


def _fit_lines(
    values: Floats, samples: Samples, folds: Ints | None, *, robust: bool
) -> tuple[Floats, Floats]:
    """Return level and slope of the line fitted without each fold, and last to all samples."""
    used: Flags = np.ones((1, len(samples)), dtype=np.bool_)
    if folds is not None:
        used = np.vstack((np.arange(folds.max() + 1)[:, None] != folds, used))
    weights = np.where(used, samples.weights**2, 0.0)
    factors = np.ones(used.shape)
    for _ in range(ROUNDS if robust else 1):
        level, slope = _weighted_lines(values, samples.seconds, weights * factors)
        errors = np.abs(level[:, None] + slope[:, None] * values - samples.seconds)
        errors /= samples.scale_s
        corner = HUBER * np.array([robust_spread(e[u]) for e, u in zip(errors, used, strict=True)])
        factors = np.minimum(1.0, corner[:, None] / np.maximum(errors, 1e-300))
    return level, slope


def _weighted_lines(values: Floats, seconds: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Return level and slope of the weighted least-squares line for each row of weights.

    `weights` has the shape (lines, samples), the results the shape (lines,).
    """
    total = weights.sum(axis=1)
    middle, mean_s = weights @ values / total, weights @ seconds / total
    distance = values - middle[:, None]
    squares = (weights * distance**2).sum(axis=1)
    products = (weights * distance * (seconds - mean_s[:, None])).sum(axis=1)
    slope = np.where(squares > 0, products / np.where(squares > 0, squares, 1.0), 0.0)
    return mean_s - slope * middle, slope
