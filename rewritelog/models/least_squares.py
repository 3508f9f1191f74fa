"""The model that fits each event's times to powers of its parameters by least squares."""

from __future__ import annotations

from dataclasses import replace

from rewritelog.models.base import EventTimings, Model, Timings
from rewritelog.models.fitted_events import FittedEvents, fit_events
from rewritelog.models.fitting.cross_validation import calibrate
from rewritelog.models.fitting.diagnosis import Coefficient
from rewritelog.models.fitting.event_fit import EventFit
from rewritelog.models.fitting.families import SelectionSamples
from rewritelog.models.fitting.function import FittedFunction
from rewritelog.models.fitting.pipeline import Account, FitConfig, fit_event
from rewritelog.models.fitting.samples import Samples
from rewritelog.models.fitting.solving import Loss
from rewritelog.models.options import LeastSquaresOptions
from rewritelog.models.regression import regress


class LeastSquares(Model[LeastSquaresOptions]):
    """Fit 1, p and p² of each parameter to the times, for each event and parameter count."""

    Options = LeastSquaresOptions

    def fit(self, timings: Timings) -> FittedEvents:
        """Return the fits; raise `ModelError` where one event and parameter count stands twice."""
        return fit_events("least-squares", self.options, timings, self._fit_event)

    def _fit_event(self, timings: EventTimings) -> EventFit:
        options = self.options
        config = FitConfig(
            options.weights, options.loss, options.exact_match,
            families={f"{options.basis} basis": self._law}, account=self._account,
        )  # fmt: skip
        return fit_event(timings, config)

    def _law(self, few: SelectionSamples) -> FittedFunction:
        return regress(few.samples, self.options.basis, few.loss).function

    def _account(self, samples: Samples, loss: Loss) -> Account:
        """Fit all samples, in place of those few that a fit is tried out with."""
        found = regress(samples, self.options.basis, loss)
        function = calibrate(found.function, samples)
        return Account(
            function,
            tuple(_times(one, function.calibration) for one in found.coefficients),
            found.dropped,
        )


def _times(one: Coefficient, factor: float) -> Coefficient:
    error = one.standard_error
    return replace(
        one, value=one.value * factor, standard_error=None if error is None else error * factor
    )
