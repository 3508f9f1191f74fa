"""Cross-validation: families are fitted to some samples, tested on the others, and selected."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TypeVar

import numpy as np
from msgspec import Struct

from rewritelog.arrays import Floats, Ints, sequence
from rewritelog.models.expressions import Expression
from rewritelog.models.fitting import tuning
from rewritelog.models.fitting.design import Family, SelectionSamples
from rewritelog.models.fitting.function import FittedFunction, Formula, geometric_mean, mixture_of
from rewritelog.models.fitting.samples import Samples
from rewritelog.models.fitting.solving import fit_terms
from rewritelog.models.parallel import map_in_processes
from rewritelog.progress import report_progress
from rewritelog.running.locks import cached_property

Item = TypeVar("Item")
Result = TypeVar("Result")

LARGE_TRIAL = 1 << 14
"""From this product of the numbers of families, samples and parameters on, a trial takes longer
than starting a process: `auto` has nine or so families, other models have one."""

ROUNDING = 1e-12
"""Smaller differences of errors come from rounding."""


class HeldOutPredictions(Struct, frozen=True):
    """A family's predictions of samples that it was not fitted to."""

    predicted_s: Floats
    """Shape (samples,)."""
    errors: Floats
    """|predicted − measured| in units of each sample's scale, at most `LARGEST_ERROR`, as the mean
    of each point's samples, which share the error of the function. Shape (points,)."""

    @classmethod
    def compared(cls, predicted_s: Floats, samples: Samples) -> HeldOutPredictions:
        """Return the predictions with their errors, the largest for those that are not finite."""
        errors = np.abs(predicted_s - samples.seconds) / samples.sigma_s
        return cls(predicted_s, samples.points.means(np.fmin(errors, tuning.LARGEST_ERROR)))

    @property
    def mean_error(self) -> float:
        """The mean of `errors`."""
        return float(self.errors.mean())

    def clearly_better(self, other: HeldOutPredictions, least_gain: float) -> bool:
        """Return whether the mean error is clearly lower than that of other predictions.

        It has to be lower by `CLEARLY` standard errors of the difference, and by a share
        `least_gain` of the other error. Both predict the same samples.
        """
        gain = other.errors - self.errors
        least = tuning.CLEARLY * float(gain.std()) / math.sqrt(len(gain))
        return float(gain.mean()) > max(least, least_gain * other.mean_error) + ROUNDING


class CrossValidation(Struct, frozen=True, dict=True):
    """Families of functions for some samples, and how each predicts those it was not fitted to."""

    families: Mapping[str, Family]
    """By name, simple ones first."""
    selection: SelectionSamples
    folds: Ints
    """The fold of each sample."""
    predicted_by_fold_s: Mapping[str, Floats]
    """By family, in the order of the families, what its fit without each fold predicts of all
    samples, shape (folds, samples); empty with too few samples."""

    @cached_property
    def predictions(self) -> dict[str, HeldOutPredictions]:
        """What each family predicts of each sample by its fit without the sample's fold."""
        samples = self.selection.samples
        indices = np.arange(len(samples))
        return {
            name: HeldOutPredictions.compared(seconds[self.folds, indices], samples)
            for name, seconds in self.predicted_by_fold_s.items()
        }

    @property
    def are_codes(self) -> bool:
        """Whether the parameters may be codes, which say nothing of a point that was not timed.

        They are small whole numbers, points were timed often, and no family predicts those held out
        with less than `SHARE_OF_CODES` of the error of the median time.
        """
        samples = self.selection.samples
        are_small = (np.abs(samples.params) <= tuning.DEEPEST) & (samples.params % 1 == 0)
        if not self.predictions or samples.effective_count == len(samples) or not are_small.all():
            return False
        middle_s = np.full(len(samples), np.median(samples.points.means(samples.seconds)))
        of_median = HeldOutPredictions.compared(middle_s, samples).mean_error
        least = min(tried.mean_error for tried in self.predictions.values())
        return least > tuning.SHARE_OF_CODES * of_median

    def predicted_by(self, weights: Mapping[str, float]) -> Floats | None:
        """Return a mixture's held-out predictions in seconds; None where there are none."""
        if not self.predictions:
            return None
        if len(weights) == 1:
            return self.predictions[next(iter(weights))].predicted_s
        seconds = [self.predictions[name].predicted_s for name in weights]
        return np.nan_to_num(geometric_mean(seconds, list(weights.values())), nan=0.0)

    def select(self) -> dict[str, float]:
        """Return the family that predicts held-out samples best, or several, with their weights.

        Families are in order of simplicity: with many points a later one is taken only if it is
        clearly better, much as in the one-standard-error rule (Breiman et al., Classification and
        Regression Trees, 1984). With few, the best one is best by chance as often as not. So the
        first whose predictions are exact, as a simulator allows, is taken, or else all families
        within `NEARLY_AS_GOOD` times the least error. Their weights are in proportion to the
        inverse fourth power of their errors; with fewer than `FEW_TO_COMPARE` samples also to their
        prior weights.
        """
        if not self.predictions:
            return {next(iter(self.families)): 1.0}
        count = self.selection.samples.effective_count
        if count >= tuning.ENOUGH:
            best = next(iter(self.families))
            for name, tried in self.predictions.items():
                if tried.clearly_better(self.predictions[best], tuning.LEAST_GAIN):
                    best = name
            return {best: 1.0}
        errors = {name: tried.mean_error for name, tried in self.predictions.items()}
        for name, error in errors.items():
            if error <= tuning.EXACT:
                return {name: 1.0}
        few = count < tuning.FEW_TO_COMPARE
        weights = {
            name: weight * (self.families[name].prior_weight if few else 1.0)
            for name, weight in weights_by_error(errors).items()
        }
        return shares_of(weights)

    def solve(self, weights: Mapping[str, float], samples: Samples | None = None) -> Formula:
        """Return the function of one family, or the mixture of several with their weights.

        Terms are chosen with the samples of `selection`; coefficients are fitted to `samples`, by
        default the same. Families that choose the same terms become one member with the sum of
        their weights.
        """
        selection, families = self.selection, self.families
        first: dict[frozenset[Expression], str] = {}
        together: dict[str, float] = {}
        for name, weight in weights.items():
            terms = frozenset(selection.chosen(families[name].choose_terms))
            name_of_all = first.setdefault(terms, name)
            together[name_of_all] = together.get(name_of_all, 0.0) + weight
        names = _descending(together)
        functions = [fit_family(families[name], selection, samples) for name in names]
        return mixture_of(functions, [together[name] for name in names])


