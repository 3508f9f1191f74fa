"""All events with their current fits: how each is fitted, and the steps that can be undone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, TypeAlias

import numpy as np
from msgspec import Meta, Struct
from msgspec.structs import asdict

from rewritelog.arrays import Flags
from rewritelog.errors import UsageError
from rewritelog.models.auto import Auto, AutoOptions
from rewritelog.models.base import EventKey, EventTimings, ModelText
from rewritelog.models.exact_matches import ExactMatch
from rewritelog.models.expressions import Expression, Origin, parse
from rewritelog.models.fitted_events import FittedEvents
from rewritelog.models.fitting.event_fit import EventFit
from rewritelog.models.fitting.pipeline import FitConfig, fit_event
from rewritelog.models.fitting.regression import Loss
from rewritelog.models.fitting.samples import Weighting
from rewritelog.models.fitting.single_terms import SingleTermFunctions, single_term_functions
from rewritelog.models.formulas import MAX_TERMS, EventFormula, ParamNames, parse_formulas
from rewritelog.models.metrics import mean_relative_error
from rewritelog.text import json_number
from rewritelog.timings.samples import Timings
from rewritelog.viewing.events import EventView, event_json
from rewritelog.viewing.fit_pages import row_html

LONGEST_TERM = 900
"""The maximum number of characters of a term; a line of a formulas file has at most 1000."""


Text: TypeAlias = Annotated[str, Meta(max_length=LONGEST_TERM + 1)]
Index: TypeAlias = Annotated[int, Meta(ge=0)]


class FitChoices(Struct, frozen=True, forbid_unknown_fields=True):
    """How one event is fitted."""

    terms: Annotated[tuple[Text, ...], Meta(max_length=MAX_TERMS)] = ()
    """Texts of the terms; empty for the automatic choice."""
    category: Text = ""
    """Text of the expression that splits the event into classes; empty for none."""
    weights: Weighting = "relative"
    loss: Loss = "huber"
    exact_match: ExactMatch = "auto"
    left_out: frozenset[Index] = frozenset()
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
        left_out = ~self.choices.kept(len(timings.seconds))
        return EventView(timings, fitted, self.single_terms, where, left_out=left_out)

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
    if not len(kept.usable().seconds):
        raise UsageError("no line with usable numbers is left to fit to: put some back")
    single_terms = single_term_functions(kept, choices.weights, choices.loss)
    return Result(choices, fit_event(kept, config), single_terms)


class Session:
    """The events that have usable lines; none is fitted at first."""

    def __init__(
        self, read: Timings, text: ModelText | None = None, names: ParamNames | None = None
    ) -> None:
        self.read = read
        self._names = names
        usable = [len(timings.usable().seconds) > 0 for timings in read.timings]
        self.entries = tuple(np.flatnonzero(usable).tolist())
        """The index of each event in the timings."""
        self._unfitted = tuple(
            timings.key
            for timings, is_usable in zip(read.timings, usable, strict=True)
            if not is_usable
        )
        self._auto = Auto(AutoOptions(), text)
        formulas = None if text is None else parse_formulas(text.text, text.name)
        self.events = tuple(read.timings[entry] for entry in self.entries)
        """The lines of each event."""
        self.first_choices = tuple(
            FitChoices.of_formula(None if formulas is None else formulas.for_event(*timings.key))
            for timings in self.events
        )
        """How each event is fitted at first."""
        self.first: list[Result | None] = [None for _ in self.numbers]
        self.results: list[Result | None] = [None for _ in self.numbers]
        """The current fits; None for an event that is not fitted yet."""
        self.fitting = True
        """Whether first fits are still in progress."""
        self._views: dict[int, EventView] = {}
        """The views of the current fits."""
        self._history: list[tuple[int, Result | None, Result]] = []
        """The event of each step, and its fits before and after it."""
        self._done = 0
        """The number of steps in the history that are not undone."""
        self.version = 0
        """Number of changes so far."""
        self.most_parameters = max((timings.parameters for timings in self.events), default=0)

    def first_fit(self, event: int) -> Result:
        """Fit an event as `fit` does, and try the functions of one term."""
        timings = self.events[event]
        (fit,) = self._auto.fit((timings,)).fits.values()
        if self._names is not None and not fit.names:
            names = self._names.for_event(timings.event, timings.parameters)
            fit = fit.named(names)
        return Result(self.first_choices[event], fit, single_term_functions(timings))

    def take_first(self, event: int, result: Result) -> None:
        """Store an event's first fit, which cannot be undone."""
        self.first[event] = result
        if self.results[event] is None:
            self._set(event, result)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return the warnings of the timings, and of names that no event has."""
        keys = [timings.key for timings in self.read.timings]
        unused = () if self._names is None else self._names.unused(keys)
        return (*self.read.warnings, *unused)

    @property
    def numbers(self) -> range:
        """Return the numbers of all events."""
        return range(len(self.entries))

    def view(self, event: int) -> EventView:
        """Return what the page shows of an event."""
        if event not in self._views:
            where = partial(self.read.where, self.entries[event])
            result, timings = self.results[event], self.events[event]
            if result is None:
                unfitted, untried = FittedEvents("auto", {}, {}), SingleTermFunctions((), {})
                self._views[event] = EventView(timings, unfitted, untried, where)
            else:
                self._views[event] = result.view(timings, where)
        return self._views[event]

    def put(self, event: int, result: Result) -> None:
        """Store a new fit of an event as a step; steps that were undone are forgotten."""
        first = self.first[event]
        if first is not None:
            result = replace(result, fit=result.fit.named(first.fit.names))
        self._history[self._done :] = [(event, self.results[event], result)]
        self._done += 1
        self._set(event, result)

    def undo(self) -> int:
        """Undo the last step and return its event; raise `UsageError` if there is no step."""
        if not self._done:
            raise UsageError("there is nothing to undo")
        self._done -= 1
        event, before, _ = self._history[self._done]
        self._set(event, before)
        return event

    def redo(self) -> int:
        """Redo the step undone last and return its event; raise `UsageError` if there is none."""
        if self._done == len(self._history):
            raise UsageError("there is nothing to redo")
        event, _, after = self._history[self._done]
        self._done += 1
        self._set(event, after)
        return event

    def _set(self, event: int, result: Result | None) -> None:
        self.results[event] = result
        self._views.pop(event, None)
        self.version += 1

    @property
    def steps(self) -> dict[str, int]:
        """Return the numbers of steps that can be undone and redone, by name."""
        return {"undo": self._done, "redo": len(self._history) - self._done}

    @property
    def fitted_events(self) -> int:
        """Return the number of events whose first fit is done."""
        return sum(result is not None for result in self.first)

    def fitted(self) -> FittedEvents:
        """Return the current model, whose file lists the lines left out."""
        known = [
            (entry, result)
            for entry, result in zip(self.entries, self.results, strict=True)
            if result is not None
        ]
        left_out = [
            self.read.where(entry, row)
            for entry, result in known
            for row in sorted(result.choices.left_out)
        ]
        plain = FitChoices().options
        odd = [
            {"event": fit.event, "parameters": fit.parameters, **choices.options}
            for fit, choices in ((result.fit, result.choices) for _, result in known)
            if choices.options != plain
        ]
        extra: dict[str, Any] = {"left_out": left_out} if left_out else {}
        extra |= {"options_of_events": odd} if odd else {}
        return FittedEvents("auto", plain, _fits(self.results), self._unfitted, extra=extra)

    def first_fitted(self) -> FittedEvents:
        """Return the model of the first fits."""
        return FittedEvents("auto", {}, _fits(self.first), self._unfitted)

    def kept_timings(self) -> tuple[EventTimings, ...]:
        """Return the samples that the model is fitted to, in the order of the files."""
        kept = list(self.read.timings)
        for entry, result in zip(self.entries, self.results, strict=True):
            if result is not None:
                kept[entry] = kept[entry].part(result.choices.kept(len(kept[entry].seconds)))
        return tuple(kept)

    def row(self, event: int) -> str:
        """Return an event's row of the overview, as HTML."""
        return row_html(self.view(event), event, self.most_parameters)

    def is_changed(self, event: int) -> bool:
        """Return whether an event's fit differs from its first one."""
        return self.results[event] is not self.first[event]

    def state_of(self, event: int) -> dict[str, Any]:
        """Return how the page shows an event, how it is fitted, and the quality of the fit."""
        data = event_json(self.view(event))
        data |= {"row": self.row(event), "before": self._before(event)}
        result, choices = self.results[event], self.first_choices[event]
        state: dict[str, Any] = {"changed": self.is_changed(event), "terms": [], "numbers": {}}
        if result is not None:
            choices = result.choices
            state["terms"] = [str(term) for term in result.fit.whole.function.terms]
            state["numbers"] = result.numbers(self.events[event])
        state["choices"] = choices.to_json()
        return {"event": event, "data": data, "state": state, "steps": self.steps}

    def _before(self, event: int) -> dict[str, Any] | None:
        """Return the numbers and predictions of an event's fit before its last step, if any."""
        done = reversed(self._history[: self._done])
        steps = (before for changed, before, _ in done if changed == event)
        before, timings = next(steps, None), self.events[event]
        if before is None:
            return None
        view = before.view(timings, str)
        made = event_json(view)
        return {
            "numbers": before.numbers(timings),
            "points": view.predicted_s[made["rows"]],
            "curves": made["curves"],
            "steps": made["steps"],
        }

    def predict(self, event: int, params: Sequence[float]) -> dict[str, Any]:
        """Return the fit's prediction and interval; raise `UsageError` if there is no fit yet."""
        result = self.results[event]
        if result is None:
            raise UsageError("the event is not fitted yet")
        fit = result.fit
        table = np.array([params], dtype=np.float64).reshape(1, -1)
        prediction = fit.predict_detailed(table)
        low, high = fit.interval(table)
        basis = "exact match" if prediction.exact[0] else "fit"
        if prediction.outside[0]:
            basis += ", outside the range of the lines"
        return {
            "seconds": json_number(max(float(prediction.seconds[0]), 0.0)),
            "low": json_number(float(low[0])),
            "high": json_number(float(high[0])),
            "by": basis,
        }


def _fits(results: Sequence[Result | None]) -> dict[EventKey, EventFit]:
    """Return the fits of the events that have one."""
    fits = [result.fit for result in results if result is not None]
    return {(fit.event, fit.parameters): fit for fit in fits}
