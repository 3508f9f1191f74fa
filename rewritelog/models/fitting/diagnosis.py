"""Diagnosis: how reliable a fit is, judged by its samples and by held-out predictions.

A row with term values t, divided by their predicted sum as relative weights do, has the leverage
tᵀ(XᵀX)⁻¹t, where X is the weighted design matrix of the samples: how far it is from the samples in
the space of the function's terms. Prediction intervals are made from the ratios of measured to
predicted times of held-out samples.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Literal, NamedTuple

import numpy as np
from msgspec import Meta
from msgspec.structs import replace

from rewritelog.arrays import Flags, Floats, Ints, median
from rewritelog.models.expressions import Expression
from rewritelog.models.fitting import tuning
from rewritelog.models.fitting.design import SelectionSamples
from rewritelog.models.fitting.function import AnyFunction, CorrectedFunction, sum_of_terms
from rewritelog.models.fitting.regression import (
    LEAST_LENGTH,
    Loss,
    columns_of,
    lengths_of,
    robust_deviation,
    singular_values,
    unit_columns,
)
from rewritelog.models.fitting.samples import Samples, are_uneven
from rewritelog.models.form import AnyFloat, Count, Form, Text
from rewritelog.models.metrics import mean_relative_error, r_squared, sum_error
from rewritelog.text import count_text

OUTLIER_FACTOR = 2.0
"""A sample is an outlier if measured and predicted time differ by more than this factor."""

MOST_RATIOS = 999
"""At most this many quantiles of the held-out ratios are kept."""

COVERAGE = 0.9
"""The nominal coverage of a prediction interval."""


class Coefficient(Form, frozen=True):
    """One term as reports show it, with its coefficient in seconds per unit of the term."""

    term: Text
    value: AnyFloat
    standard_error: AnyFloat | None = None
    """None without degrees of freedom."""


class Dropped(Form, frozen=True):
    """A term or parameter whose effect the samples cannot determine, and why."""

    term: Text
    reason: Text
    cause: Literal["constant", "tied", "undefined", "few lines", "small classes"]


class Quality(
    Form,
    frozen=True,
    kw_only=True,
    rename={
        "held_out_error": "held_out_mean_relative_error",
        "coverage": "interval_coverage",
        "relative": "relative_residuals",
        "dof": "degrees_of_freedom",
        "effective_sample_size": "effective_samples",
        "first_call": "first_call_ratio",
        "negative": "negative_predictions",
    },
):
    """The statistics of one fit; one that needs more samples is None."""

    r2: float | None = None
    """R², the share of the variance of the times that the fit explains."""
    held_out_r2: float | None = None
    """R² over held-out samples; an overfitted function has a high `r2`, but not a high one here."""
    held_out_error: float | None = None
    """Mean of |predicted − measured| / measured over held-out samples."""
    held_out_sum_error: float | None = None
    """Σ predicted / Σ measured − 1 over held-out samples, without first calls."""
    coverage: float | None = None
    """Share of held-out samples in a 90 % interval that was made without them."""
    chi2: AnyFloat
    """Sum of the squared relative residuals or, with uniform weights, of the residuals, in s²."""
    relative: bool
    """Whether `chi2` is the sum for relative residuals."""
    dof: Count
    """Degrees of freedom: number of samples − number of terms, at least 0."""
    rank: Count
    condition: AnyFloat
    """Condition number of the weighted design matrix, its columns scaled to length 1."""
    largest_leverage: AnyFloat
    effective_sample_size: Annotated[float, Meta(gt=0)]
    """Effective sample size for the sum of the times t of the points, (Σ t)² / Σ t² (L. Kish,
    Survey Sampling, 1965): this many points of equal duration determine a sum as precisely."""
    outliers: Count = 0
    """Number of samples off by more than `OUTLIER_FACTOR`."""
    first_call: float | None = None
    """Measured / predicted time of the event's first call, the median if there are several."""
    negative: Count = 0
    """Number of samples for which the function is negative."""


class Diagnosis(NamedTuple):
    """The quality of a fit, and what its predictions are judged by (see `ClassFit`)."""

    quality: Quality
    leverage_root: Floats
    ratios: Floats
    spread_ratios: Floats
    points: int
    total_ratio: float


