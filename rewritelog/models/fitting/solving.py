"""Solving: the coefficients of chosen terms, weighted and robust."""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace

from rewritelog.arrays import Floats
from rewritelog.models.expressions import Expression
from rewritelog.models.fitting import tuning
from rewritelog.models.fitting.design import ONE, Family
from rewritelog.models.fitting.function import FittedFunction
from rewritelog.models.fitting.regression import (
    HUBER,
    LEAST_LENGTH,
    Loss,
    columns_of,
    least_squares,
    lengths_of,
    robust_deviation,
    row_weights,
)
from rewritelog.models.fitting.samples import Samples

ROUNDS = 6
"""At most this many least-squares solutions in a robust fit."""

SETTLED = 1e-4
"""A fit has converged if coefficients change by at most this share."""

MOST_DIRECT = 1 << 10
"""Up to this many samples are solved directly, more by way of a triangle (QR decomposition)."""

COLLINEAR = 1e-11
"""Singular values of columns of length 1 below this share of the largest count as 0."""


def fit_terms(
    family: Family,
    terms: tuple[Expression, ...],
    samples: Samples,
    loss: Loss,
    columns: Floats | None = None,
    *,
    calibrates: bool = False,
) -> FittedFunction:
    """Return the sum of the terms with its coefficients and calibration.

    Each residual is divided by its sample's scale. Huber's loss is minimized by iteratively
    reweighted least squares (Holland and Welsch 1977), a sign constraint imposed by NNLS (Lawson
    and Hanson 1974). Coefficients are in seconds per unit of the term. Rows that are not finite
    have no weight. `columns` are the values of the terms, shape (samples, terms), where they are
    known. With `calibrates` all samples, of which these may be a part, are enough to calibrate.
    """
    level_s = 0.0
    if ONE in terms and not family.non_negative:
        # less the middle of their range, equal times are fitted without a rounding error
        level_s = float(samples.seconds.min() / 2 + samples.seconds.max() / 2)
    columns = columns_of(terms, samples.params) if columns is None else columns
    rows = np.empty((len(samples), len(terms) + 1), order="F")
    rows[:, :-1], rows[:, -1] = columns, samples.seconds - level_s
    rows /= samples.sigma_s[:, None]
    rows[~np.isfinite(rows).all(axis=1)] = 0.0
    robust = loss == "huber" and len(samples) > len(terms) + 2
    coefficients, residuals, deviation = np.zeros(len(terms)), np.zeros(len(rows)), np.inf
    lengths = None
    for _ in range(ROUNDS if robust else 1):
        before = coefficients
        reduced = rows
        if np.isfinite(deviation):
            reduced = rows * row_weights(residuals, HUBER * deviation)[:, None]
        if len(rows) > MOST_DIRECT:  # a triangle has the same solution (Golub and Van Loan, 5.3)
            reduced = np.asarray(np.linalg.qr(reduced, mode="r"))
        if lengths is None:
            lengths = lengths_of(reduced[:, :-1])
            lengths[lengths < LEAST_LENGTH] = 1.0
        units, signs = reduced[:, :-1] / lengths, family.non_negative
        sizes = least_squares(units, reduced[:, -1], non_negative=signs, collinear=COLLINEAR)
        coefficients = sizes / lengths + 0.0  # -0 becomes 0
        residuals = rows[:, :-1] @ coefficients - rows[:, -1]
        deviation = robust_deviation(residuals)
        if (np.abs(coefficients - before) <= SETTLED * np.abs(before)).all():
            break
    if level_s:
        coefficients[terms.index(ONE)] += level_s
    function = FittedFunction(terms, coefficients, may_be_negative=family.may_be_negative)
    deviation = deviation if loss == "huber" else np.inf
    return _calibrated(function, samples, deviation, columns, calibrates=calibrates)


def _calibrated(
    function: FittedFunction,
    samples: Samples,
    deviation: float,
    columns: Floats,
    *,
    calibrates: bool,
) -> FittedFunction:
    """Return the function with the factor Σ measured / Σ predicted.

    Least squares with relative weights biases the sum a little. Both sums leave out the event's
    first call and, with a robust loss, outliers, since a single one can shift a sum by several per
    cent: samples off by more than a factor of two, or by `tuning.OUTLIER` times `deviation`. That
    is the robust standard deviation of the residuals, infinite with any other loss. With uniform
    weights, or unless it `calibrates`, the function stays as it is. A constant that was fitted
    robustly becomes the median of the times, however few they are: relative weights would put it
    far below the middle of times that vary by a factor.
    """
    if not samples.relative:
        return function
    if len(samples) > 1 and np.isfinite(deviation) and all(term == ONE for term in function.terms):
        constant = float(function.predict(samples.params[:1])[0])
        median = float(np.median(samples.seconds))
        return replace(function, calibration=median / constant) if constant > 0 else function
    if not calibrates:
        return function
    seconds, measured_s = function.predict(samples.params, columns), samples.seconds
    with np.errstate(all="ignore"):
        near = (measured_s < 2 * seconds) & (seconds < 2 * measured_s)
        near &= np.abs(seconds - measured_s) <= tuning.OUTLIER * deviation * samples.sigma_s
    included = ~samples.first & (near | np.isinf(deviation))
    measured, predicted = float(measured_s[included].sum()), float(seconds[included].sum())
    return replace(function, calibration=measured / predicted if predicted > 0 else 1.0)
