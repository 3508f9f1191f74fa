"""Families fitted to logarithms: products of powers, with breaks, or with shrinkage.

On logarithmic scales every kernel whose time is a power of its parameters is a straight line,
errors in per cent count the same at all sizes, and a flag, a threshold or a change of slope is one
more factor.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from typing import Literal

import numpy as np

from rewritelog.arrays import Floats
from rewritelog.models.expressions import Expression, parse
from rewritelog.models.fitting.candidates import Parameters
from rewritelog.models.fitting.columns import columns_of
from rewritelog.models.fitting.families import SelectionSamples
from rewritelog.models.fitting.selection import select
from rewritelog.models.fitting.solving import huber_weights

MOST_VALUES = 8
"""A parameter with at most this many distinct values may have a factor for each."""

KNOTS = (0.15, 0.3, 0.5, 0.7, 0.85)
"""Quantiles of a parameter at which an exponent may change or a factor may set in."""

DENSE_KNOTS = tuple(np.linspace(0.1, 0.9, 17).tolist())
MOST_DENSELY_BROKEN = 4
FEWEST_DENSE = 60
"""`DENSE_KNOTS` are used for at most `MOST_DENSELY_BROKEN` parameters and at least `FEWEST_DENSE`
samples."""

NEAR = 0.15
"""The break of a chosen term is moved past at most this share of the samples …"""

MOST_BREAKS = 48
"""… to one of at most this many positions."""

FEWEST_BEYOND = 5
LEAST_BEYOND = 0.05
"""At least this many samples, and this share of them, lie on either side of a break."""

NEW_SHARE = 1e-8
"""A column is tried beside others only if at least this share of its squared length is orthogonal
to them."""

EXPONENTS = (-3.0, 4.0)
"""The least and the largest exponent."""

PRIOR_EXPONENTS = ((0.0, 0.35), (1.0, 0.35), (0.5, 0.12), (2.0, 0.1), (1.5, 0.05), (3.0, 0.03))
"""Exponents that kernels usually have, each with its prior probability, most probable first."""

COMMON_EXPONENTS = (0.0, 0.5, 1.0)
"""Alternative prior means, each one for all exponents together."""

MOST_CHOICES = 300
"""At most this many combinations of prior means are compared."""

PRIOR_DEVIATIONS = (0.1, 0.3)
"""Prior standard deviations of exponents about their means."""

FLAG_DEVIATION = 1.0
"""Prior standard deviation of the logarithm of a flag's factor."""

CURVATURES = (1e-4, 0.03, 0.1)
"""Prior standard deviations of curvatures, the changes of an exponent per unit of log p."""

FEWEST_CURVED_SAMPLES = 8
"""With fewer samples a curvature is a guess, which explodes beyond them."""

MOST_CURVED_SAMPLES = 60
"""From this many samples on a change of slope is found without a prior."""

MOST_CURVED_PARAMETERS = 5
"""With more parameters exponents are assumed to be constant."""

NOISES = (0.05, 0.15, 0.5, 1.0)
"""Standard deviations of log t about the power law."""

LEVEL_VARIANCE = 100.0
"""Prior variance of the constant in log t: practically uninformative."""


@dataclass(frozen=True)
class LogTerm:
    """A regressor for log t, and the text of the factor of t that it stands for."""

    column: Expression
    """The regressor: log t is linear in it."""
    spelled: str
    """The factor, with `{}` for the exponent, which is the coefficient of the regressor."""
    negative: str = ""
    """The same for a negative exponent, if that is spelled differently."""
    kind: Literal["power", "flag", "curvature"] = "power"
    broken: str = ""
    """The text of the expression that has a break at `knot`; empty for a term without one."""
    knot: float = 0.0
    bends: bool = False
    """Whether the exponent changes at the break; otherwise the level does."""

    def factor(self, exponent: float) -> str:
        """Return the factor's text."""
        spelled = self.negative if exponent < 0 and self.negative else self.spelled
        if f"{exponent:.4g}" == "1":
            return spelled.removesuffix("^{}").format("1")
        return spelled.format(f"{exponent:.4g}" if exponent >= 0 else f"({exponent:.4g})")


