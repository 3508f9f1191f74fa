"""Whether a fit is corrected, and which formula: held-out samples decide."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeAlias

import numpy as np

from rewritelog.arrays import Flags, Floats, Ints
from rewritelog.models.fitting.correction import (
    FEWEST,
    MOST_POINTS,
    Correction,
    explains_something,
)
from rewritelog.models.fitting.cross_validation import (
    CrossValidation,
    HeldOutPredictions,
    compare,
    fit_family,
)
from rewritelog.models.fitting.design import SelectionSamples
from rewritelog.models.fitting.families import Family
from rewritelog.models.fitting.function import CorrectedFunction, FittedFunction
from rewritelog.models.fitting.process import Kernel
from rewritelog.models.fitting.samples import Samples
from rewritelog.progress import report_progress

UseCorrection: TypeAlias = Literal["auto", "none"]

Learn: TypeAlias = Callable[[Floats, Floats], tuple[Correction, Floats]]
"""How a correction is learnt from parameters and residuals; see `Correction.learnt`."""

GOOD_ENOUGH, TOO_POOR = 0.02, 0.5
"""A formula with a smaller held-out error is not corrected, since there is little to gain; nor is
one with a larger error, whose samples are too noisy to learn from."""

CLEARLY = 2.0
"""A correction has to lower the held-out error by this many standard errors of the difference."""

LEAST_GAIN = 0.1
"""It also has to lower it by this share."""

NEARLY = 1.05
"""A longer formula is taken if its error with a correction is less by more than this factor."""

SHORT_FORMULAS = ("power law", "short sum", "sum of power laws")
"""The families of short formulas that a correction is tried on, beside the one selected."""


@dataclass(frozen=True)
class CorrectedFit:
    """A family whose formula is corrected, and what is known about it."""

    family: str
    function: CorrectedFunction
    held_out: HeldOutPredictions
    """Of the corrected function."""
    samples: Samples
    """Those that the correction interpolates between."""

    @property
    def kernel(self) -> Kernel:
        """The covariances of what the formula leaves."""
        return self.function.correction.kernel

    def with_formula(self, formula: FittedFunction) -> CorrectedFunction:
        """Return a formula corrected by what it leaves of these samples."""
        if formula is self.function.formula:
            return self.function
        params = self.samples.params
        logs = _residuals(self.samples, formula.predict(params))
        return CorrectedFunction(formula, self.function.correction.for_residuals(params, logs))


def choose_correction(
    selected: str,
    families: Mapping[str, Family],
    selection: SelectionSamples,
    validation: CrossValidation,
) -> CorrectedFit | None:
    """Return the corrected fit that predicts held-out samples best, if clearly; None if none does.

    `selected` is the family whose formula predicts them best without a correction.
    """
    samples = selection.samples
    rows = np.arange(len(samples))
    if len(samples) > MOST_POINTS:
        rows = samples.random_rows(MOST_POINTS)
    if len(rows) < FEWEST or not (samples.seconds > 0).all():
        return None
    plain = validation.predictions[selected]
    if not GOOD_ENOUGH <= plain.mean_error <= TOO_POOR:
        return None
    part = samples.part(rows)
    if not explains_something(part.params, _residuals(part, plain.predicted_s[rows])):
        return None
    names = [name for name in dict.fromkeys((*SHORT_FORMULAS, selected)) if name in families]
    tried = list[CorrectedFit]()
    for name in names:
        report_progress("corrections", len(tried), len(names) + 1)
        learn = partial(Correction.learnt, similar=tried[0].kernel if tried else None)
        tried.append(_tried(name, families[name], selection, rows, learn))
    report_progress("corrections", len(tried), len(names) + 1)
    best = min(tried, key=_error_with_length)
    best = _tried(
        best.family, families[best.family], selection, rows, best.function.correction.refined
    )
    return best if best.held_out.clearly_better(plain, CLEARLY, LEAST_GAIN) else None


def _error_with_length(fit: CorrectedFit) -> float:
    """Return the held-out error, enlarged for a formula that is not short."""
    return fit.held_out.mean_error * (1.0 if fit.family in SHORT_FORMULAS else NEARLY)


def _tried(
    name: str,
    family: Family,
    selection: SelectionSamples,
    rows: Ints,
    learn: Learn,
) -> CorrectedFit:
    """Return a family's corrected fit, with predictions of all samples, each without itself.

    The correction is left without each sample in turn, but the formula's k coefficients are not:
    what remains of n samples is therefore enlarged by n/(n − k).
    """
    samples = selection.samples
    formula = fit_family(family, selection)
    formula_s = formula.predict(samples.params)
    part = samples.part(rows)
    correction, logs = learn(part.params, _residuals(part, formula_s[rows]))
    others: Flags = np.ones(len(samples), dtype=np.bool_)
    others[rows] = False
    factors = np.empty(len(samples))
    factors[rows] = np.exp(logs)
    factors[others] = correction.factors(samples.params[others])
    remaining = _residuals(samples, formula_s * factors)
    remaining *= len(samples) / max(len(samples) - len(formula.terms), 1)
    held_out_s = samples.seconds / np.exp(remaining)
    function = CorrectedFunction(formula, correction)
    return CorrectedFit(name, function, compare(held_out_s, samples), part)


def _residuals(samples: Samples, predicted_s: Floats) -> Floats:
    """Return the logarithms of measured over predicted times; 0 where there is none."""
    with np.errstate(all="ignore"):
        logs = np.log(samples.seconds / predicted_s)
    return np.where(np.isfinite(logs), logs, 0.0)