def diagnose(
    function: AnyFunction,
    samples: Samples,
    loss: Loss,
    validated: Samples,
    held_out_s: Floats | None,
) -> Diagnosis:
    """Return the quality of a fit over the samples, with this loss, and in cross-validation.

    `held_out_s` are the seconds predicted for the samples `validated`, each by a fit without it;
    None without a cross-validation.
    """
    columns = columns_of(function.terms, samples.params)
    scale_s = samples.sigma_s if samples.relative else np.ones(len(samples))
    rows = columns / scale_s[:, None]
    rows[~np.isfinite(rows).all(axis=1)] = 0.0
    triangle = np.asarray(np.linalg.qr(rows, mode="r"))
    unbounded_s = function.unbounded(samples.params, columns)
    predicted_s = function.bounded(unbounded_s)
    sizes, root = singular_values(unit_columns(triangle)), leverage_root(triangle)
    sum_s = sum_of_terms(function, samples.params, columns, predicted_s)
    leverage = leverages(columns, sum_s, root, relative=samples.relative)
    measured_s = samples.seconds
    ratio = measured_s / predicted_s
    near = (ratio <= OUTLIER_FACTOR) & (ratio >= 1 / OUTLIER_FACTOR) | (measured_s == predicted_s)
    first_calls = ratio[samples.first & np.isfinite(ratio)]
    # in units of the longest time squares cannot overflow
    units = measured_s / (np.abs(measured_s).max(initial=0.0) or 1.0)
    squares = float((samples.points.sums(units) ** 2).sum())
    quality = Quality(
        r2=r_squared(predicted_s, measured_s),
        chi2=float(np.nansum(((measured_s - predicted_s) / scale_s) ** 2)),
        relative=samples.relative,
        dof=max(0, len(samples) - len(function.terms)),
        rank=int((sizes > 1e-10 * sizes.max(initial=0)).sum()),
        condition=float(sizes[0] / sizes[-1]) if len(sizes) and sizes[-1] > 0 else math.inf,
        largest_leverage=float(np.fmax.reduce(leverage, initial=0.0)),
        effective_sample_size=max(float(units.sum()) ** 2 / squares, 1.0) if squares > 0 else 1.0,
        outliers=int((~near & ~samples.first).sum()),
        first_call=float(np.median(first_calls)) if len(first_calls) else None,
        negative=int((unbounded_s < 0).sum()),
    )
    if held_out_s is None:
        return Diagnosis(quality, root, np.zeros(0), np.zeros(0), 0, 1.0)
    later = ~validated.first & np.isfinite(held_out_s)
    quality = on_held_out(quality, validated, held_out_s, later)
    usual, counts = are_usual(validated, held_out_s), validated.points.count_of_row
    usual_s = validated.seconds[usual], held_out_s[usual]
    ratios, spread = thinned(ratios_of(*usual_s, counts[usual])), ratios_by_time(*usual_s)
    points = min(validated.known_points, len(ratios))
    is_corrected = isinstance(function, CorrectedFunction)
    if not samples.relative and loss == "squares" and not is_corrected:
        return Diagnosis(quality, root, ratios, spread, points, 1.0)  # means have the right sum
    if validated.points.count_of_row.mean() >= tuning.OFTEN:
        # this function passes through the usual times of each point, which shows the long ones; the
        # error at a point of a fit without it says nothing of sums at others
        validated, held_out_s = samples, predicted_s
        later = ~samples.first & np.isfinite(predicted_s)
    known_s, timed_s = held_out_s[later], validated.seconds[later]
    expected = expected_ratio(timed_s / known_s, len(samples), relative=samples.relative)
    clusters = validated.points.point_of_row[later]
    total_ratio = total_ratio_of(timed_s, known_s, clusters, expected)
    return Diagnosis(quality, root, ratios, spread, points, total_ratio)


def on_held_out(quality: Quality, validated: Samples, predicted_s: Floats, later: Flags) -> Quality:
    """Return the quality with its statistics of held-out samples.

    `later` selects the samples that have a prediction and are not first calls.
    """
    measured_s, first = validated.seconds, validated.points.rows.first
    return replace(
        quality,
        held_out_r2=r_squared(predicted_s, measured_s),
        held_out_error=mean_relative_error(predicted_s, measured_s),
        held_out_sum_error=sum_error(predicted_s[later], measured_s[later]),
        coverage=coverage(measured_s[first] / predicted_s[first]),
    )


@np.errstate(all="ignore")  # of predictions that are 0
def are_usual(validated: Samples, predicted_s: Floats) -> Flags:
    """Return which samples are not first calls much slower, for their prediction, than all others.

    With few lines, a single one would decide how wide intervals are.
    """
    ratios = np.where(np.isfinite(predicted_s), validated.seconds / predicted_s, 0.0)
    slowest = ratios[~validated.first].max(initial=0.0)
    slow = validated.first & (ratios > OUTLIER_FACTOR * slowest) & (slowest > 0)
    return np.asarray(~slow)