def power_law_with_breaks(given: SelectionSamples) -> tuple[Expression, ...]:
    """Choose powers with breaks, and factors for single values and beyond thresholds.

    Regression splines of degree 1 in logarithms, selected forward: J. Friedman, "Multivariate
    adaptive regression splines", Annals of Statistics 19 (1991).
    """
    samples, parameters = given.samples, given.parameters

    def make(params: Floats) -> list[LogTerm]:
        return [*_powers(parameters), *_breaks(params, parameters)]

    terms = given.table.terms("breaks", make)
    columns = np.column_stack(
        [np.ones(len(samples)), given.table.columns("breaks", make)[given.rows]]
    )
    times, weights = np.log(samples.scale_s), np.ones(len(samples))
    taken: list[int] = [0]
    for _ in range(3):
        rows, target = columns * weights[:, None], times * weights
        taken = [
            0,
            *(index for index in select(rows, target, non_negative=False, constant=0) if index),
        ]
        size = np.linalg.lstsq(rows[:, taken], target, rcond=1e-9)[0]
        weights = huber_weights(columns[:, taken] @ size - times)
    found = _moved([terms[index - 1] for index in taken if index], samples.params, weights, times)
    columns = np.column_stack(
        (np.ones(len(samples)), columns_of([term.column for term in found], samples.params))
    )
    columns, target = columns * weights[:, None], times * weights
    taken = [
        0,
        *(index for index in select(columns, target, non_negative=False, constant=0) if index),
    ]
    size = np.linalg.lstsq(columns[:, taken], target, rcond=1e-9)[0]
    factors = [
        found[index - 1].factor(float(np.clip(exponent, *EXPONENTS)))
        for index, exponent in zip(taken, size, strict=True)
        if index
    ]
    return (parse("*".join(factors) or "1"),)


def _moved(
    terms: Sequence[LogTerm], params: Floats, weights: Floats, times: Floats
) -> list[LogTerm]:
    """Return the terms with each break moved to where it explains most beside the other terms."""
    found = list(terms)
    ones = np.ones((len(params), 1))
    columns = np.hstack((ones, columns_of([term.column for term in terms], params)))
    columns *= weights[:, None]
    for index, term in enumerate(terms):
        if not term.broken:
            continue
        values = parse(term.broken).evaluate(params)
        knots = _break_positions(values, term.knot)
        knots = knots[knots > 0] if term.bends else knots
        if term.bends:
            rows = np.log(np.maximum(values[:, None] / knots, 1.0))
        else:
            rows = (values[:, None] > knots).astype(np.float64)
        tried = np.column_stack((columns[:, index + 1], rows * weights[:, None]))
        best = _best_beside(np.delete(columns, index + 1, axis=1), tried, times * weights)
        if best:
            found[index] = _break(term.broken, float(knots[best - 1]), bends=term.bends)
            columns[:, index + 1] = tried[:, best]
    return found


def _break_positions(sizes: Floats, knot: float) -> Floats:
    """Return possible positions of a break: midpoints between sample values near `knot`.

    Of too many, evenly spread ones are returned. Enough samples lie on either side of each.
    """
    rising = np.sort(sizes)
    count, index = len(rising), int(np.searchsorted(rising, knot))
    fewest, near = max(FEWEST_BEYOND, int(LEAST_BEYOND * count)), int(NEAR * count)
    first, last = max(fewest - 1, index - near), min(count - fewest, index + near)
    inner = np.unique(rising[first : last + 1])
    between = (inner[1:] + inner[:-1]) / 2
    indices = np.linspace(0, len(between) - 1, min(len(between), MOST_BREAKS))
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


