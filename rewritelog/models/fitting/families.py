"""Families of functions among which a fit is chosen: each chooses the terms of a sum.

All but one have no negative coefficients: they predict no negative time, and beyond the range of
the samples they grow no faster than their terms do.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from typing import Any, TypeVar

import numpy as np

from rewritelog.arrays import Floats, Ints
from rewritelog.models.expressions import Expression, parse
from rewritelog.models.fitting.candidates import (
    EXPONENTS,
    ONE,
    CandidateTerms,
    Parameters,
    Product,
    factors_of,
    power,
    product_columns,
)
from rewritelog.models.fitting.columns import columns_of, independent_columns
from rewritelog.models.fitting.product_shape import product_factors
from rewritelog.models.fitting.regression import Loss, least_squares
from rewritelog.models.fitting.samples import Samples
from rewritelog.models.fitting.selection import MOST_TERMS, Slopes, select, select_terms

MOST_FACTORS = 6
"""All partial products of at most this many factors are candidates; of more factors, only single
ones, pairs and the whole product."""

STEEPEST = 4.0
"""Steeper slopes, d log T / d log p, count as this."""


FEW_TERMS = 4
"""A sum of so many terms is understood at a glance."""

Made = TypeVar("Made")


class TermTable:
    """A cache of candidate terms and of their values that all folds share.

    A term is evaluated once, for all samples and for the corners beyond them (see `corners_of`).
    """

    def __init__(self, params: Floats, parameters: Parameters) -> None:
        self.params = params
        self._rows = np.vstack((params, corners_of(parameters)))
        self._values = np.empty((0, len(self._rows)))
        """The values of a term in each row, shape (at least all terms, samples and corners)."""
        self._index: dict[Expression, int] = {}
        self._terms: dict[str, Sequence[Any]] = {}
        self._columns: dict[str, Floats] = {}
        self._made: dict[Any, Any] = {}

    def terms(self, name: str, make: Callable[[Floats], Sequence[Any]]) -> Sequence[Any]:
        """Return the candidates of that name; `make` is called when they are first used."""
        if name not in self._terms:
            self._terms[name] = make(self.params)
        return self._terms[name]

    def columns(self, name: str, make: Callable[[Floats], Sequence[Any]]) -> Floats:
        """Return their values, shape (all samples, candidates)."""
        if name not in self._columns:
            columns = [getattr(term, "column", term) for term in self.terms(name, make)]
            self._columns[name] = self.values(columns, np.arange(len(self.params)))
        return self._columns[name]

    def values(self, terms: Sequence[Expression], rows: Ints) -> Floats:
        """Return the values of any terms for some rows, as `columns_of` would evaluate them."""
        places = self._places(terms)
        return np.asarray(self._values[places[:, None], rows].T)

    def forget_values(self) -> None:
        """Free the memory of all values; those that are asked for later are computed anew."""
        self._index.clear()
        self._columns.clear()
        self._values = np.empty((0, len(self._rows)))

    def slopes(self, terms: Sequence[Expression]) -> Floats:
        """Return the slopes of terms (see `slopes_between`), shape (terms, parameters)."""
        places = self._places(terms)
        return slopes_between(self._values[places, len(self.params) :])

    def _places(self, terms: Sequence[Expression]) -> Ints:
        """Return the row of each term in the table of values; evaluate new terms."""
        known, index = len(self._index), self._index
        new = [term for term in terms if term not in index]
        for term in new:
            index.setdefault(term, len(index))
        if len(index) > len(self._values):
            more = np.empty((max(len(self._values), len(index)), len(self._rows)))
            self._values = np.concatenate((self._values, more))
        if new:
            with np.errstate(all="ignore"):
                for place, term in enumerate(list(index)[known:], known):
                    term.evaluate_into(self._values[place], self._rows)
        return np.array([index[term] for term in terms], dtype=np.int64)

    def once(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """Return what `make` returns for a key, calling it only once for all folds."""
        if key not in self._made:
            self._made[key] = make()
        made: Made = self._made[key]
        return made


def corners_of(parameters: Parameters) -> Floats:
    """Return the parameters' largest values, and these with twice the value of one of them each."""
    highest = parameters.highest
    return np.vstack((highest, highest + np.diag(np.maximum(highest, 0.0))))


