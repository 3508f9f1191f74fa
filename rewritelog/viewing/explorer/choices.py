"""How an event is fitted (terms, category, weights, lines left out), and the result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from rewritelog.arrays import Flags
from rewritelog.errors import UsageError
from rewritelog.models.base import EventTimings
from rewritelog.models.exact_matches import ExactMatch
from rewritelog.models.expressions import Expression, Origin, parse
from rewritelog.models.fitted_events import FittedEvents
from rewritelog.models.fitting.event_fit import EventFit
from rewritelog.models.fitting.pipeline import FitConfig, fit_event
from rewritelog.models.fitting.regression import Loss
from rewritelog.models.fitting.samples import Weighting
from rewritelog.models.fitting.single_terms import SingleTermFunctions, single_term_functions
from rewritelog.models.formulas import MAX_TERMS, EventFormula
from rewritelog.models.metrics import mean_relative_error
from rewritelog.text import json_number
from rewritelog.viewing.events import EventView, view_of

LONGEST_TERM = 900
"""The maximum number of characters of a term; a line of a formulas file has at most 1000."""


@dataclass(frozen=True)
class FitChoices:
    """How one event is fitted."""

    terms: tuple[str, ...] = ()
    """Texts of the terms; empty for the automatic choice."""
    category: str = ""
    """Text of the expression that splits the event into classes; empty for none."""
    weights: Weighting = "relative"
    loss: Loss = "huber"
    exact_match: ExactMatch = "auto"
    left_out: frozenset[int] = frozenset()
    """Rows of the event's lines that are excluded from the fit."""

    @classmethod
    def of_formula(cls, formula: EventFormula | None) -> FitChoices:
        """Return the choices of a formulas file's entry for an event; None means no entry."""
        if formula is None:
            return cls()
        category = "" if formula.category is None else str(formula.category)
        return cls(tuple(map(str, formula.terms)), category)

    def to_json(self) -> dict[str, Any]:
        """Return the choices as JSON types."""
        return asdict(self) | {"terms": list(self.terms), "left_out": sorted(self.left_out)}

    @property
    def options(self) -> dict[str, str]:
        """The options of the fit, by name."""
        return {"weights": self.weights, "loss": self.loss, "exact_match": self.exact_match}

    def kept(self, lines: int) -> Flags:
        """Return which of `lines` lines the fit uses."""
        kept = np.ones(lines, dtype=np.bool_)
        kept[sorted(self.left_out)] = False
        return kept

    def config(self, parameters: int) -> FitConfig:
        """Return the fit's configuration; raise `FormulaError` for an invalid text."""
        config = FitConfig(self.weights, self.loss, self.exact_match)
        if self.category and not self.terms:
            raise UsageError("a category needs a formula: type its terms")
        if self.category:
            category = parsed(self.category, parameters, Origin("category", 1))
            config = replace(config, category=category)
        if not self.terms:
            return config
        return config.with_terms("formula", parsed_terms(self.terms, parameters))


def parsed_terms(texts: tuple[str, ...], parameters: int) -> tuple[Expression, ...]:
    """Return the terms of a formula, one per line.

    Raise `FormulaError` with line and column for an invalid or duplicate term.
    """
    terms: list[Expression] = []
    for number, text in enumerate(texts, 1):
        where = Origin("formula", number)
        if len(terms) == MAX_TERMS:
            raise where.error(f"a formula has at most {MAX_TERMS} terms")
        term = parsed(text, parameters, where)
        if term in terms:
            raise where.error(f"the term {text!r} is duplicated")
        terms.append(term)
    return tuple(terms)


def parsed(text: str, parameters: int, where: Origin) -> Expression:
    """Return an expression over the parameters; raise `FormulaError` with line and column."""
    if len(text) > LONGEST_TERM:
        raise where.error(f"a term has at most {LONGEST_TERM} characters", LONGEST_TERM)
    return parse(text, parameters=parameters, where=where)


@dataclass(frozen=True)
class Result:
    """An event's choices and the resulting fit."""

    choices: FitChoices
    fit: EventFit
    single_terms: SingleTermFunctions

    def view(self, timings: EventTimings, where: Callable[[int], str]) -> EventView:
        """Return what the page shows of all lines, including those left out."""
        fitted = FittedEvents("auto", {}, {timings.key: self.fit})
        shown = view_of(timings, fitted, self.single_terms, where)
        return replace(shown, left_out=~self.choices.kept(len(timings.seconds)))

    def numbers(self, timings: EventTimings) -> dict[str, float | None]:
        """Return measures of the fit's quality on its own lines and on held-out lines, by name."""
        quality = self.fit.whole.quality
        kept = timings.part(self.choices.kept(len(timings.seconds)))
        predicted = np.maximum(self.fit.predict(kept.params), 0.0)
        numbers = {
            "R² on the lines of the fit": quality.r2,
            "mean error on the lines of the fit": mean_relative_error(predicted, kept.seconds),
            "R² on held-out lines": quality.held_out_r2,
            "mean error on held-out lines": quality.held_out_error,
            "error of the sum on held-out lines": quality.held_out_sum_error,
        }
        return {name: json_number(value) for name, value in numbers.items()}


def fitted(timings: EventTimings, choices: FitChoices) -> Result:
    """Fit an event as chosen; raise a `RewriteLogError` if that is impossible."""
    config = choices.config(timings.parameters)
    kept = timings.part(choices.kept(len(timings.seconds)))
    if not kept.usable.any():
        raise UsageError("no line with usable numbers is left to fit to: put some back")
    single_terms = single_term_functions(kept, choices.weights, choices.loss)
    return Result(choices, fit_event(kept, config), single_terms)