def _descending(weights: Mapping[str, float]) -> list[str]:
    """Return the names by descending weight."""
    return sorted(weights, key=lambda name: -weights[name])


def weights_by_error(errors: Mapping[str, float]) -> dict[str, float]:
    """Return the weights in a mean of those with errors up to `NEARLY_AS_GOOD` times the least."""
    least = max(min(errors.values()), ROUNDING)
    return {
        name: (least / max(error, least)) ** 4
        for name, error in errors.items()
        if error <= tuning.NEARLY_AS_GOOD * least
    }


def shares_of(weights: Mapping[str, float], least: float = 0.0) -> dict[str, float]:
    """Return the weights of at least this size, divided by their sum, the largest first."""
    total = sum(weight for weight in weights.values() if weight >= least)
    return {name: weights[name] / total for name in _descending(weights) if weights[name] >= least}


def fit_family(
    family: Family, selection: SelectionSamples, samples: Samples | None = None
) -> FittedFunction:
    """Return the function of a family.

    Coefficients are fitted to `samples`, by default those with which terms are chosen. A fit to a
    part of them, such as all but a fold, is calibrated if that to all is, whose errors it shows.
    """
    terms, loss = selection.chosen(family.choose_terms), selection.loss
    calibrates = len(selection.table.params) >= tuning.FEWEST_CALIBRATED
    if samples is not None and samples is not selection.samples:
        return fit_terms(family, terms, samples, loss, calibrates=calibrates)

    def fitted() -> FittedFunction:
        columns = selection.values(terms)
        return fit_terms(family, terms, selection.samples, loss, columns, calibrates=calibrates)

    return selection.once((terms, family.non_negative, family.may_be_negative), fitted)


def folds_of(count: int) -> Ints:
    """Return the fold of each point.

    There are as many folds as points up to 10 points (leave-one-out), 10 folds below 20 points, and
    5 folds for more. The division is pseudo-random, and always the same.
    """
    parts = min(count, 10) if count < 20 else 5
    folds = np.empty(count, dtype=np.int64)
    folds[np.argsort(sequence(count), kind="stable")] = np.arange(count) % parts
    return folds


def cross_validate(
    families: Mapping[str, Family], selection: SelectionSamples, *, by_line: bool = False
) -> CrossValidation:
    """Predict each fold by fits of the families to the other folds; none with too few samples.

    Unless lines are held out one by one (`by_line`), a fold has all samples of a point: a function
    may pass through their mean, however wrong it is in between.
    """
    samples, points = selection.samples, selection.samples.points
    folds = folds_of(len(samples)) if by_line else folds_of(len(points))[points.point_of_row]
    if len(samples) < tuning.FEWEST_TO_VALIDATE:
        return CrossValidation(families, selection, folds, {})
    parts = [np.flatnonzero(folds == fold) for fold in range(int(folds.max()) + 1)]

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
    return CrossValidation(families, selection, folds, by_fold)


def map_trials(
    trial: Callable[[Item], Result],
    items: Sequence[Item],
    families: Mapping[str, Family],
    selection: SelectionSamples,
) -> Iterator[Result]:
    """Yield the result of each trial of the families, in processes if it takes long."""
    takes_long = len(families) * selection.samples.params.size >= LARGE_TRIAL
    return map_in_processes(trial, items, takes_long=takes_long)