def slopes_between(values: Floats) -> Floats:
    """Return d log T / d log p beyond the range of the samples, given values at the corners there.

    The slope is that between the largest value of a parameter and twice that value, all others at
    their largest; it is limited to [0, `STEEPEST`]. `values` has the shape (functions, corners),
    the result (functions, parameters).
    """
    sizes = np.abs(values)
    powers = np.log2(sizes[:, 1:] / sizes[:, :1])
    return np.clip(np.where(np.isfinite(powers), powers, 0.0), 0.0, STEEPEST)


def excess_growth(slopes: Floats) -> Floats:
    """Return how much faster than linearly terms grow: Σ (s² − 1) over slopes s above 1."""
    return np.asarray(np.maximum(slopes**2 - 1, 0.0).sum(axis=1))


@dataclass(frozen=True)
class SelectionSamples:
    """The samples with which terms are selected, and the candidates among which they are."""

    samples: Samples
    candidates: CandidateTerms
    table: TermTable
    rows: Ints
    """The rows of the table that these samples are."""
    loss: Loss
    _made: dict[Any, Any] = field(default_factory=dict, compare=False)

    @classmethod
    def of(cls, samples: Samples, loss: Loss) -> SelectionSamples:
        """Prepare the candidates for the samples' parameters."""
        candidates = CandidateTerms(Parameters.of_samples(samples.params))
        table = TermTable(samples.params, candidates.parameters)
        return cls(samples, candidates, table, np.arange(len(samples)), loss)

    def part(self, rows: Ints) -> SelectionSamples:
        """Return some of the samples, by row, with the same candidates."""
        return SelectionSamples(
            self.samples.part(rows), self.candidates, self.table, self.rows[rows], self.loss
        )

    def drawn(self, most: int) -> SelectionSamples:
        """Return a pseudo-random part of at most this many samples, always the same one."""
        return self if len(self.samples) <= most else self.part(self.samples.drawn_rows(most))

    @cached_property
    def base_columns(self) -> Floats:
        """The values of the base terms, shape (samples, base terms)."""
        return self.table.columns("base", lambda _: self.candidates.base)[self.rows]

    def values(self, terms: Sequence[Expression]) -> Floats:
        """Return the values of any terms, shape (samples, terms)."""
        return self.table.values(terms, self.rows)

    @property
    def parameters(self) -> Parameters:
        """The parameters that terms can use."""
        return self.candidates.parameters

    def once(self, key: Hashable, make: Callable[[SelectionSamples], Made]) -> Made:
        """Return what `make` returns for these samples, calling it only once for a key."""
        if key not in self._made:
            self._made[key] = make(self)
        made: Made = self._made[key]
        return made

    def chosen(self, choose: Callable[[SelectionSamples], Made]) -> Made:
        """Return what `choose` returns for these samples, calling it only once."""
        return self.once(choose, choose)

    def select_products(
        self, products: Sequence[Product], *, non_negative: bool = True, most: int = MOST_TERMS
    ) -> list[Product]:
        """Return the products that stepwise selection takes: 1 to `most`."""
        of_all = tuple(products)
        factors = self.table.once(("factors", of_all), lambda: factors_of(of_all))
        columns = product_columns(self.base_columns, factors)
        constant = products.index((0,)) if (0,) in products else None
        taken = select_terms(
            columns,
            self.samples,
            self.loss,
            non_negative=non_negative,
            constant=constant,
            slopes=Slopes(self._excess_growth_of(of_all, factors), len(products)),
            most=most,
        )
        return [products[index] for index in taken] or [(0,)]

    def select_from(self, terms: Sequence[Expression]) -> tuple[Expression, ...]:
        """Return the terms that stepwise selection takes; the first of `terms` is the constant."""
        every = self.table.slopes(terms)
        slopes = Slopes(excess_growth(every), len(terms))
        taken = select_terms(
            self.values(terms),
            self.samples,
            self.loss,
            non_negative=True,
            constant=0,
            slopes=slopes,
        )
        return tuple(terms[index] for index in taken) or (ONE,)

    def _excess_growth_of(self, products: tuple[Product, ...], factors: Ints) -> Floats:
        """Return how much faster than linearly products grow; slopes of factors add up."""

        def make() -> Floats:
            base = self.table.slopes(self.candidates.base)
            return excess_growth(base[factors].sum(axis=0))

        return self.table.once(("growth", products), make)

    def terms_of(self, products: Sequence[Product]) -> tuple[Expression, ...]:
        """Return products as expressions."""
        return tuple(self.candidates.term(product) for product in products)


