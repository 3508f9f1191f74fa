"""Families that are linear in logarithms: products of powers, with breaks and with shrinkage.

Near log t every kernel that is a power of its parameters is a straight line, errors in per cent
count alike at all sizes, and a flag, a threshold or a change of slope is a factor.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

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

FLAG_DEVIATION = 1.0
"""The standard deviation that the logarithm of a flag's factor is assumed to have."""

CURVATURES = (1e-4, 0.03, 0.1)
"""The same of changes of an exponent with the logarithm of a parameter."""

FEWEST_CURVED_SAMPLES = 8
"""With fewer samples a curvature is guessed, and explodes beyond them."""

MOST_CURVED_SAMPLES = 60
"""With as many samples a change of slope can be detected, and no prior is needed."""

MOST_CURVED_PARAMETERS = 5
"""Of more parameters, exponents are assumed to be the same everywhere."""

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
    kind: Literal["power", "flag", "curvature"] = "power"

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
    """Choose one power of each parameter, as far from a common exponent as the samples say.

    Exponents of few samples may change with the sizes of the parameters.
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
    """Return the exponents of a Bayesian linear regression, averaged over its priors.

    Exponents are normal about a common mean, other terms' about 0. Each choice of mean, deviations
    and noise counts by its marginal likelihood (D. MacKay, "Bayesian interpolation", 1992): with
    few samples that is ridge regression of a strength that the samples choose.
    """
    power, flag = (np.array([kind == one for kind in kinds]) for one in ("power", "flag"))
    count, width = len(times), columns.shape[1]
    design = np.column_stack((np.ones(count), columns))
    means = np.array(PRIOR_MEANS)
    rest = times[:, None] - columns[:, power].sum(axis=1)[:, None] * means
    rest -= rest.mean(axis=0)
    along, square = design.T @ rest, np.einsum("ij,ij->j", rest, rest)
    curvatures = CURVATURES if "curvature" in kinds else CURVATURES[:1]
    choices = np.meshgrid(PRIOR_DEVIATIONS, NOISES, curvatures)
    deviations, noises, curved = (one.reshape(-1, 1) for one in choices)
    variances = np.where(power, deviations, np.where(flag, FLAG_DEVIATION, curved)) ** 2
    variances = np.hstack([np.full((len(noises), 1), LEVEL_VARIANCE), variances])
    precision = (design.T @ design) / noises[:, :, None] ** 2
    precision += np.eye(width + 1) / variances[:, None, :]
    sizes = np.linalg.solve(precision, along / noises[:, :, None] ** 2)
    _, determinants = np.linalg.slogdet(precision)
    misfits = (square - np.einsum("ij,kij->kj", along, sizes)) / noises**2
    spreads = 2 * count * np.log(noises[:, 0]) + np.log(variances).sum(axis=1) + determinants
    logs = -0.5 * (misfits + spreads[:, None])
    weights = np.exp(logs - logs.max())
    found = sizes[:, 1:] + means * power[:, None]
    return np.asarray(np.einsum("kj,kij->i", weights, found) / weights.sum())


def _powers(parameters: Parameters) -> list[LogTerm]:
    """Return a power of each parameter, of 1 + p where it has zeros."""
    return [_power(number, parameters) for number in parameters.used]


def _power(number: int, parameters: Parameters) -> LogTerm:
    base, bounded = _bases(number, parameters)
    return LogTerm(parse(f"log({base})"), f"{base}^{{}}", f"{bounded}^{{}}")


def _powers_and_flags(params: Floats, parameters: Parameters) -> Iterator[LogTerm]:
    """Yield a power of each parameter, or a factor where it has two values."""
    for number in parameters.used:
        values = np.unique(params[:, number - 1])
        if len(values) == 2:
            flag = f"(p{number} == {float(values[1])!r})"
            yield LogTerm(parse(flag), f"exp({{}}*{flag})", kind="flag")
        else:
            yield _power(number, parameters)


def _curved(params: Floats, parameters: Parameters) -> Iterator[LogTerm]:
    """Yield products of logarithms, from their means over the samples."""
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
    """Return what powers of a parameter are taken of, and what negative ones.

    A negative power must not explode below the samples.
    """
    low = float(parameters.lowest[number - 1])
    if low > 0:
        return f"p{number}", f"max(p{number}, {low / 2:.4g})"
    size = f"p{number}" if low == 0 else f"abs(p{number})"
    return f"(1 + {size})", f"(1 + {size})"


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
        if other != number:
            base, _ = _bases(other, parameters)
            yield LogTerm(parse(f"{flag}*log({base})"), f"{base}^({{}}*{flag})")


def _break_at(name: str, knot: float, lowest: float) -> Iterator[LogTerm]:
    spelled = f"{knot:.6g}" if knot >= 0 else f"(-{-knot:.6g})"
    if lowest >= 0 and knot > 0:
        base = f"max({name}/{spelled}, 1)"
        yield LogTerm(parse(f"log({base})"), f"{base}^{{}}")
    yield LogTerm(parse(f"({name} > {spelled})"), f"exp({{}}*({name} > {spelled}))")


def _knots(column: Floats) -> Sequence[float]:
    return [float(knot) for knot in np.unique(np.quantile(column, KNOTS))]
