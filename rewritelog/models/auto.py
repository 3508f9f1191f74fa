"""The model `auto`: for each event the function that predicts held-out samples best."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from rewritelog.models.base import EventTimings, Model, ModelText, Timings, option
from rewritelog.models.fitted_events import FitOptions, FittedEvents, fit_events
from rewritelog.models.fitting.bases.sums import fixed_terms
from rewritelog.models.fitting.event_fit import EventFit
from rewritelog.models.fitting.pipeline import FitConfig, fit_event
from rewritelog.models.formulas import parse_formulas


@dataclass(frozen=True)
class AutoOptions(FitOptions):
    """Options of the automatic model."""

    correction: Literal["auto", "none"] = option(
        "auto",
        "Whether a formula is corrected by a smooth function of the parameters where that clearly "
        "predicts held-out samples better, or never.",
    )


class Auto(Model[AutoOptions]):
    """Fit each event by the family that cross-validation prefers, or by its formula.

    Choose it unless you have a reason not to: it finds powers, products, logarithms, breaks and
    growth by itself, and says how well each predicts samples that it was not fitted to.
    """

    Options = AutoOptions
    takes_text = "formulas"

    def __init__(self, options: AutoOptions, text: ModelText | None = None) -> None:
        super().__init__(options, text)
        self._formulas = None if text is None else parse_formulas(text.text, text.name)
        self._config = FitConfig(
            options.weights, options.loss, options.exact_match, options.correction
        )

    def fit(self, timings: Timings) -> FittedEvents:
        """Return a fit for each event."""
        fitted = fit_events("auto", self.options, timings, self._fit_event)
        if self._formulas is None:
            return fitted
        notes = self._formulas.without_use((*fitted.fits, *fitted.unfitted))
        return replace(fitted, notes=notes, extra={"formulas": self._formulas.name})

    def _fit_event(self, timings: EventTimings) -> EventFit:
        """Fit one event, with its formula if the file has one for it."""
        formula = None
        if self._formulas is not None:
            formula = self._formulas.for_event(timings.event, timings.parameters)
        if formula is None:
            return fit_event(timings, self._config)
        families = {"formula": fixed_terms(formula.terms)}
        config = replace(self._config, families=families, category=formula.category)
        return fit_event(timings, config).named(formula.names)
