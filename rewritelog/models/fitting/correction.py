"""The correction of a formula: a factor for what it does not explain, smooth or with steps.

T = formula(p) · exp(c(p)), c being the mean of a Gaussian process over the parameters and the
formula's seconds: caches and waves depend on size as such. The process is given the logarithms of
measured over predicted times: universal kriging with the formula as its trend (Rasmussen and
Williams, Gaussian Processes for Machine Learning, 2006, 2.7). Far from the samples c is 0, and the
formula alone predicts. Several formulas are corrected, and the mean of all predicts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Literal, TypeAlias

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from rewritelog.arrays import Flags, Floats, Ints
from rewritelog.core import DistinctPoints
from rewritelog.models.fitting import tuning
from rewritelog.models.fitting.function import (
    CorrectedFormula,
    CorrectedFunction,
    FittedFunction,
    mean_of_corrected,
    with_seconds,
)
from rewritelog.models.fitting.process import (
    DIVISORS,
    FIRST_LEARNT_FROM,
    LAST_STEP,
    MOST_POINTS,
    SIZES,
    STEPS_FROM_SIMILAR,
    TRIED_POINTS,
    Correction,
    CovarianceFunction,
    Divisor,
    Inputs,
    Process,
    conditioned,
    learn,
)
from rewritelog.models.fitting.regression import robust_deviation
from rewritelog.models.fitting.samples import Samples, random_rows
from rewritelog.models.fitting.validation import (
    CrossValidation,
    HeldOutPredictions,
    fit_family,
    shares_of,
    weights_by_error,
)
from rewritelog.models.fitting.waves import Waves, find_waves, within_reach
from rewritelog.models.parallel import map_in_processes
from rewritelog.progress import report_progress

UseCorrection: TypeAlias = Literal["auto", "none"]

SHORT_FORMULAS = ("short sum", "sum of power laws", "power law")
"""The families of short formulas that are corrected, beside the one selected; the last one with at
most `MOST_POINTS` samples, since trying it takes time with more."""


class Prior(Struct, frozen=True):
    """A Gaussian process before it is given residuals: which rows have similar ones."""

    inputs: Inputs
    covariance: CovarianceFunction

    @classmethod
    def learnt(
        cls,
        params: Floats,
        logs: Floats,
        similar: Prior | None = None,
        waves: Waves | None = None,
        divisors: Sequence[Divisor] = (),
    ) -> Prior:
        """Return the prior that makes these residuals most probable.

        `params` are parameters and the formula's seconds (`with_seconds`), `logs` the logarithms of
        measured over predicted times, shape (samples,); at least one parameter varies. The search
        begins at that of residuals of another formula, `similar`, if it has the same inputs, among
        them those of `waves` and `divisors`.
        """
        inputs = Inputs.of(params, waves, divisors)
        if similar is not None and similar.inputs.kinds == inputs.kinds:
            return cls(inputs, similar.covariance).adapted(params, logs)
        points = inputs.columns(params)
        limited = limited_by_neighbours(inputs, points, logs)
        few = _have_few_values(inputs, params)
        covariance, cost = learn(points, limited, np.zeros_like(few))
        codes = few & _are_unlike_neighbours(covariance, points)
        if codes.any():
            covariance, cost = learn(points, limited, codes, covariance)
        if few.any() and (codes != few).any():
            as_codes, cost_of_codes = learn(points, limited, few)
            if cost_of_codes < cost - tuning.CLEARLY_CODES:
                covariance = as_codes
        return cls(inputs, covariance)

    def adapted(self, params: Floats, logs: Floats) -> Prior:
        """Return the prior that a short search from this one finds for other residuals."""
        points, start = self.inputs.columns(params), self.covariance
        limited = limited_by_neighbours(self.inputs, points, logs)
        covariance, _ = learn(points, limited, start.codes, start, steps=STEPS_FROM_SIMILAR)
        return Prior(self.inputs, covariance)

    def refined(self, params: Floats, limited: Floats) -> Prior:
        """Return the prior learnt from all of these samples, without idle parts and inputs."""
        points, start = self.inputs.columns(params), self.covariance
        covariance, _ = learn(
            points, limited, start.codes, start, len(points), least_step=LAST_STEP
        )
        lengths = np.minimum(covariance.smooth_lengths, covariance.rough_lengths)
        used = np.flatnonzero(lengths <= max(tuning.LONGEST, float(lengths.min())))
        faint = "rough" if covariance.rough < covariance.smooth else "smooth"
        if getattr(covariance, faint) < tuning.FAINT * covariance.noise:
            covariance = replace(covariance, **{faint: 0.0})
        return Prior(self.inputs.part(used), covariance.part(used))

    def conditioned(
        self, params: Floats, *logs: Floats
    ) -> Iterator[tuple[Process, Floats, Floats]]:
        """Yield the process for each of several formulas' residuals at some samples.

        With it come, for each sample, the logarithm of the factor that a process without the
        samples of its point has there, and the residual as it counts (`process.conditioned`).
        """
        points, distinct = self.inputs.columns(params), DistinctPoints.of_rows(params)
        for weights, without, limited in conditioned(self.covariance, points, distinct, *logs):
            yield Process(self.inputs, self.covariance, weights), without, limited


class CorrectedFit(Struct, frozen=True):
    """A family whose formula is corrected, and what is known about it."""

    family: str
    prior: Prior
    """What makes the process that is given the residuals."""
    held_out: HeldOutPredictions
    """The predictions of formula and correction together."""


class CorrectedMean(Struct, frozen=True):
    """The weighted geometric mean of corrected fits.

    Corrections learn much the same from the samples, but err differently: their mean errs less.
    """

    fits: tuple[CorrectedFit, ...]
    """The one with the formula to be read comes first."""
    weights: tuple[float, ...]
    held_out: HeldOutPredictions
    samples: Samples
    """The samples that the corrections interpolate between."""

    @classmethod
    def of(cls, fits: Iterable[CorrectedFit], rows: Ints, samples: Samples) -> CorrectedMean:
        """Return the mean of those that predict held-out samples nearly as well as the best."""
        in_order = sorted(fits, key=_error_with_length)
        by_family = {fit.family: fit for fit in in_order}
        errors = {name: fit.held_out.mean_error for name, fit in by_family.items()}
        shares = shares_of(weights_by_error(errors))
        kept = tuple(fit for fit in in_order if fit.family in shares)
        weights = tuple(shares[fit.family] for fit in kept)
        predicted_s = mean_of_corrected([fit.held_out.predicted_s for fit in kept], weights)
        held_out = HeldOutPredictions.compared(predicted_s, samples)
        return cls(kept, weights, held_out, samples.part(rows))

    @property
    def family(self) -> str:
        """The family of the formula to be read."""
        return self.fits[0].family

    def with_formulas(self, formula_of: Callable[[str], FittedFunction]) -> CorrectedFunction:
        """Return the formulas of the families, each corrected by its residuals at `samples`."""
        members = (self._corrected(formula_of(fit.family), fit.prior) for fit in self.fits)
        return CorrectedFunction(tuple(members), self.weights, self.samples.params)

    def _corrected(self, formula: FittedFunction, prior: Prior) -> CorrectedFormula:
        params = self.samples.params
        unbounded_s = formula.unbounded(params)
        logs = _residuals(self.samples.seconds, formula.bounded(unbounded_s))
        ((process, _, _),) = prior.conditioned(with_seconds(params, unbounded_s), logs)
        return CorrectedFormula(formula, Correction.of(logs, process))


def choose_correction(
    selected: str, plain_s: Floats, validation: CrossValidation
) -> CorrectedMean | None:
    """Return the corrected fits whose mean predicts held-out samples clearly better than `plain_s`.

    None if there are none. `selected` is the family whose formula predicts them best without a
    correction, or that with the largest weight in a mixture; `plain_s` is what it, or the mixture,
    predicts of them.
    """
    samples = validation.selection.samples
    if samples.effective_count < tuning.FEWEST_CORRECTED or not (samples.seconds > 0).all():
        return None
    plain = HeldOutPredictions.compared(plain_s, samples)
    if plain.mean_error < tuning.GOOD_ENOUGH:
        return None
    few, many = (random_rows(len(samples), most) for most in (TRIED_POINTS, MOST_POINTS))
    if not Inputs.of(samples.params[few]).kinds:
        return None  # no parameter varies
    short = SHORT_FORMULAS if len(samples) <= MOST_POINTS else SHORT_FORMULAS[:-1]
    names = [name for name in dict.fromkeys((*short, selected)) if name in validation.families]
    tried = _with_waves([*_trials(names, few, validation)], few, many, validation)
    tried = _with_divisors(tried, few, many, validation)
    least = min(fit.held_out.mean_error for fit in tried)
    most = tuning.MOST_TRIED if len(many) == len(few) else tuning.MOST_TRIED_WITH_FEWER
    if least > min(most * plain.mean_error, tuning.TOO_POOR):
        return None
    near = [fit for fit in tried if fit.held_out.mean_error <= tuning.WORTH_REFINING * least]
    takes_long = len(many) > FIRST_LEARNT_FROM
    refine = partial(_refined, rows=many, validation=validation)
    mean = CorrectedMean.of(map_in_processes(refine, near, takes_long=takes_long), many, samples)
    free = max(1.0, len(validation.selection.parameters.used) / tuning.LENGTHS_LIKE_ONE)
    least_gain = max(tuning.LEAST_GAIN_CORRECTED, math.sqrt(free / samples.effective_count))
    if not mean.held_out.clearly_better(plain, least_gain):
        return None
    adapted = mean
    if len(many) <= TRIED_POINTS:
        adapt = partial(_adapted, rows=many, validation=validation)
        fits = map_in_processes(adapt, mean.fits, takes_long=takes_long)
        adapted = CorrectedMean.of(fits, many, samples)
    # without noise, lengths learnt from some of the steps may predict the others badly
    return adapted if adapted.held_out.mean_error < plain.mean_error else mean


def _trials(
    families: Sequence[str],
    rows: Ints,
    validation: CrossValidation,
    waves: Waves | None = None,
    divisors: Sequence[Divisor] = (),
) -> Iterator[CorrectedFit]:
    """Yield the families' formulas, each with a correction learnt from these samples."""
    first = None
    for number, family in enumerate(families):
        if waves is None and not divisors:
            report_progress("corrections", number, len(families) + 1)
        table, logs = _table_and_residuals(family, rows, validation)
        prior = Prior.learnt(table[rows], logs, first, waves, divisors)
        first = first or prior
        yield _corrected(family, table, prior, rows, validation)
    report_progress("corrections", len(families), len(families) + 1)


