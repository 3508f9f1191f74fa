"""Candidate terms of an event's parameters: powers and logarithms of each, and products of those.

The functions of one parameter are those that loops lead to: p, p², p³, √p, log p, p·log p and 1/p.
Products follow `modgen` (W. Meira, "Modeling performance of parallel programs", University of
Rochester, TR 589, 1995): where parameters interact, the terms that explain the time as a function
of each one are multiplied.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import combinations
from typing import TypeAlias

import numpy as np

from rewritelog.arrays import Floats, Ints, quantiles
from rewritelog.models.expressions import Expression, parse
from rewritelog.models.fitting import tuning

NARROWEST_RANGE = 1e-12
"""A parameter counts as constant if half its range is at most this share of its magnitude."""

ROUNDING = 1e-9
"""Parameters, scaled to [0, 1], that differ by at most this are equal up to rounding."""

ONE = parse("1")

Product: TypeAlias = tuple[int, ...]
"""A candidate: the indices of the base terms that it is the product of."""


@dataclass(frozen=True)
class Ignored:
    """A parameter that no candidate term uses, and why."""

    parameter: int
    reason: str


@dataclass(frozen=True)
class Parameters:
    """The parameters that a fit can use, with their range over the samples."""

    lowest: Floats
    highest: Floats
    used: tuple[int, ...]
    """Their numbers, counted from 1, without constant ones and duplicates."""
    varying: tuple[int, ...]
    """The numbers of those that are not constant."""
    ignored: tuple[Ignored, ...]

    @classmethod
    def of_samples(cls, params: Floats) -> Parameters:
        """Find the parameters that vary, and those that are linear functions of an earlier one."""
        lowest, highest = params.min(axis=0), params.max(axis=0)
        used: list[int] = []
        varying: list[int] = []
        ignored: list[Ignored] = []
        scaled_columns: list[Floats] = []
        for index, (low, high) in enumerate(zip(lowest.tolist(), highest.tolist(), strict=True)):
            if high / 2 - low / 2 <= NARROWEST_RANGE * max(abs(low), abs(high)):
                ignored.append(Ignored(index + 1, f"is constant {low + 0.0:.6g} in all samples"))
                continue
            varying.append(index + 1)
            column = (params[:, index] - low) / (high - low)  # scaled to [0, 1]
            duplicate_of = _duplicate_of(column, scaled_columns)
            if duplicate_of is None:
                used.append(index + 1)
                scaled_columns.append(column)
            else:
                reason = f"follows p{used[duplicate_of]} in all samples"
                ignored.append(Ignored(index + 1, reason))
        return cls(lowest, highest, tuple(used), tuple(varying), tuple(ignored))

    def functions(self, parameter: int) -> tuple[Expression, ...]:
        """Return the candidate terms of one parameter, the parameter itself first.

        They are defined, and finite, for all values that the parameter has in the samples.
        """
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
            texts += [f"{name}^3", f"1/{bounded_below(name, low)}"]
        elif low == 0:
            texts.append(f"1/(1 + {name})")
        return tuple(parse(text) for text in texts)

    def positive(self) -> tuple[int, ...]:
        """Return the numbers of the usable parameters that are positive in all samples."""
        return tuple(number for number in self.used if self.lowest[number - 1] > 0)


def logarithm(name: str, lowest: float) -> str:
    """Return the text of a logarithm of the parameter that is never negative nor undefined."""
    return f"log(max({name}, 1))" if lowest >= 1 else f"log1p({name})"


def knots_of(column: Floats, levels: Iterable[float]) -> list[float]:
    """Return the distinct quantiles of a column at these levels, ascending."""
    return sorted(set(quantiles(np.sort(column), levels)))


def bounded_below(name: str, lowest: float) -> str:
    """Return the text of the parameter, at least half its least value: 1/p has to stay bounded."""
    return f"max({name}, {lowest / 2:.4g})"


def _duplicate_of(column: Floats, others: Iterable[Floats]) -> int | None:
    """Return the index of the first of the other columns that equals this one up to rounding.

    Scaled to [0, 1], increasing linear functions of a parameter are equal to it.
    """
    for index, other in enumerate(others):
        if (np.abs(column - other) <= ROUNDING).all():
            return index
    return None


class CandidateTerms:
    """Products of base terms: of the constant and the functions of one parameter each.

    A product is a tuple of indices, for which columns of values are computed; its expression is
    made only when it is chosen.
    """

    def __init__(self, parameters: Parameters) -> None:
        self.parameters = parameters
        self._terms: dict[Product, Expression] = {}

    @cached_property
    def _functions(self) -> list[tuple[Expression, ...]]:
        """The functions of one parameter, for each usable one."""
        return [self.parameters.functions(number) for number in self.parameters.used]

    @cached_property
    def base(self) -> tuple[Expression, ...]:
        """The constant and the functions of one parameter each."""
        return (ONE, *(term for functions in self._functions for term in functions))

    @cached_property
    def _base_indices(self) -> list[tuple[int, ...]]:
        """The indices among the base terms of the functions of each usable parameter."""
        starts = np.cumsum([1, *map(len, self._functions)]).tolist()
        return [
            tuple(range(start, start + len(functions)))
            for start, functions in zip(starts, self._functions, strict=False)
        ]

    @cached_property
    def single(self) -> tuple[Product, ...]:
        """The constant and all functions of one parameter, as products of one factor."""
        return tuple((index,) for index in range(len(self.base)))

    @cached_property
    def linear(self) -> tuple[Product, ...]:
        """The constant and the parameters themselves, as products of one factor."""
        return ((0,), *((indices[0],) for indices in self._base_indices))

    @cached_property
    def crossed(self) -> tuple[Product, ...]:
        """Products of functions of two parameters, and of three parameters.

        Where there would be too many, only the parameters themselves are multiplied.
        """
        crosses = sum(
            len(first) * len(second) for first, second in combinations(self._base_indices, 2)
        )
        pairs = (
            self._base_indices
            if crosses <= tuning.MOST_CROSSES
            else [indices[:1] for indices in self._base_indices]
        )
        products: list[Product] = [
            (left, right)
            for first, second in combinations(pairs, 2)
            for left in first
            for right in second
        ]
        if len(self._base_indices) <= tuning.MOST_FOR_TRIPLES:
            products += [(a[0], b[0], c[0]) for a, b, c in combinations(self._base_indices, 3)]
        return tuple(products)

    def term(self, product: Product) -> Expression:
        """Return a product as an expression."""
        if product not in self._terms:
            self._terms[product] = reduce(Expression.times, (self.base[at] for at in product))
        return self._terms[product]


def factors_of(products: Sequence[Product]) -> Ints:
    """Return the factors of products, shape (most factors of any, products).

    Products of fewer factors have the constant, base term 0, for the others.
    """
    most = max(map(len, products))
    return np.array([product + (0,) * (most - len(product)) for product in products]).T


def product_columns(base_columns: Floats, factors: Ints) -> Floats:
    """Return the values of products from those of the base terms, shape (rows, products)."""
    columns = base_columns[:, factors[0]]
    for others in factors[1:]:
        columns *= base_columns[:, others]
    return columns
