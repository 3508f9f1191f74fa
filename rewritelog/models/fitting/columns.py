"""The columns of a design matrix: values of terms over samples, norms, linear independence."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rewritelog.arrays import Floats
from rewritelog.models.expressions import Expression

COLLINEAR = 1e-7
"""Columns of length 1 are collinear if their smallest singular value is at most this.

It bounds the coefficients: none is larger than the norm of the times divided by it. Parameters
that are functions of one another, printed with six decimals, differ by less.
"""

_SMALL, _LARGE = 1e-140, 1e140
"""Lengths between these have squares that neither overflow nor underflow."""

_FEW = 32
"""At most this many numbers are compared faster one by one."""


def columns_of(terms: Sequence[Expression], params: Floats) -> Floats:
    """Return the values of the terms, shape (rows, terms), in column-major order."""
    columns = np.empty((len(params), len(terms)), order="F")
    for index, term in enumerate(terms):
        columns[:, index] = term.evaluate(params)
    return columns


def lengths_of(columns: Floats) -> Floats:
    """Return the Euclidean norm of each column, without overflow or underflow of the squares."""
    lengths = np.asarray(np.sqrt(np.einsum("ij,ij->j", columns, columns)))
    if _ordinary(lengths):
        return lengths
    largest = np.abs(columns).max(axis=0, initial=0.0)
    units = columns / np.where(largest > 0, largest, 1.0)
    return np.asarray(largest * np.sqrt(np.einsum("ij,ij->j", units, units)))


def _ordinary(lengths: Floats) -> bool:
    """Return whether the squares of all lengths are numbers, and above 0."""
    if len(lengths) <= _FEW:
        return all(_SMALL < length < _LARGE for length in lengths.tolist())
    smallest = np.minimum.reduce(lengths)
    return bool(smallest > _SMALL and np.maximum.reduce(lengths) < _LARGE)


def unit_columns(columns: Floats) -> Floats:
    """Return the columns scaled to length 1; columns of zeros, or not finite, become zeros."""
    lengths = lengths_of(columns)
    usable = np.isfinite(lengths) & (lengths > 0)
    if usable.all():
        return np.asarray(columns / lengths)
    return np.where(usable, columns, 0.0) / np.where(usable, lengths, 1.0)


def singular_values(columns: Floats) -> Floats:
    """Return the singular values in descending order."""
    if columns.shape == (1, 1):
        return np.asarray(np.abs(columns[0]))
    return np.asarray(np.linalg.svd(columns, compute_uv=False))


def independent_columns(columns: Floats) -> list[int]:
    """Return the indices of the columns that are linearly independent of those taken before."""
    count = columns.shape[1]
    units = unit_columns(columns)
    triangle = np.asarray(np.linalg.qr(units, mode="r")) if len(units) > count else units
    taken: list[int] = list(range(count))
    if count <= len(columns) and _smallest_singular_value(triangle) > COLLINEAR:
        return taken
    taken = []
    for index in range(count):
        more = [*taken, index]
        if len(more) <= len(columns) and _smallest_singular_value(triangle[:, more]) > COLLINEAR:
            taken = more
    return taken


def _smallest_singular_value(columns: Floats) -> float:
    return float(singular_values(columns).min(initial=np.inf))
