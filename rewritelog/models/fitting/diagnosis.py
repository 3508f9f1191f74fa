"""Diagnosis: how reliable a fit is, judged by its samples and by held-out predictions."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from rewritelog.arrays import Floats
from rewritelog.models.fitting.columns import columns_of, singular_values, unit_columns
from rewritelog.models.fitting.function import AnyFunction, FittedMixture
from rewritelog.models.fitting.intervals import coverage
from rewritelog.models.fitting.leverage import leverage_root, leverages_of
from rewritelog.models.fitting.samples import BLOCK_ROWS, Samples
from rewritelog.models.form import Count, Exact, Form, Text
from rewritelog.models.metrics import (
    explained_share,
    mean_relative_error,
    r_squared,
    rms_relative_error,
    sum_error,
)

OUTLIER_FACTOR = 2.0
"""A sample is an outlier if measured and predicted time differ by more than this factor."""

FEWEST_FOR_TOTAL = 8
"""The sum of fewer samples is no guide to the sum of other calls."""

SIZE_WEIGHT = 0.75
"""The ratio of totals weighs each sample's ratio by its predicted time to this power.

1 is the ratio of the sums, which a few long calls determine; 0 the mean of the ratios. On held-out
lines of 31 kernels 0.75 was off least (docs/fitting.md)."""

UNCERTAIN, CERTAIN = 2.0, 4.0
"""With a squared distance from 1 of less than `UNCERTAIN` variances, a ratio counts as 1, beyond
`CERTAIN` of them as it is, and between them in part. The distance of one interrupted call is about
one standard error, so that it does not count."""

MOST_RATIOS = 999
"""At most this many quantiles of the held-out ratios are kept."""


class Coefficient(Form, frozen=True):
    """One term as reports show it, with its coefficient in seconds per unit of the term."""

    term: Text
    value: Exact
    standard_error: Exact | None = None
    """None without degrees of freedom."""


class Dropped(Form, frozen=True):
    """A term or parameter whose effect the samples cannot determine, and why."""

    term: Text
    reason: Text


class Quality(
    Form,
    frozen=True,
    kw_only=True,
    rename={
        "held_out_error": "held_out_mean_relative_error",
        "held_out_rms": "held_out_rms_relative_error",
        "coverage": "interval_coverage",
        "relative": "relative_residuals",
        "dof": "degrees_of_freedom",
        "effective_sample_size": "effective_samples",
        "first_call": "first_call_ratio",
        "negative": "negative_predictions",
    },
):
    """The statistics of one fit; None for one that needs more samples."""

    r2: float | None = None
    """R², the share of the variance of the times that the fit explains."""
    held_out_r2: float | None = None
    """The same over held-out samples; an overfitted function has a high R², but not this one."""
    held_out_error: float | None = None
    """Mean of |predicted − measured| / measured over held-out samples."""
    held_out_rms: float | None = None
    """Root mean square of the same, without samples off by more than 100 %."""
    held_out_sum_error: float | None = None
    """Σ predicted / Σ measured − 1 over held-out samples but the event's first call."""
    coverage: float | None = None
    """Share of held-out samples in a 90 % interval that was made without them."""
    chi2: Exact
    """Sum of the squared relative residuals; with uniform weights of the residuals, in s²."""
    relative: bool
    """Whether `chi2` is the sum for relative residuals."""
    dof: Count
    """Degrees of freedom: number of samples − number of terms, at least 0."""
    rank: Count
    condition: Exact
    """Condition number of the weighted design matrix, its columns scaled to length 1."""
    largest_leverage: Exact
    effective_sample_size: Exact
    """Effective sample size for the sum of the times t, (Σ t)² / Σ t² (L. Kish, Survey Sampling,
    1965): this many samples of equal duration determine a sum as precisely."""
    outliers: Count = 0
    """Number of samples off by more than `OUTLIER_FACTOR`."""
    first_call: float | None = None
    """Measured / predicted time of the event's first call."""
    negative: Count = 0
    """Number of samples for which the function, without its bounds, is negative."""


