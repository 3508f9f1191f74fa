"""Families that are linear in logarithms: products of powers, with breaks and with shrinkage.

Near log t every kernel that is a power of its parameters is a straight line, errors in per cent
count alike at all sizes, and a flag, a threshold or a change of slope is a factor.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from rewritelog.arrays import Floats
from rewritelog.models.expressions import Expression, parse
from rewritelog.models.fitting.candidates import Parameters
from rewritelog.models.fitting.families import SelectionSamples
from rewritelog.models.fitting.selection import select
from rewritelog.models.fitting.solving import huber_weights

MOST_VALUES = 8
"""A parameter with at most this many values has a factor for each."""

KNOTS = (0.15, 0.3, 0.5, 0.7, 0.85)
"""Quantiles of a parameter at which a power may change, or a factor begin."""

EXPONENTS = (-3.0, 4.0)
"""Exponents are kept within these."""

PRIOR_MEANS = (0.0, 0.5, 1.0)
PRIOR_DEVIATIONS = (0.1, 0.3, 1.0)
"""What is assumed of the exponents of a ridge power law before anything is measured."""

NOISES = (0.05, 0.15, 0.5)
"""Standard deviations of log t about the power law."""

LEVEL_VARIANCE = 100.0


@dataclass(frozen=True)
class LogTerm:
    """A column in logarithms, and how its factor is spelled with an exponent."""

    column: Expression
    """What the logarithm of the time is linear in."""
    spelled: str
    """The factor, with `{}` for the exponent."""
    negative: str = ""
    """The same for a negative exponent, where that is spelled differently."""

    def factor(self, exponent: float) -> str:
        """Return the factor's text."""
        spelled = self.negative if exponent < 0 and self.negative else self.spelled
        if f"{exponent:.4g}" == "1":
            return spelled.removesuffix("^{}").format("1")
        return spelled.format(f"{exponent:.4g}" if exponent >= 0 else f"({exponent:.4g})")


def power_law_with_breaks(given: SelectionSamples) -> tuple[Expression, ...]:
    """Choose powers that may change at a size, and factors for values and beyond thresholds.

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
            *(place for place in select(rows, target, non_negative=False, constant=0) if place),
        ]
        size = np.linalg.lstsq(rows[:, taken], target, rcond=1e-9)[0]
        weights = huber_weights(columns[:, taken] @ size - times)
    factors = [
        terms[place - 1].factor(float(np.clip(exponent, *EXPONENTS)))
        for place, exponent in zip(taken, size, strict=True)
        if place
    ]
    return (parse("*".join(factors) or "1"),)


def ridge_power_law(given: SelectionSamples) -> tuple[Expression, ...]:
    """Choose one power of each parameter, as far from a common exponent as the samples say."""
    samples = given.samples

    def make(_params: Floats) -> list[LogTerm]:
        return _powers(given.parameters)

    terms = given.table.terms("powers", make)
    if not terms:
        return (parse("1"),)
    columns = given.table.columns("powers", make)[given.rows]
    exponents = _posterior_mean(columns, np.log(samples.scale_s))
    factors = [
        term.factor(float(np.clip(exponent, *EXPONENTS)))
        for term, exponent in zip(terms, exponents, strict=True)
        if abs(exponent) > 1e-3
    ]
    return (parse("*".join(factors) or "1"),)


def _posterior_mean(columns: Floats, times: Floats) -> Floats:
    """Return the exponents of a Bayesian linear regression, averaged over its priors.

    Exponents are normal about a common mean. Each choice of mean, deviation and noise counts by
    its marginal likelihood (D. MacKay, "Bayesian interpolation", 1992): with few samples that is
    ridge regression of a strength that the samples choose.
    """
    count, width = len(times), columns.shape[1]
    design = np.column_stack((np.ones(count), columns))
    means = np.array(PRIOR_MEANS)
    rest = times[:, None] - columns.sum(axis=1)[:, None] * means
    rest -= rest.mean(axis=0)
    along, square = design.T @ rest, np.einsum("ij,ij->j", rest, rest)
    deviations, noises = (one.ravel() for one in np.meshgrid(PRIOR_DEVIATIONS, NOISES))
    variances = np.repeat(deviations[:, None] ** 2, width + 1, axis=1)
    variances[:, 0] = LEVEL_VARIANCE
    precision = (design.T @ design) / noises[:, None, None] ** 2
    precision += np.eye(width + 1) / variances[:, None, :]
    sizes = np.linalg.solve(precision, along / noises[:, None, None] ** 2)
    _, determinants = np.linalg.slogdet(precision)
    misfits = (square - np.einsum("ij,kij->kj", along, sizes)) / noises[:, None] ** 2
    spreads = 2 * count * np.log(noises) + np.log(variances).sum(axis=1) + determinants
    logs = -0.5 * (misfits + spreads[:, None])
    weights = np.exp(logs - logs.max())
    found = sizes[:, 1:] + means
    return np.asarray(np.einsum("kj,kij->i", weights, found) / weights.sum())


def _powers(parameters: Parameters) -> list[LogTerm]:
    """Return a power of each parameter, of 1 + p where it has zeros."""
    return [
        LogTerm(parse(f"log({base})"), f"{base}^{{}}", f"{bounded}^{{}}")
        for number in parameters.used
        for base, bounded in _bases(number, parameters)
    ]


def _bases(number: int, parameters: Parameters) -> Iterator[tuple[str, str]]:
    """Yield what powers of a parameter are taken of, and what negative ones.

    A negative power must not explode below the samples.
    """
    low = float(parameters.lowest[number - 1])
    if low > 0:
        yield f"p{number}", f"max(p{number}, {low / 2:.4g})"
    else:
        size = f"p{number}" if low == 0 else f"abs(p{number})"
        yield f"(1 + {size})", f"(1 + {size})"


def _breaks(params: Floats, parameters: Parameters) -> Iterator[LogTerm]:
    """Yield changes of a power, thresholds and factors of single values."""
    for number in parameters.used:
        column = params[:, number - 1]
        values = np.unique(column)
        if len(values) <= MOST_VALUES:
            for value in values.tolist():
                yield from _at_value(number, value, parameters)
        else:
            for knot in _knots(column):
                yield from _break_at(f"p{number}", knot, float(values[0]))
    for one, other in combinations(parameters.positive(), 2):
        for knot in _knots(params[:, one - 1] * params[:, other - 1]):
            yield from _break_at(f"(p{one}*p{other})", knot, 1.0)


def _at_value(number: int, value: float, parameters: Parameters) -> Iterator[LogTerm]:
    """Yield a factor of calls with one value, and powers of other parameters for them."""
    flag = f"(p{number} == {value!r})"
    yield LogTerm(parse(flag), f"exp({{}}*{flag})")
    for other in parameters.used:
        for base, _ in _bases(other, parameters) if other != number else ():
            yield LogTerm(parse(f"{flag}*log({base})"), f"{base}^({{}}*{flag})")


def _break_at(name: str, knot: float, lowest: float) -> Iterator[LogTerm]:
    spelled = f"{knot:.6g}" if knot >= 0 else f"(-{-knot:.6g})"
    if lowest >= 0 and knot > 0:
        base = f"max({name}/{spelled}, 1)"
        yield LogTerm(parse(f"log({base})"), f"{base}^{{}}")
    yield LogTerm(parse(f"({name} > {spelled})"), f"exp({{}}*({name} > {spelled}))")


def _knots(column: Floats) -> Sequence[float]:
    return [float(knot) for knot in np.unique(np.quantile(column, KNOTS))]
