"""The family of terms with the shapes of programs: branches, caches, loops, recursion.

- a branch or a kind of call: `(p == v)·T` for a parameter with few values
- a threshold (a cache, a protocol): `(p > k)·T` and `(p <= k)·T`, and the same of products
- a loop that begins or ends at a size: `min(p, k)`, `max(p - k, 0)`
- two sizes: the larger, the smaller, their difference and their sum, alone or times a third size
- a binary tree of depth p: `2^p`, bounded beyond the samples

T stands for the terms that other families choose.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np

from rewritelog.arrays import Floats, distinct, quantiles
from rewritelog.models.expressions import Expression, constant, parse
from rewritelog.models.fitting.candidates import DEEPEST, KNOTS, MOST_VALUES, ONE, Parameters
from rewritelog.models.fitting.families import (
    SelectionSamples,
    crossed_terms,
    excess_growth,
    product_terms,
    single_terms,
)
from rewritelog.models.fitting.selection import Slopes, select_terms

HINGES = (0.25, 0.5, 0.75)
"""Quantiles of a parameter at which a loop may begin or end."""

MOST_PARAMETERS = 5
"""Such terms use at most this many parameters, those most correlated with the times."""

MOST_TERMS = 6
"""At most this many of the terms of other families are multiplied by branches and thresholds."""

MOST_SAMPLES = 1024
"""Terms are selected with at most this many samples, since there are many candidates."""


def program_terms(given: SelectionSamples) -> tuple[Expression, ...]:
    """Choose among the terms of other families and the program terms made with them."""
    plain = _terms_of_others(given)
    given = given.drawn(MOST_SAMPLES)
    samples, parameters = given.samples, given.parameters
    numbers = most_correlated(given)

    def make_indicators(params: Floats) -> list[Expression]:
        return list(dict.fromkeys(_indicators(params, parameters, numbers)))

    def make_parts(params: Floats) -> list[Expression]:
        return list(dict.fromkeys(_loops_and_trees(params, parameters, numbers)))

    indicators = given.table.terms("indicators", make_indicators)
    parts = given.table.terms("parts", make_parts)
    plain_columns = given.values(plain)
    indicator_columns = given.table.columns("indicators", make_indicators)[given.rows]
    largest = plain[:MOST_TERMS]
    products = plain_columns[:, : len(largest), None] * indicator_columns[:, None, :]
    columns = np.hstack(
        [
            plain_columns,
            given.table.columns("parts", make_parts)[given.rows],
            products.reshape(len(samples), -1),
        ]
    )
    own = excess_growth(given.table.slopes(plain))
    of_parts = given.table.once("growth of parts", lambda: excess_growth(given.table.slopes(parts)))
    growth = np.concatenate([own, of_parts, np.repeat(own[: len(largest)], len(indicators))])
    taken = select_terms(
        columns,
        samples,
        given.loss,
        non_negative=True,
        constant=plain.index(ONE),
        slopes=Slopes(growth, len(plain)),
    )
    return tuple(_term(index, plain, parts, indicators) for index in taken) or (ONE,)


def _term(
    index: int,
    plain: Sequence[Expression],
    parts: Sequence[Expression],
    indicators: Sequence[Expression],
) -> Expression:
    """Return the candidate of a column of the design matrix, by its index there."""
    if index < len(plain):
        return plain[index]
    index -= len(plain)
    if index < len(parts):
        return parts[index]
    term, indicator = divmod(index - len(parts), len(indicators))
    return indicators[indicator] if plain[term] == ONE else plain[term].times(indicators[indicator])


def _terms_of_others(given: SelectionSamples) -> list[Expression]:
    """Return the terms that other families choose, with the constant and the parameters."""
    chosen = [
        term
        for choose_terms in (product_terms, crossed_terms, single_terms)
        for term in given.chosen(choose_terms)
    ]
    linear = given.terms_of(given.candidates.linear)
    return list(dict.fromkeys([*chosen[:MOST_TERMS], ONE, *chosen, *linear]))


def most_correlated(given: SelectionSamples) -> list[int]:
    """Return the parameters with the largest rank correlation with the times, at most a few."""
    used = given.parameters.used
    if len(used) <= MOST_PARAMETERS:
        return list(used)
    times = _ordinal_ranks(given.samples.seconds)
    correlation = {
        number: abs(
            float(np.corrcoef(_ordinal_ranks(given.samples.params[:, number - 1]), times)[0, 1])
        )
        for number in used
    }
    return sorted(sorted(used, key=lambda number: -correlation[number])[:MOST_PARAMETERS])


def _ordinal_ranks(values: Floats) -> Floats:
    """Return the ranks from 0, equal values in the order in which they come."""
    return np.argsort(np.argsort(values, kind="stable"), kind="stable").astype(np.float64)


def _indicators(
    params: Floats, parameters: Parameters, numbers: Sequence[int]
) -> Iterator[Expression]:
    """Yield terms with the values 0 and 1: branches and thresholds."""
    for number in numbers:
        column = params[:, number - 1]
        values = distinct(column).tolist()
        if len(values) <= MOST_VALUES:
            own = parse(f"p{number}")
            yield from (own.applied("==", constant(value)) for value in values)
        else:
            yield from _thresholds(parse(f"p{number}"), column)
    for one, other in _positive_pairs(parameters, numbers):
        product = params[:, one - 1] * params[:, other - 1]
        yield from _thresholds(parse(f"p{one}*p{other}"), product)


def _thresholds(term: Expression, column: Floats) -> Iterator[Expression]:
    for knot in _knots(column, KNOTS):
        yield term.applied(">", knot)
        yield term.applied("<=", knot)


def _knots(column: Floats, levels: Sequence[float]) -> list[Expression]:
    """Return quantiles of a column, rounded to the digits that are printed."""
    knots = set(quantiles(np.sort(column), levels))
    return [constant(float(f"{knot:.6g}")) for knot in sorted(knots)]


def _loops_and_trees(
    params: Floats, parameters: Parameters, numbers: Sequence[int]
) -> Iterator[Expression]:
    """Yield trees and partial loops of one parameter, and functions of two, some times a third."""
    for number in numbers:
        column, own = params[:, number - 1], parse(f"p{number}")
        others = [other for other in numbers if other != number]
        low, high = float(column.min()), float(column.max())
        if low >= 0 and high <= DEEPEST and (column == np.floor(column)).all():
            yield from _times_each(parse(f"2^min(p{number}, {2 * high - low:.6g})"), others)
        if low >= 0 and len(distinct(column)) > MOST_VALUES:
            for knot in _knots(column, HINGES):
                yield from _times_each(own.applied("min", knot), others)
                yield from _times_each(_excess_over(own, knot), others)
    for one, other in combinations(numbers, 2):
        thirds = [third for third in numbers if third not in (one, other)]
        for text in _pair_texts(f"p{one}", f"p{other}", parameters, one, other):
            yield from _times_each(parse(text), thirds)
    for one, other in _positive_pairs(parameters, numbers):
        for knot in _knots(params[:, one - 1] * params[:, other - 1], HINGES):
            yield _excess_over(parse(f"p{one}*p{other}"), knot)


def _times_each(term: Expression, others: Sequence[int]) -> Iterator[Expression]:
    """Yield a term, alone and times each of other parameters."""
    yield term
    yield from (term.times(parse(f"p{other}")) for other in others)


def _excess_over(term: Expression, knot: Expression) -> Expression:
    """Return max(term − knot, 0)."""
    return term.applied("-", knot).applied("max", constant(0.0))


def _pair_texts(a: str, b: str, parameters: Parameters, one: int, other: int) -> Iterator[str]:
    yield f"abs({a} - {b})"
    yield f"max({a}, {b})"
    if parameters.lowest[one - 1] >= 0 and parameters.lowest[other - 1] >= 0:
        yield f"min({a}, {b})"
        yield f"({a} + {b})"
        yield f"({a} + {b})*log1p({a} + {b})"


def _positive_pairs(parameters: Parameters, numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    positive = parameters.positive()
    yield from combinations([number for number in numbers if number in positive], 2)
