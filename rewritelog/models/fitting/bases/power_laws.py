"""Power laws: one power of each parameter, with a prior; sums of power laws, Σ c·Π pᵢ^aᵢ.

On logarithmic scales every kernel whose time is a power of its parameters is a straight line,
errors in per cent count the same at all sizes, and a flag is one more factor. A `LogTerm` is a
regressor for log t with the factor of t that it stands for.

What a kernel does once, for each row and for each pair of rows is a sum of power laws. In
logarithms it is a smooth maximum of linear functions, log Σₖ exp(bₖ + aₖ·log p), also called a
posynomial: W. Hoburg, P. Kirschen and P. Abbeel, "Data fitting with geometric-programming-
compatible softmax functions", Optimization and Engineering 17 (2016). All its exponents are fitted
together by the method of Levenberg and Marquardt, here for several starting points at once.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from rewritelog.arrays import Flags, Floats
from rewritelog.core import core
from rewritelog.models.expressions import Expression, constant, parse
from rewritelog.models.fitting import tuning
from rewritelog.models.fitting.design import ONE, Parameters, SelectionSamples, product_of
from rewritelog.models.fitting.regression import HUBER, huber_loss, huber_weights, robust_deviations

COMMON_EXPONENTS = np.array([0.0, 0.5, 1.0])
"""Alternative prior means; each is that of all exponents at once."""

PRIOR_DEVIATIONS = (0.1, 0.3)
"""Prior standard deviations of exponents about their means."""

NOISES = (0.05, 0.15, 0.5, 1.0)
"""Standard deviations of log t about the power law."""

LEVEL_VARIANCE = 100.0
"""Prior variance of the constant in log t: practically uninformative."""


class LogTerm(Struct, frozen=True):
    """A regressor for log t, and the factor of t that it stands for.

    The factor is made of expressions, not of a text: parsing one for each fit took longer than
    choosing it.
    """

    expression: Expression
    """The regressor: log t is linear in it."""
    base: Expression | None = None
    """The base of the factor, which is a power; None for the base e, spelled exp(…)."""
    bounded: Expression | None = None
    """The base of a negative power, where it differs."""
    broken: str = ""
    """The text of the expression that has a break at `knot`; empty for a term without one."""
    knot: float = 0.0
    hinge: bool = False
    """Whether the exponent changes at the break; otherwise the level does."""

    def factor(self, coefficient: float) -> Expression:
        """Return the factor, the coefficient rounded to four digits."""
        rounded = constant(float(f"{coefficient:.4g}"))
        if self.base is None:
            return rounded.times(self.expression).applied("exp")
        base = self.bounded if coefficient < 0 and self.bounded is not None else self.base
        return base if rounded == ONE else base.applied("^", rounded)


def power_of(number: int, parameters: Parameters) -> LogTerm:
    """Return a power of a parameter; a negative one does not explode below the samples' range."""
    low, name = float(parameters.lowest[number - 1]), f"p{number}"
    if low <= 0:
        base = parse(f"(1 + {name})" if low == 0 else f"(1 + abs({name}))")
        return LogTerm(base.applied("log"), base)
    base = parse(name)
    return LogTerm(base.applied("log"), base, parse(parameters.divisor(number)))


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
    columns = selection.values([term.expression for term in terms])
    exponents = posterior_mean(columns, np.log(selection.samples.times_s))
    return (product_of_powers(terms, exponents, tuning.LEAST_EXPONENT),)