def ratios_of(measured: Floats, predicted: Floats, counts: Ints) -> Floats:
    """Return measured over predicted times where they are finite, ascending.

    `counts` has the number of samples at each sample's point. Where few points have most of the
    samples, the ratios are replaced by as many quantiles, from the least to the largest, of a
    distribution in which each point has the same share.
    """
    with np.errstate(all="ignore"):
        ratios = measured / predicted
    order = np.argsort(ratios, kind="stable")
    order = order[np.isfinite(ratios[order])]
    ratios, counts = ratios[order], counts[order]
    if not len(ratios) or not are_uneven(counts):
        return ratios
    ends = np.cumsum(1 / counts)
    return ratios[np.searchsorted(ends, np.linspace(0, ends[-1], len(ends)))]


def ratios_by_time(measured: Floats, predicted: Floats) -> Floats:
    """Return measured over predicted times, ascending, with shares as of the predicted times.

    Their mean is about Σ measured / Σ predicted. Without such shares the deviations of short calls,
    which are often larger, would be those of the long ones, and sums wrong.
    """
    with np.errstate(all="ignore"):
        ratios = measured / predicted
    known = (predicted > 0) & (ratios >= 0) & np.isfinite(ratios)
    ratios, shares = ratios[known], predicted[known]
    order = np.argsort(ratios, kind="stable")
    ends = np.cumsum(shares[order] / shares.max(initial=0.0))
    count = min(len(ratios), MOST_RATIOS)
    drawn = np.searchsorted(ends, (np.arange(count) + 0.5) / count * ends[-1:])
    return np.asarray(ratios[order][drawn])


def thinned(ratios: Floats) -> Floats:
    """Return ascending ratios; if more than `MOST_RATIOS`, that many of their quantiles."""
    if len(ratios) <= MOST_RATIOS:
        return ratios
    return np.quantile(ratios, (np.arange(MOST_RATIOS) + 0.5) / MOST_RATIOS)


@np.errstate(all="ignore")  # of times that are 0, and predictions below
def expected_ratio(ratios: Floats, samples: int, *, relative: bool) -> float:
    """Return the factor that sums of predictions lack because the fit is not calibrated.

    It is 1 with enough samples, or without relative weights. `ratios` are measured over predicted
    times. For log-normal errors with the standard deviation s, the least squares of relative errors
    are those of predictions that are the mean time over exp(2 s²).
    """
    if not relative or samples >= tuning.FEWEST_CALIBRATED:
        return 1.0
    logs = np.log(ratios)
    logs = logs[np.isfinite(logs)]
    deviation = robust_deviation(logs - median(logs), 0.0) if len(logs) else 0.0
    return math.exp(min(2 * deviation**2, tuning.MOST_EXPECTED))


def total_ratio_of(
    measured: Floats, predicted: Floats, cluster: Ints, expected: float = 1.0
) -> float:
    """Return the factor that corrects sums of predictions, drawn to the expected if uncertain.

    The standard error is that of a weighted mean of ratios in clusters, such as points (W. Cochran,
    Sampling Techniques, 1977, 6.5 and 9A), and at least that of ratios without clusters: if one
    long call is at a point with most of the samples, the sum of the errors there is nearly 0. The
    shrinkage is firm (H.-Y. Gao and A. Bruce, Statistica Sinica 7, 1997).
    """
    known = predicted > 0
    measured, predicted = measured[known], predicted[known]
    if len(measured) < tuning.FEWEST_FOR_TOTAL:
        return 1.0
    ratios, weights = measured / predicted, predicted**tuning.SIZE_WEIGHT
    weights /= weights.sum()
    ratio = float(weights @ ratios)
    errors = weights * (ratios - ratio)
    numbers = np.unique(cluster[known], return_inverse=True)[1]
    variance = max(
        float(parts @ parts) * len(parts) / (len(parts) - 1)
        for parts in (errors, np.bincount(numbers, errors))
        if len(parts) > 1
    )
    if not ratio > 0 or not math.isfinite(variance):
        return 1.0
    variances = (ratio - expected) ** 2 / variance if variance > 0 else math.inf
    beyond = (variances - tuning.UNCERTAIN) / (tuning.CERTAIN - tuning.UNCERTAIN)
    share = min(1.0, max(0.0, beyond))
    return expected + share * (ratio - expected)