def _with_waves(
    tried: list[CorrectedFit], few: Ints, many: Ints, validation: CrossValidation
) -> list[CorrectedFit]:
    """Return the trials with the waves that their residuals show as an input, if these are better.

    What waves are is learnt from the samples `many`, corrections from `few`.
    """
    selection = validation.selection
    logs = _left_by_best(tried, many, selection.samples)
    waves = find_waves(selection.samples.params[many], logs, selection.most_correlated())
    if waves is None:
        return tried
    in_waves = _trials([fit.family for fit in tried], few, validation, waves)
    return _better(tried, in_waves, selection.samples)


def _with_divisors(
    tried: list[CorrectedFit], few: Ints, many: Ints, validation: CrossValidation
) -> list[CorrectedFit]:
    """Return the trials with the divisors that residuals depend on as inputs, if these are better.

    Whether they do is learnt from the samples `many`, corrections from `few`.
    """
    samples, waves = validation.selection.samples, tried[0].prior.inputs.waves
    inputs = Inputs.of(samples.params[many], divisors=DIVISORS)
    columns, taken = inputs.columns(samples.params[many]), list[Divisor]()
    for divisor in DIVISORS:
        limited = within_reach(_left_by_best(tried, many, samples))
        deviation = float(limited.std()) or 1.0
        of_divisor = columns[:, np.array(inputs.kinds) == divisor]
        significance = limited @ of_divisor / (deviation * math.sqrt(len(limited)))
        if (np.abs(significance) > tuning.CLEAR_INPUT).any():
            families, divisors = [fit.family for fit in tried], [*taken, divisor]
            trials = _better(tried, _trials(families, few, validation, waves, divisors), samples)
            if trials is not tried:
                tried, taken = trials, divisors
    return tried


