"""Regressors for log t, each with the factor of t that it stands for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations
from typing import Literal

import numpy as np

from rewritelog.arrays import Floats, distinct, quantiles
from rewritelog.models.expressions import Expression, constant, parse
from rewritelog.models.fitting.candidates import (
    DEEPEST,
    EXPONENTS,
    KNOTS,
    MOST_VALUES,
    ONE,
    Parameters,
    bounded_below,
)

DENSE_KNOTS = tuple(np.linspace(0.1, 0.9, 17).tolist())
MOST_DENSELY_BROKEN = 4
FEWEST_DENSE = 60
"""`DENSE_KNOTS` are used for at most `MOST_DENSELY_BROKEN` parameters and at least `FEWEST_DENSE`
samples; with fewer there are no smooth factors but powers either."""

FEWEST_BEYOND = 5
LEAST_BEYOND = 0.05
"""At least this many samples, and this share of them, lie on either side of a break."""

ALIGNMENTS = (2, 4, 8, 16)
"""Calls with multiples of these may be faster, as of a vector's width."""

FEWEST_CURVED_SAMPLES = 8
"""With fewer samples a curvature is a guess, which explodes beyond them."""

MOST_CURVED_SAMPLES = 60
"""From this many samples on a change of slope is found without a prior."""

MOST_CURVED_PARAMETERS = 5
"""With more parameters exponents are assumed to be constant."""


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
    kind: Literal["power", "indicator", "curvature"] = "power"
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


def product_of(factors: Sequence[Expression]) -> Expression:
    """Return the product of factors, 1 without any."""
    return reduce(Expression.times, factors) if factors else ONE


def product_of_powers(
    terms: Sequence[LogTerm], exponents: Floats, least: float | Floats
) -> Expression:
    """Return the product of the terms' factors, without those of exponents smaller than `least`."""
    enough = np.abs(exponents) > least
    return product_of(
        [
            term.factor(float(np.clip(exponent, *EXPONENTS)) if term.kind == "power" else exponent)
            for term, exponent, counts in zip(terms, exponents.tolist(), enough, strict=True)
            if counts
        ]
    )


def fewest_beyond(count: int) -> int:
    """Return how many of the samples lie on either side of a break at least."""
    return max(FEWEST_BEYOND, int(LEAST_BEYOND * count))


def smooth_factors(params: Floats, parameters: Parameters) -> Iterator[LogTerm]:
    """Yield factors without a break, the power of each parameter first.

    Among few samples further ones would be chosen by chance.
    """
    yield from (_power(number, parameters) for number in parameters.used)
    if len(params) < FEWEST_DENSE:
        return
    for number in parameters.used:
        low, high = float(parameters.lowest[number - 1]), float(parameters.highest[number - 1])
        if low >= 0 and high <= DEEPEST:
            bounded = parse(f"min(p{number}, {2 * high - low:.6g})")
            yield LogTerm(bounded, times=(bounded,))
    fewest = fewest_beyond(len(params))
    for number in parameters.used:
        column = params[:, number - 1]
        whole = bool((column == np.floor(column)).all())
        for size in ALIGNMENTS if whole and len(distinct(column)) > MOST_VALUES else ():
            if fewest <= (column % size == 0).sum() <= len(params) - fewest:
                multiple = parse(f"p{number}/{size} == floor(p{number}/{size})")
                yield LogTerm(multiple, times=(multiple,))
    for one, other in combinations(parameters.positive(), 2):
        bases = zip(_bases(one, parameters), _bases(other, parameters), strict=True)
        volume, bounded = (parse(f"{a}*{b}") for a, b in bases)
        yield LogTerm(volume.mapped("log"), volume, bounded)
        larger = params[:, one - 1] > params[:, other - 1]
        if fewest <= larger.sum() <= len(params) - fewest:
            ratio = parse(f"max(p{one}, p{other})/min(p{one}, p{other})")
            yield LogTerm(ratio.mapped("log"), ratio)


def _power(number: int, parameters: Parameters) -> LogTerm:
    base, bounded = (parse(text) for text in _bases(number, parameters))
    return LogTerm(base.mapped("log"), base, bounded)


