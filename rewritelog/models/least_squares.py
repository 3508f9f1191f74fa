"""The model `least-squares`: each event's times as a polynomial of its parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from msgspec import structs

from rewritelog.models.base import EventTimings, option
from rewritelog.models.expressions import parse
from rewritelog.models.fitting.bases.sums import fixed_terms
from rewritelog.models.fitting.pipeline import FitConfig
from rewritelog.models.fitting.regression import Loss
from rewritelog.models.fitting.samples import Weighting
from rewritelog.models.term_model import FitOptions, TermModel

POWERS = {"linear": ("p{}",), "quadratic": ("p{}", "p{}^2")}
"""The terms of a parameter in each basis."""


@dataclass(frozen=True)
class LeastSquaresOptions(FitOptions):
    """Options of the model `least-squares`; the defaults are ordinary least squares."""

    weights: Weighting = option(
        "uniform", "Whether errors count relative to the measured time, or in seconds."
    )
    loss: Loss = option(
        "squares",
        "Whether residuals count by Huber's loss, which limits outliers, or by their square.",
    )
    basis: Literal["quadratic", "linear"] = option(
        "quadratic", "Terms of the fit: 1, p and p² of each parameter, or 1 and p."
    )


class LeastSquares(TermModel[LeastSquaresOptions]):
    """Fit 1, p and p² of each parameter to the times, for each event and parameter count.

    Choose it to compare with a textbook fit, or if each event is known to be a polynomial.
    """

    name = "least-squares"
    Options = LeastSquaresOptions

    def config(self, timings: EventTimings) -> FitConfig:
        """Return how an event is fitted: with the terms of the basis, lower powers first."""
        basis, numbers = self.options.basis, range(1, timings.parameters + 1)
        texts = ("1", *(power.format(number) for power in POWERS[basis] for number in numbers))
        family = fixed_terms(tuple(map(parse, texts)), may_be_negative=True)
        return structs.replace(super().config(timings), families={f"{basis} basis": family})
