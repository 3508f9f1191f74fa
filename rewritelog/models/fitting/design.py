"""The design of a fit: its parameters, its candidate terms, and their values, computed once.

The functions of one parameter are those that loops lead to: p, p², p³, √p, log p, p·log p and 1/p.
Products follow `modgen` (W. Meira, "Modeling performance of parallel programs", University of
Rochester, TR 589, 1995): where parameters interact, the terms that explain the time as a function
of each one are multiplied.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import reduce
from itertools import chain, combinations, product
from typing import Any, TypeVar

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from rewritelog.arrays import Floats, Ints
from rewritelog.models.expressions import Expression, constant, parse
from rewritelog.models.fitting import tuning
from rewritelog.models.fitting.regression import Loss
from rewritelog.models.fitting.samples import Samples
from rewritelog.models.fitting.selection import MOST_TERMS, Stepwise, select_terms

NARROWEST_RANGE = 1e-12
"""A parameter counts as constant if half its range is at most this share of its magnitude."""

LEAST_RANGE = float(np.finfo(np.float64).tiny)
"""A parameter with a smaller range counts as constant too: its coefficient could overflow."""

ROUNDING = 1e-9
"""Parameters, scaled to [0, 1], that differ by at most this are equal up to rounding."""

ONE = parse("1")

Made = TypeVar("Made")


class Parameters(Struct, frozen=True):
    """The parameters that a fit can use, with their range over the samples."""

    lowest: Floats
    highest: Floats
    floors: Floats
    """Below this value of p, 1/p is constant, so that it cannot explode: half of the lowest value
    or, where times fall as p rises (processors), 1 or a thousandth of a lowest value below 1."""
    correlations: Mapping[int, float]
    """The rank correlation with the times of each parameter that is used, by number."""
    used: tuple[int, ...]
    """The numbers, counted from 1, of the parameters that are neither constant nor duplicates."""
    ignored: Mapping[int, str]
    """The numbers of the others, and why no candidate term uses them."""
    constant: frozenset[int]
    """The numbers of ignored parameters that have the same value in all samples."""
    may_have_values: bool
    """Whether single values may have terms. With two or three points these would only repeat the
    times of the points, and end at the edge of the range."""

    @classmethod
    def of_samples(cls, samples: Samples) -> Parameters:
        """Find the parameters that vary, and those that rise linearly with an earlier one."""
        params, (lowest, highest) = samples.params, samples.range
        scaled: dict[int, Floats] = {}
        ignored: dict[int, str] = {}
        constant: set[int] = set()
        for number, column in enumerate(params.T, 1):
            low, high = float(lowest[number - 1]), float(highest[number - 1])
            narrowest = max(NARROWEST_RANGE * max(abs(low), abs(high)), LEAST_RANGE)
            if high / 2 - low / 2 <= narrowest:
                ignored[number] = f"is constant {low + 0.0:.6g} in all samples"
                constant.add(number)
                continue
            # scaled to [0, 1], increasing linear functions of a parameter are equal to it
            units = (column - low) / (high - low)
            for other, known in scaled.items():
                if (np.abs(units - known) <= ROUNDING).all():
                    ignored[number] = f"follows p{other} in all samples"
                    break
            else:
                scaled[number] = units
        floors, correlations = lowest / 2, samples.rank_correlations(tuple(scaled))
        enough = samples.effective_count >= tuning.ENOUGH_FOR_BREAKS
        for number, correlation in correlations.items():
            if enough and correlation < tuning.FALLING:
                low = lowest[number - 1]
                floors[number - 1] = 1.0 if low >= 1 else low / 1000
        used = tuple(scaled)
        return cls(
            lowest,
            highest,
            floors,
            correlations,
            used,
            ignored,
            frozenset(constant),
            may_have_values=len(samples.distinct) >= tuning.FEWEST_TO_VALIDATE,
        )

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
            texts += [f"{name}^3", f"1/{self.divisor(parameter)}"]
        elif low == 0:
            texts.append(f"1/(1 + {name})")
        return tuple(parse(text) for text in texts)

    def value_terms(self, parameter: int, values: Floats) -> tuple[Expression, ...]:
        """Return a term for each of its values, ascending, that is 1 there and else 0, if it may.

        Those of the least and the largest go on beyond the range, as predictions at its edge do.
        """
        if not self.may_have_values:
            return ()
        own, relations = parse(f"p{parameter}"), ["<=", *["=="] * (len(values) - 2), ">="]
        return tuple(
            own.applied(relation, constant(value))
            for relation, value in zip(relations, values.tolist(), strict=True)
        )

    def divisor(self, parameter: int) -> str:
        """Return the text of a divisor: a parameter that is positive in all samples (`floors`)."""
        return f"max(p{parameter}, {self.floors[parameter - 1]:.4g})"

    def positive(self) -> tuple[int, ...]:
        """Return the numbers of the usable parameters that are positive in all samples."""
        return tuple(number for number in self.used if self.lowest[number - 1] > 0)

    def corners(self) -> Floats:
        """Return the largest values, and for each parameter a row in which its value is doubled."""
        return np.vstack((self.highest, self.highest + np.diag(np.maximum(self.highest, 0.0))))


def logarithm(name: str, lowest: float) -> str:
    """Return the text of a logarithm of the parameter that is never negative nor undefined.

    It is 0 only where a sample's is, since a product with it is 0 there, too.
    """
    return f"log(max({name}, {2 if lowest >= 2 else 1}))" if lowest >= 1 else f"log1p({name})"


def knots_of(column: Floats, levels: Sequence[float]) -> list[float]:
    """Return the distinct quantiles of a column at these levels, ascending."""
    knots: list[float] = np.unique(np.quantile(column, levels)).tolist()
    return knots


def product_of(factors: Sequence[Expression]) -> Expression:
    """Return the product of factors, 1 without any."""
    return reduce(Expression.times, factors, ONE)


def may_be_depth(values: Floats) -> bool:
    """Return whether a parameter with these distinct values, ascending, may be the depth of a tree.

    Times grow exponentially with it, which shows only at the largest values: of 4, 8, 16, 32 and 64
    threads, 2^p is a step at the last.
    """
    near = values[values >= values[-1] - tuning.DEPTHS]
    is_small = values[0] >= 0 and values[-1] <= tuning.DEEPEST
    whole = bool((values == np.floor(values)).all())
    return is_small and whole and len(near) >= tuning.FEWEST_DEPTHS


def log_log_slopes(values: Floats) -> Floats:
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


class Memo:
    """A cache of what is made once for each key."""

    _made: dict[Any, Any]

    def once(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """Return what `make` returns for a key, calling it only the first time."""
        if key not in self._made:
            self._made[key] = make()
        value: Made = self._made[key]
        return value


class TermTable(Memo):
    """A cache of candidate terms and of their values that all folds share.

    A term is evaluated once, for all samples and for the corners beyond them.
    """

    def __init__(self, samples: Samples) -> None:
        self.params = samples.params
        self.parameters = Parameters.of_samples(samples)
        self._rows = np.vstack((self.params, self.parameters.corners()))
        self._values: dict[Expression, Floats] = {}
        """The values of each term for samples and corners."""
        self._made: dict[Any, Any] = {}

    def candidates(
        self, key: Hashable, make: Callable[[Floats], Iterable[Made]]
    ) -> tuple[Sequence[Made], Floats]:
        """Return the candidates of a key, and their values: shape (all samples, candidates).

        `make` returns them for the parameters of all samples; it is called once.
        """

        def made() -> tuple[Sequence[Made], Floats]:
            candidates = list(make(self.params))
            terms: list[Any] = [getattr(each, "expression", each) for each in candidates]
            return candidates, self.values(terms, np.arange(len(self.params)))

        return self.once(key, made)

    def values(self, terms: Sequence[Expression], rows: Ints) -> Floats:
        """Return the values of any terms for some rows, as `columns_of` would evaluate them."""
        return np.asarray(self._values_of(terms).take(rows, axis=1).T)

    def slopes(self, terms: Sequence[Expression]) -> Floats:
        """Return the slopes of terms (see `log_log_slopes`), shape (terms, parameters)."""
        return log_log_slopes(self._values_of(terms)[:, len(self.params) :])

    def _values_of(self, terms: Sequence[Expression]) -> Floats:
        """Return the values of terms, shape (terms, samples and corners); evaluate new ones."""
        for term in terms:
            if term not in self._values:
                self._values[term] = term.evaluate(self._rows)
        values = [self._values[term] for term in terms]
        return np.array(values).reshape(len(terms), len(self._rows))

    def products(self, *, crossed: bool) -> list[Expression]:
        """Return the constant, functions of one parameter and, crossed, products of two and three.

        Where there would be too many, only the parameters themselves are multiplied.
        """

        def made() -> list[Expression]:
            functions = [self.parameters.functions(number) for number in self.parameters.used]
            single = [ONE, *chain.from_iterable(functions)]
            if not crossed:
                return single
            pairs = list(combinations(functions, 2))
            if sum(len(first) * len(second) for first, second in pairs) > tuning.MOST_CROSSES:
                pairs = [(first[:1], second[:1]) for first, second in pairs]
            products: list[tuple[Expression, ...]] = []
            products += [factors for pair in pairs for factors in product(*pair)]
            if len(functions) <= tuning.MOST_FOR_TRIPLES:
                products += combinations([own for own, *_ in functions], 3)
            return [*single, *map(product_of, products)]

        return self.once(("products", crossed), made)


class SelectionSamples(Struct, Memo, frozen=True):
    """The samples with which terms are selected, and the table of candidate terms."""

    samples: Samples
    table: TermTable
    rows: Ints
    """The row of the table for each of these samples."""
    loss: Loss
    _made: dict[Any, Any] = {}

    @classmethod
    def of(cls, samples: Samples, loss: Loss) -> SelectionSamples:
        """Prepare the candidates for the samples' parameters."""
        return cls(samples, TermTable(samples), np.arange(len(samples)), loss)

    def part(self, rows: Ints) -> SelectionSamples:
        """Return some of the samples, by row, with the same candidates."""
        return SelectionSamples(self.samples.part(rows), self.table, self.rows[rows], self.loss)

    def random_part(self, most: int) -> SelectionSamples:
        """Return a pseudo-random part of at most this many samples, always the same one."""
        if len(self.samples) <= most:
            return self
        return self.once(most, lambda: self.part(self.samples.random_rows(most)))

    @property
    def parameters(self) -> Parameters:
        """The parameters that terms can use."""
        return self.table.parameters

    def most_correlated(self) -> list[int]:
        """Return the parameters with the largest rank correlation with the times, at most a few."""
        used = self.parameters.used
        if len(used) <= tuning.MOST_PARAMETERS_PAIRED:
            return list(used)
        correlations = self.samples.rank_correlations(used)
        strongest = sorted(used, key=lambda number: -abs(correlations[number]))
        return sorted(strongest[: tuning.MOST_PARAMETERS_PAIRED])

    def values(self, terms: Sequence[Expression]) -> Floats:
        """Return the values of any terms, shape (samples, terms)."""
        return self.table.values(terms, self.rows)

    def chosen(self, choose: Callable[[SelectionSamples], Made]) -> Made:
        """Return what `choose` returns for these samples, calling it only once."""
        return self.once(choose, lambda: choose(self))

    def select_from(
        self, terms: Sequence[Expression], *, non_negative: bool = True, most: int = MOST_TERMS
    ) -> tuple[Expression, ...]:
        """Return the terms that stepwise selection takes, 1 to `most`; the first is constant."""
        part = self.random_part(tuning.MOST_CHOSEN_WITH)
        taken = select_terms(
            part.values(terms),
            part.samples,
            self.loss,
            Stepwise(0, non_negative, excess_growth(self.table.slopes(terms)), len(terms), most),
        )
        return tuple(terms[index] for index in taken) or (ONE,)


class Family(Struct, frozen=True):
    """A kind of function: a sum of terms, and how these are chosen with the samples."""

    choose_terms: Callable[[SelectionSamples], tuple[Expression, ...]]
    non_negative: bool = True
    """Whether its coefficients are constrained to be non-negative."""
    may_be_negative: bool = False
    """Whether its predictions may be negative; otherwise they are at least 0."""
    prior_weight: float = 1.0
    """Prior weight of the family with very few samples, where 1 is that of most families."""
    fewest: int = tuning.FEWEST_TO_VALIDATE
    most: float = np.inf
    """The least and the largest number of samples with which `auto` tries it."""
    user_terms: tuple[Expression, ...] | None = None
    """The terms that a user asked for; None if terms are searched for."""

    def finite_in(self, params: Floats) -> Family:
        """Return the family without given terms that are not finite in all of these rows."""
        infinite = [t for t in self.user_terms or () if not np.isfinite(t.evaluate(params)).all()]
        if not infinite:
            return self

        def finite_terms(selection: SelectionSamples) -> tuple[Expression, ...]:
            terms = self.choose_terms(selection)
            return tuple(term for term in terms if term not in infinite) or (ONE,)

        return replace(self, choose_terms=finite_terms)
