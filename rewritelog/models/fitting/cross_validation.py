"""Choosing a family by cross-validation: each is fitted to some samples and tested on the rest."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TypeVar

import numpy as np

from rewritelog.arrays import Floats, Ints
from rewritelog.hashing import sequence
from rewritelog.models.expressions import Expression
from rewritelog.models.fitting import tuning
from rewritelog.models.fitting.calibration import calibrate
from rewritelog.models.fitting.design import SelectionSamples
from rewritelog.models.fitting.families import Family
from rewritelog.models.fitting.function import (
    FittedFunction,
    Formula,
    geometric_mean,
    mixture_of,
    prediction_bounds,
)
from rewritelog.models.fitting.regression import Loss
from rewritelog.models.fitting.samples import Samples
from rewritelog.models.fitting.solving import solve
from rewritelog.models.parallel import map_in_processes
from rewritelog.progress import report_progress

Item = TypeVar("Item")
Result = TypeVar("Result")


LARGE_TRIAL = 8192
"""A trial of families with this product of their number and that of the samples takes longer than
to start a process: `auto` has nine or so, other models have one."""

ROUNDING = 1e-12
"""Smaller differences of errors come from rounding."""


@dataclass(frozen=True)
class HeldOutPredictions:
    """A family's predictions of samples that it was not fitted to."""

    predicted_s: Floats
    """Shape (samples,)."""
    errors: Floats
    """|predicted − measured| in units of each sample's scale, at most `LARGEST_ERROR`."""

    @property
    def mean_error(self) -> float:
        """Return the mean error."""
        return float(self.errors.mean())

    def clearly_better(
        self, other: HeldOutPredictions, standard_errors: float, least_gain: float
    ) -> bool:
        """Return whether the mean error is lower than that of other predictions of these samples.

        It has to be lower by so many standard errors of the difference, and by a share
        `least_gain` of the other error.
        """
        gain = other.errors - self.errors
        least = standard_errors * float(gain.std()) / math.sqrt(len(gain))
        return float(gain.mean()) > max(least, least_gain * other.mean_error) + ROUNDING


@dataclass(frozen=True)
class CrossValidation:
    """The held-out predictions of each family."""

    samples: Samples
    predictions: Mapping[str, HeldOutPredictions]
    """By family, in the order of the families; empty with too few samples."""
    folds: Ints
    """The fold of each sample."""
    predicted_by_fold_s: Mapping[str, Floats]
    """By family, what its fit without each fold predicts of all samples; (folds, samples)."""

    def predicted_by(self, weights: Mapping[str, float]) -> Floats | None:
        """Return a mixture's held-out predictions in seconds; None where there are none."""
        if not self.predictions:
            return None
        if len(weights) == 1:
            return self.predictions[next(iter(weights))].predicted_s
        seconds = [self.predictions[name].predicted_s for name in weights]
        return np.nan_to_num(geometric_mean(seconds, list(weights.values())), nan=0.0)


NOT_VALIDATED = CrossValidation(
    Samples.weighted(np.zeros((0, 0)), np.zeros(0), weighting="relative"),
    {},
    np.zeros(0, dtype=np.int64),
    {},
)
"""The result with too few samples to hold any out."""


def folds_of(count: int) -> Ints:
    """Return the fold of each sample.

    There are as many folds as samples up to 10 samples (leave-one-out), 10 folds below 20 samples,
    and 5 folds for more. The division is pseudo-random, and always the same.
    """
    parts = min(count, 10) if count < 20 else 5
    folds = np.empty(count, dtype=np.int64)
    folds[np.argsort(sequence(count), kind="stable")] = np.arange(count) % parts
    return folds


def cross_validate(families: Mapping[str, Family], selection: SelectionSamples) -> CrossValidation:
    """Fit each family to all folds but one, and predict that one."""
    samples = selection.samples
    folds = folds_of(len(samples))
    parts = [np.flatnonzero(folds == fold) for fold in range(int(folds.max(initial=-1)) + 1)]

    def predicted_without(held_out: Ints) -> dict[str, Floats]:
        training = selection.part(np.setdiff1d(np.arange(len(samples)), held_out))
        predicted = {}
        for name, family in families.items():
            function = fit_family(family, training)
            columns = selection.values(function.terms)
            predicted[name] = function.predict(samples.params, columns)
        return predicted

    by_fold = {name: np.empty((len(parts), len(samples))) for name in families}
    # the first fold fills the tables of terms and columns for all processes
    results = chain(
        map(predicted_without, parts[:1]),
        map_trials(predicted_without, parts[1:], families, selection),
    )
    for fold in range(len(parts)):
        report_progress("held-out lines", fold, len(parts))
        for name, seconds in next(results).items():
            by_fold[name][fold] = seconds
    predictions = {
        name: compare(seconds[folds, np.arange(len(samples))], samples)
        for name, seconds in by_fold.items()
    }
    return CrossValidation(samples, predictions, folds, by_fold)


