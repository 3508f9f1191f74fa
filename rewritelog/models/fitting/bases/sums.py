"""Sums of functions of one parameter, or of their products; sums of given terms.

All but the signed ones have no negative coefficients: they predict no negative time, and beyond the
range of the samples they grow no faster than their terms do.
"""

from __future__ import annotations

import numpy as np

from rewritelog.models.expressions import Expression
from rewritelog.models.fitting import tuning
from rewritelog.models.fitting.design import ONE, Family, SelectionSamples
from rewritelog.models.fitting.regression import columns_of, independent_columns


def single_terms(selection: SelectionSamples) -> tuple[Expression, ...]:
    """Choose functions of one parameter each."""
    return selection.select_from(selection.table.products(crossed=False))


def signed_terms(selection: SelectionSamples) -> tuple[Expression, ...]:
    """Choose functions of one parameter each, with coefficients of any sign."""
    return selection.select_from(selection.table.products(crossed=False), non_negative=False)


def crossed_terms(selection: SelectionSamples) -> tuple[Expression, ...]:
    """Choose functions of one parameter, and products of those of two parameters."""
    return selection.select_from(selection.table.products(crossed=True))


def short_sum(selection: SelectionSamples) -> tuple[Expression, ...]:
    """Choose at most `FEW_TERMS` of the terms that `crossed_terms` chooses among."""
    return selection.select_from(selection.table.products(crossed=True), most=tuning.FEW_TERMS)


def fixed_terms(
    terms: tuple[Expression, ...], *, non_negative: bool = False, may_be_negative: bool = False
) -> Family:
    """Return the family of the given terms without linear combinations of earlier ones."""

    def independent(selection: SelectionSamples) -> tuple[Expression, ...]:
        samples = selection.samples
        # at most 1, so that no product overflows
        weights = samples.sigma_s.min(initial=np.inf) / samples.sigma_s
        columns = columns_of(terms, samples.params) * weights[:, None]
        return tuple(terms[index] for index in independent_columns(columns)) or (ONE,)

    return Family(independent, non_negative, may_be_negative, user_terms=terms)
