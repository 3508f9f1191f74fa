"""Functions of one term in one parameter, for a person to compare with the fit of the event."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from msgspec import Struct

from rewritelog.arrays import Floats
from rewritelog.models.base import EventTimings
from rewritelog.models.expressions import Expression
from rewritelog.models.fitting.design import ONE, Family, SelectionSamples
from rewritelog.models.fitting.regression import Loss
from rewritelog.models.fitting.samples import (
    Samples,
    Weighting,
    usable_samples,
    without_short_scales,
)
from rewritelog.models.fitting.validation import cross_validate, fit_family
from rewritelog.models.metrics import mean_relative_error, r_squared

MOST_SAMPLES = 4096
"""Functions are fitted to a pseudo-random part of at most this many samples."""


class SingleTermFunction(Struct, frozen=True):
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


class SingleTermFunctions(Struct, frozen=True):
    """All functions of one term that were tried for an event."""

    functions: tuple[SingleTermFunction, ...]
    ignored: Mapping[int, str]
    """Parameters that no term uses, by number, and why."""

    def of(self, parameter: int) -> tuple[SingleTermFunction, ...]:
        """Return the functions of a parameter, the one with the largest held-out R² first."""
        functions = [function for function in self.functions if function.parameter == parameter]
        held_out = [function.held_out_r2 for function in functions]
        r2 = [-np.inf if r2 is None else r2 for r2 in held_out]
        return tuple(functions[index] for index in np.argsort(-np.array(r2), kind="stable"))


@np.errstate(all="ignore")
def single_term_functions(
    timings: EventTimings, weights: Weighting = "relative", loss: Loss = "huber"
) -> SingleTermFunctions:
    """Fit each function of a single parameter, with a constant, and cross-validate it.

    Functions are fitted, and folds divided, as in the choice of a family.
    """
    samples = Samples.of(*usable_samples(timings), weights).random_part(MOST_SAMPLES)
    if not len(samples) or not samples.params.shape[1]:
        return SingleTermFunctions((), {})
    selection = SelectionSamples.of(without_short_scales(samples, loss), loss)
    parameters = selection.parameters
    terms = [(number, term) for number in parameters.used for term in parameters.functions(number)]
    families = {str(term): _line(term) for _, term in terms}
    held_out = cross_validate(families, selection).predictions
    functions = []
    for number, term in terms:
        name = str(term)
        function = fit_family(families[name], selection)
        constant_s, slope_s = (function.coefficients * function.calibration).tolist()
        if np.isfinite(slope_s) and np.isfinite(constant_s) and slope_s:
            r2 = error = None
            if name in held_out:
                predicted_s, seconds = held_out[name].predicted_s, selection.samples.seconds
                r2 = r_squared(predicted_s, seconds)
                error = mean_relative_error(predicted_s, seconds)
            functions.append(SingleTermFunction(number, term, constant_s, slope_s, r2, error))
    return SingleTermFunctions(tuple(functions), parameters.ignored)


def _line(term: Expression) -> Family:
    """Return the family of the functions constant + slope · term."""
    return Family(lambda _: (ONE, term), non_negative=False, may_be_negative=True)
