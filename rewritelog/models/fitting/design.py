"""The design of a fit: its samples, candidate terms, and the values of these, computed once.

`TermTable` holds the values for all samples. `SelectionSamples` are some of them, such as those of
a fold, with which a family chooses its terms.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from rewritelog.arrays import Floats, Ints
from rewritelog.models.expressions import Expression
from rewritelog.models.fitting import tuning
from rewritelog.models.fitting.candidates import (
    ONE,
    CandidateTerms,
    Parameters,
    Product,
    factors_of,
    product_columns,
)
from rewritelog.models.fitting.regression import Loss
from rewritelog.models.fitting.samples import Samples
from rewritelog.models.fitting.selection import MOST_TERMS, select_terms

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
        self._made: dict[Any, Any] = {}

    def candidates(
        self, name: str, make: Callable[[Floats], Iterable[Made]]
    ) -> tuple[Sequence[Made], Floats]:
        """Return the candidates of that name, and their values: shape (all samples, candidates).

        `make` returns them for the parameters of all samples; it is called once.
        """

        def made() -> tuple[Sequence[Made], Floats]:
            candidates = list(make(self.params))
            terms: list[Any] = [getattr(candidate, "column", candidate) for candidate in candidates]
            return candidates, self.values(terms, np.arange(len(self.params)))

        return self.once(name, made)

    def values(self, terms: Sequence[Expression], rows: Ints) -> Floats:
        """Return the values of any terms for some rows, as `columns_of` would evaluate them."""
        places = self._places(terms)
        return np.asarray(self._values[places[:, None], rows].T)

    def forget_values(self) -> None:
        """Free the memory of all values; those that are asked for later are computed anew."""
        self._index.clear()
        self._made.clear()
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
    return np.clip(np.where(np.isfinite(powers), powers, 0.0), 0.0, tuning.STEEPEST)


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

    def random_part(self, most: int) -> SelectionSamples:
        """Return a pseudo-random part of at most this many samples, always the same one."""
        return self if len(self.samples) <= most else self.part(self.samples.random_rows(most))

    @cached_property
    def base_columns(self) -> Floats:
        """The values of the base terms, shape (samples, base terms)."""
        return self.table.candidates("base", lambda _: self.candidates.base)[1][self.rows]

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
            growth=self._excess_growth_of(of_all, factors),
            most=most,
        )
        return [products[index] for index in taken] or [(0,)]

    def select_from(self, terms: Sequence[Expression]) -> tuple[Expression, ...]:
        """Return the terms that stepwise selection takes; the first of `terms` is the constant."""
        taken = select_terms(
            self.values(terms),
            self.samples,
            self.loss,
            non_negative=True,
            constant=0,
            growth=excess_growth(self.table.slopes(terms)),
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
