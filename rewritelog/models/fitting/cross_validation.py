"""The choice among families: each is fitted to parts of the samples and tried on the rest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from rewritelog.arrays import Floats, Ints
from rewritelog.hashing import sequence
from rewritelog.models.fitting.candidates import Parameters
from rewritelog.models.fitting.families import Family, SelectionSamples
from rewritelog.models.fitting.function import FittedFunction
from rewritelog.models.fitting.samples import Samples
from rewritelog.models.fitting.solving import Loss, residual_spread, solve

MOST_CHOSEN_WITH = 4096
"""Families, terms and shapes are chosen with at most so many samples; all fit the coefficients."""

WORST = 2.0
"""An error counts as this at the most, so that one sample does not choose the family."""

OUTLIER = 6.0
"""Samples beyond so many robust standard deviations are outliers to a robust fit's calibration."""

CLEARLY = 1.0
"""A less simple family must be better by so many standard errors of the difference."""


@dataclass(frozen=True)
class Tried:
    """A family's predictions of samples that it was not fitted to."""

    predicted_s: Floats
    """Shape (samples,), of the samples that the choice was made with."""
    errors: Floats
    """|predicted − measured| in units of each sample's scale, at most `WORST`."""

    @property
    def mean_error(self) -> float:
        """Return the mean error."""
        return float(self.errors.mean())


@dataclass(frozen=True)
class Choice:
    """The family that was chosen, and what was tried."""

    family: str
    tried: Mapping[str, Tried]
    """Empty where there were too few samples to try anything."""
    tried_with: Samples
    """The samples of the trials, in the order of their predictions."""

    @property
    def held_out(self) -> Tried | None:
        """Return the trial of the chosen family."""
        return self.tried.get(self.family)


def folds_of(count: int) -> Ints:
    """Return the part of each sample: as many parts as samples up to 20, then 10, then 5."""
    parts = count if count <= 20 else 10 if count < 200 else 5
    folds = np.empty(count, dtype=np.int64)
    folds[np.argsort(sequence(count), kind="stable")] = np.arange(count) % parts
    return folds


def choose(
    families: Mapping[str, Family], samples: Samples, loss: Loss, *, try_out: bool = True
) -> Choice:
    """Return the family that predicts held-out samples best.

    Families stand in order of simplicity: a later one is taken only where it is clearly better.
    Where there is nothing to `try_out`, the first is taken.
    """
    drawn = samples.drawn(MOST_CHOSEN_WITH)
    tried: dict[str, Tried] = {}
    best = next(iter(families))
    if try_out:
        folds = folds_of(len(drawn))
        tried = {name: try_family(family, drawn, folds, loss) for name, family in families.items()}
        for name, trial in tried.items():
            gain = tried[best].errors - trial.errors
            if gain.mean() > CLEARLY * gain.std() / np.sqrt(len(gain)) + 1e-12:
                best = name
    return Choice(best, tried, drawn)


def try_family(family: Family, samples: Samples, folds: Ints, loss: Loss) -> Tried:
    """Return what the family predicts of each part of the samples when fitted to the others."""
    predicted = np.empty(len(samples))
    for part in range(int(folds.max()) + 1):
        function = fit_family(family, samples.part(folds != part), loss)
        predicted[folds == part] = function.predict(samples.params[folds == part])
    with np.errstate(all="ignore"):
        errors = np.abs(predicted - samples.seconds) / samples.scale_s
    return Tried(predicted, np.where(np.isfinite(errors), np.minimum(errors, WORST), WORST))


def fit_family(family: Family, samples: Samples, loss: Loss) -> FittedFunction:
    """Return the family's function of the samples, with its sum set right."""
    function = family(SelectionSamples(samples, Parameters.of_samples(samples.params), loss))
    return calibrate(function, samples, _spread(function, samples, loss))


def _spread(function: FittedFunction, samples: Samples, loss: Loss) -> float:
    """Return the spread beyond which a robust fit's residuals are outliers."""
    if loss != "huber":
        return np.inf
    return residual_spread(function.terms, function.coefficients, samples)


def fit_all_samples(family: Family, drawn: Samples, samples: Samples, loss: Loss) -> FittedFunction:
    """Return the family's function of the samples drawn, its coefficients fitted to all."""
    function = fit_family(family, drawn, loss)
    if drawn is samples:
        return function
    non_negative = bool((function.coefficients >= 0).all())
    solved = solve(function.terms, samples, loss, non_negative=non_negative)
    function = replace(function, coefficients=solved.coefficients)
    return calibrate(function, samples, solved.spread if loss == "huber" else np.inf)


def calibrate(function: FittedFunction, samples: Samples, spread: float = np.inf) -> FittedFunction:
    """Return the function with the one factor that gives its predictions the sum of the times.

    Relative weights bias that sum a little. The event's first call stays out of both sums, and so
    do samples off by more than two times, or by more than `OUTLIER` times the spread of a robust
    fit: one of them can shift the sum by per cents.
    """
    plain = replace(function, calibration=1.0)
    if not samples.relative:
        return plain
    measured = predicted = 0.0
    for block in samples.blocks():
        seconds = plain.predict(block.params)
        with np.errstate(all="ignore"):
            fair = ~block.first & (block.seconds < 2 * seconds) & (seconds < 2 * block.seconds)
            fair &= np.abs(seconds - block.seconds) <= OUTLIER * spread * block.scale_s
        measured += float(block.seconds[fair].sum())
        predicted += float(seconds[fair].sum())
    return replace(function, calibration=measured / predicted if predicted > 0 else 1.0)
