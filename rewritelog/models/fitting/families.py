"""The kinds of function that a fit is chosen from, each a function from samples to a function.

All of them but one have no negative coefficients: they predict no time below zero, and grow
outside of their samples' range no faster than their terms do. The one with signs has a guard.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TypeAlias

import numpy as np

from rewritelog.arrays import Floats
from rewritelog.models.expressions import Expression, parse
from rewritelog.models.fitting.candidates import (
    ONE,
    Parameters,
    columns_of,
    power,
    products_of,
)
from rewritelog.models.fitting.function import FittedFunction, PredictionBounds
from rewritelog.models.fitting.product_shape import product_factors
from rewritelog.models.fitting.samples import Samples
from rewritelog.models.fitting.selection import MOST_TERMS, most_terms, select
from rewritelog.models.fitting.solving import Loss, robust_weights, solve

MOST_FACTORS = 6
"""All partial products are candidates of so many factors; of more, those of three and of all."""

EXPONENTS = (-3.0, 4.0)
"""A power law's exponents are kept within these."""


@dataclass(frozen=True)
class SelectionSamples:
    """Samples to choose terms with, out of all that the coefficients are then fitted to."""

    samples: Samples
    parameters: Parameters
    loss: Loss


Family: TypeAlias = Callable[[SelectionSamples], FittedFunction]


def single_terms(few: SelectionSamples) -> FittedFunction:
    """Return a sum of functions of one parameter each, none of them negative."""
    return _summed(few, few.parameters.single(), non_negative=True)


def signed_terms(few: SelectionSamples) -> FittedFunction:
    """Return a sum of functions of one parameter each, with coefficients of any sign."""
    return _summed(few, few.parameters.single(), non_negative=False)


def product(few: SelectionSamples) -> FittedFunction:
    """Return a sum over partial products of the shape that explains most of the times."""
    factors = product_factors(few.samples, few.parameters)
    return _summed(few, (ONE, *_partial_products(factors)), non_negative=True)


def crossed_terms(few: SelectionSamples) -> FittedFunction:
    """Return a sum of functions of one parameter and of their products."""
    terms = (*few.parameters.single(), *few.parameters.crossed())
    return _summed(few, terms, non_negative=True)


def interacting_terms(few: SelectionSamples) -> FittedFunction:
    """Return a sum of functions of one parameter, and products of those that explain most."""
    single = few.parameters.single()
    taken = _chosen(few, single, non_negative=True)
    products = products_of(taken, (*taken, *few.parameters.linear()))
    return _summed(few, (*single, *products), non_negative=True)


def power_law(few: SelectionSamples) -> FittedFunction:
    """Return one power of each parameter that is above 0, fitted in logarithms."""
    samples, usable = few.samples, few.parameters.positive()
    logs = np.log(samples.params[:, [number - 1 for number in usable]])
    columns = np.asfortranarray(np.column_stack((np.ones(len(samples)), logs)))
    times = np.log(samples.scale_s)
    most = most_terms(len(samples))
    taken = select(columns, times, most, non_negative=False, constant=0)
    exponents = np.linalg.lstsq(columns[:, taken], times, rcond=1e-9)[0]
    texts = [
        power(usable[place - 1], float(np.clip(exponent, *EXPONENTS)), _lowest(few, usable, place))
        for place, exponent in zip(taken, exponents, strict=True)
        if place > 0
    ]
    return _solved(few, (parse("*".join(texts) or "1"),), non_negative=True)


FAMILIES: dict[str, Family] = {
    "single terms": single_terms,
    "product": product,
    "power law": power_law,
    "crossed terms": crossed_terms,
    "interacting terms": interacting_terms,
    "signed terms": signed_terms,
}
"""Simple ones first: a later one is taken only where it predicts clearly better."""


def fixed_terms(terms: Sequence[Expression]) -> Family:
    """Return the family of one formula: its terms, of any sign, as far as the samples allow."""

    def fit(few: SelectionSamples) -> FittedFunction:
        return _summed(few, terms, non_negative=False, by_criterion=False)

    return fit


def non_negative_terms(terms: Sequence[Expression]) -> Family:
    """Return the family of the terms with coefficients that are not negative."""

    def fit(few: SelectionSamples) -> FittedFunction:
        return _summed(few, terms, non_negative=True, by_criterion=False)

    return fit


def proportional(few: SelectionSamples) -> FittedFunction:
    """Return a multiple of one parameter, or a constant: all that two or three samples can say."""
    return _summed(few, few.parameters.linear(), non_negative=True)


def prediction_bounds(samples: Samples, coefficients: Floats) -> PredictionBounds:
    """Return the bounds that the samples suggest: 0 alone where no coefficient is negative."""
    lowest, highest = samples.params.min(axis=0), samples.params.max(axis=0)
    if (coefficients >= 0).all():
        return PredictionBounds(lowest, highest, 0.0, None)
    positive = samples.seconds[samples.seconds > 0]
    least = float(positive.min()) if len(positive) else 0.0
    return PredictionBounds(lowest, highest, least, float(samples.seconds.max()))


def _summed(
    few: SelectionSamples,
    terms: Sequence[Expression],
    *,
    non_negative: bool,
    by_criterion: bool = True,
) -> FittedFunction:
    """Return the sum of the terms that are worth taking."""
    taken = _chosen(few, terms, non_negative=non_negative, by_criterion=by_criterion)
    return _solved(few, taken, non_negative=non_negative)


def _solved(
    few: SelectionSamples, terms: Sequence[Expression], *, non_negative: bool
) -> FittedFunction:
    solved = solve(terms, few.samples, few.loss, non_negative=non_negative)
    bounds = prediction_bounds(few.samples, solved.coefficients)
    return FittedFunction(tuple(terms), solved.coefficients, bounds=bounds)


def _chosen(
    few: SelectionSamples,
    terms: Sequence[Expression],
    *,
    non_negative: bool,
    by_criterion: bool = True,
) -> tuple[Expression, ...]:
    """Return the terms that are taken; twice, the second time with outliers weighing less."""
    samples = few.samples
    columns = columns_of(terms, samples.params) / samples.scale_s[:, None]
    target = samples.seconds / samples.scale_s
    weights = np.ones(len(samples))
    constant = terms.index(ONE) if ONE in terms else None
    taken: tuple[Expression, ...] = (ONE,)
    for _ in range(2 if few.loss == "huber" else 1):
        places = select(
            np.asfortranarray(columns * weights[:, None]), target * weights,
            most_terms(len(samples)) if by_criterion else MOST_TERMS,
            non_negative=non_negative, constant=constant, by_criterion=by_criterion,
        )  # fmt: skip
        taken = tuple(terms[place] for place in places) or (ONE,)
        if few.loss == "huber" and len(samples) > len(taken) + 2:
            function = _solved(few, taken, non_negative=non_negative)
            weights = robust_weights(function, samples)
    return taken


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


def _lowest(few: SelectionSamples, usable: Sequence[int], place: int) -> float:
    return float(few.parameters.lowest[usable[place - 1] - 1])