def ridge_power_law(given: SelectionSamples) -> tuple[Expression, ...]:
    """Choose one power of each parameter, its exponent shrunk towards common ones.

    With few samples the exponents may also change with the logarithms of the parameters.
    """
    samples = given.samples

    def make(params: Floats) -> list[LogTerm]:
        return [*_powers_and_flags(params, given.parameters), *_curved(params, given.parameters)]

    terms = given.table.terms("powers", make)
    if not terms:
        return (parse("1"),)
    columns = given.table.columns("powers", make)[given.rows]
    exponents = _posterior_mean(columns, [term.kind for term in terms], np.log(samples.scale_s))
    factors = [
        term.factor(float(np.clip(exponent, *EXPONENTS)) if term.kind == "power" else exponent)
        for term, exponent in zip(terms, exponents.tolist(), strict=True)
        if abs(exponent) > 1e-3
    ]
    return (parse("*".join(factors) or "1"),)


def _posterior_mean(columns: Floats, kinds: Sequence[str], times: Floats) -> Floats:
    """Return the posterior means of the exponents in a Bayesian linear regression of log t.

    The prior of the exponents is normal about exponents that kernels usually have, that of other
    coefficients normal about 0. The result is averaged over all choices of prior means, prior
    deviations and noise, each weighted with its prior probability and its marginal likelihood
    (D. MacKay, "Bayesian interpolation", Neural Computation 4, 1992). It amounts to a ridge
    regression for which the samples determine the strength of the shrinkage, and its target.
    """
    power, flag = (np.array([kind == one for kind in kinds]) for one in ("power", "flag"))
    count, width = len(times), columns.shape[1]
    design = np.column_stack((np.ones(count), columns))
    powers, usual = _prior_means(int(power.sum()))
    means = np.zeros((width, len(usual)))
    means[power] = powers
    # what each choice of prior means leaves unexplained, and its products with the regressors
    rest = times[:, None] - columns @ means
    rest -= rest.mean(axis=0)
    along, square = design.T @ rest, np.einsum("ij,ij->j", rest, rest)
    # every combination k of prior deviations and noise, with the prior variance of each coefficient
    curvatures = CURVATURES if "curvature" in kinds else CURVATURES[:1]
    choices = np.meshgrid(PRIOR_DEVIATIONS, NOISES, curvatures)
    deviations, noises, curved = (one.reshape(-1, 1) for one in choices)
    variances = np.where(power, deviations, np.where(flag, FLAG_DEVIATION, curved)) ** 2
    variances = np.hstack([np.full((len(noises), 1), LEVEL_VARIANCE), variances])
    # posterior precision, and posterior mean of the deviations from the prior means
    precision = (design.T @ design) / noises[:, :, None] ** 2
    precision += np.eye(width + 1) / variances[:, None, :]
    sizes = np.linalg.solve(precision, along / noises[:, :, None] ** 2)
    # log evidence, up to a constant: −½ (misfit + log det of noise, prior and posterior)
    _, determinants = np.linalg.slogdet(precision)
    misfits = (square - np.einsum("ij,kij->kj", along, sizes)) / noises**2
    spreads = 2 * count * np.log(noises[:, 0]) + np.log(variances).sum(axis=1) + determinants
    logs = usual - 0.5 * (misfits + spreads[:, None])
    weights = np.exp(logs - logs.max())
    found = np.einsum("kj,kij->i", weights, sizes[:, 1:]) + means @ weights.sum(axis=0)
    return np.asarray(found / weights.sum())


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


def _powers(parameters: Parameters) -> list[LogTerm]:
    """Return a power of each parameter p, or of 1 + |p| for one that is not always positive."""
    return [_power(number, parameters) for number in parameters.used]


def _power(number: int, parameters: Parameters) -> LogTerm:
    base, bounded = _bases(number, parameters)
    return LogTerm(parse(f"log({base})"), f"{base}^{{}}", f"{bounded}^{{}}")


def _powers_and_flags(params: Floats, parameters: Parameters) -> Iterator[LogTerm]:
    """Yield a power of each parameter, or a factor for one with two values."""
    for number in parameters.used:
        values = np.unique(params[:, number - 1])
        if len(values) == 2:
            flag = f"(p{number} == {float(values[1])!r})"
            yield LogTerm(parse(flag), f"exp({{}}*{flag})", kind="flag")
        else:
            yield _power(number, parameters)


