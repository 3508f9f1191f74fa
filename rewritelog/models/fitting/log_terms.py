"""Regressors for log t, each with the text of the factor of t that it stands for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np

from rewritelog.arrays import Floats
from rewritelog.models.expressions import Expression, parse
from rewritelog.models.fitting.candidates import DEEPEST, Parameters

MOST_VALUES = 8
"""A parameter with at most this many distinct values may have a factor for each."""

KNOTS = (0.15, 0.3, 0.5, 0.7, 0.85)
"""Quantiles of a parameter at which an exponent may change or a factor may set in."""

DENSE_KNOTS = tuple(np.linspace(0.1, 0.9, 17).tolist())
MOST_DENSELY_BROKEN = 4
FEWEST_DENSE = 60
"""`DENSE_KNOTS` are used for at most `MOST_DENSELY_BROKEN` parameters and at least `FEWEST_DENSE`
samples."""

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


def fewest_beyond(count: int) -> int:
    """Return how many of the samples lie on either side of a break at least."""
    return max(FEWEST_BEYOND, int(LEAST_BEYOND * count))


def smooth_factors(params: Floats, parameters: Parameters) -> Iterator[LogTerm]:
    """Yield factors without a break, the power of each parameter first."""
    yield from (_power(number, parameters) for number in parameters.used)
    for number in parameters.used:
        low, high = float(parameters.lowest[number - 1]), float(parameters.highest[number - 1])
        if low >= 0 and high <= DEEPEST:
            bounded = f"min(p{number}, {2 * high - low:.6g})"
            yield LogTerm(parse(bounded), f"exp({{}}*{bounded})")
    fewest = fewest_beyond(len(params))
    for number in parameters.used:
        column = params[:, number - 1]
        whole = bool((column == np.floor(column)).all())
        for size in ALIGNMENTS if whole and len(np.unique(column)) > MOST_VALUES else ():
            if fewest <= (column % size == 0).sum() <= len(params) - fewest:
                multiple = f"(p{number}/{size} == floor(p{number}/{size}))"
                yield LogTerm(parse(multiple), f"exp({{}}*{multiple})")
    for one, other in combinations(parameters.positive(), 2):
        bases = zip(_bases(one, parameters), _bases(other, parameters), strict=True)
        volume, bounded = (f"({a}*{b})" for a, b in bases)
        yield LogTerm(parse(f"log({volume})"), f"{volume}^{{}}", f"{bounded}^{{}}")
        larger = params[:, one - 1] > params[:, other - 1]
        if fewest <= larger.sum() <= len(params) - fewest:
            ratio = f"(max(p{one}, p{other})/min(p{one}, p{other}))"
            yield LogTerm(parse(f"log({ratio})"), f"{ratio}^{{}}")


def _power(number: int, parameters: Parameters) -> LogTerm:
    base, bounded = _bases(number, parameters)
    return LogTerm(parse(f"log({base})"), f"{base}^{{}}", f"{bounded}^{{}}")


def powers_and_flags(params: Floats, parameters: Parameters) -> Iterator[LogTerm]:
    """Yield a power of each parameter, or a factor for one with two values."""
    for number in parameters.used:
        values = np.unique(params[:, number - 1])
        if len(values) == 2:
            flag = f"(p{number} == {float(values[1])!r})"
            yield LogTerm(parse(flag), f"exp({{}}*{flag})", kind="flag")
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


def breaks(params: Floats, parameters: Parameters) -> Iterator[LogTerm]:
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
                yield from _breaks_at(f"p{number}", knot, float(values[0]))
    for one, other in combinations(parameters.positive(), 2):
        for knot in _knots(params[:, one - 1] * params[:, other - 1], KNOTS):
            yield from _breaks_at(f"(p{one}*p{other})", knot, 1.0)


def _at_value(number: int, value: float, parameters: Parameters) -> Iterator[LogTerm]:
    """Yield a factor for calls with one value, and powers of other parameters for these calls."""
    flag = f"(p{number} == {value!r})"
    yield LogTerm(parse(flag), f"exp({{}}*{flag})")
    for other in parameters.used:
        if other != number:
            base, _ = _bases(other, parameters)
            yield LogTerm(parse(f"{flag}*log({base})"), f"{base}^({{}}*{flag})")


def _breaks_at(name: str, knot: float, lowest: float) -> Iterator[LogTerm]:
    if lowest >= 0 and knot > 0:
        yield break_at(name, knot, bends=True)
    yield break_at(name, knot, bends=False)


def break_at(name: str, knot: float, *, bends: bool) -> LogTerm:
    """Return a term for a change of the exponent at a size, or for a factor beyond it."""
    spelled = f"{knot:.6g}" if knot >= 0 else f"(-{-knot:.6g})"
    if bends:
        base = f"max({name}/{spelled}, 1)"
        return LogTerm(parse(f"log({base})"), f"{base}^{{}}", broken=name, knot=knot, bends=True)
    beyond = f"({name} > {spelled})"
    return LogTerm(parse(beyond), f"exp({{}}*{beyond})", broken=name, knot=knot)


def _knots(column: Floats, quantiles: Sequence[float]) -> Sequence[float]:
    return [float(knot) for knot in np.unique(np.quantile(column, quantiles))]
