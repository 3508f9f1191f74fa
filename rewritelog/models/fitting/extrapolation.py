"""Extrapolation: predictions beyond the range of the samples.

A function that is best within the range may explode beyond it: a high power of a parameter that
hardly matters there explains some noise, and no sample contradicts its growth. Each family is
therefore also tested in a trial: fitted to the samples with small values of a parameter, and tested
on those with large ones. Beyond the range, predictions start from the value at its edge and grow as
the families do that were good both in the trial and in cross-validation. Of two equally good
families the one that grows less has more weight.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rewritelog.arrays import Floats, Ints
from rewritelog.models.expressions import Expression
from rewritelog.models.fitting import tuning
from rewritelog.models.fitting.cross_validation import (
    CrossValidation,
    fit_family,
    map_trials,
    solve_families,
    takes_long,
)
from rewritelog.models.fitting.design import SelectionSamples, corners_of, slopes_between
from rewritelog.models.fitting.families import Family
from rewritelog.models.fitting.function import AnyFunction, Formula, growth_between
from rewritelog.models.fitting.intervals import widening_rate
from rewritelog.models.fitting.samples import Samples
from rewritelog.models.form import Form
from rewritelog.progress import report_progress

LEAST_S = 1e-300
"""The least time, and range of a parameter, of which logarithms and quotients are taken."""

ROUNDING = 1e-6
"""Logarithms of weights that differ by less may be equal but for rounding."""

LEAST_ERROR = 1e-6
"""Smaller errors count as this."""


class Growth(Form, frozen=True):
    """How a fit is extrapolated beyond the range of the samples."""

    function: Formula | None = None
    """The function whose growth from the edge of the range is used; None for the fit's own."""
    error: float | None = None
    """How fast intervals widen with the `distance`, from the trial (`widening_rate`); None without
    one."""
    least_s: float = 0.0
    """Least prediction beyond the range, but for rows with parameters below it, in proportion."""
    most_s: float | None = None
    """The longest measured time; None for no upper bound. The upper bound of a prediction is the
    larger of this time and the value at the edge, times p/highest for each parameter beyond its
    range, to the local power of the function at the edge, at least 1."""

    def predict(
        self, inner: AnyFunction, params: Floats, lowest: Floats, highest: Floats
    ) -> Floats:
        """Return the seconds of rows beyond the range."""
        with np.errstate(all="ignore"):
            return self._predict(inner, params, lowest, highest)

    def _predict(
        self, inner: AnyFunction, params: Floats, lowest: Floats, highest: Floats
    ) -> Floats:
        edge = np.clip(params, lowest, highest)
        at_edge = inner.predict(edge)
        smaller = _shortfall(params, lowest)
        rows = _without_zeros(params, lowest)
        if self.function is None:
            seconds = inner.predict(rows)
        else:
            seconds = at_edge * growth_between(self.function, edge, rows)
        usable = np.isfinite(seconds) & (seconds > 0)
        known = np.where(usable, seconds, at_edge * np.maximum(smaller, tuning.LEAST_SHARE_OF_TIME))
        if self.most_s is not None:
            function = inner if self.function is None else self.function
            limit = np.fmax(at_edge, self.most_s) * _largest_growth(function, params, edge, highest)
            known = np.fmin(known, limit)
        known = np.maximum(known, self.least_s * smaller)
        return np.where(np.isnan(params).any(axis=1), np.nan, known)


def _without_zeros(params: Floats, lowest: Floats) -> Floats:
    """Return the rows with 0, where all samples are above it, as the half of the least or near 1.

    A power of 0 is 0 or infinite, however little the parameter matters.
    """
    least = lowest / (1 + np.maximum(lowest, 1.0))
    return np.where((lowest > 0) & (params <= 0), least, params)


def _shortfall(params: Floats, lowest: Floats) -> Floats:
    """Return Π (1 + p)/(1 + lowest) over the parameters below their range: 1 without any.

    That is how much less work there may be; unlike p/lowest it is above 0 for a p of 0.
    """
    below = (lowest > 0) & (params < lowest)
    shares = (1 + np.maximum(params, 0.0)) / (1 + np.maximum(lowest, 0.0))
    return np.asarray(np.where(below, shares, 1.0).prod(axis=1))


def _largest_growth(function: AnyFunction, params: Floats, edge: Floats, highest: Floats) -> Floats:
    """Return the largest factor by which each row may exceed the times within the range.

    A function that grows with the power s of a parameter at the edge of the range may go on doing
    so; a steeper term that hardly contributes there must not take over.
    """
    factor = np.ones(len(params))
    for column in range(params.shape[1]):
        rows = np.flatnonzero((params[:, column] > highest[column]) & (highest[column] > 0))
        if not len(rows):
            continue
        inside = edge[rows].copy()
        inside[:, column] *= tuning.WITHIN
        growth = growth_between(function, inside, edge[rows])
        power = np.fmax(np.log(growth) / -math.log(tuning.WITHIN), 1.0)
        further = (params[rows, column] / highest[column]) ** power
        if highest[column] <= tuning.DEEPEST:
            rate = np.fmax(np.log(growth), 0.0) / (1 - tuning.WITHIN)
            further = np.fmax(further, np.exp(rate * (params[rows, column] / highest[column] - 1)))
        factor[rows] *= further
    return factor


