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

from rewritelog.arrays import Floats
from rewritelog.models.expressions import Expression, constant, parse
from rewritelog.models.fitting import tuning
from rewritelog.models.fitting.bases.products import product_terms
from rewritelog.models.fitting.bases.sums import crossed_terms, single_terms
from rewritelog.models.fitting.design import (
    ONE,
    Parameters,
    SelectionSamples,
    excess_growth,
    knots_of,
    may_be_depth,
)
from rewritelog.models.fitting.selection import Stepwise, select_terms


def program_terms(selection: SelectionSamples) -> tuple[Expression, ...]:
    """Choose among the terms of other families and the program terms made with them."""
    plain = _terms_of_others(selection)
    selection = selection.random_part(tuning.MOST_CHOSEN_WITH)
    parameters, numbers = selection.parameters, selection.most_correlated()
    table, rows = selection.table, selection.rows
    indicators, values = table.candidates(
        ("indicators", *numbers),
        lambda params: dict.fromkeys(_indicators(params, parameters, numbers)),
    )
    parts, part_columns = table.candidates(
        ("parts", *numbers),
        lambda params: dict.fromkeys(_loops_and_trees(params, parameters, numbers)),
    )
    columns, own = selection.values(plain), excess_growth(table.slopes(plain))
    of_parts = table.once(("growth", *numbers), lambda: excess_growth(table.slopes(parts)))
    most = tuning.MOST_TERMS_BRANCHED
    branched = columns[:, :most, None] * values[rows][:, None, :]
    taken = select_terms(
        np.hstack([columns, part_columns[rows], branched.reshape(len(rows), -1)]),
        selection.samples,
        selection.loss,
        Stepwise(
            plain.index(ONE),
            growth=np.concatenate([own, of_parts, np.repeat(own[:most], len(indicators))]),
            plain=len(plain),
        ),
    )
    known = [*plain, *parts]

    def term(index: int) -> Expression:
        if index < len(known):
            return known[index]
        of_plain, indicator = divmod(index - len(known), len(indicators))
        return plain[of_plain].times(indicators[indicator])

    return tuple(map(term, taken)) or (ONE,)


def _terms_of_others(selection: SelectionSamples) -> list[Expression]:
    """Return the terms that other families choose, with the constant and the parameters."""
    chosen = [
        term
        for choose_terms in (product_terms, crossed_terms, single_terms)
        for term in selection.chosen(choose_terms)
    ]
    linear = [parse(f"p{number}") for number in selection.parameters.used]
    return list(dict.fromkeys([*chosen[: tuning.MOST_TERMS_BRANCHED], ONE, *chosen, *linear]))


def _indicators(
    params: Floats, parameters: Parameters, numbers: Sequence[int]
) -> Iterator[Expression]:
    """Yield terms with the values 0 and 1: branches and thresholds."""
    for number in numbers:
        column = params[:, number - 1]
        values = np.unique(column)
        if len(values) <= tuning.MOST_VALUES:
            yield from parameters.value_terms(number, values)
        else:
            yield from _thresholds(parse(f"p{number}"), column)
    positive = parameters.positive()
    for first, second in combinations([number for number in numbers if number in positive], 2):
        product = params[:, first - 1] * params[:, second - 1]
        yield from _thresholds(parse(f"p{first}*p{second}"), product)


def _thresholds(term: Expression, column: Floats) -> Iterator[Expression]:
    for knot in _knots(column, tuning.KNOTS):
        yield term.applied(">", knot)
        yield term.applied("<=", knot)


def _knots(column: Floats, levels: Sequence[float]) -> list[Expression]:
    """Return quantiles of a column, rounded to six digits, as reports print them."""
    return [constant(float(f"{knot:.6g}")) for knot in knots_of(column, levels)]


def _loops_and_trees(
    params: Floats, parameters: Parameters, numbers: Sequence[int]
) -> Iterator[Expression]:
    """Yield trees, partial loops and functions of two parameters, alone and times another one."""
    for number in numbers:
        column, own = params[:, number - 1], parse(f"p{number}")
        others = [other for other in numbers if other != number]
        values = np.unique(column)
        low, high = float(values[0]), float(values[-1])
        if may_be_depth(values):
            yield from _times_each(parse(f"2^min(p{number}, {2 * high - low:.6g})"), others)
        if low >= 0 and len(values) > tuning.MOST_VALUES:
            for knot in _knots(column, tuning.HINGES):
                yield from _times_each(own.applied("min", knot), others)
                beyond = own.applied("-", knot).applied("max", constant(0.0))
                yield from _times_each(beyond, others)
    for first, second in combinations(numbers, 2):
        thirds = [third for third in numbers if third not in (first, second)]
        for text in _pair_texts(first, second, parameters):
            yield from _times_each(parse(text), thirds)


def _times_each(term: Expression, others: Sequence[int]) -> Iterator[Expression]:
    """Yield a term, alone and times each of other parameters."""
    yield term
    yield from (term.times(parse(f"p{other}")) for other in others)


def _pair_texts(first: int, second: int, parameters: Parameters) -> Iterator[str]:
    a, b = f"p{first}", f"p{second}"
    yield f"abs({a} - {b})"
    yield f"max({a}, {b})"
    if parameters.lowest[first - 1] >= 0 and parameters.lowest[second - 1] >= 0:
        yield f"min({a}, {b})"
        yield f"({a} + {b})"
        yield f"({a} + {b})*log1p({a} + {b})"