def _curved(params: Floats, parameters: Parameters) -> Iterator[LogTerm]:
    """Yield squares and products of the parameters' logarithms, centred on their means."""
    numbers = parameters.used
    few = FEWEST_CURVED_SAMPLES <= len(params) < MOST_CURVED_SAMPLES
    if not few or len(numbers) > MOST_CURVED_PARAMETERS:
        return
    centred = {}
    for number in numbers:
        log = f"log({_bases(number, parameters)[0]})"
        mean = float(parse(log).evaluate(params).mean())
        centred[number] = f"({log} {'-' if mean >= 0 else '+'} {abs(mean):.4g})"
    squared = [(one, one) for one in numbers if len(np.unique(params[:, one - 1])) > 2]
    for one, other in sorted([*squared, *combinations(numbers, 2)]):
        product = f"{centred[one]}*{centred[other]}"
        yield LogTerm(parse(product), f"exp({{}}*{product})", kind="curvature")


def _bases(number: int, parameters: Parameters) -> tuple[str, str]:
    """Return the texts of the bases of positive and of negative powers of a parameter.

    A negative power must not explode below the range of the samples.
    """
    low = float(parameters.lowest[number - 1])
    if low > 0:
        return f"p{number}", f"max(p{number}, {low / 2:.4g})"
    size = f"p{number}" if low == 0 else f"abs(p{number})"
    return f"(1 + {size})", f"(1 + {size})"


def _breaks(params: Floats, parameters: Parameters) -> Iterator[LogTerm]:
    """Yield changes of an exponent, thresholds, and factors for single values."""
    dense = len(params) >= FEWEST_DENSE and len(parameters.used) <= MOST_DENSELY_BROKEN
    for number in parameters.used:
        column = params[:, number - 1]
        values = np.unique(column)
        if len(values) <= MOST_VALUES:
            for value in values.tolist():
                yield from _at_value(number, value, parameters)
        else:
            for knot in _knots(column, DENSE_KNOTS if dense else KNOTS):
                yield from _break_at(f"p{number}", knot, float(values[0]))
    for one, other in combinations(parameters.positive(), 2):
        for knot in _knots(params[:, one - 1] * params[:, other - 1], KNOTS):
            yield from _break_at(f"(p{one}*p{other})", knot, 1.0)


def _at_value(number: int, value: float, parameters: Parameters) -> Iterator[LogTerm]:
    """Yield a factor for calls with one value, and powers of other parameters for these calls."""
    flag = f"(p{number} == {value!r})"
    yield LogTerm(parse(flag), f"exp({{}}*{flag})")
    for other in parameters.used:
        if other != number:
            base, _ = _bases(other, parameters)
            yield LogTerm(parse(f"{flag}*log({base})"), f"{base}^({{}}*{flag})")


def _break_at(name: str, knot: float, lowest: float) -> Iterator[LogTerm]:
    if lowest >= 0 and knot > 0:
        yield _break(name, knot, bends=True)
    yield _break(name, knot, bends=False)


def _break(name: str, knot: float, *, bends: bool) -> LogTerm:
    """Return a term for a change of the exponent at a size, or for a factor beyond it."""
    spelled = f"{knot:.6g}" if knot >= 0 else f"(-{-knot:.6g})"
    if bends:
        base = f"max({name}/{spelled}, 1)"
        return LogTerm(parse(f"log({base})"), f"{base}^{{}}", broken=name, knot=knot, bends=True)
    beyond = f"({name} > {spelled})"
    return LogTerm(parse(beyond), f"exp({{}}*{beyond})", broken=name, knot=knot)


def _knots(column: Floats, quantiles: Sequence[float]) -> Sequence[float]:
    return [float(knot) for knot in np.unique(np.quantile(column, quantiles))]
