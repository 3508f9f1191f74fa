"""Solving: the coefficients of chosen terms, weighted and robust, for any number of samples."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace

from rewritelog.arrays import Floats
from rewritelog.models.expressions import Expression
from rewritelog.models.fitting.design import ONE, Family
from rewritelog.models.fitting.function import FittedFunction, prediction_bounds
from rewritelog.models.fitting.regression import (
    HUBER,
    LEAST_LENGTH,
    Loss,
    columns_of,
    least_squares,
    lengths_of,
    robust_spread,
    row_weights,
)
from rewritelog.models.fitting.samples import Samples
from rewritelog.models.parallel import map_in_threads

ROUNDS, ROUNDS_IN_BLOCKS = 6, 3
"""At most this many least-squares solutions in a robust fit; with more samples than `LARGE`."""

SETTLED = 1e-4
"""A fit has converged if coefficients change by at most this share."""

FEW, LARGE = 1 << 10, 1 << 16
"""At most `FEW` samples are solved as they are, more from a triangle. Those beyond `LARGE` are not
kept in memory: columns are computed anew in each pass."""

BLOCK_ROWS = 1 << 14
"""Rows that are reduced at a time, if there are more than `LARGE`."""

COLLINEAR = 1e-11
"""Singular values of columns of length 1 below this share of the largest count as 0."""

OUTLIER = 6.0
"""Residuals beyond this many robust standard deviations are left out of a robust calibration."""

FEWEST_CALIBRATED = 30
"""The sum of fewer samples is no more certain than the fitted function itself."""


def fit_terms(
    family: Family,
    terms: tuple[Expression, ...],
    samples: Samples,
    loss: Loss,
    columns: Floats | None = None,
) -> FittedFunction:
    """Return the sum of the terms with its coefficients, bounds and calibration.

    Each residual is divided by its sample's scale. Huber's loss is minimized by iteratively
    reweighted least squares (Holland and Welsch 1977), a sign constraint imposed by NNLS (Lawson
    and Hanson 1974). Coefficients are in seconds per unit of the term. Rows that are not finite
    have no weight. `columns` are the values of the terms, shape (samples, terms), where they are
    known.
    """
    level_s = 0.0
    if ONE in terms and not family.non_negative:
        # equal times less the middle of their range are fitted without a rounding error
        level_s = float(samples.seconds.min() / 2 + samples.seconds.max() / 2)
    rows = _Rows(terms, samples, level_s, columns)
    robust = loss == "huber" and len(samples) > len(terms) + 2
    coefficients, spread, lengths = np.zeros(len(terms)), np.inf, None
    for _ in range((ROUNDS if len(samples) <= LARGE else ROUNDS_IN_BLOCKS) if robust else 1):
        before = coefficients
        reduced = rows.reduced(coefficients, HUBER * spread)
        if lengths is None:
            lengths = lengths_of(reduced[:, :-1])
            lengths[lengths < LEAST_LENGTH] = 1.0
        units, signs = reduced[:, :-1] / lengths, family.non_negative
        sizes = least_squares(units, reduced[:, -1], non_negative=signs, collinear=COLLINEAR)
        coefficients = sizes / lengths
        spread = robust_spread(rows.residuals(coefficients))
        if (np.abs(coefficients - before) <= SETTLED * np.abs(before)).all():
            break
    if level_s:
        coefficients[terms.index(ONE)] += level_s
    bounds = prediction_bounds(samples, coefficients) if family.bounded else None
    function = FittedFunction(terms, coefficients, bounds=bounds)
    return _calibrated(function, samples, spread if loss == "huber" else np.inf, columns)


class _Rows:
    """The rows [terms | times] of the samples, divided by their scales.

    They are kept in memory up to `LARGE`, or with known columns.
    """

    def __init__(
        self,
        terms: Sequence[Expression],
        samples: Samples,
        level_s: float,
        columns: Floats | None,
    ) -> None:
        self._terms, self._samples, self._level_s = terms, samples, level_s
        few = samples if columns is not None else samples.random_part(LARGE)
        self._kept = self._of(few, columns)

    def _of(self, samples: Samples, columns: Floats | None = None) -> Floats:
        rows = np.empty((len(samples), len(self._terms) + 1), order="F")
        rows[:, :-1] = columns_of(self._terms, samples.params) if columns is None else columns
        rows[:, -1] = samples.seconds - self._level_s
        rows /= samples.sigma_s[:, None]
        finite = np.isfinite(rows)
        if not finite.all():
            rows[~finite.all(axis=1)] = 0.0
        return rows

    def residuals(self, coefficients: Floats) -> Floats:
        """Return the residuals, in units of each sample's scale, of at most `LARGE` samples."""
        return _residuals(self._kept, coefficients)

    def reduced(self, coefficients: Floats, corner: float) -> Floats:
        """Return rows with the same solution as all of them, weighted.

        Samples whose residual with `coefficients` exceeds `corner` have Huber's weight. Of more
        than `FEW` samples the result is the triangle of a QR decomposition (Golub and Van Loan,
        Matrix Computations, 5.3), beyond `LARGE` that of the triangles of blocks (J. Demmel et al.,
        "Communication-optimal parallel and sequential QR and LU factorizations", 2012).
        """

        def weighted(rows: Floats) -> Floats:
            if not np.isfinite(corner):
                return rows
            return rows * row_weights(_residuals(rows, coefficients), corner)[:, None]

        def triangle(rows: Floats) -> Floats:
            return np.asarray(np.linalg.qr(rows, mode="r"))

        if len(self._samples) == len(self._kept):
            rows = weighted(self._kept)
            return rows if len(rows) <= FEW else triangle(rows)
        blocks = list(self._samples.blocks(BLOCK_ROWS))
        triangles = map_in_threads(lambda block: triangle(weighted(self._of(block))), blocks)
        return triangle(np.vstack(list(triangles)))


def _residuals(rows: Floats, coefficients: Floats) -> Floats:
    return np.asarray(rows[:, :-1] @ coefficients - rows[:, -1])


def _calibrated(
    function: FittedFunction, samples: Samples, spread: float, columns: Floats | None
) -> FittedFunction:
    """Return the function with the factor Σ measured / Σ predicted.

    Least squares with relative weights biases the sum a little. Both sums leave out the
    event's first call and outliers, a single one of which can shift a sum by several per cent:
    samples off by more than a factor of two, or by more than `OUTLIER` times `spread`, the robust
    standard deviation of the residuals, infinite without a robust fit. The function is returned as
    it is with uniform weights or too few samples. A constant that was fitted robustly becomes the
    median of the times, however few they are: relative weights would put it far below the middle of
    times that vary by a factor.
    """
    if not samples.relative:
        return function
    if len(samples) > 1 and np.isfinite(spread) and all(term == ONE for term in function.terms):
        constant = float(function.predict(samples.params[:1])[0])
        median = float(np.median(samples.seconds))
        return replace(function, calibration=median / constant) if constant > 0 else function
    if len(samples) < FEWEST_CALIBRATED:
        return function
    measured = predicted = 0.0
    for block in samples.blocks() if columns is None else (samples,):
        seconds = function.predict(block.params, columns)
        with np.errstate(all="ignore"):
            included = ~block.first & (block.seconds < 2 * seconds) & (seconds < 2 * block.seconds)
            included &= np.abs(seconds - block.seconds) <= OUTLIER * spread * block.sigma_s
        measured += float(block.seconds[included].sum())
        predicted += float(seconds[included].sum())
    return replace(function, calibration=measured / predicted if predicted > 0 else 1.0)
