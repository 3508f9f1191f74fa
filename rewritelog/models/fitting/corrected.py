"""Whether a fit is corrected, and which formula: held-out samples decide."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeAlias

import numpy as np

from rewritelog.arrays import Floats, Ints
from rewritelog.models.fitting.correction import FEWEST, MOST_POINTS, Similarity
from rewritelog.models.fitting.function import CorrectedFunction, FittedFunction
from rewritelog.models.fitting.samples import Samples
from rewritelog.models.fitting.validation import CrossValidation, HeldOutPredictions, fit_family
from rewritelog.progress import report_progress

UseCorrection: TypeAlias = Literal["auto", "none"]

Learn: TypeAlias = Callable[[Floats, Floats], Similarity]
"""How it is learnt which samples have similar residuals; see `Similarity.learnt`."""

GOOD_ENOUGH, TOO_POOR = 0.02, 0.5
"""A formula with a smaller held-out error is not corrected, since there is little to gain; nor is
one with a larger error, whose samples are too noisy to learn from."""

CLEARLY = 1.0
"""A correction has to lower the held-out error by this many standard errors of the difference."""

LEAST_GAIN = 0.05
"""It also has to lower it by this share."""

NEARLY = 1.05
"""A longer formula is taken if its error with a correction is less by more than this factor."""

SHORT_FORMULAS = ("power law", "short sum", "sum of power laws")
"""The families of short formulas that a correction is tried on, beside the one selected."""


@dataclass(frozen=True)
class CorrectedFit:
    """A family whose formula is corrected, and what is known about it."""

    family: str
    similarity: Similarity
    held_out: HeldOutPredictions
    """Of formula and correction together."""
    samples: Samples
    """Those that the correction interpolates between."""

    def with_formula(self, formula: FittedFunction) -> CorrectedFunction:
        """Return a formula corrected by what it leaves of these samples."""
        params = self.samples.params
        logs = _residuals(self.samples, formula.predict(params))
        ((correction, _),) = self.similarity.conditioned(params, logs)
        return CorrectedFunction(formula, correction)


def choose_correction(selected: str, validation: CrossValidation) -> CorrectedFit | None:
    """Return the corrected fit that predicts held-out samples best, if clearly; None if none does.

    `selected` is the family whose formula predicts them best without a correction.
    """
    families, samples = validation.families, validation.selection.samples
    rows = np.arange(len(samples))
    if len(samples) > MOST_POINTS:
        rows = samples.random_rows(MOST_POINTS)
    if len(rows) < FEWEST or not (samples.seconds > 0).all():
        return None
    if not validation.selection.parameters.varying:
        return None
    plain = validation.predictions[selected]
    if not GOOD_ENOUGH <= plain.mean_error <= TOO_POOR:
        return None
    part = samples.part(rows)

    def trial(name: str, learn: Learn) -> CorrectedFit:
        formula = fit_family(families[name], validation.selection)
        similarity = learn(part.params, _residuals(part, formula.predict(part.params)))
        return CorrectedFit(name, similarity, _held_out(similarity, rows, validation, name), part)

    names = [name for name in dict.fromkeys((*SHORT_FORMULAS, selected)) if name in families]
    tried = list[CorrectedFit]()
    for name in names:
        report_progress("corrections", len(tried), len(names) + 1)
        similar = tried[0].similarity if tried else None
        tried.append(trial(name, partial(Similarity.learnt, similar=similar)))
    report_progress("corrections", len(tried), len(names) + 1)
    best = min(tried, key=_error_with_length)
    best = trial(best.family, best.similarity.refined)
    return best if best.held_out.clearly_better(plain, CLEARLY, LEAST_GAIN) else None


def _error_with_length(fit: CorrectedFit) -> float:
    """Return the held-out error, enlarged for a formula that is not short."""
    return fit.held_out.mean_error * (1.0 if fit.family in SHORT_FORMULAS else NEARLY)


def _held_out(
    similarity: Similarity, rows: Ints, validation: CrossValidation, family: str
) -> HeldOutPredictions:
    """Return predictions of all samples, each by a formula and a correction without it.

    Corrections interpolate between what the formula fitted without one fold leaves of these `rows`,
    but for the sample itself.
    """
    samples = validation.selection.samples
    part = samples.part(rows)
    formulas_s = validation.predicted_by_fold_s[family]
    logs = [_residuals(part, seconds[rows]) for seconds in formulas_s]
    predicted_s = np.empty(len(samples))
    for fold, (correction, without) in enumerate(similarity.conditioned(part.params, *logs)):
        unseen = validation.folds == fold
        others = unseen.copy()
        others[rows] = False
        factors = np.ones(len(samples))
        factors[rows] = np.exp(without)
        factors[others] = correction.factors(samples.params[others])
        predicted_s[unseen] = (formulas_s[fold] * factors)[unseen]
    return HeldOutPredictions.compared(predicted_s, samples)


def _residuals(samples: Samples, predicted_s: Floats) -> Floats:
    """Return the logarithms of measured over predicted times; 0 where there is none."""
    with np.errstate(all="ignore"):
        logs = np.log(samples.seconds / predicted_s)
    return np.where(np.isfinite(logs), logs, 0.0)
