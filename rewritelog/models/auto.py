"""The model `auto`: for each event the function that predicts held-out samples best."""

from __future__ import annotations

from dataclasses import dataclass, replace

from msgspec import structs

from rewritelog.models.base import EventTimings, ModelText, Timings, option
from rewritelog.models.fitted_events import FittedEvents
from rewritelog.models.fitting.bases.sums import fixed_terms
from rewritelog.models.fitting.correction import UseCorrection
from rewritelog.models.fitting.pipeline import FitConfig
from rewritelog.models.formulas import Formulas, parse_formulas
from rewritelog.models.term_model import FitOptions, TermModel


@dataclass(frozen=True)
class AutoOptions(FitOptions):
    """Options of the model `auto`."""

    correction: UseCorrection = option(
        "auto",
        "Whether a formula is corrected by a smooth function of the parameters where that clearly "
        "predicts held-out samples better, or never.",
    )


class Auto(TermModel[AutoOptions]):
    """Fit each event by the family that cross-validation prefers, or by its formula.

    Choose it unless you have a reason not to: it finds powers, products, logarithms, breaks and
    growth by itself, and says how well each predicts samples that it was not fitted to.
    """

    name = "auto"
    Options = AutoOptions
    takes_text = "formulas"

    def __init__(self, options: AutoOptions, text: ModelText | None = None) -> None:
        super().__init__(options, text)
        self._formulas = Formulas() if text is None else parse_formulas(text.text, text.name)

    def fit(self, timings: Timings) -> FittedEvents:
        """Return the fit of each event; raise `ModelError` if one fails."""
        fitted = super().fit(timings)
        notes = self._formulas.unused((*fitted.fits, *fitted.unfitted))
        return replace(fitted, notes=notes)

    def config(self, timings: EventTimings) -> FitConfig:
        """Return how an event is fitted: with its formula, if the file has one for it."""
        config = structs.replace(super().config(timings), correction=self.options.correction)
        formula = self._formulas.for_event(*timings.key)
        if formula is None:
            return config
        families = {"formula": fixed_terms(formula.terms)}
        return structs.replace(
            config, families=families, category=formula.category, names=formula.names
        )
