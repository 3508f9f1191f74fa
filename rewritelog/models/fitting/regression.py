"""What all regressions here share: columns of terms, one solver, one robust loss, one criterion.

Huber's loss counts residuals beyond a corner linearly (P. Huber, "Robust estimation of a location
parameter", 1964); it is minimized by iteratively reweighted least squares (Holland and Welsch
1977). BIC is Schwarz's criterion ("Estimating the dimension of a model", 1978), n log(χ²/n) +
k log n for k terms and n samples, with the penalty k log n multiplied by n/(n − k − 1): the
correction for small samples that Hurvich and Tsai (1989) give for the AIC.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

import numpy as np

from rewritelog.arrays import Floats, median
from rewritelog.models.expressions import Expression

Loss: TypeAlias = Literal["huber", "squares"]

HUBER = 1.345
"""The corner of Huber's loss in standard deviations: there the estimate has 95 % of the efficiency
of least squares on normal residuals."""

LEAST_DEVIATION = 1e-12
"""Added to a robust standard deviation, which is 0 if most residuals are."""

COLLINEAR = 1e-9
"""Singular values below this share of the largest count as 0."""

DEPENDENT = 1e-7
"""Columns of length 1 are linearly dependent if their smallest singular value is at most this.

It bounds the coefficients: none is larger than the norm of the times divided by it. Parameters
that are functions of one another, printed with six decimals, differ by less.
"""

LEAST_SLOPE = 1e-13
"""A column of length 1 along which the misfit falls less, as a share of the target, stays at 0."""

LEAST_LENGTH = 1e-280
"""A shorter column of a design matrix counts as 0: its coefficient could overflow."""

_SMALL, _LARGE = 1e-140, 1e140
"""Lengths between these have squares that neither overflow nor underflow."""


def columns_of(terms: Sequence[Expression], params: Floats) -> Floats:
    """Return the values of the terms, shape (rows, terms), in column-major order."""
    columns = np.empty((len(params), len(terms)), order="F")
    for index, term in enumerate(terms):
        columns[:, index] = term.evaluate(params)
    return columns


def lengths_of(columns: Floats) -> Floats:
    """Return the Euclidean norm of each column, without overflow or underflow of the squares."""
    lengths = np.asarray(np.sqrt(np.einsum("ij,ij->j", columns, columns)))
    if ((lengths > _SMALL) & (lengths < _LARGE)).all():
        return lengths
    largest = np.abs(columns).max(axis=0, initial=0.0)
    units = columns / np.where(largest > 0, largest, 1.0)
    return np.asarray(largest * np.sqrt(np.einsum("ij,ij->j", units, units)))


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

    def independent(indices: list[int]) -> bool:
        smallest = singular_values(triangle[:, indices]).min(initial=np.inf)
        return len(indices) <= len(columns) and bool(smallest > DEPENDENT)

    if independent(list(range(count))):
        return list(range(count))
    taken: list[int] = []
    for index in range(count):
        taken = [*taken, index] if independent([*taken, index]) else taken
    return taken


def least_squares(
    columns: Floats,
    target: Floats,
    *,
    non_negative: bool = False,
    collinear: float = COLLINEAR,
) -> Floats:
    """Return the coefficients with which the columns' sum is nearest to the target.

    With `non_negative` none is negative (NNLS, Lawson and Hanson 1974), and the columns should have
    length 1. `collinear` is a share as `COLLINEAR` is.
    """
    coefficients = np.asarray(np.linalg.lstsq(columns, target, rcond=collinear)[0])
    if not non_negative or (coefficients >= 0).all():
        return coefficients
    estimate, passive = np.zeros(len(coefficients)), np.zeros(len(coefficients), dtype=np.bool_)
    for _ in range(3 * len(estimate)):
        slopes = np.where(passive, 0.0, columns.T @ (target - columns @ estimate))
        steepest = int(np.argmax(slopes))
        if not slopes[steepest] > LEAST_SLOPE * np.linalg.norm(target):
            break
        passive[steepest] = True
        while True:
            solution = np.zeros(len(estimate))
            solution[passive] = np.linalg.lstsq(columns[:, passive], target, rcond=collinear)[0]
            below = np.flatnonzero(passive & (solution <= 0))
            if not len(below):
                break
            steps = estimate[below] / (estimate[below] - solution[below])
            estimate += steps.min() * (solution - estimate)
            estimate[below[np.argmin(steps)]] = 0.0
            passive &= estimate > 0
        estimate = solution
    return estimate


def robust_deviation(errors: Floats, least: float = LEAST_DEVIATION) -> float:
    """Return the standard deviation of normal errors with this median |error|, plus `least`."""
    return 1.4826 * median(np.abs(errors)) + least


def robust_deviations(errors: Floats, least: float) -> Floats:
    """Return the robust standard deviation of the errors in each row, at least `least`."""
    return np.asarray(np.maximum(1.4826 * np.median(np.abs(errors), axis=1), least))


def huber_loss(errors: Floats) -> Floats:
    """Return Huber's loss of errors in units of their deviation: r² for small errors r."""
    sizes = np.abs(errors)
    return np.where(sizes <= HUBER, sizes**2, HUBER * (2 * sizes - HUBER))


def huber_weights(errors: Floats, corner: float | Floats) -> Floats:
    """Return the factor on each squared error in Huber's loss with this corner, at most 1."""
    return np.asarray(np.minimum(1.0, corner / np.maximum(np.abs(errors), 1e-300)))


def row_weights(errors: Floats, corner: float | None = None) -> Floats:
    """Return the factors of rows and target that give least squares Huber's loss at these errors.

    It is the square root of `huber_weights`, by default with the corner at `HUBER` robust standard
    deviations.
    """
    corner = HUBER * robust_deviation(errors) if corner is None else corner
    return np.asarray(np.sqrt(huber_weights(errors, corner)))
