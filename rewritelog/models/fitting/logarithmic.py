"""Families fitted to logarithms: products of powers, with breaks, or with shrinkage.

On logarithmic scales every kernel whose time is a power of its parameters is a straight line,
errors in per cent count the same at all sizes, and a flag, a threshold or a change of slope is one
more factor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np

from rewritelog.arrays import Flags, Floats, distinct
from rewritelog.models.expressions import Expression, parse
from rewritelog.models.fitting import tuning
from rewritelog.models.fitting.candidates import ONE
from rewritelog.models.fitting.constant_part import TimesBesideConstant, times_beside_constant
from rewritelog.models.fitting.design import SelectionSamples
from rewritelog.models.fitting.log_terms import (
    LogTerm,
    break_at,
    breaks,
    curvatures,
    fewest_beyond,
    powers_and_indicators,
    product_of,
    product_of_powers,
    smooth_factors,
)
from rewritelog.models.fitting.regression import least_squares
from rewritelog.models.fitting.selection import select

NEW_SHARE = 1e-8
"""A column is tried beside others only if at least this share of its squared length is orthogonal
to them."""

PRIOR_EXPONENTS = ((0.0, 0.35), (1.0, 0.35), (0.5, 0.12), (2.0, 0.1), (1.5, 0.05), (3.0, 0.03))
"""Exponents that kernels usually have, each with its prior probability, most probable first."""

COMMON_EXPONENTS = (0.0, 0.5, 1.0)
"""Alternative prior means, each one for all exponents together."""

MOST_CHOICES = 300
"""At most this many combinations of prior means are compared."""

PRIOR_DEVIATIONS = (0.1, 0.3)
"""Prior standard deviations of exponents about their means."""

INDICATOR_DEVIATION = 1.0
"""Prior standard deviation of the logarithm of an indicator's factor."""

CURVATURES = (1e-4, 0.03, 0.1)
"""Prior standard deviations of curvatures, the changes of an exponent per unit of log p."""

NOISES = (0.05, 0.15, 0.5, 1.0)
"""Standard deviations of log t about the power law."""

LEVEL_VARIANCE = 100.0
"""Prior variance of the constant in log t: practically uninformative."""


def power_law_with_breaks(selection: SelectionSamples) -> tuple[Expression, ...]:
    """Choose powers with breaks, and factors for single values and beyond thresholds.

    Regression splines of degree 1 in logarithms, selected forward: J. Friedman, "Multivariate
    adaptive regression splines", Annals of Statistics 19 (1991). A constant part of the times is
    the term 1 beside their product.
    """
    samples, parameters = selection.samples, selection.parameters

    def make(params: Floats) -> list[LogTerm]:
        return [*smooth_factors(params, parameters), *breaks(params, parameters)]

    terms, columns = selection.table.candidates("breaks", make)
    columns = np.column_stack([np.ones(len(samples)), columns[selection.rows]])
    times_s = samples.sigma_s
    rest = times_beside_constant(columns[:, : 1 + len(parameters.used)], times_s)
    for _ in range(3):
        taken, size = _selected(columns, rest)
        rest = rest.near(columns[:, taken] @ size, times_s)
    chosen = [terms[index - 1] for index in taken if index]
    chosen = _moved(chosen, selection, rest.weights, rest.logs)
    columns = selection.values([term.column for term in chosen])
    taken, size = _selected(np.column_stack((np.ones(len(samples)), columns)), rest)
    factors = [
        chosen[index - 1].factor(float(np.clip(exponent, *tuning.EXPONENTS)))
        for index, exponent in zip(taken, size, strict=True)
        if index
    ]
    product = product_of(factors)
    return (product, ONE) if rest.constant_s and factors else (product,)


def _selected(columns: Floats, times: TimesBesideConstant) -> tuple[list[int], Floats]:
    """Return the columns that are taken, the constant first, and their coefficients."""
    rows, target = columns * times.weights[:, None], times.logs * times.weights
    chosen = select(rows, target, non_negative=False, constant=0)
    taken = [0, *(index for index in chosen if index)]
    return taken, least_squares(rows[:, taken], target)


