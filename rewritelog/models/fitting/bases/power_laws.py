"""Power laws: one power of each parameter, fitted to logarithms, with or without a prior.

On logarithmic scales every kernel whose time is a power of its parameters is a straight line,
errors in per cent count the same at all sizes, and a flag is one more factor. A `LogTerm` is a
regressor for log t with the factor of t that it stands for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache, reduce
from typing import Literal

import numpy as np

from rewritelog.arrays import Flags, Floats
from rewritelog.models.expressions import Expression, constant, parse
from rewritelog.models.fitting import tuning
from rewritelog.models.fitting.design import (
    ONE,
    Parameters,
    SelectionSamples,
    bounded_below,
    product_of,
)
from rewritelog.models.fitting.regression import least_squares
from rewritelog.models.fitting.selection import select

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

NOISES = (0.05, 0.15, 0.5, 1.0)
"""Standard deviations of log t about the power law."""

LEVEL_VARIANCE = 100.0
"""Prior variance of the constant in log t: practically uninformative."""


@dataclass(frozen=True)
class LogTerm:
    """A regressor for log t, and the factor of t that it stands for.

    The factor is made of expressions, not of a text: parsing one for each fit took longer than
    choosing it.
    """

    column: Expression
    """The regressor: log t is linear in it."""
    base: Expression | None = None
    """The base of the power that the factor is; None for the base e, spelled exp(…)."""
    bounded: Expression | None = None
    """The base of a negative power, where that is another one."""
    times: tuple[Expression, ...] = ()
    """What the exponent is multiplied by: it is the coefficient of the regressor, times these."""
    kind: Literal["power", "indicator"] = "power"
    broken: str = ""
    """The text of the expression that has a break at `knot`; empty for a term without one."""
    knot: float = 0.0
    hinge: bool = False
    """Whether the exponent changes at the break; otherwise the level does."""

    def factor(self, coefficient: float) -> Expression:
        """Return the factor, the coefficient rounded to four digits."""
        rounded = constant(float(f"{coefficient:.4g}"))
        exponent = reduce(Expression.times, self.times, rounded)
        if self.base is None:
            return exponent.mapped("exp")
        base = self.bounded if coefficient < 0 and self.bounded is not None else self.base
        return base if exponent == ONE else base.applied("^", exponent)


def power_of(number: int, parameters: Parameters) -> LogTerm:
    """Return a power of a parameter."""
    base, bounded = (parse(text) for text in bases_of(number, parameters))
    return LogTerm(base.mapped("log"), base, bounded)


def bases_of(number: int, parameters: Parameters) -> tuple[str, str]:
    """Return the texts of the bases of positive and of negative powers of a parameter.

    A negative power must not explode below the range of the samples.
    """
    low = float(parameters.lowest[number - 1])
    if low > 0:
        return f"p{number}", bounded_below(f"p{number}", low)
    size = f"p{number}" if low == 0 else f"abs(p{number})"
    return f"(1 + {size})", f"(1 + {size})"


def powers_and_indicators(params: Floats, parameters: Parameters) -> Iterator[LogTerm]:
    """Yield a power of each parameter, or a factor for one with two values."""
    for number in parameters.used:
        values = np.unique(params[:, number - 1])
        if len(values) == 2:
            indicator = parse(f"p{number}").applied("==", constant(float(values[1])))
            yield LogTerm(indicator, times=(indicator,), kind="indicator")
        else:
            yield power_of(number, parameters)


def product_of_powers(
    terms: Sequence[LogTerm], exponents: Floats, least: float | Floats = -1.0
) -> Expression:
    """Return the product of the terms' factors, without those of exponents smaller than `least`."""
    bounded = np.where(
        [term.kind == "power" for term in terms], np.clip(exponents, *tuning.EXPONENTS), exponents
    )
    counts = np.abs(exponents) > least
    return product_of([terms[i].factor(float(bounded[i])) for i in np.flatnonzero(counts).tolist()])


def power_law(selection: SelectionSamples) -> tuple[Expression, ...]:
    """Choose the product of one power of each positive parameter, fitted to logarithms."""
    terms = [power_of(number, selection.parameters) for number in selection.parameters.positive()]
    columns = selection.values([ONE, *(term.column for term in terms)])
    times = np.log(selection.samples.sigma_s)
    taken = np.array(select(columns, times, non_negative=False, constant=0), dtype=np.int64)
    sizes = least_squares(columns[:, taken], times)
    chosen = [terms[index - 1] for index in taken if index]
    return (product_of_powers(chosen, sizes[taken > 0]),)


def ridge_power_law(selection: SelectionSamples) -> tuple[Expression, ...]:
    """Choose one power of each parameter, its exponent shrunk towards common ones."""
    parameters = selection.parameters
    terms, columns = selection.table.candidates(
        "powers", lambda params: powers_and_indicators(params, parameters)
    )
    if not terms:
        return (ONE,)
    kinds, times = tuple(term.kind for term in terms), np.log(selection.samples.sigma_s)
    exponents = posterior_mean(columns[selection.rows], kinds, times)
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
    powers, log_probability = _prior_means(int(power.sum()))
    means = np.zeros((len(kinds), len(log_probability)))
    means[power] = powers
    choices = np.meshgrid(PRIOR_DEVIATIONS, NOISES)
    deviations, noises = (choice.reshape(-1, 1) for choice in choices)
    variances = np.where(power, deviations, INDICATOR_DEVIATION) ** 2
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