@dataclass(frozen=True)
class Diagnosis:
    """The quality of a fit, and what intervals and leverages of predictions are computed from."""

    quality: Quality
    leverage_root: Floats
    ratios: Floats
    """Measured / predicted seconds of held-out samples, ascending."""
    total_ratio: float
    """Σ measured / Σ predicted of held-out samples; 1 unless it differs significantly from 1."""


def diagnose(
    function: AnyFunction, samples: Samples, validated: Samples, held_out_s: Floats | None
) -> Diagnosis:
    """Return the quality of a fit over the samples and in cross-validation.

    `held_out_s` are the seconds predicted for the samples `validated`, each by a fit without it;
    None without a cross-validation.
    """
    sums = _Sums(len(function.terms), float(np.abs(samples.seconds).max(initial=0.0)) or 1.0)
    for block in samples.blocks():
        columns, predicted_s = sums.add(function, block)
    sizes = singular_values(unit_columns(sums.triangle))
    root = leverage_root(sums.triangle)
    if len(samples) > BLOCK_ROWS:
        some = samples.random_part(BLOCK_ROWS).params
        columns, predicted_s = columns_of(function.terms, some), function.predict(some)
    unseen = UNSEEN if held_out_s is None else HeldOut.of(validated, held_out_s)
    quality = Quality(
        r2=explained_share(sums.chi2_u2, sums.variation),
        held_out_r2=unseen.r2,
        held_out_error=unseen.error,
        held_out_rms=unseen.rms,
        held_out_sum_error=unseen.sum_error,
        coverage=unseen.coverage,
        chi2=sums.chi2 if samples.relative else sums.chi2_s2,
        relative=samples.relative,
        dof=max(0, len(samples) - len(function.terms)),
        rank=int((sizes > 1e-10 * sizes.max(initial=0)).sum()),
        condition=float(sizes[0] / sizes[-1]) if len(sizes) and sizes[-1] > 0 else math.inf,
        largest_leverage=_largest_without_nan(leverages_of(columns, predicted_s, root)),
        effective_sample_size=sums.total_u**2 / sums.squares_u2 if sums.squares_u2 > 0 else 1.0,
        outliers=sums.outliers,
        first_call=sums.first_call,
        negative=sums.negative,
    )
    total_ratio = unseen.total_ratio if samples.relative else 1.0
    return Diagnosis(quality, root, unseen.ratios, total_ratio)


class _Sums:
    """Sums over the samples, accumulated block by block in one pass."""

    def __init__(self, terms: int, unit_s: float) -> None:
        self._unit_s = unit_s
        """The largest time: in units of it squares cannot overflow."""
        self.triangle = np.zeros((0, terms))
        self.chi2 = self.chi2_u2 = self.total_u = self.squares_u2 = 0.0
        self.outliers = self.negative = 0
        self.first_call: float | None = None
        self._count, self._mean, self.variation = 0, 0.0, 0.0

    def add(self, function: AnyFunction, block: Samples) -> tuple[Floats, Floats]:
        """Add a block of samples; return the values of its terms, and its predictions."""
        columns = columns_of(function.terms, block.params)
        if isinstance(function, FittedMixture):
            raw = function.raw(block.params)
        else:
            raw = function.raw(block.params, columns)
        predicted = function.bounded(raw, block.params)
        residual = block.seconds - predicted
        with np.errstate(all="ignore"):
            self.chi2 += _sum_without_nan((residual / block.sigma_s) ** 2)
            self.chi2_u2 += _sum_without_nan((residual / self._unit_s) ** 2)
            ratio = block.seconds / predicted
        far = ~((ratio <= OUTLIER_FACTOR) & (ratio >= 1 / OUTLIER_FACTOR)) & (
            block.seconds != predicted
        )
        self.outliers += int(far.sum())
        self.negative += int((raw < 0).sum())
        if block.first.any():
            first = float(ratio[block.first][0])
            self.first_call = first if math.isfinite(first) else None
        rows = columns / block.sigma_s[:, None]
        finite = np.isfinite(rows)
        if not finite.all():
            rows[~finite.all(axis=1)] = 0.0
        rows = np.vstack((self.triangle, rows)) if len(self.triangle) else rows
        self.triangle = np.asarray(np.linalg.qr(rows, mode="r"))
        units = block.seconds / self._unit_s
        self.total_u += float(units.sum())
        self.squares_u2 += float((units**2).sum())
        self._add_variation(units)
        return columns, predicted

    @property
    def chi2_s2(self) -> float:
        """Return the sum of the squared residuals in s², infinite if that overflows."""
        return float(np.float64(self.chi2_u2) * self._unit_s * self._unit_s)

    def _add_variation(self, units: Floats) -> None:
        """Add to the sum of squared distances from the mean (Chan, Golub and LeVeque 1983)."""
        count, mean = len(units), float(units.mean())
        both = self._count + count
        self.variation += float(((units - mean) ** 2).sum())
        self.variation += (mean - self._mean) ** 2 * self._count * count / both
        self._mean += (mean - self._mean) * count / both
        self._count = both


