"""Functions of one term in one parameter, which a person can compare with the fit of all."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rewritelog.arrays import Floats
from rewritelog.models.base import EventTimings
from rewritelog.models.expressions import Expression
from rewritelog.models.fitting.design import ONE, Family, Ignored, SelectionSamples
from rewritelog.models.fitting.event_fit import usable_part
from rewritelog.models.fitting.regression import Loss
from rewritelog.models.fitting.samples import Samples, Weighting, without_short_scales
from rewritelog.models.fitting.validation import HeldOutPredictions, cross_validate, fit_family
from rewritelog.models.metrics import mean_relative_error, r_squared

MOST_SAMPLES = 4096
"""Functions are fitted to a pseudo-random part of at most this many samples."""


@dataclass(frozen=True)
class SingleTermFunction:
    """seconds = constant + slope · term, where the term is a function of one parameter."""

    parameter: int
    """Counted from 1."""
    term: Expression
    constant_s: float
    slope_s: float
    """Seconds per unit of the term."""
    held_out_r2: float | None
    """R² over held-out samples."""
    held_out_error: float | None
    """Mean of |predicted − measured| / measured over held-out samples."""

    def predict(self, params: Floats) -> Floats:
        """Return the seconds of each row, shape (rows, parameters)."""
        return self.constant_s + self.slope_s * self.term.evaluate(params)


@dataclass(frozen=True)
class SingleTermFunctions:
    """All functions of one term that were tried for an event."""

    functions: tuple[SingleTermFunction, ...]
    ignored: tuple[Ignored, ...]
    """Parameters that no term uses, and why."""

    def of(self, parameter: int) -> tuple[SingleTermFunction, ...]:
        """Return the functions of a parameter, the one with the largest held-out R² first."""
        mine = [function for function in self.functions if function.parameter == parameter]
        return tuple(sorted(mine, key=_by_r2))


def _by_r2(function: SingleTermFunction) -> float:
    return np.inf if function.held_out_r2 is None else -function.held_out_r2


@np.errstate(all="ignore")
def single_term_functions(
    timings: EventTimings, weights: Weighting = "relative", loss: Loss = "huber"
) -> SingleTermFunctions:
    """Fit each function of a single parameter, with a constant, and cross-validate it.

    Fits and folds are those of the choice of a family.
    """
    samples = Samples.of(usable_part(timings), weights).random_part(MOST_SAMPLES)
    if not len(samples) or not samples.params.shape[1]:
        return SingleTermFunctions((), ())
    selection = SelectionSamples.of(without_short_scales(samples, loss), loss)
    tried = {
        f"{number} {term}": (number, term, _line(term))
        for number in selection.parameters.used
        for term in selection.parameters.functions(number)
    }
    families = {name: family for name, (_, _, family) in tried.items()}
    held_out = cross_validate(families, selection).predictions
    fitted = (_fitted(*tried[name], selection, held_out.get(name)) for name in tried)
    functions = tuple(function for function in fitted if function is not None)
    return SingleTermFunctions(functions, selection.parameters.ignored)


def _line(term: Expression) -> Family:
    """Return the family of the functions constant + slope · term."""
    return Family(lambda _: (ONE, term), non_negative=False, bounded=False)


def _fitted(
    parameter: int,
    term: Expression,
    family: Family,
    selection: SelectionSamples,
    held_out: HeldOutPredictions | None,
) -> SingleTermFunction | None:
    """Return the function of a term; None if it is not finite."""
    function = fit_family(family, selection)
    constant_s, slope_s = (function.coefficients * function.calibration).tolist()
    if not (np.isfinite(slope_s) and np.isfinite(constant_s) and slope_s):
        return None
    r2 = error = None
    if held_out is not None:
        r2 = r_squared(held_out.predicted_s, selection.samples.seconds)
        error = mean_relative_error(held_out.predicted_s, selection.samples.seconds)
    return SingleTermFunction(parameter, term, constant_s, slope_s, r2, error)
