"""Power laws: one power of each parameter, fitted to logarithms, with a prior.

On logarithmic scales every kernel whose time is a power of its parameters is a straight line,
errors in per cent count the same at all sizes, and a flag is one more factor. A `LogTerm` is a
regressor for log t with the factor of t that it stands for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rewritelog.arrays import Floats
from rewritelog.models.expressions import Expression, constant, parse
from rewritelog.models.fitting import tuning
from rewritelog.models.fitting.design import (
    ONE,
    Parameters,
    SelectionSamples,
    product_of,
)

COMMON_EXPONENTS = np.array([0.0, 0.5, 1.0])
"""Alternative prior means of the exponents, each one for all of them."""

PRIOR_DEVIATIONS = (0.1, 0.3)
"""Prior standard deviations of exponents about their means."""

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
    broken: str = ""
    """The text of the expression that has a break at `knot`; empty for a term without one."""
    knot: float = 0.0
    hinge: bool = False
    """Whether the exponent changes at the break; otherwise the level does."""

    def factor(self, coefficient: float) -> Expression:
        """Return the factor, the coefficient rounded to four digits."""
        rounded = constant(float(f"{coefficient:.4g}"))
        if self.base is None:
            return rounded.times(self.column).applied("exp")
        base = self.bounded if coefficient < 0 and self.bounded is not None else self.base
        return base if rounded == ONE else base.applied("^", rounded)


def power_of(number: int, parameters: Parameters) -> LogTerm:
    """Return a power of a parameter; a negative one does not explode below the samples' range."""
    low, name = float(parameters.lowest[number - 1]), f"p{number}"
    if low <= 0:
        base = parse(f"(1 + {name})" if low == 0 else f"(1 + abs({name}))")
        return LogTerm(base.applied("log"), base)
    base = parse(name)
    return LogTerm(base.applied("log"), base, parse(parameters.bounded_below(number)))


def product_of_powers(
    terms: Sequence[LogTerm], exponents: Floats, least: float | Floats = -1.0
) -> Expression:
    """Return the product of the terms' factors, without those of exponents smaller than `least`."""
    bounded = np.clip(exponents, *tuning.EXPONENTS)
    counts = np.abs(exponents) > least
    return product_of([terms[i].factor(float(bounded[i])) for i in np.flatnonzero(counts).tolist()])


def power_law(selection: SelectionSamples) -> tuple[Expression, ...]:
    """Choose one power of each parameter, its exponent shrunk towards common ones."""
    parameters = selection.parameters
    if not parameters.used:
        return (ONE,)
    terms = [power_of(number, parameters) for number in parameters.used]
    columns = selection.values([term.column for term in terms])
    exponents = posterior_mean(columns, np.log(selection.samples.sigma_s))
    return (product_of_powers(terms, exponents, tuning.LEAST_EXPONENT),)


def posterior_mean(columns: Floats, times: Floats) -> Floats:
    """Return the posterior means of the exponents in a Bayesian linear regression of log t.

    The prior of the exponents is normal about an exponent that kernels usually have. The result is
    averaged over all choices of its mean j, and of its deviation and the noise k, each weighted
    with its marginal likelihood (D. MacKay, "Bayesian interpolation", Neural Computation 4, 1992).
    It amounts to a ridge regression for which the samples determine the strength of the shrinkage,
    and its target.
    """
    count, width = columns.shape
    design = np.column_stack((np.ones(count), columns))
    # what each prior mean leaves unexplained, and its products with the regressors
    rest = times[:, None] - np.outer(columns.sum(axis=1), COMMON_EXPONENTS)
    rest -= rest.mean(axis=0)
    along, square = design.T @ rest, np.einsum("ij,ij->j", rest, rest)
    # posterior precision, and posterior mean of the deviations from the prior mean
    deviations, noises = (choice.reshape(-1, 1) for choice in np.meshgrid(PRIOR_DEVIATIONS, NOISES))
    variances = np.repeat(deviations**2, 1 + width, axis=1)
    variances[:, 0] = LEVEL_VARIANCE
    precision = (design.T @ design) / noises[:, :, None] ** 2
    precision += np.eye(1 + width) / variances[:, None, :]
    sizes = np.linalg.solve(precision, along / noises[:, :, None] ** 2)
    # log evidence, up to a constant: −½ (misfit + log det of noise, prior and posterior)
    _, determinants = np.linalg.slogdet(precision)
    misfits = (square - np.einsum("ij,kij->kj", along, sizes)) / noises**2
    spreads = 2 * count * np.log(noises[:, 0]) + np.log(variances).sum(axis=1) + determinants
    logs = -0.5 * (misfits + spreads[:, None])
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    deviation = np.einsum("kj,kij->i", weights, sizes[:, 1:])
    return np.asarray(deviation + weights.sum(axis=0) @ COMMON_EXPONENTS)
