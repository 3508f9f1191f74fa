"""The model `least-squares`: each event's times as a polynomial of its parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rewritelog.models.base import EventTimings, Model, Timings, option
from rewritelog.models.fitted_events import FitOptions, FittedEvents, fit_events
from rewritelog.models.fitting.bases.polynomial import Polynomial
from rewritelog.models.fitting.event_fit import EventFit
from rewritelog.models.fitting.pipeline import FitConfig, fit_event

HIGHEST_POWER = {"linear": 1, "quadratic": 2}
"""The highest power of a parameter in each basis."""


@dataclass(frozen=True)
class LeastSquaresOptions(FitOptions):
    """Options of the least-squares model; the defaults make it the ordinary one."""

    weights: Literal["relative", "uniform"] = option(
        "uniform", "Whether errors count relative to the measured time, or in seconds."
    )
    loss: Literal["huber", "squares"] = option(
        "squares",
        "Whether residuals count by Huber's loss, which limits outliers, or by their square.",
    )
    basis: Literal["quadratic", "linear"] = option(
        "quadratic", "Terms of the fit: 1, p and p² of each parameter, or 1 and p."
    )


class LeastSquares(Model[LeastSquaresOptions]):
    """Fit 1, p and p² of each parameter to the times, for each event and parameter count.

    Choose it to compare with a textbook fit, or if each event is known to be a polynomial.
    """

    Options = LeastSquaresOptions

    def fit(self, timings: Timings) -> FittedEvents:
        """Return the fits; raise `ModelError` if an event and parameter count is duplicated."""
        return fit_events("least-squares", self.options, timings, self._fit_event)

    def _fit_event(self, timings: EventTimings) -> EventFit:
        options = self.options
        families = {f"{options.basis} basis": Polynomial(HIGHEST_POWER[options.basis]).family}
        config = FitConfig(options.weights, options.loss, options.exact_match, families=families)
        return fit_event(timings, config)
