"""Regressors for log t, each with the factor of t that it stands for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations
from typing import Literal

import numpy as np

from rewritelog.arrays import Floats, distinct
from rewritelog.models.expressions import Expression, constant, parse
from rewritelog.models.fitting import tuning
from rewritelog.models.fitting.candidates import ONE, Parameters, bounded_below, knots_of


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
            term.factor(
                float(np.clip(exponent, *tuning.EXPONENTS)) if term.kind == "power" else exponent
            )
            for term, exponent, counts in zip(terms, exponents.tolist(), enough, strict=True)
            if counts
        ]
    )


def fewest_beyond(count: int) -> int:
    """Return how many of the samples lie on either side of a break at least."""
    return max(tuning.FEWEST_BEYOND, int(tuning.LEAST_BEYOND * count))


def smooth_factors(params: Floats, parameters: Parameters) -> Iterator[LogTerm]:
    """Yield factors without a break, the power of each parameter first.

    Among few samples further ones would be chosen by chance.
    """
    yield from (power_of(number, parameters) for number in parameters.used)
    if len(params) < tuning.ENOUGH:
        return
    for number in parameters.used:
        low, high = float(parameters.lowest[number - 1]), float(parameters.highest[number - 1])
        if low >= 0 and high <= tuning.DEEPEST:
            bounded = parse(f"min(p{number}, {2 * high - low:.6g})")
            yield LogTerm(bounded, times=(bounded,))
    fewest = fewest_beyond(len(params))
    for number in parameters.used:
        column = params[:, number - 1]
        whole = bool((column == np.floor(column)).all())
        for size in (
            tuning.ALIGNMENTS if whole and len(distinct(column)) > tuning.MOST_VALUES else ()
        ):
            if fewest <= (column % size == 0).sum() <= len(params) - fewest:
                multiple = parse(f"p{number}/{size} == floor(p{number}/{size})")
                yield LogTerm(multiple, times=(multiple,))
    for first, second in combinations(parameters.positive(), 2):
        bases = zip(_bases(first, parameters), _bases(second, parameters), strict=True)
        volume, bounded = (parse(f"{a}*{b}") for a, b in bases)
        yield LogTerm(volume.mapped("log"), volume, bounded)
        larger = params[:, first - 1] > params[:, second - 1]
        if fewest <= larger.sum() <= len(params) - fewest:
            ratio = parse(f"max(p{first}, p{second})/min(p{first}, p{second})")
            yield LogTerm(ratio.mapped("log"), ratio)


def power_of(number: int, parameters: Parameters) -> LogTerm:
    """Return a power of a parameter."""
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
            yield power_of(number, parameters)


def curvatures(params: Floats, parameters: Parameters) -> Iterator[LogTerm]:
    """Yield squares and products of the parameters' logarithms, centred on their means."""
    numbers = parameters.used
    few = tuning.FEWEST_CURVED_SAMPLES <= len(params) < tuning.ENOUGH
    if not few or len(numbers) > tuning.MOST_CURVED_PARAMETERS:
        return
    centred = {}
    for number in numbers:
        log = parse(_bases(number, parameters)[0]).mapped("log")
        mean = float(log.evaluate(params).mean())
        size = constant(float(f"{abs(mean):.4g}"))
        centred[number] = log.applied("-" if mean >= 0 else "+", size)
    squared = [(first, first) for first in numbers if len(distinct(params[:, first - 1])) > 2]
    for first, second in sorted([*squared, *combinations(numbers, 2)]):
        factors = (centred[first], centred[second])
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
    dense = len(params) >= tuning.ENOUGH and len(parameters.used) <= tuning.MOST_DENSELY_BROKEN
    for number in parameters.used:
        column = params[:, number - 1]
        values = distinct(column)
        if len(values) <= tuning.MOST_VALUES:
            for value in values.tolist():
                yield from _at_value(number, value, parameters)
        else:
            for knot in knots_of(column, tuning.DENSE_KNOTS if dense else tuning.KNOTS):
                yield from _breaks_at(f"p{number}", knot, float(values[0]))
    for first, second in combinations(parameters.positive(), 2):
        for knot in knots_of(params[:, first - 1] * params[:, second - 1], tuning.KNOTS):
            yield from _breaks_at(f"(p{first}*p{second})", knot, 1.0)


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