def _moved(
    terms: Sequence[LogTerm], selection: SelectionSamples, weights: Floats, times: Floats
) -> list[LogTerm]:
    """Return the terms with each break moved to where it explains most beside the other terms."""
    moved = list(terms)
    ones = np.ones((len(times), 1))
    columns = np.hstack((ones, selection.values([term.column for term in terms])))
    columns *= weights[:, None]
    for index, term in enumerate(terms):
        if not term.broken:
            continue
        values = selection.values([parse(term.broken)])[:, 0]
        knots = _break_positions(values, term.knot)
        knots = knots[knots > 0] if term.hinge else knots
        if term.hinge:
            rows = np.log(np.maximum(values[:, None] / knots, 1.0))
        else:
            rows = (values[:, None] > knots).astype(np.float64)
        tried = np.column_stack((columns[:, index + 1], rows * weights[:, None]))
        best = _best_beside(np.delete(columns, index + 1, axis=1), tried, times * weights)
        if best:
            moved[index] = break_at(term.broken, float(knots[best - 1]), hinge=term.hinge)
            columns[:, index + 1] = tried[:, best]
    return moved


def _break_positions(sizes: Floats, knot: float) -> Floats:
    """Return possible positions of a break: midpoints between sample values near `knot`.

    Of too many, evenly spread ones are returned. Enough samples lie on either side of each.
    """
    rising = np.sort(sizes)
    count, index = len(rising), int(np.searchsorted(rising, knot))
    fewest, near = fewest_beyond(count), int(tuning.NEAR_BREAK * count)
    first, last = max(fewest - 1, index - near), min(count - fewest, index + near)
    inner = distinct(rising[first : last + 1])
    between = (inner[1:] + inner[:-1]) / 2
    indices = np.linspace(0, len(between) - 1, min(len(between), tuning.MOST_POSITIONS))
    return np.asarray(between[np.round(indices).astype(np.int64)])


def _best_beside(columns: Floats, tried: Floats, target: Floats) -> int:
    """Return which column of `tried` explains most of the target beside `columns`; all weighted.

    The gain is the reduction of the residual sum of squares, (r·target)² / |r|², r being the part
    of the column that is orthogonal to `columns`.
    """
    basis = np.linalg.qr(columns)[0]
    new = tried - basis @ (basis.T @ tried)
    shares = np.einsum("ij,ij->j", new, new)
    usable = shares > NEW_SHARE * np.einsum("ij,ij->j", tried, tried)
    gains = np.where(usable, (new.T @ target) ** 2 / np.where(usable, shares, 1.0), -1.0)
    return int(np.argmax(gains))


def ridge_power_law(selection: SelectionSamples) -> tuple[Expression, ...]:
    """Choose one power of each parameter, its exponent shrunk towards common ones.

    With few samples the exponents may also change with the logarithms of the parameters.
    """
    samples = selection.samples

    def make(params: Floats) -> list[LogTerm]:
        return [
            *powers_and_indicators(params, selection.parameters),
            *curvatures(params, selection.parameters),
        ]

    terms, columns = selection.table.candidates("powers", make)
    if not terms:
        return (ONE,)
    kinds = tuple(term.kind for term in terms)
    exponents = posterior_mean(columns[selection.rows], kinds, np.log(samples.sigma_s))
    return (product_of_powers(terms, exponents, tuning.LEAST_EXPONENT),)