def posterior_mean(columns: Floats, times: Floats) -> Floats:
    """Return the posterior means of the exponents in a Bayesian linear regression of log t.

    The prior of the exponents is normal about one that kernels usually have. The result is averaged
    over all prior means j, and all pairs k of a prior deviation and a noise, each weighted with its
    marginal likelihood (D. MacKay, "Bayesian interpolation", Neural Computation 4, 1992). In effect
    this is a ridge regression in which the samples determine both the strength of the shrinkage and
    its target.
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
    penalties = 2 * count * np.log(noises[:, 0]) + np.log(variances).sum(axis=1) + determinants
    logs = -0.5 * (misfits + penalties[:, None])
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    deviation = np.einsum("kj,kij->i", weights, sizes[:, 1:])
    return np.asarray(deviation + weights.sum(axis=0) @ COMMON_EXPONENTS)


MOST_SAMPLES = 512
"""Exponents are fitted to at most this many samples."""

MOST_TRIED_WITH = 128
"""Starting points are compared with at most this many samples."""

DEVIATION, LEVEL_DEVIATION = 0.7, 10.0
"""Prior standard deviations of an exponent, about that of a single power law, and of log c."""

SPLIT = 0.4
"""A power law is split into two whose exponents of one parameter differ by twice this."""

LEAST_NOISE = 1e-3
"""The least standard deviation of errors of log t."""

TRYING, FINISHING = 6, 10
"""Levenberg-Marquardt steps from each starting point, and further ones from the best."""

SETTLED = 1e-4
"""The steps end when none lowers the cost by more than this share."""


def sum_of_power_laws(selection: SelectionSamples) -> tuple[Expression, ...]:
    """Choose up to three power laws, as many as lower BIC; a single one is that of `power_law`.

    With few samples one of several may be a constant, since its exponents would fit noise.
    """
    parameters = len(selection.parameters.used)
    if not 0 < parameters <= tuning.MOST_PARAMETERS_OF_LAWS:
        return selection.chosen(power_law)
    part = selection.random_part(MOST_SAMPLES)
    terms = [power_of(number, selection.parameters) for number in selection.parameters.used]
    columns, logs = part.values([term.expression for term in terms]), np.log(part.samples.times_s)
    exponents = posterior_mean(columns, logs)
    regression = _Regression.about(exponents, columns, logs)
    most_numbers = len(selection.samples) // tuning.FEWEST_PER_NUMBER
    laws, are_few = regression.prior[None], len(selection.samples) < tuning.ENOUGH
    further = 1 if are_few else 1 + parameters
    while len(laws) < tuning.MOST_POWER_LAWS and laws.size + further <= most_numbers:
        tried = regression.first(MOST_TRIED_WITH).improved(_splits(laws), TRYING)
        extended = regression.improved(tried[:1], FINISHING)[0]
        if are_few:
            constant = regression.with_constant(extended)
            if extended.size > most_numbers or not regression.prefers(extended, constant):
                extended = constant
        if not regression.prefers(extended, laws):
            break
        laws = extended
    if len(laws) == 1:
        return selection.chosen(power_law)
    least = tuning.LEAST_EFFECT / np.ptp(columns, axis=0)
    products = [product_of_powers(terms, law[1:], least) for law in laws]
    return tuple(dict.fromkeys(products))


def _splits(laws: Floats) -> Floats:
    """Return the laws with one of them split in two, for each law, exponent and direction.

    The shape is (splits, laws + 1, 1 + exponents). The sum of the two is equal to the law where the
    parameter has its mean.
    """
    splits = []
    for split in range(len(laws)):
        for column in range(1, laws.shape[1]):
            for step in (SPLIT, -SPLIT):
                divided = np.vstack((laws, laws[split]))
                divided[[split, -1], 0] -= np.log(2)
                divided[[split, -1], column] += (step, -step)
                splits.append(divided)
    return np.array(splits)


class _Regression(Struct, frozen=True):
    """The regression of log t on the logarithms of sums of power laws.

    The levels log c and exponents of K laws are an array of the shape (K, 1 + exponents), and those
    of several tries one of the shape (tries, K, 1 + exponents). Errors have Huber's loss; levels
    and exponents have normal priors.
    """

    design: Floats
    """1 and the centred logarithms, shape (samples, 1 + exponents)."""
    logs: Floats
    """log t."""
    prior: Floats
    """The prior means of levels and exponents, those of a single power law."""

    @classmethod
    def about(cls, exponents: Floats, columns: Floats, logs: Floats) -> _Regression:
        """Return the regression on columns, with the exponents of a single power law."""
        centred = columns - columns.mean(axis=0)
        level = np.median(logs - centred @ exponents)
        design = np.column_stack((np.ones(len(logs)), centred))
        return cls(design, logs, np.concatenate(([level], exponents)))

    def first(self, count: int) -> _Regression:
        """Return the regression with the first samples only."""
        return _Regression(self.design[:count], self.logs[:count], self.prior)

    def with_constant(self, laws: Floats) -> Floats:
        """Return the laws with the flattest of them as a constant."""
        effects = np.abs(laws[:, 1:]) @ np.ptp(self.design[:, 1:], axis=0)
        flattest = int(np.argmin(effects))
        _, shares = self._errors(laws[None])
        share = shares[0, :, flattest]
        constant = laws.copy()
        constant[flattest] = 0.0
        constant[flattest, 0] = (self.design @ laws[flattest]) @ share / share.sum()
        return np.asarray(self.improved(constant[None], TRYING + FINISHING)[0])

    def prefers(self, laws: Floats, fewer: Floats) -> bool:
        """Return whether BIC prefers the laws to `fewer`, or to as many with a constant among them.

        −2 log likelihood is Huber's loss of the errors, in units of the robust deviation of those
        that `laws` leave.
        """
        errors, _ = self._errors(laws[None])
        errors_of_fewer, _ = self._errors(fewer[None])
        noises = robust_deviations(errors, LEAST_NOISE)
        gain = _losses(errors_of_fewer, noises) - _losses(errors, noises)
        penalty, penalty_of_fewer = (
            core.bic_penalty(np.count_nonzero(_is_fitted(each)), len(self.logs))
            for each in (laws, fewer)
        )
        return bool(gain[0] > penalty - penalty_of_fewer)

    def improved(self, laws: Floats, steps: int) -> Floats:
        """Return the laws of each try after so many steps, the try with the least cost first.

        Laws without exponents stay constant; they have to be the same ones in all tries.
        """
        deviations = np.full(laws.shape[1:], DEVIATION)
        deviations[:, 0] = LEVEL_DEVIATION
        deviations[~_is_fitted(laws[0])] = np.inf
        precision = deviations.ravel() ** -2
        damping = np.full(len(laws), 1e-2)
        errors, shares = self._errors(laws)
        noises = robust_deviations(errors, LEAST_NOISE)
        costs = self._costs(laws, errors, noises, precision)
        for _ in range(steps):
            step = self._step(laws, errors, shares, noises, precision, damping)
            tried = laws + step
            tried_errors, tried_shares = self._errors(tried)
            tried_costs = self._costs(tried, tried_errors, noises, precision)
            better = tried_costs < costs
            settled = bool((better & (costs - tried_costs <= SETTLED * costs)).all())
            laws = np.where(better[:, None, None], tried, laws)
            errors = np.where(better[:, None], tried_errors, errors)
            shares = np.where(better[:, None, None], tried_shares, shares)
            costs = np.where(better, tried_costs, costs)
            damping = np.where(better, damping / 5, damping * 5)
            if settled:
                break
        return laws[np.argsort(costs, kind="stable")]

    def _errors(self, laws: Floats) -> tuple[Floats, Floats]:
        """Return the errors of log t, shape (tries, samples), and the share of each law in t."""
        lines = self.design @ np.swapaxes(laws, 1, 2)
        largest = lines.max(axis=2, keepdims=True)
        shares = np.exp(lines - largest)
        sums = shares.sum(axis=2, keepdims=True)
        return (largest + np.log(sums))[:, :, 0] - self.logs, shares / sums

    def _costs(self, laws: Floats, errors: Floats, noises: Floats, precision: Floats) -> Floats:
        """Return Huber's loss of the errors less the logarithm of the prior, for each try."""
        away = (laws - self.prior).reshape(len(laws), -1)
        return np.asarray((_losses(errors, noises) + (away**2) @ precision) / 2)

    def _step(
        self,
        laws: Floats,
        errors: Floats,
        shares: Floats,
        noises: Floats,
        precision: Floats,
        damping: Floats,
    ) -> Floats:
        """Return the step of each try: a Gauss-Newton step, shortened by the damping.

        Numbers whose prior has no precision are not fitted: their step is 0.
        """
        noise, is_fitted = noises[:, None], precision > 0
        weights = huber_weights(errors / noise, HUBER) / noise**2
        slopes = shares[:, :, :, None] * self.design[:, None, :]
        slopes = slopes.reshape(*errors.shape, -1) * is_fitted
        weighted = np.swapaxes(slopes * weights[:, :, None], 1, 2)
        gradient = (weighted @ errors[:, :, None])[:, :, 0]
        gradient += precision * (laws - self.prior).reshape(len(laws), -1)
        curvature = weighted @ slopes
        diagonal = np.einsum("bii->bi", curvature)
        diagonal += np.where(is_fitted, precision, 1.0)
        diagonal *= 1 + damping[:, None]
        steps = np.linalg.solve(curvature, -gradient[:, :, None])
        return np.asarray(steps.reshape(laws.shape))


def _is_fitted(laws: Floats) -> Flags:
    """Return which numbers of the laws are fitted: all but the exponents of a constant."""
    is_fitted = np.ones(laws.shape, dtype=np.bool_)
    is_fitted[~laws[:, 1:].any(axis=1), 1:] = False
    return is_fitted


def _losses(errors: Floats, noises: Floats) -> Floats:
    """Return the sum of Huber's loss for each row."""
    return np.asarray(huber_loss(errors / noises[:, None]).sum(axis=1))
