"""The terms that an event's parameters suggest: powers and logarithms of each, and products.

The functions of one parameter are those that loops give rise to: p, p², p³, √p, log p, p·log p and
1/p. Products follow Meira's `modgen` ("Modeling performance of parallel programs", 1995): what
explains the time over one parameter is multiplied where parameters interact.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from rewritelog.arrays import Floats
from rewritelog.models.expressions import Expression, parse

MOST_CROSSES = 500
"""Products of functions of two parameters are candidates only where there are at most so many."""

MOST_FOR_TRIPLES = 9
"""Products of three parameters are candidates only of so many parameters."""

NARROWEST_RANGE = 1e-12
"""A parameter whose range is at most this share of its largest value counts as constant."""

ONE = parse("1")


@dataclass(frozen=True)
class Ignored:
    """A parameter that no term is made of, and why."""

    parameter: int
    reason: str


@dataclass(frozen=True)
class Parameters:
    """The parameters that a fit can use, with their range over the samples."""

    lowest: Floats
    highest: Floats
    used: tuple[int, ...]
    """Parameters counted from 1, without constant ones and copies."""
    ignored: tuple[Ignored, ...]

    @classmethod
    def of_samples(cls, params: Floats) -> Parameters:
        """Look at which parameters vary, and which say the same as one before them."""
        lowest, highest = params.min(axis=0), params.max(axis=0)
        used: list[int] = []
        ignored: list[Ignored] = []
        for place in range(params.shape[1]):
            largest = max(abs(lowest[place]), abs(highest[place]))
            if highest[place] - lowest[place] <= NARROWEST_RANGE * largest:
                reason = f"is constant {lowest[place] + 0.0:.6g} in all samples"
                ignored.append(Ignored(place + 1, reason))
                continue
            original = _original(params, place, used)
            if original:
                ignored.append(Ignored(place + 1, f"follows p{original} in all samples"))
            else:
                used.append(place + 1)
        return cls(lowest, highest, tuple(used), tuple(ignored))

    def functions(self, parameter: int) -> tuple[Expression, ...]:
        """Return the terms of one parameter, the parameter itself first."""
        low = float(self.lowest[parameter - 1])
        name = f"p{parameter}"
        texts = [name, f"{name}^2"]
        if low >= 0:
            log = logarithm(name, low)
            texts += [f"sqrt({name})", log, f"{name}*{log}"]
        if low > 0:
            texts += [f"{name}^3", f"1/{_bounded(name, low)}"]
        elif low == 0:
            texts.append(f"1/(1 + {name})")
        return tuple(parse(text) for text in texts)

    def single(self) -> tuple[Expression, ...]:
        """Return the constant and all terms of one parameter."""
        return (ONE, *(term for number in self.used for term in self.functions(number)))

    def linear(self) -> tuple[Expression, ...]:
        """Return the constant and the parameters themselves."""
        return (ONE, *(parse(f"p{number}") for number in self.used))

    def crossed(self) -> tuple[Expression, ...]:
        """Return the products of functions of two parameters, and of three parameters.

        Where there would be too many, those of two parameters are of the parameters alone.
        """
        functions = [self.functions(number) for number in self.used]
        many = sum(len(one) * len(other) for one, other in combinations(functions, 2))
        pairs = functions if many <= MOST_CROSSES else [one[:1] for one in functions]
        products = [
            left.times(right)
            for one, other in combinations(pairs, 2)
            for left in one
            for right in other
        ]
        if len(self.used) <= MOST_FOR_TRIPLES:
            for one, two, three in combinations(functions, 3):
                products.append(one[0].times(two[0]).times(three[0]))
        return tuple(products)

    def positive(self) -> tuple[int, ...]:
        """Return the usable parameters that are above 0 in all samples."""
        return tuple(number for number in self.used if self.lowest[number - 1] > 0)


def logarithm(name: str, lowest: float) -> str:
    """Return the text of a parameter's logarithm that is never negative nor undefined."""
    return f"log(max({name}, 1))" if lowest >= 1 else f"log1p({name})"


def power(parameter: int, exponent: float, lowest: float) -> str:
    """Return the text of a power of a parameter above 0; a negative one is bounded below it."""
    name = f"p{parameter}"
    if exponent < 0:
        return f"{_bounded(name, lowest)}^{exponent:.4g}"
    return name if exponent == 1 else f"{name}^{exponent:.4g}"


def products_of(some: Sequence[Expression], others: Iterable[Expression]) -> list[Expression]:
    """Return the product of each of some terms with each of others, each product once."""
    seen: set[frozenset[Expression]] = set()
    made = []
    for right in others:
        for left in some:
            pair = frozenset((left, right))
            if ONE not in pair and pair not in seen:
                seen.add(pair)
                made.append(left.times(right))
    return made


def columns_of(terms: Sequence[Expression], params: Floats) -> Floats:
    """Return the values of the terms, shape (rows, terms), column by column in memory."""
    columns = np.empty((len(params), len(terms)), order="F")
    for place, term in enumerate(terms):
        columns[:, place] = term.evaluate(params)
    return columns


def lengths_of(columns: Floats) -> Floats:
    """Return the length of each column, also where the squares of its values overflow or vanish."""
    largest = np.abs(columns).max(axis=0, initial=0.0)
    units = columns / np.where(largest > 0, largest, 1.0)
    return np.asarray(largest * np.linalg.norm(units, axis=0))


def _bounded(name: str, lowest: float) -> str:
    """Return a parameter that stays above half of its least value: 1/p must not explode."""
    return f"max({name}, {lowest / 2:.4g})"


def _original(params: Floats, place: int, used: Iterable[int]) -> int:
    """Return the parameter that this one is a multiple of or differs from by a constant, or 0."""
    column = _standard(params[:, place])
    for number in used:
        other = _standard(params[:, number - 1])
        if np.allclose(column, other, rtol=0, atol=1e-9):
            return number
    return 0


def _standard(column: Floats) -> Floats:
    """Return the column moved and stretched to [0, 1]."""
    low, high = column.min(), column.max()
    standard: Floats = (column - low) / (high - low)
    return standard