def distance(params: Floats, lowest: Floats, highest: Floats) -> Floats:
    """Return how far each row lies beyond the range: Σ log(1 + |p − bound|/|bound|).

    It is 0 within the range, and log 2 for one parameter at twice its largest value.
    """
    edge = np.clip(params, lowest, highest)
    unit = np.where(edge != 0, np.abs(edge), np.maximum(highest - lowest, LEAST_S))
    return np.asarray(np.log1p(np.abs(params - edge) / unit).sum(axis=1))


def growth_of(
    own: Mapping[str, float],
    families: Mapping[str, Family],
    selection: SelectionSamples,
    validation: CrossValidation,
    held_out_s: Floats | None,
) -> Growth:
    """Return how to extrapolate, from trials on the samples with large parameters.

    `own` are the weights of the families that were selected for predictions within the range, and
    `held_out_s` the seconds that they predict, corrected or not, for held-out samples.
    """
    samples = selection.samples
    positive = samples.seconds[samples.seconds > 0]
    least_s = tuning.LEAST_SHARE_OF_TIME * float(positive.min()) if len(positive) else 0.0
    most_s = float(positive.max()) if len(positive) else None
    trials = [_Trial.of(selection, below, above) for below, above in _trial_splits(selection)]
    if not trials:
        weights = _weights_without_trial(own, families, selection, validation)
        function = None if weights == own else solve_families(weights, families, selection)
        return Growth(function, None, least_s, most_s)
    report_progress("extrapolation")
    weighing = _Weighing(own, families, selection, validation)
    logs = _logs_in_trials(trials, weighing)
    distances = np.concatenate([trial.distances for trial in trials])
    weights = weighing.weights({name: _trial_error(of_family) for name, of_family in logs.items()})
    residual = np.asarray(sum(weight * logs[name] for name, weight in weights.items()))
    error = widening_rate(_ratios(validation.samples, held_out_s), np.exp(-residual), distances)
    function = None if weights == own else solve_families(weights, families, selection)
    return Growth(function, error, least_s, most_s)


def _ratios(samples: Samples, held_out_s: Floats | None) -> Floats:
    """Return measured over predicted time of the held-out samples, ascending."""
    if held_out_s is None:
        return np.zeros(0)
    with np.errstate(all="ignore"):
        ratios = samples.seconds / held_out_s
    return np.sort(ratios[np.isfinite(ratios)])


@dataclass(frozen=True)
class _Trial:
    """A trial extrapolation, from the samples with small values of a parameter to the others."""

    training: SelectionSamples
    """The samples with small values, to which families are fitted."""
    params: Floats
    """Parameters of the other samples, shape (others, parameters)."""
    sigma_s: Floats
    """Scales of the other samples, shape (others,)."""

    @classmethod
    def of(cls, selection: SelectionSamples, below: Ints, above: Ints) -> _Trial:
        """Divide the samples by row."""
        others = selection.samples
        return cls(selection.part(below), others.params[above], others.sigma_s[above])

    @property
    def distances(self) -> Floats:
        """How far the others lie beyond the samples with small values, shape (others,)."""
        return distance(self.params, *self.training.samples.range)

    def logs(self, family: Family) -> Floats:
        """Return log predicted / measured time of the others, shape (others,)."""
        fitted = fit_family(family, self.training)
        grown = Growth(None, None, LEAST_S).predict(
            fitted, self.params, *self.training.samples.range
        )
        return np.asarray(np.log(np.maximum(grown, LEAST_S) / self.sigma_s))


def _logs_in_trials(trials: Sequence[_Trial], weighing: _Weighing) -> dict[str, Floats]:
    """Return log predicted / measured time by family, those of all trials in one array.

    Trials that take long run at once. Else families are tried in turn, and those whose errors in
    the first trial alone rule out any weight are left out.
    """
    families, selection = weighing.families, weighing.selection
    if takes_long(families, selection):
        by_trial = [
            *map_trials(
                lambda trial: {name: trial.logs(family) for name, family in families.items()},
                trials,
                families,
                selection,
            )
        ]
        return {name: np.concatenate([logs[name] for logs in by_trial]) for name in families}
    first, others = trials[0], trials[1:]
    in_first = {name: first.logs(family) for name, family in families.items()}
    count = sum(len(trial.params) for trial in trials)
    most = {
        name: weighing.before_slopes(name, _trial_error(logs, count))
        for name, logs in in_first.items()
    }
    all_logs: dict[str, Floats] = {}
    least = -math.inf
    for name in sorted(most, key=lambda name: -most[name]):
        if most[name] < least - ROUNDING:
            continue
        further = [trial.logs(families[name]) for trial in others]
        all_logs[name] = np.concatenate([in_first[name], *further])
        before = weighing.before_slopes(name, _trial_error(all_logs[name]))
        least = max(least, weighing.after_slopes(name, before) + math.log(tuning.LEAST_PART))
    return {name: all_logs[name] for name in families if name in all_logs}


