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

from rewritelog.arrays import Floats, distinct
from rewritelog.models.expressions import Expression, constant, parse
from rewritelog.models.fitting import tuning
from rewritelog.models.fitting.candidates import ONE, Parameters, knots_of
from rewritelog.models.fitting.design import SelectionSamples, excess_growth
from rewritelog.models.fitting.families import crossed_terms, product_terms, single_terms
from rewritelog.models.fitting.selection import select_terms

MOST_SAMPLES = 1024
"""Terms are selected with at most this many samples, since there are many candidates."""


def program_terms(selection: SelectionSamples) -> tuple[Expression, ...]:
    """Choose among the terms of other families and the program terms made with them."""
    plain = _terms_of_others(selection)
    selection = selection.random_part(MOST_SAMPLES)
    samples, parameters = selection.samples, selection.parameters
    numbers = most_correlated(selection)

    indicators, values = selection.table.candidates(
        "indicators", lambda params: dict.fromkeys(_indicators(params, parameters, numbers))
    )
    parts, part_columns = selection.table.candidates(
        "parts", lambda params: dict.fromkeys(_loops_and_trees(params, parameters, numbers))
    )
    plain_columns = selection.values(plain)
    largest = plain[: tuning.MOST_TERMS_BRANCHED]
    products = plain_columns[:, : len(largest), None] * values[selection.rows][:, None, :]
    columns = np.hstack(
        [plain_columns, part_columns[selection.rows], products.reshape(len(samples), -1)]
    )
    own = excess_growth(selection.table.slopes(plain))
    of_parts = selection.table.once(
        "growth of parts", lambda: excess_growth(selection.table.slopes(parts))
    )
    growth = np.concatenate([own, of_parts, np.repeat(own[: len(largest)], len(indicators))])
    taken = select_terms(
        columns,
        samples,
        selection.loss,
        non_negative=True,
        constant=plain.index(ONE),
        growth=growth,
        plain=len(plain),
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


def _terms_of_others(selection: SelectionSamples) -> list[Expression]:
    """Return the terms that other families choose, with the constant and the parameters."""
    chosen = [
        term
        for choose_terms in (product_terms, crossed_terms, single_terms)
        for term in selection.chosen(choose_terms)
    ]
    linear = selection.terms_of(selection.candidates.linear)
    return list(dict.fromkeys([*chosen[: tuning.MOST_TERMS_BRANCHED], ONE, *chosen, *linear]))


def most_correlated(selection: SelectionSamples) -> list[int]:
    """Return the parameters with the largest rank correlation with the times, at most a few."""
    used = selection.parameters.used
    if len(used) <= tuning.MOST_PARAMETERS_PAIRED:
        return list(used)
    correlations = selection.samples.rank_correlations(used)
    return sorted(
        sorted(used, key=lambda number: -correlations[number])[: tuning.MOST_PARAMETERS_PAIRED]
    )


def _indicators(
    params: Floats, parameters: Parameters, numbers: Sequence[int]
) -> Iterator[Expression]:
    """Yield terms with the values 0 and 1: branches and thresholds."""
    for number in numbers:
        column = params[:, number - 1]
        values = distinct(column).tolist()
        if len(values) <= tuning.MOST_VALUES:
            own = parse(f"p{number}")
            yield from (own.applied("==", constant(value)) for value in values)
        else:
            yield from _thresholds(parse(f"p{number}"), column)
    for first, second in _positive_pairs(parameters, numbers):
        product = params[:, first - 1] * params[:, second - 1]
        yield from _thresholds(parse(f"p{first}*p{second}"), product)


def _thresholds(term: Expression, column: Floats) -> Iterator[Expression]:
    for knot in _knots(column, tuning.KNOTS):
        yield term.applied(">", knot)
        yield term.applied("<=", knot)


def _knots(column: Floats, levels: Sequence[float]) -> list[Expression]:
    """Return quantiles of a column, rounded to the digits that are printed."""
    return [constant(float(f"{knot:.6g}")) for knot in knots_of(column, levels)]


def _loops_and_trees(
    params: Floats, parameters: Parameters, numbers: Sequence[int]
) -> Iterator[Expression]:
    """Yield trees and partial loops of one parameter, and functions of two, some times a third."""
    for number in numbers:
        column, own = params[:, number - 1], parse(f"p{number}")
        others = [other for other in numbers if other != number]
        low, high = float(column.min()), float(column.max())
        if low >= 0 and high <= tuning.DEEPEST and (column == np.floor(column)).all():
            yield from _times_each(parse(f"2^min(p{number}, {2 * high - low:.6g})"), others)
        if low >= 0 and len(distinct(column)) > tuning.MOST_VALUES:
            for knot in _knots(column, tuning.HINGES):
                yield from _times_each(own.applied("min", knot), others)
                yield from _times_each(_excess_over(own, knot), others)
    for first, second in combinations(numbers, 2):
        thirds = [third for third in numbers if third not in (first, second)]
        for text in _pair_texts(f"p{first}", f"p{second}", parameters, first, second):
            yield from _times_each(parse(text), thirds)
    for first, second in _positive_pairs(parameters, numbers):
        for knot in _knots(params[:, first - 1] * params[:, second - 1], tuning.HINGES):
            yield _excess_over(parse(f"p{first}*p{second}"), knot)


def _times_each(term: Expression, others: Sequence[int]) -> Iterator[Expression]:
    """Yield a term, alone and times each of other parameters."""
    yield term
    yield from (term.times(parse(f"p{other}")) for other in others)


def _excess_over(term: Expression, knot: Expression) -> Expression:
    """Return max(term − knot, 0)."""
    return term.applied("-", knot).applied("max", constant(0.0))


def _pair_texts(a: str, b: str, parameters: Parameters, first: int, second: int) -> Iterator[str]:
    yield f"abs({a} - {b})"
    yield f"max({a}, {b})"
    if parameters.lowest[first - 1] >= 0 and parameters.lowest[second - 1] >= 0:
        yield f"min({a}, {b})"
        yield f"({a} + {b})"
        yield f"({a} + {b})*log1p({a} + {b})"


def _positive_pairs(parameters: Parameters, numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    positive = parameters.positive()
    yield from combinations([number for number in numbers if number in positive], 2)
