"""The terms that an event's parameters suggest: powers and logarithms of each, and products.

The functions of one parameter are those that loops give rise to: p, p², p³, √p, log p, p·log p and
1/p. Products follow Meira's `modgen` ("Modeling performance of parallel programs", 1995): what
explains the time over one parameter is multiplied where parameters interact.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import combinations
from typing import TypeAlias

import numpy as np

from rewritelog.arrays import Floats
from rewritelog.models.expressions import Expression, parse

MOST_CROSSES = 500
"""Products of functions of two parameters are candidates only where there are at most this many."""

MOST_FOR_TRIPLES = 9
"""Products of three parameters are candidates only of at most this many parameters."""

NARROWEST_RANGE = 1e-12
"""A parameter whose range is at most this share of its largest value counts as constant."""

ROUNDING = 1e-9
"""Parameters that differ by less than this share of their range say the same."""

ONE = parse("1")

Product: TypeAlias = tuple[int, ...]
"""The places of the base terms that a candidate is the product of."""


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
    varying: tuple[int, ...]
    """Parameters that are not constant."""
    ignored: tuple[Ignored, ...]

    @classmethod
    def of_samples(cls, params: Floats) -> Parameters:
        """Look at which parameters vary, and which say the same as one before them."""
        lowest, highest = params.min(axis=0), params.max(axis=0)
        used: list[int] = []
        varying: list[int] = []
        ignored: list[Ignored] = []
        standard: list[Floats] = []
        for place, (low, high) in enumerate(zip(lowest.tolist(), highest.tolist(), strict=True)):
            if high / 2 - low / 2 <= NARROWEST_RANGE * max(abs(low), abs(high)):
                ignored.append(Ignored(place + 1, f"is constant {low + 0.0:.6g} in all samples"))
                continue
            varying.append(place + 1)
            column = (params[:, place] - low) / (high - low)  # moved and stretched to [0, 1]
            original = _original(column, standard)
            if original is None:
                used.append(place + 1)
                standard.append(column)
            else:
                reason = f"follows p{used[original]} in all samples"
                ignored.append(Ignored(place + 1, reason))
        return cls(lowest, highest, tuple(used), tuple(varying), tuple(ignored))

    def functions(self, parameter: int) -> tuple[Expression, ...]:
        """Return the terms of one parameter, the parameter itself first."""
        low = float(self.lowest[parameter - 1])
        name = f"p{parameter}"
        texts = [name, f"{name}^2"]
        if low < 0:
            size = f"abs({name})"
            texts += [size, f"sqrt({size})", f"log1p({size})", f"{size}*log1p({size})"]
        if low >= 0:
            log = logarithm(name, low)
            texts += [f"sqrt({name})", log, f"{name}*{log}"]
        if low > 0:
            texts += [f"{name}^3", f"1/{_bounded(name, low)}"]
        elif low == 0:
            texts.append(f"1/(1 + {name})")
        return tuple(parse(text) for text in texts)

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
    spelled = f"{exponent:.4g}"
    return name if spelled == "1" else f"{name}^{spelled}"


def _bounded(name: str, lowest: float) -> str:
    """Return a parameter that stays above half of its least value: 1/p must not explode."""
    return f"max({name}, {lowest / 2:.4g})"


def _original(column: Floats, others: Iterable[Floats]) -> int | None:
    """Return the place of the first of other columns that is equal but for rounding, if any.

    Standardized, a multiple of a parameter, and one that differs from it by a constant, are.
    """
    for place, other in enumerate(others):
        if (np.abs(column - other) <= ROUNDING).all():
            return place
    return None


class CandidateTerms:
    """Products of base terms, which are the constant and the functions of one parameter each.

    Products are columns of numbers until one is chosen: its expression is made only then.
    """

    def __init__(self, parameters: Parameters) -> None:
        self.parameters = parameters

    @cached_property
    def _functions(self) -> list[tuple[Expression, ...]]:
        """The functions of each usable parameter."""
        return [self.parameters.functions(number) for number in self.parameters.used]

    @cached_property
    def base(self) -> tuple[Expression, ...]:
        """The constant and the functions of one parameter each."""
        return (ONE, *(term for some in self._functions for term in some))

    @cached_property
    def _places(self) -> list[tuple[int, ...]]:
        """Where the functions of each usable parameter are among the base terms."""
        starts = np.cumsum([1, *map(len, self._functions)]).tolist()
        return [
            tuple(range(start, start + len(some)))
            for start, some in zip(starts, self._functions, strict=False)
        ]

    @cached_property
    def single(self) -> tuple[Product, ...]:
        """The constant and all functions of one parameter."""
        return tuple((place,) for place in range(len(self.base)))

    @cached_property
    def linear(self) -> tuple[Product, ...]:
        """The constant and the parameters themselves."""
        return ((0,), *((places[0],) for places in self._places))

    @cached_property
    def crossed(self) -> tuple[Product, ...]:
        """Products of functions of two parameters, and of three parameters.

        Where there would be too many, those of two parameters are of the parameters alone.
        """
        many = sum(len(one) * len(other) for one, other in combinations(self._places, 2))
        pairs = self._places if many <= MOST_CROSSES else [one[:1] for one in self._places]
        products: list[Product] = [
            (left, right)
            for one, other in combinations(pairs, 2)
            for left in one
            for right in other
        ]
        if len(self._places) <= MOST_FOR_TRIPLES:
            products += [(a[0], b[0], c[0]) for a, b, c in combinations(self._places, 3)]
        return tuple(products)

    def products_of(self, some: Iterable[Product], others: Iterable[Product]) -> list[Product]:
        """Return the products of functions of different parameters, each product once."""
        found = {
            tuple(sorted((*left, *right))): None
            for right in others
            for left in some
            if self._parameter(left) != self._parameter(right) and (0,) not in (left, right)
        }
        return list(found)

    def _parameter(self, product: Product) -> int:
        """Return which parameter a function is of."""
        return next(
            (number for number, places in enumerate(self._places) if product[0] in places), -1
        )

    def term(self, product: Product) -> Expression:
        """Return a candidate as an expression."""
        return reduce(Expression.times, (self.base[place] for place in product))


def product_columns(base_columns: Floats, products: Iterable[Product]) -> Floats:
    """Return the values of candidates from those of the base terms, shape (rows, candidates)."""
    wanted = list(products)
    columns = base_columns[:, [product[0] for product in wanted]]
    for place, product in enumerate(wanted):
        for factor in product[1:]:
            columns[:, place] *= base_columns[:, factor]
    return columns