def _trial_error(logs: Floats, count: int | None = None) -> float:
    """Return the error of a family in the trial, as a difference of logarithms.

    It is the power mean of the errors with exponent ½: a few interrupted calls, which every family
    misses, hide less than in the mean which of them is right about the others. Of `count` errors,
    those that are not among `logs` count as 0.
    """
    roots = np.sqrt(np.minimum(np.abs(logs), tuning.LARGEST_LOG_ERROR))
    return float((roots.sum() / (count or len(roots))) ** 2)


def _weights_without_trial(
    own: Mapping[str, float],
    families: Mapping[str, Family],
    selection: SelectionSamples,
    validation: CrossValidation,
) -> Mapping[str, float]:
    """Return the weights where no trial was possible: the best prior knowledge gets some of it.

    That is the family with the largest prior weight. With enough samples for a trial, or an exact
    fit, the weights remain as they are.
    """
    likeliest = max(families, key=lambda name: families[name].prior_weight)
    if families[likeliest].prior_weight <= 1 or len(selection.samples) >= tuning.FEWEST_FOR_TRIAL:
        return own
    held_out_s = validation.predicted_by(own)
    if held_out_s is not None:
        errors = np.abs(held_out_s / selection.samples.sigma_s - 1)
        if float(errors.mean()) < tuning.EXACT_FIT:
            return own
    weights = {name: weight * (1 - tuning.UNTRIED_WEIGHT) for name, weight in own.items()}
    return weights | {likeliest: weights.get(likeliest, 0.0) + tuning.UNTRIED_WEIGHT}


@dataclass(frozen=True)
class _Weighing:
    """How families are weighed for the growth beyond the range."""

    own: Mapping[str, float]
    """The weights of the families that were selected for predictions within the range."""
    families: Mapping[str, Family]
    selection: SelectionSamples
    validation: CrossValidation

    def before_slopes(self, name: str, error: float) -> float:
        """Return a family's logarithmic weight by its errors, here in the trial, and its prior."""
        held_out = max(self.validation.predictions[name].mean_error, LEAST_ERROR)
        by_errors = -tuning.POWER_OF_ERRORS * math.log(max(error, LEAST_ERROR) * held_out)
        return by_errors + math.log1p((tuning.PRIOR_WEIGHT_OF_OWN - 1) * self.own.get(name, 0.0))

    def after_slopes(self, name: str, before: float) -> float:
        """Return a weight less the sum of the squares of the family's slopes beyond the range."""
        fitted = fit_family(self.families[name], self.selection)
        slopes = slopes_between(fitted.predict(corners_of(self.selection.parameters))[None])
        return before - float((slopes**2).sum())

    def weights(self, trial: Mapping[str, float]) -> Mapping[str, float]:
        """Return the weights of families, given their errors in the trial.

        Families that choose the same terms are one, with the mean of their weights.
        """
        before = {name: self.before_slopes(name, error) for name, error in trial.items()}
        logs: dict[str, list[float]] = {}
        first: dict[frozenset[Expression], str] = {}
        least = -math.inf
        for name in sorted(before, key=lambda name: (-before[name], name not in self.own)):
            if before[name] < least:
                break
            log = self.after_slopes(name, before[name])
            terms = frozenset(fit_family(self.families[name], self.selection).terms)
            logs.setdefault(first.setdefault(terms, name), []).append(log)
            least = max(least, log + math.log(tuning.LEAST_PART))
        largest = max(log for family_logs in logs.values() for log in family_logs)
        weights = {
            name: float(np.exp(np.array(family_logs) - largest).mean())
            for name, family_logs in logs.items()
        }
        enough = tuning.LEAST_PART * max(weights.values())
        total = sum(weight for weight in weights.values() if weight >= enough)
        falling = sorted(weights, key=lambda name: -weights[name])
        return {name: weights[name] / total for name in falling if weights[name] >= enough}


def _trial_splits(selection: SelectionSamples) -> Iterator[tuple[Ints, Ints]]:
    """Yield the rows of samples with small and with large values of each parameter for a trial."""
    samples = selection.samples
    count = len(samples)
    if count < tuning.FEWEST_FOR_TRIAL:
        return
    correlations = samples.rank_correlations(selection.parameters.used)
    strongest = sorted(correlations, key=lambda number: -correlations[number])
    for number in strongest[: tuning.MOST_TRIALS]:
        if correlations[number] >= tuning.LEAST_CORRELATION:
            order = np.argsort(samples.params[:, number - 1], kind="stable")
            yield (
                np.sort(order[: int(tuning.LARGE_FROM * count)]),
                np.sort(order[int(tuning.LARGE_FROM * count) :]),
            )