def powers_and_indicators(params: Floats, parameters: Parameters) -> Iterator[LogTerm]:
    """Yield a power of each parameter, or a factor for one with two values."""
    for number in parameters.used:
        values = distinct(params[:, number - 1])
        if len(values) == 2:
            indicator = parse(f"p{number}").applied("==", constant(float(values[1])))
            yield LogTerm(indicator, times=(indicator,), kind="indicator")
        else:
            yield _power(number, parameters)


def curvatures(params: Floats, parameters: Parameters) -> Iterator[LogTerm]:
    """Yield squares and products of the parameters' logarithms, centred on their means."""
    numbers = parameters.used
    few = FEWEST_CURVED_SAMPLES <= len(params) < MOST_CURVED_SAMPLES
    if not few or len(numbers) > MOST_CURVED_PARAMETERS:
        return
    centred = {}
    for number in numbers:
        log = parse(_bases(number, parameters)[0]).mapped("log")
        mean = float(log.evaluate(params).mean())
        size = constant(float(f"{abs(mean):.4g}"))
        centred[number] = log.applied("-" if mean >= 0 else "+", size)
    squared = [(one, one) for one in numbers if len(distinct(params[:, one - 1])) > 2]
    for one, other in sorted([*squared, *combinations(numbers, 2)]):
        factors = (centred[one], centred[other])
        yield LogTerm(product_of(factors), times=factors, kind="curvature")


def _bases(number: int, parameters: Parameters) -> tuple[str, str]:
    """Return the texts of the bases of positive and of negative powers of a parameter.

    A negative power must not explode below the range of the samples.
    """
    low = float(parameters.lowest[number - 1])
    if low > 0:
        return f"p{number}", bounded_below(f"p{number}", low)
    size = f"p{number}" if low == 0 else f"abs(p{number})"
    return f"(1 + {size})", f"(1 + {size})"


def breaks(params: Floats, parameters: Parameters) -> Iterator[LogTerm]:
    """Yield changes of an exponent, thresholds, and factors for single values."""
    dense = len(params) >= FEWEST_DENSE and len(parameters.used) <= MOST_DENSELY_BROKEN
    for number in parameters.used:
        column = params[:, number - 1]
        values = distinct(column)
        if len(values) <= MOST_VALUES:
            for value in values.tolist():
                yield from _at_value(number, value, parameters)
        else:
            for knot in _knots(column, DENSE_KNOTS if dense else KNOTS):
                yield from _breaks_at(f"p{number}", knot, float(values[0]))
    for one, other in combinations(parameters.positive(), 2):
        for knot in _knots(params[:, one - 1] * params[:, other - 1], KNOTS):
            yield from _breaks_at(f"(p{one}*p{other})", knot, 1.0)


def _at_value(number: int, value: float, parameters: Parameters) -> Iterator[LogTerm]:
    """Yield a factor for calls with one value, and powers of other parameters for these calls."""
    indicator = parse(f"p{number}").applied("==", constant(value))
    yield LogTerm(indicator, times=(indicator,))
    for other in parameters.used:
        if other != number:
            base = parse(_bases(other, parameters)[0])
            yield LogTerm(indicator.times(base.mapped("log")), base, times=(indicator,))


def _breaks_at(name: str, knot: float, lowest: float) -> Iterator[LogTerm]:
    if lowest >= 0 and knot > 0:
        yield break_at(name, knot, hinge=True)
    yield break_at(name, knot, hinge=False)


def break_at(name: str, knot: float, *, hinge: bool) -> LogTerm:
    """Return a term for a change of the exponent at a size, or for a factor beyond it."""
    own, size = parse(name), constant(float(f"{knot:.6g}"))
    if hinge:
        base = own.applied("/", size).applied("max", ONE)
        return LogTerm(base.mapped("log"), base, broken=name, knot=knot, hinge=True)
    beyond = own.applied(">", size)
    return LogTerm(beyond, times=(beyond,), broken=name, knot=knot)


def _knots(column: Floats, levels: Sequence[float]) -> Sequence[float]:
    return sorted(set(quantiles(np.sort(column), levels)))
