"""Why a given term is left out of a fit: the samples cannot determine its coefficient."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from rewritelog.arrays import Floats
from rewritelog.models.expressions import Expression
from rewritelog.models.fitting.columns import columns_of, unit_columns
from rewritelog.models.fitting.design import SelectionSamples
from rewritelog.models.fitting.diagnosis import Dropped
from rewritelog.models.fitting.regression import least_squares
from rewritelog.text import count_text

INVOLVED = 1e-6
"""A term with a coefficient below this share of the largest is not named in a combination."""

MOST_NAMED = 4
"""A linear combination of more terms is not spelled out."""


def dropped_terms(
    terms: Mapping[str, Expression], taken: Collection[str], selection: SelectionSamples
) -> tuple[Dropped, ...]:
    """Return the terms, by name, that are not among those taken, each with the reason."""
    names = [name for name in terms if name in taken]
    columns = unit_columns(columns_of([terms[name] for name in names], selection.samples.params))
    return tuple(
        Dropped(name, _reason(term, names, columns, selection))
        for name, term in sorted(terms.items())
        if name not in taken
    )


def _reason(
    term: Expression, names: list[str], columns: Floats, selection: SelectionSamples
) -> str:
    constant = {
        ignored.parameter: ignored.reason
        for ignored in selection.parameters.ignored
        if "constant" in ignored.reason
    }
    if term.parameters and term.parameters <= constant.keys():
        return ", ".join(f"p{number} {constant[number]}" for number in sorted(term.parameters))
    samples = len(selection.samples)
    if len(names) >= samples:
        return f"{count_text(samples, 'sample')} cannot determine more terms"
    column = unit_columns(columns_of([term], selection.samples.params))[:, 0]
    return _combination_text(column, names, columns)


def _combination_text(column: Floats, names: list[str], columns: Floats) -> str:
    """Return as text which of the terms taken the column is a linear combination of."""
    shares = np.abs(least_squares(columns, column, collinear=None))
    involved = [
        name
        for name, share in zip(names, shares, strict=True)
        if share > INVOLVED * shares.max() and name != "1"
    ]
    if not involved:
        return "constant in all samples"
    if len(involved) > MOST_NAMED:
        return "a linear combination of the other terms"
    return f"a linear combination of the other terms ({', '.join(involved)})"