def _sum_without_nan(values: Floats) -> float:
    """Return the sum of the values that are not NaN."""
    total = float(values.sum())
    return float(np.nansum(values)) if math.isnan(total) else total


def _largest_without_nan(values: Floats) -> float:
    """Return the largest of the values that are not NaN, at least 0."""
    return float(np.fmax.reduce(values, initial=0.0))


@dataclass(frozen=True)
class HeldOut:
    """The statistics of held-out predictions; see `Quality` and `Diagnosis` for the fields."""

    r2: float | None
    error: float | None
    rms: float | None
    sum_error: float | None
    coverage: float | None
    total_ratio: float
    ratios: Floats

    @classmethod
    def of(cls, samples: Samples, predicted: Floats) -> HeldOut:
        """Compare the times of the samples with the seconds predicted for them."""
        measured = samples.seconds
        with np.errstate(all="ignore"):
            ratios = measured / predicted
        later = ~samples.first & np.isfinite(predicted)
        return cls(
            r2=r_squared(predicted, measured),
            error=mean_relative_error(predicted, measured),
            rms=rms_relative_error(predicted, measured, most=1.0),
            sum_error=sum_error(predicted[later], measured[later]),
            coverage=coverage(ratios),
            total_ratio=_total_ratio(measured[later], predicted[later]),
            ratios=_thinned(np.sort(ratios[np.isfinite(ratios)])),
        )


UNSEEN = HeldOut(None, None, None, None, None, 1.0, np.zeros(0))
"""The result with too few samples to hold any out."""


def _total_ratio(measured: Floats, predicted: Floats) -> float:
    """Return the factor that corrects sums of predictions, drawn towards 1 if it is uncertain.

    Its standard error is that of a weighted mean of ratios (W. Cochran, Sampling Techniques, 1977,
    6.5); the shrinkage is firm (H.-Y. Gao and A. Bruce, Statistica Sinica 7, 1997).
    """
    known = predicted > 0
    measured, predicted = measured[known], predicted[known]
    count = len(measured)
    if count < FEWEST_FOR_TOTAL:
        return 1.0
    ratios, weights = measured / predicted, predicted**SIZE_WEIGHT
    weights /= weights.sum()
    ratio = float(weights @ ratios)
    variance = float((weights**2) @ (ratios - ratio) ** 2) * count / (count - 1)
    if not ratio > 0 or not math.isfinite(variance):
        return 1.0
    variances = (ratio - 1) ** 2 / variance if variance > 0 else math.inf
    share = min(1.0, max(0.0, (variances - UNCERTAIN) / (CERTAIN - UNCERTAIN)))
    return 1 + share * (ratio - 1)


def _thinned(ascending: Floats) -> Floats:
    """Return the values, or `MOST_RATIOS` quantiles of more of them."""
    if len(ascending) <= MOST_RATIOS:
        return ascending
    levels = (np.arange(MOST_RATIOS) + 0.5) / MOST_RATIOS
    return np.quantile(ascending, levels)
