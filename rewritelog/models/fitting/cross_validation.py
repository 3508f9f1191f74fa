"""The choice among families: each is fitted to parts of the samples and tried on the rest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from rewritelog.arrays import Floats, Ints
from rewritelog.hashing import sequence
from rewritelog.models.expressions import Expression
from rewritelog.models.fitting.calibration import calibrate
from rewritelog.models.fitting.families import Family, SelectionSamples
from rewritelog.models.fitting.function import FittedFunction, prediction_bounds
from rewritelog.models.fitting.samples import Samples
from rewritelog.models.fitting.solving import Loss, solve

LARGEST_ERROR = 2.0
"""An error counts as this at most, so that one sample does not choose the family."""

CLEARLY = 1.0
"""A less simple family must be better by this many standard errors of the difference."""


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


@dataclass(frozen=True)
class CrossValidation:
    """What each family predicts of samples that it was not fitted to."""

    samples: Samples
    predictions: Mapping[str, HeldOutPredictions]
    """By family, in the order of the families; empty where there were too few samples."""


def folds_of(count: int) -> Ints:
    """Return the fold of each sample: as many folds as samples up to 20, then 10, then 5."""
    parts = count if count <= 20 else 10 if count < 200 else 5
    folds = np.empty(count, dtype=np.int64)
    folds[np.argsort(sequence(count), kind="stable")] = np.arange(count) % parts
    return folds


def cross_validate(families: Mapping[str, Family], given: SelectionSamples) -> CrossValidation:
    """Fit each family to all folds but one, and predict that one."""
    samples = given.samples
    folds = folds_of(len(samples))
    parts = [np.flatnonzero(folds == fold) for fold in range(int(folds.max(initial=-1)) + 1)]
    predicted = {name: np.empty(len(samples)) for name in families}
    for held_out in parts:
        training = given.part(np.setdiff1d(np.arange(len(samples)), held_out))
        for name, family in families.items():
            terms = family.choose_terms(training)
            function = fit_terms(family, terms, training.samples, training.loss)
            predicted[name][held_out] = function.predict(samples.params[held_out])
    return CrossValidation(
        samples, {name: _compare(seconds, samples) for name, seconds in predicted.items()}
    )


def fit_terms(
    family: Family, terms: tuple[Expression, ...], samples: Samples, loss: Loss
) -> FittedFunction:
    """Return the sum of the terms, solved, bounded and calibrated."""
    solution = solve(terms, samples, loss, non_negative=family.non_negative)
    bounds = prediction_bounds(samples, solution.coefficients) if family.bounded else None
    function = FittedFunction(terms, solution.coefficients, bounds=bounds)
    return calibrate(function, samples, solution.spread if loss == "huber" else np.inf)


def select_family(families: Mapping[str, Family], validation: CrossValidation) -> str:
    """Return the family that predicts held-out samples best, the first where none was tried.

    Families stand in order of simplicity: a later one is taken only where it is clearly better.
    """
    best = next(iter(families))
    for name, tried in validation.predictions.items():
        gain = validation.predictions[best].errors - tried.errors
        if gain.mean() > CLEARLY * gain.std() / np.sqrt(len(gain)) + 1e-12:
            best = name
    return best


def _compare(predicted_s: Floats, samples: Samples) -> HeldOutPredictions:
    errors = np.abs(predicted_s - samples.seconds) / samples.scale_s
    limited = np.where(np.isfinite(errors), np.minimum(errors, LARGEST_ERROR), LARGEST_ERROR)
    return HeldOutPredictions(predicted_s, limited)
