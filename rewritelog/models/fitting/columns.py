"""The values of terms over samples: columns, their lengths, and which of them are independent."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rewritelog.arrays import Floats
from rewritelog.models.expressions import Expression

COLLINEAR = 1e-7
"""The smallest singular value that columns of length 1 may have together to be independent.

It bounds the coefficients: none is larger than the length of the times divided by it. Parameters
that follow from one another, printed with six decimals, differ by less.
"""

_SMALL, _LARGE = 1e-140, 1e140
"""Lengths between these have squares that neither overflow nor vanish."""


def columns_of(terms: Sequence[Expression], params: Floats) -> Floats:
    """Return the values of the terms, shape (rows, terms), column by column in memory."""
    columns = np.empty((len(params), len(terms)), order="F")
    for place, term in enumerate(terms):
        columns[:, place] = term.evaluate(params)
    return columns


def lengths_of(columns: Floats) -> Floats:
    """Return the length of each column, also where the squares of its values overflow or vanish."""
    lengths = np.sqrt(np.einsum("ij,ij->j", columns, columns))
    if lengths.min(initial=np.inf) > _SMALL and lengths.max(initial=0.0) < _LARGE:
        return np.asarray(lengths)
    largest = np.abs(columns).max(axis=0, initial=0.0)
    units = columns / np.where(largest > 0, largest, 1.0)
    return np.asarray(largest * np.sqrt(np.einsum("ij,ij->j", units, units)))


def unit_columns(columns: Floats) -> Floats:
    """Return the columns at length 1; those that have none, or hold no number, become zeros."""
    lengths = lengths_of(columns)
    usable = np.isfinite(lengths) & (lengths > 0)
    if usable.all():
        return np.asarray(columns / lengths)
    return np.where(usable, columns, 0.0) / np.where(usable, lengths, 1.0)


def singular_values(columns: Floats) -> Floats:
    """Return the singular values, falling."""
    if columns.shape == (1, 1):
        return np.asarray(np.abs(columns[0]))
    return np.asarray(np.linalg.svd(columns, compute_uv=False))


def independent_columns(columns: Floats) -> list[int]:
    """Return the places of columns that are independent of those taken before them."""
    count = columns.shape[1]
    units = unit_columns(columns)
    triangle = np.asarray(np.linalg.qr(units, mode="r")) if len(units) > count else units
    taken: list[int] = list(range(count))
    if count <= len(columns) and _smallest_singular_value(triangle) > COLLINEAR:
        return taken
    taken = []
    for place in range(count):
        more = [*taken, place]
        if len(more) <= len(columns) and _smallest_singular_value(triangle[:, more]) > COLLINEAR:
            taken = more
    return taken


def _smallest_singular_value(columns: Floats) -> float:
    return float(singular_values(columns).min(initial=np.inf))
