"""Families that are linear in logarithms: products of powers, with breaks and with shrinkage.

Near log t every kernel that is a power of its parameters is a straight line, errors in per cent
count alike at all sizes, and a flag, a threshold or a change of slope is a factor.
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
"""A parameter with at most this many values has a factor for each."""

KNOTS = (0.15, 0.3, 0.5, 0.7, 0.85)
"""Quantiles of a parameter at which a power may change, or a factor begin."""

DENSE_KNOTS = tuple(np.linspace(0.1, 0.9, 17).tolist())
MOST_DENSELY_BROKEN = 4
FEWEST_DENSE = 60
"""The same for at most this many parameters, and at least as many samples."""

NEAR = 0.15
"""The break of a chosen term is moved by at most this share of the samples …"""

MOST_BREAKS = 48
"""… to one of at most this many sizes."""

FEWEST_BEYOND = 5
LEAST_BEYOND = 0.05
"""At least as many samples, and this share of them, lie on either side of a break."""

NEW_SHARE = 1e-8
"""Of a column that is tried beside others at least this share of its square must be new."""

EXPONENTS = (-3.0, 4.0)
"""Exponents are kept within these."""

PRIOR_EXPONENTS = ((0.0, 0.35), (1.0, 0.35), (0.5, 0.12), (2.0, 0.1), (1.5, 0.05), (3.0, 0.03))
"""The exponents that kernels have, the usual ones first, with the chance of each that is assumed
before anything is measured."""

COMMON_EXPONENTS = (0.0, 0.5, 1.0)
"""What all exponents together may be about instead."""

MOST_CHOICES = 300
"""At most this many combinations of exponents are compared."""

PRIOR_DEVIATIONS = (0.1, 0.3)
"""Standard deviations of exponents about these."""

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

NOISES = (0.05, 0.15, 0.5, 1.0)
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
    broken: str = ""
    """What has a break there, as a text; empty for a term without one."""
    knot: float = 0.0
    bends: bool = False
    """Whether a power changes at the break, and not the level."""

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
    found = _moved([terms[place - 1] for place in taken if place], samples.params, weights, times)
    columns = np.column_stack(
        (np.ones(len(samples)), columns_of([term.column for term in found], samples.params))
    )
    columns, target = columns * weights[:, None], times * weights
    taken = [
        0,
        *(place for place in select(columns, target, non_negative=False, constant=0) if place),
    ]
    size = np.linalg.lstsq(columns[:, taken], target, rcond=1e-9)[0]
    factors = [
        found[place - 1].factor(float(np.clip(exponent, *EXPONENTS)))
        for place, exponent in zip(taken, size, strict=True)
        if place
    ]
    return (parse("*".join(factors) or "1"),)


def _moved(
    terms: Sequence[LogTerm], params: Floats, weights: Floats, times: Floats
) -> list[LogTerm]:
    """Return the terms, each break where it explains most beside the others."""
    found = list(terms)
    ones = np.ones((len(params), 1))
    columns = np.hstack((ones, columns_of([term.column for term in terms], params)))
    columns *= weights[:, None]
    for place, term in enumerate(terms):
        if not term.broken:
            continue
        values = parse(term.broken).evaluate(params)
        knots = _between(values, term.knot)
        knots = knots[knots > 0] if term.bends else knots
        if term.bends:
            rows = np.log(np.maximum(values[:, None] / knots, 1.0))
        else:
            rows = (values[:, None] > knots).astype(np.float64)
        tried = np.column_stack((columns[:, place + 1], rows * weights[:, None]))
        best = _best_beside(np.delete(columns, place + 1, axis=1), tried, times * weights)
        if best:
            found[place] = _break(term.broken, float(knots[best - 1]), bends=term.bends)
            columns[:, place + 1] = tried[:, best]
    return found


def _between(sizes: Floats, knot: float) -> Floats:
    """Return where a break may lie: between the sizes of the samples near it, at quantiles of many.

    Enough samples lie below and above it to tell what changes there.
    """
    rising = np.sort(sizes)
    count, place = len(rising), int(np.searchsorted(rising, knot))
    fewest, near = max(FEWEST_BEYOND, int(LEAST_BEYOND * count)), int(NEAR * count)
    first, last = max(fewest - 1, place - near), min(count - fewest, place + near)
    inner = np.unique(rising[first : last + 1])
    between = (inner[1:] + inner[:-1]) / 2
    places = np.linspace(0, len(between) - 1, min(len(between), MOST_BREAKS))
    return np.asarray(between[np.round(places).astype(np.int64)])


def _best_beside(columns: Floats, tried: Floats, target: Floats) -> int:
    """Return which of several columns explains most of the target beside others; all weighted."""
    basis = np.linalg.qr(columns)[0]
    new = tried - basis @ (basis.T @ tried)
    shares = np.einsum("ij,ij->j", new, new)
    usable = shares > NEW_SHARE * np.einsum("ij,ij->j", tried, tried)
    gains = np.where(usable, (new.T @ target) ** 2 / np.where(usable, shares, 1.0), -1.0)
    return int(np.argmax(gains))


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

    Exponents are normal about those that kernels have, other terms' about 0. Each choice of means,
    deviations and noise counts by its marginal likelihood (D. MacKay, "Bayesian interpolation",
    1992) and by how usual it is: with few samples that is ridge regression whose strength, and
    what it shrinks towards, the samples choose.
    """
    power, flag = (np.array([kind == one for kind in kinds]) for one in ("power", "flag"))
    count, width = len(times), columns.shape[1]
    design = np.column_stack((np.ones(count), columns))
    powers, usual = _prior_means(int(power.sum()))
    means = np.zeros((width, len(usual)))
    means[power] = powers
    rest = times[:, None] - columns @ means
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
    logs = usual - 0.5 * (misfits + spreads[:, None])
    weights = np.exp(logs - logs.max())
    found = np.einsum("kj,kij->i", weights, sizes[:, 1:]) + means @ weights.sum(axis=0)
    return np.asarray(found / weights.sum())