def _left_by_best(tried: Sequence[CorrectedFit], rows: Ints, samples: Samples) -> Floats:
    """Return the residuals of the best trial at these rows."""
    best = min((fit.held_out for fit in tried), key=lambda held_out: held_out.mean_error)
    return _residuals(samples.seconds[rows], best.predicted_s[rows])


def _better(
    tried: list[CorrectedFit], trials: Iterator[CorrectedFit], samples: Samples
) -> list[CorrectedFit]:
    """Return the trials with further inputs if the first is clearly better, else those tried."""
    by_chance = tuning.GAIN_BY_CHANCE / math.sqrt(samples.effective_count)
    least = min(fit.held_out.mean_error for fit in tried)
    first = next(trials)
    clearly_less = (1 - max(tuning.LEAST_GAIN_OF_INPUTS, by_chance)) * least
    return [first, *trials] if first.held_out.mean_error <= clearly_less else tried


def _refined(fit: CorrectedFit, rows: Ints, validation: CrossValidation) -> CorrectedFit:
    """Return the fit with its correction learnt from all of these samples."""
    table, logs = _table_and_residuals(fit.family, rows, validation)
    ((_, _, limited),) = fit.prior.conditioned(table[rows], logs)
    refined = fit.prior.refined(table[rows], limited)
    return _corrected(fit.family, table, refined, rows, validation)


def _adapted(fit: CorrectedFit, rows: Ints, validation: CrossValidation) -> CorrectedFit:
    """Return the fit with held-out predictions by lengths that are learnt without the fold.

    Few samples are predicted too well by lengths that were learnt from them.
    """
    table, _ = _table_and_residuals(fit.family, rows, validation)
    return _corrected(fit.family, table, fit.prior, rows, validation, adapts=True)