@dataclass(frozen=True)
class Family:
    """A kind of function: a sum of terms, and how these are chosen with the samples."""

    choose_terms: Callable[[SelectionSamples], tuple[Expression, ...]]
    non_negative: bool = True
    """Whether its coefficients are constrained to be non-negative."""
    bounded: bool = True
    """Whether its predictions are kept within bounds derived from the samples."""
    prior_weight: float = 1.0
    """Prior weight of the family with very few samples, where 1 is that of most families."""


def single_terms(given: SelectionSamples) -> tuple[Expression, ...]:
    """Choose functions of one parameter each."""
    return given.terms_of(given.select_products(given.candidates.single))


def signed_terms(given: SelectionSamples) -> tuple[Expression, ...]:
    """Choose functions of one parameter each, with coefficients of any sign."""
    return given.terms_of(given.select_products(given.candidates.single, non_negative=False))


def proportional(given: SelectionSamples) -> tuple[Expression, ...]:
    """Choose one parameter or the constant, all that two or three samples can determine."""
    if not given.parameters.used:
        return (ONE,)
    terms = (ONE, *(parse(f"p{number}") for number in given.parameters.used))
    return given.select_from(terms)


def crossed_terms(given: SelectionSamples) -> tuple[Expression, ...]:
    """Choose functions of one parameter, and products of those of two or three parameters."""
    candidates = given.candidates
    return given.terms_of(given.select_products((*candidates.single, *candidates.crossed)))


def short_sum(given: SelectionSamples) -> tuple[Expression, ...]:
    """Choose among the same, but few of them."""
    candidates = given.candidates
    products = (*candidates.single, *candidates.crossed)
    return given.terms_of(given.select_products(products, most=FEW_TERMS))


def product_terms(given: SelectionSamples) -> tuple[Expression, ...]:
    """Choose partial products of the factors of the best product of all parameters."""
    factors = product_factors(given.samples, given.parameters)
    return given.select_from((ONE, *_partial_products(factors)))


def power_law(given: SelectionSamples) -> tuple[Expression, ...]:
    """Choose the product of one power of each positive parameter, fitted to logarithms."""
    samples, usable = given.samples, given.parameters.positive()
    logs = np.log(samples.params[:, [number - 1 for number in usable]])
    columns = np.column_stack((np.ones(len(samples)), logs))
    times = np.log(samples.sigma_s)
    taken = select(columns, times, non_negative=False, constant=0)
    exponents = least_squares(columns[:, taken], times)
    lowest = given.parameters.lowest
    texts = [
        power(number, float(np.clip(exponent, *EXPONENTS)), float(lowest[number - 1]))
        for number, exponent in (
            (usable[index - 1], exponent)
            for index, exponent in zip(taken, exponents, strict=True)
            if index > 0
        )
    ]
    return (parse("*".join(texts) or "1"),)


def fixed_terms(terms: Sequence[Expression], *, non_negative: bool = False) -> Family:
    """Return the family that takes all of the given terms that are linearly independent."""

    def choose(given: SelectionSamples) -> tuple[Expression, ...]:
        return independent_terms(terms, given.samples)

    return Family(choose, non_negative)


def independent_terms(terms: Sequence[Expression], samples: Samples) -> tuple[Expression, ...]:
    """Return the terms that are no linear combination of earlier ones; at least the constant."""
    columns = columns_of(terms, samples.params) * samples.weights[:, None]
    return tuple(terms[index] for index in independent_columns(columns)) or (ONE,)


def _partial_products(factors: Sequence[Expression]) -> list[Expression]:
    """Return the products of some or all of the factors."""
    sizes = range(1, len(factors) + 1) if len(factors) <= MOST_FACTORS else (1, 2, len(factors))
    products = []
    for size in sizes:
        for some in combinations(factors, size):
            whole = some[0]
            for factor in some[1:]:
                whole = whole.times(factor)
            products.append(whole)
    return products