@cache
def _prior_means(parameters: int) -> tuple[Floats, Floats]:
    """Return choices of all parameters' exponents, shape (parameters, choices), and their chances.

    The chances are logarithms. Half of them is that of exponents about a common one. Of many
    parameters the less usual exponents are left out, and then all but a common one.
    """
    common = np.tile(COMMON_EXPONENTS, (parameters, 1))
    chance = np.full(len(COMMON_EXPONENTS), -np.log(2 * len(COMMON_EXPONENTS)))
    kinds = len(PRIOR_EXPONENTS)
    while kinds > 2 and kinds**parameters > MOST_CHOICES:
        kinds -= 1
    exponents, chances = np.array(PRIOR_EXPONENTS[:kinds]).T
    if not parameters or kinds**parameters > MOST_CHOICES:
        return common, chance
    places = np.indices((kinds,) * parameters).reshape(parameters, -1)
    logs = np.log(chances / chances.sum())[places].sum(axis=0) - np.log(2)
    return np.hstack((exponents[places], common)), np.concatenate((logs, chance))


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
    """Yield a factor of calls with one value, and powers of other parameters for them."""
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
    """Return a change of a power at a size, or a factor beyond it."""
    spelled = f"{knot:.6g}" if knot >= 0 else f"(-{-knot:.6g})"
    if bends:
        base = f"max({name}/{spelled}, 1)"
        return LogTerm(parse(f"log({base})"), f"{base}^{{}}", broken=name, knot=knot, bends=True)
    beyond = f"({name} > {spelled})"
    return LogTerm(parse(beyond), f"exp({{}}*{beyond})", broken=name, knot=knot)


def _knots(column: Floats, quantiles: Sequence[float]) -> Sequence[float]:
    return [float(knot) for knot in np.unique(np.quantile(column, quantiles))]