def map_trials(
    trial: Callable[[Item], Result],
    items: Sequence[Item],
    families: Mapping[str, Family],
    selection: SelectionSamples,
) -> Iterator[Result]:
    """Yield the result of each trial of the families, in processes if it takes long."""
    fewest = 2 if takes_long(families, selection) else len(items) + 1
    return map_in_processes(trial, items, fewest=fewest)


def takes_long(families: Mapping[str, Family], selection: SelectionSamples) -> bool:
    """Return whether a trial of the families takes longer than to start a process."""
    return len(families) * len(selection.samples) >= LARGE_TRIAL


def fit_family(family: Family, selection: SelectionSamples) -> FittedFunction:
    """Return the function of a family, with terms and coefficients from the same samples."""
    terms = selection.chosen(family.choose_terms)
    key = (terms, family.non_negative, family.bounded)
    return selection.once(
        key,
        lambda _: fit_terms(
            family, terms, selection.samples, selection.loss, selection.values(terms)
        ),
    )


def fit_terms(
    family: Family,
    terms: tuple[Expression, ...],
    samples: Samples,
    loss: Loss,
    columns: Floats | None = None,
) -> FittedFunction:
    """Return the sum of the terms with its coefficients, bounds and calibration.

    `columns` are the values of the terms, shape (samples, terms), where they are known.
    """
    solution = solve(terms, samples, loss, non_negative=family.non_negative, columns=columns)
    bounds = prediction_bounds(samples, solution.coefficients) if family.bounded else None
    function = FittedFunction(terms, solution.coefficients, bounds=bounds)
    spread = solution.spread if loss == "huber" else np.inf
    return calibrate(function, samples, spread, columns)


def solve_families(
    weights: Mapping[str, float],
    families: Mapping[str, Family],
    selection: SelectionSamples,
    samples: Samples | None = None,
) -> Formula:
    """Return the function of the selected family, or the mixture of several with their weights.

    Terms are chosen with the samples of `selection`; coefficients are fitted to `samples`, by
    default the same. Families that choose the same terms become one member with the sum of their
    weights.
    """
    chosen = {name: selection.chosen(families[name].choose_terms) for name in weights}
    first: dict[frozenset[Expression], str] = {}
    together: dict[str, float] = {}
    for name, weight in weights.items():
        name_of_all = first.setdefault(frozenset(chosen[name]), name)
        together[name_of_all] = together.get(name_of_all, 0.0) + weight
    largest_first = sorted(together, key=lambda name: -together[name])
    if samples is None or samples is selection.samples:
        functions = [fit_family(families[name], selection) for name in largest_first]
    else:
        functions = [
            fit_terms(families[name], chosen[name], samples, selection.loss)
            for name in largest_first
        ]
    return mixture_of(functions, [together[name] for name in largest_first])


def select_families(
    families: Mapping[str, Family], validation: CrossValidation
) -> dict[str, float]:
    """Return the family that predicts held-out samples best, or several, with their weights.

    With few samples the best one is best by chance as often as not. Families within
    `NEARLY_AS_GOOD` times the least error then have weights in proportion to the inverse fourth
    power of their errors; with fewer than `FEW_TO_COMPARE` samples also to their prior weights.
    """
    if not validation.predictions:
        return {next(iter(families)): 1.0}
    if len(validation.samples) >= tuning.ENOUGH:
        return {select_family(families, validation): 1.0}
    errors = {
        name: max(prediction.mean_error, 1e-9)
        for name, prediction in validation.predictions.items()
    }
    best, few = min(errors.values()), len(validation.samples) < tuning.FEW_TO_COMPARE
    weights = {
        name: (best / error) ** 4 * (families[name].prior_weight if few else 1.0)
        for name, error in errors.items()
        if error <= tuning.NEARLY_AS_GOOD * best
    }
    total = sum(weights.values())
    descending = sorted(weights, key=lambda name: -weights[name])
    return {name: weights[name] / total for name in descending}


def select_family(families: Mapping[str, Family], validation: CrossValidation) -> str:
    """Return the family that predicts held-out samples best.

    Families are in order of simplicity: a later one is taken only if it is clearly better, much
    as in the one-standard-error rule (Breiman et al., Classification and Regression Trees, 1984).
    """
    best = next(iter(families))
    for name, tried in validation.predictions.items():
        if tried.clearly_better(validation.predictions[best], tuning.CLEARLY, tuning.LEAST_GAIN):
            best = name
    return best


def compare(predicted_s: Floats, samples: Samples) -> HeldOutPredictions:
    """Return held-out predictions with their errors."""
    errors = np.abs(predicted_s - samples.seconds) / samples.sigma_s
    limited = np.where(
        np.isfinite(errors), np.minimum(errors, tuning.LARGEST_ERROR), tuning.LARGEST_ERROR
    )
    return HeldOutPredictions(predicted_s, limited)