@np.errstate(over="ignore")  # of times near 0 the upper end may be infinite
def interval_of(ascending: Floats, points: int) -> Floats:
    """Return the ends of the 90 % interval for a further point, given ascending ones at some.

    They are the order statistics of the ranks ⌊(n + 1)·0.05⌋ and ⌈(n + 1)·0.95⌉: a further value of
    the same distribution then lies between them with at least the nominal probability. With k
    values at each of n points it is k times that rank. Fewer than `ENOUGH_RATIOS` points have no
    order statistics that far out: positive ends are then moved away from the median.
    """
    count = len(ascending)
    lower = math.floor((points + 1) * ((1 - COVERAGE) / 2)) - 1
    upper = math.ceil((points + 1) * ((1 + COVERAGE) / 2))
    ranks = [math.floor(lower * count / points), math.ceil(upper * count / points) - 1]
    ends: Floats = ascending[np.clip(ranks, 0, count - 1)]
    middle = float(np.median(ascending))
    if points >= tuning.ENOUGH_RATIOS or not middle > 0:
        return ends
    wider = 1 + tuning.WIDER_WITH_FEW * (tuning.ENOUGH_RATIOS / points - 1)
    return np.where(ends > 0, middle * np.maximum(ends / middle, 0) ** wider, ends)


def widening_rate(ratios: Floats, points: int, tried: Floats, distances: Floats) -> float | None:
    """Return how fast intervals have to widen beyond the range, in logarithms per unit of distance.

    In a trial `tried` are the measured over the predicted times of samples at these `distances`
    beyond the range. Nine in ten of them lie within the intervals that widen at this rate, at the
    rank that `interval_of` uses; `ratios` are the ascending ones at `points` within the range.
    It is from `LEAST_RATE` to `MOST_RATE`, and None without a sample beyond the range.
    """
    far = distances > 0
    if not far.any():
        return None
    low, high = interval_of(ratios, points) if len(ratios) else (1.0, 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(tried[far])
        outside = np.fmax(np.fmax(logs - np.log(high), np.log(low) - logs), 0.0)
    rates = np.sort(outside / np.maximum(distances[far], tuning.NEAREST))
    rank = min(math.ceil((len(rates) + 1) * COVERAGE), len(rates))
    return min(max(float(rates[rank - 1]), tuning.LEAST_RATE), tuning.MOST_RATE)


def coverage(ratios: Floats) -> float | None:
    """Return the share of ratios within the 90 % interval from the other half; None if too few."""
    finite = ratios[np.isfinite(ratios)]
    if len(finite) < tuning.ENOUGH_RATIOS:
        return None
    halves, inside = (finite[::2], finite[1::2]), 0
    for tested, calibrating in (halves, halves[::-1]):
        low, high = interval_of(np.sort(calibrating), len(calibrating))
        inside += int(((tested >= low) & (tested <= high)).sum())
    return inside / len(finite)


def leverage_root(triangle: Floats) -> Floats:
    """Return L with |L·t|² = tᵀ(XᵀX)⁻¹t, from R of the QR decomposition of X; L = (R⁺)ᵀ."""
    lengths = lengths_of(triangle)
    usable = (lengths >= LEAST_LENGTH) & np.isfinite(lengths)
    lengths[~usable] = 1.0
    units = np.where(usable, triangle, 0.0) / lengths
    # a 1×1 matrix of length 1 is ±1, its own inverse
    inverse = units if units.shape == (1, 1) else np.linalg.pinv(units, rcond=1e-12)
    return np.asarray(inverse.T / lengths)


def leverages(columns: Floats, sum_s: Floats, root: Floats, *, relative: bool) -> Floats:
    """Return each row's leverage from the values of its terms.

    With relative weights they are divided by their predicted sum. The seconds of a mixture or a
    corrected function would say how far these are from the sum, not how far a row is from samples.
    """
    with np.errstate(all="ignore"):
        weighted = columns / np.abs(sum_s)[:, None] if relative else columns
        return np.asarray((weighted @ root.T) ** 2 @ np.ones(root.shape[0]))


def dropped_terms(
    terms: Sequence[Expression],
    taken: Sequence[Expression],
    selection: SelectionSamples,
    all_params: Floats,
) -> tuple[Dropped, ...]:
    """Return the terms that are not among those taken, each with the reason.

    `all_params` are those of all samples of the event.
    """
    samples, parameters = len(selection.samples), selection.parameters

    def dropped(term: Expression) -> Dropped:
        used, name = sorted(term.parameters), str(term)
        if used and parameters.constant.issuperset(used):
            reason = ", ".join(f"p{number} {parameters.ignored[number]}" for number in used)
            return Dropped(name, reason, "constant")
        finite = np.isfinite(term.evaluate(all_params))
        if not finite.all():
            undefined = count_text(int((~finite).sum()), "sample")
            return Dropped(name, f"not finite for {undefined}", "undefined")
        if len(taken) >= samples:
            reason = f"{count_text(samples, 'sample')} cannot determine more terms"
            return Dropped(name, reason, "few lines")
        return Dropped(name, "a linear combination of the other terms", "tied")

    left_out = sorted((term for term in terms if term not in taken), key=str)
    return tuple(map(dropped, left_out))