def _error_with_length(fit: CorrectedFit) -> float:
    """Return the held-out error, enlarged for a formula that is not short."""
    is_short = fit.family in SHORT_FORMULAS
    return fit.held_out.mean_error * (1.0 if is_short else tuning.NEARLY_AS_GOOD_CORRECTED)


def _table_and_residuals(
    family: str, rows: Ints, validation: CrossValidation
) -> tuple[Floats, Floats]:
    """Return the table of all samples (`with_seconds`), and a formula's residuals at these rows."""
    samples = validation.selection.samples
    formula = fit_family(validation.families[family], validation.selection)
    unbounded_s = formula.unbounded(samples.params)
    return (
        with_seconds(samples.params, unbounded_s),
        _residuals(samples.seconds[rows], formula.bounded(unbounded_s[rows])),
    )


def _corrected(
    family: str,
    table: Floats,
    prior: Prior,
    rows: Ints,
    validation: CrossValidation,
    *,
    adapts: bool = False,
) -> CorrectedFit:
    """Return a corrected fit with a held-out prediction of each sample.

    The sample's fold is left out of the fit of the formula. A correction interpolates between the
    residuals of that fit at these `rows`, without those at the sample's point. If the prior
    `adapts`, it does to the residuals of the other folds alone. `table` has the parameters and
    seconds (`with_seconds`) of all samples.
    """
    samples = validation.selection.samples
    formulas_s, known = validation.predicted_by_fold_s[family], table[rows]
    logs = [_residuals(samples.seconds[rows], formula_s[rows]) for formula_s in formulas_s]
    predicted_s, numbers = np.empty(len(samples)), samples.points.point_of_row
    is_known = np.zeros(len(samples.points), dtype=np.bool_)
    is_known[numbers[rows]] = True
    by_fold: Iterable[tuple[Process, Floats, Floats]]
    if adapts:
        seen = [validation.folds[rows] != fold for fold in range(len(logs))]
        by_fold = chain.from_iterable(
            prior.adapted(known[of], of_fold[of]).conditioned(known, of_fold)
            for of, of_fold in zip(seen, logs, strict=True)
        )
    else:
        by_fold = prior.conditioned(known, *logs)
    for fold, (process, without, _) in enumerate(by_fold):
        unseen = validation.folds == fold
        others = unseen & ~is_known[numbers]
        points, correction = process.inputs.columns(known), Correction.of(logs[fold], process)
        of_points = np.ones(len(is_known))
        of_points[numbers[rows]] = np.exp(without.clip(-correction.most, correction.most))
        factors = of_points[numbers]
        factors[others] = correction.factors(table[others], points)
        predicted_s[unseen] = (formulas_s[fold] * factors)[unseen]
    held_out = HeldOutPredictions.compared(predicted_s, samples)
    return CorrectedFit(family, prior, held_out)


def _residuals(seconds: Floats, predicted_s: Floats) -> Floats:
    """Return the logarithms of measured over predicted times; 0 where there is none."""
    with np.errstate(all="ignore"):
        logs = np.log(seconds / predicted_s)
    return np.where(np.isfinite(logs), logs, 0.0)


def limited_by_neighbours(inputs: Inputs, points: Floats, logs: Floats) -> Floats:
    """Return the residuals, limited where they are unlike those of the samples nearest by size.

    What most needs a correction, such as sizes that a cache does not hold, may concern few samples;
    but if it is more than a disturbed measurement, it concerns neighbours.
    """
    from scipy.spatial import KDTree  # noqa: PLC0415 - heavy

    are_sizes = [kind in SIZES for kind in inputs.kinds]
    sizes = points[:, are_sizes] if any(are_sizes) else points
    _, nearest = KDTree(sizes).query(sizes, min(tuning.NEIGHBOURS, len(sizes)))
    middles = np.median(logs[nearest], axis=1)
    apart = logs - middles
    reach = max(tuning.LARGEST_RESIDUAL * robust_deviation(apart, 0.0), tuning.LEAST_LIMIT)
    return np.asarray(middles + apart.clip(-tuning.SHORTER * reach, reach))


def _have_few_values(inputs: Inputs, params: Floats) -> Flags:
    """Return which inputs are sizes of parameters with few values, which may be codes."""
    distinct = [len(np.unique(params[:, number - 1])) for number in inputs.parameters]
    few = [3 <= count <= tuning.MOST_VALUES for count in distinct]
    return np.array(few) & [kind in ("log", "arsinh") for kind in inputs.kinds]


def _are_unlike_neighbours(covariance: CovarianceFunction, points: Floats) -> Flags:
    """Return in which inputs each value is unlike even its neighbours in order."""
    gaps = [np.diff(np.unique(column)).min() for column in points.T]
    return np.asarray(covariance.smooth_lengths < gaps)