def posterior_mean(columns: Floats, kinds: tuple[str, ...], times: Floats) -> Floats:
    """Return the posterior means of the exponents in a Bayesian linear regression of log t.

    The prior of the exponents is normal about exponents that kernels usually have, that of other
    coefficients normal about 0. The result is averaged over all choices of prior means, prior
    deviations and noise, each weighted with its prior probability and its marginal likelihood
    (D. MacKay, "Bayesian interpolation", Neural Computation 4, 1992). It amounts to a ridge
    regression for which the samples determine the strength of the shrinkage, and its target.
    """
    prior, count = _prior_of(kinds), len(times)
    design = np.column_stack((np.ones(count), columns))
    # what each choice of prior means leaves unexplained, log t less some of each regressor, and
    # its products with the regressors
    parts = np.column_stack((times, columns))
    parts -= parts.mean(axis=0)
    rest = parts @ prior.parts
    along_parts, square = design.T @ parts, np.einsum("ij,ij->j", rest, rest)
    # posterior precision, and posterior mean of the deviations from the prior means
    noises = prior.noises
    precision = (design.T @ design) / noises[:, :, None] ** 2
    precision += prior.precision
    sizes = np.linalg.solve(precision, along_parts / noises[:, :, None] ** 2) @ prior.parts
    # log evidence, up to a constant: −½ (misfit + log det of noise, prior and posterior)
    _, determinants = np.linalg.slogdet(precision)
    misfits = (square - np.einsum("ij,kij->kj", along_parts @ prior.parts, sizes)) / noises**2
    spreads = 2 * count * np.log(noises[:, 0]) + prior.log_variance + determinants
    logs = prior.log_probability - 0.5 * (misfits + spreads[:, None])
    weights = np.exp(logs - logs.max())
    exponents = np.einsum("kj,kij->i", weights, sizes[:, 1:]) + prior.means @ weights.sum(axis=0)
    return np.asarray(exponents / weights.sum())


@dataclass(frozen=True)
class _Prior:
    """Choices j of prior means, and every combination k of prior deviations and noise."""

    means: Floats
    """The prior mean of each coefficient but the constant, shape (coefficients − 1, j)."""
    log_probability: Floats
    """Of each choice of means, shape (j,)."""
    parts: Floats
    """1, and the negative means: what log t and each regressor are multiplied by to leave what the
    prior means do not explain, shape (coefficients, j)."""
    noises: Floats
    """The standard deviation of log t, shape (k, 1)."""
    precision: Floats
    """The inverse of the prior covariance matrix, shape (k, coefficients, coefficients)."""
    log_variance: Floats
    """The logarithm of the determinant of the covariance matrix, shape (k,)."""


@lru_cache(maxsize=16)
def _prior_of(kinds: tuple[str, ...]) -> _Prior:
    """Return the prior of regressors of these kinds and the constant."""
    power: Flags = np.array([kind == "power" for kind in kinds])
    indicator: Flags = np.array([kind == "indicator" for kind in kinds])
    powers, log_probability = _prior_means(int(power.sum()))
    means = np.zeros((len(kinds), len(log_probability)))
    means[power] = powers
    curvatures = CURVATURES if "curvature" in kinds else CURVATURES[:1]
    choices = np.meshgrid(PRIOR_DEVIATIONS, NOISES, curvatures)
    deviations, noises, curved = (choice.reshape(-1, 1) for choice in choices)
    variances = np.where(power, deviations, np.where(indicator, INDICATOR_DEVIATION, curved)) ** 2
    variances = np.hstack([np.full((len(noises), 1), LEVEL_VARIANCE), variances])
    return _Prior(
        means,
        log_probability,
        parts=np.vstack((np.ones(len(log_probability)), -means)),
        noises=noises,
        precision=np.eye(len(kinds) + 1) / variances[:, None, :],
        log_variance=np.log(variances).sum(axis=1),
    )


@cache
def _prior_means(parameters: int) -> tuple[Floats, Floats]:
    """Return choices of prior means, shape (parameters, choices), and their log probabilities.

    Half of the prior probability is that of one mean for all exponents. With many parameters the
    less usual exponents are left out, and with still more all choices but those of one mean.
    """
    common = np.tile(COMMON_EXPONENTS, (parameters, 1))
    log_probability = np.full(len(COMMON_EXPONENTS), -np.log(2 * len(COMMON_EXPONENTS)))
    kinds = len(PRIOR_EXPONENTS)
    while kinds > 2 and kinds**parameters > MOST_CHOICES:
        kinds -= 1
    exponents, probabilities = np.array(PRIOR_EXPONENTS[:kinds]).T
    if not parameters or kinds**parameters > MOST_CHOICES:
        return common, log_probability
    indices = np.indices((kinds,) * parameters).reshape(parameters, -1)
    logs = np.log(probabilities / probabilities.sum())[indices].sum(axis=0) - np.log(2)
    return np.hstack((exponents[indices], common)), np.concatenate((logs, log_probability))
