"""Families of functions among which a fit is chosen: each chooses the terms of a sum.

All but one have no negative coefficients: they predict no negative time, and beyond the range of
the samples they grow no faster than their terms do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from rewritelog.models.expressions import Expression, parse
from rewritelog.models.fitting import tuning
from rewritelog.models.fitting.candidates import ONE
from rewritelog.models.fitting.columns import columns_of, independent_columns
from rewritelog.models.fitting.design import SelectionSamples
from rewritelog.models.fitting.log_terms import power_of, product_of
from rewritelog.models.fitting.product_shape import product_factors
from rewritelog.models.fitting.regression import least_squares
from rewritelog.models.fitting.samples import Samples
from rewritelog.models.fitting.selection import select


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


def single_terms(selection: SelectionSamples) -> tuple[Expression, ...]:
    """Choose functions of one parameter each."""
    return selection.terms_of(selection.select_products(selection.candidates.single))


def signed_terms(selection: SelectionSamples) -> tuple[Expression, ...]:
    """Choose functions of one parameter each, with coefficients of any sign."""
    return selection.terms_of(
        selection.select_products(selection.candidates.single, non_negative=False)
    )


def proportional(selection: SelectionSamples) -> tuple[Expression, ...]:
    """Choose one parameter or the constant, all that two or three samples can determine."""
    if not selection.parameters.used:
        return (ONE,)
    terms = (ONE, *(parse(f"p{number}") for number in selection.parameters.used))
    return selection.select_from(terms)


def crossed_terms(selection: SelectionSamples) -> tuple[Expression, ...]:
    """Choose functions of one parameter, and products of those of two or three parameters."""
    candidates = selection.candidates
    return selection.terms_of(selection.select_products((*candidates.single, *candidates.crossed)))


def short_sum(selection: SelectionSamples) -> tuple[Expression, ...]:
    """Choose among the same, but few of them."""
    candidates = selection.candidates
    products = (*candidates.single, *candidates.crossed)
    return selection.terms_of(selection.select_products(products, most=tuning.FEW_TERMS))


def product_terms(selection: SelectionSamples) -> tuple[Expression, ...]:
    """Choose partial products of the factors of the best product of all parameters."""
    factors = product_factors(selection.samples, selection.parameters)
    return selection.select_from((ONE, *_partial_products(factors)))


def power_law(selection: SelectionSamples) -> tuple[Expression, ...]:
    """Choose the product of one power of each positive parameter, fitted to logarithms."""
    samples, usable = selection.samples, selection.parameters.positive()
    logs = np.log(samples.params[:, [number - 1 for number in usable]])
    columns = np.column_stack((np.ones(len(samples)), logs))
    times = np.log(samples.sigma_s)
    taken = select(columns, times, non_negative=False, constant=0)
    exponents = least_squares(columns[:, taken], times)
    factors = [
        power_of(usable[index - 1], selection.parameters).factor(
            float(np.clip(exponent, *tuning.EXPONENTS))
        )
        for index, exponent in zip(taken, exponents, strict=True)
        if index
    ]
    return (product_of(factors),)


def fixed_terms(terms: Sequence[Expression], *, non_negative: bool = False) -> Family:
    """Return the family that takes all of the given terms that are linearly independent."""

    def choose(selection: SelectionSamples) -> tuple[Expression, ...]:
        return independent_terms(terms, selection.samples)

    return Family(choose, non_negative)


def independent_terms(terms: Sequence[Expression], samples: Samples) -> tuple[Expression, ...]:
    """Return the terms that are no linear combination of earlier ones; at least the constant."""
    columns = columns_of(terms, samples.params) * samples.weights[:, None]
    return tuple(terms[index] for index in independent_columns(columns)) or (ONE,)


def _partial_products(factors: Sequence[Expression]) -> list[Expression]:
    """Return the products of some or all of the factors."""
    sizes = (
        range(1, len(factors) + 1) if len(factors) <= tuning.MOST_FACTORS else (1, 2, len(factors))
    )
    return [product_of(subset) for size in sizes for subset in combinations(factors, size)]
