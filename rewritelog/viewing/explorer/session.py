"""All events with their current fits, and the steps that can be undone or redone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from rewritelog.errors import UsageError
from rewritelog.models.auto import Auto
from rewritelog.models.base import EventTimings, ModelText
from rewritelog.models.fitted_events import FittedEvents
from rewritelog.models.fitting.event_fit import usable_part
from rewritelog.models.fitting.single_terms import SingleTermFunctions, single_term_functions
from rewritelog.models.formulas import Formulas, parse_formulas
from rewritelog.models.options import AutoOptions
from rewritelog.models.param_names import ParamNames
from rewritelog.text import json_number
from rewritelog.timings.read import TimingsRead
from rewritelog.viewing.event_data import MOST_POINTS, SEED, drawn_rows, event_json, packed
from rewritelog.viewing.events import EventView, view_of
from rewritelog.viewing.explorer.choices import FitChoices, Result
from rewritelog.viewing.explorer.requests import Sizes
from rewritelog.viewing.overview import row_html


@dataclass(frozen=True)
class Step:
    """A step that can be undone."""

    event: int
    before: Result | None
    after: Result


class Session:
    """The events that have usable lines; none is fitted at first."""

    def __init__(
        self, read: TimingsRead, text: ModelText | None = None, names: ParamNames | None = None
    ) -> None:
        self.read = read
        self._names = names
        usable = [len(usable_part(timings).seconds) > 0 for timings in read.timings]
        self.entries = tuple(np.flatnonzero(usable).tolist())
        """The index of each event in the timings."""
        self._unfitted = tuple(
            timings.key
            for timings, is_usable in zip(read.timings, usable, strict=True)
            if not is_usable
        )
        self._auto = Auto(AutoOptions(), text)
        formulas = None if text is None else parse_formulas(text.text, text.name)
        self.first_choices = tuple(self._choices(number, formulas) for number in self.numbers)
        """How each event is fitted at first."""
        self.first: list[Result | None] = [None for _ in self.numbers]
        self.results: list[Result | None] = [None for _ in self.numbers]
        """The current fits; None for an event that is not fitted yet."""
        self.fitting = True
        """Whether first fits are still in progress."""
        self._views: dict[int, EventView] = {}
        """The views of the current fits."""
        self._done: list[Step] = []
        self._undone: list[Step] = []
        self.version = 0
        """Number of changes so far."""
        self.most_parameters = max((self.timings(k).parameters for k in self.numbers), default=0)

    def _choices(self, event: int, formulas: Formulas | None) -> FitChoices:
        timings = self.timings(event)
        if formulas is None:
            return FitChoices()
        count = timings.parameters
        return FitChoices.of_formula(formulas.for_event(timings.event, count))

    def first_fit(self, event: int) -> Result:
        """Fit an event as `fit` does, and try the functions of one term."""
        timings = self.timings(event)
        (fit,) = self._auto.fit((timings,)).fits.values()
        if self._names is not None and not fit.names:
            names = self._names.for_event(timings.event, timings.parameters)
            fit = replace(fit, names=names)
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
        return (*self.read.warnings(), *unused)

    @property
    def numbers(self) -> range:
        """Return the numbers of all events."""
        return range(len(self.entries))

    @property
    def sizes(self) -> Sizes:
        """Return the sizes against which requests are checked."""
        every = [self.timings(number) for number in self.numbers]
        return Sizes(
            tuple(len(timings.seconds) for timings in every),
            tuple(timings.parameters for timings in every),
        )

    def timings(self, event: int) -> EventTimings:
        """Return the lines of an event."""
        return self.read.timings[self.entries[event]]

    def view(self, event: int) -> EventView:
        """Return what the page shows of an event."""
        if event not in self._views:
            where = partial(self.read.where, self.entries[event])
            result, timings = self.results[event], self.timings(event)
            if result is None:
                unfitted, untried = FittedEvents("auto", {}, {}), SingleTermFunctions((), ())
                self._views[event] = view_of(timings, unfitted, untried, where)
            else:
                self._views[event] = result.view(timings, where)
        return self._views[event]

    def put(self, event: int, result: Result) -> None:
        """Store a new fit of an event as a step; steps that were undone are forgotten."""
        first = self.first[event]
        if first is not None:
            result = replace(result, fit=replace(result.fit, names=first.fit.names))
        self._done.append(Step(event, self.results[event], result))
        self._undone.clear()
        self._set(event, result)

    def undo(self) -> int | None:
        """Undo the last step; return its event, None if there is no step."""
        if not self._done:
            return None
        change = self._done.pop()
        self._undone.append(change)
        self._set(change.event, change.before)
        return change.event

    def redo(self) -> int | None:
        """Redo the step that was undone last; return its event, None if there is none."""
        if not self._undone:
            return None
        change = self._undone.pop()
        self._done.append(change)
        self._set(change.event, change.after)
        return change.event

    def _set(self, event: int, result: Result | None) -> None:
        self.results[event] = result
        self._views.pop(event, None)
        self.version += 1

    @property
    def steps(self) -> dict[str, int]:
        """Return the numbers of steps that can be undone and redone, by name."""
        return {"undo": len(self._done), "redo": len(self._undone)}

    @property
    def fitted_events(self) -> int:
        """Return the number of events whose first fit is done."""
        return sum(result is not None for result in self.first)

    def before(self, event: int) -> Result | None:
        """Return an event's fit before its last step, None if there was none."""
        return next((step.before for step in reversed(self._done) if step.event == event), None)

    def fitted(self) -> FittedEvents:
        """Return the current model, whose file lists the lines left out."""
        known = [
            (entry, result)
            for entry, result in zip(self.entries, self.results, strict=True)
            if result is not None
        ]
        fits = {(result.fit.event, result.fit.parameters): result.fit for _, result in known}
        left_out = [
            self.read.where(entry, row)
            for entry, result in known
            for row in sorted(result.choices.left_out)
        ]
        changed = [
            {
                "event": result.fit.event,
                "parameters": result.fit.parameters,
                "weights": result.choices.weights,
                "loss": result.choices.loss,
                "exact_match": result.choices.exact_match,
            }
            for _, result in known
        ]
        plain = FitChoices()
        odd = [
            options for options in changed if any(options[k] != getattr(plain, k) for k in _OPTIONS)
        ]
        extra: dict[str, Any] = {"left_out": left_out} if left_out else {}
        extra |= {"options_of_events": odd} if odd else {}
        options = {name: getattr(plain, name) for name in _OPTIONS}
        return FittedEvents("auto", options, fits, self._unfitted, extra=extra)

    def first_fitted(self) -> FittedEvents:
        """Return the model of the first fits."""
        fits = {
            (result.fit.event, result.fit.parameters): result.fit
            for result in self.first
            if result is not None
        }
        return FittedEvents("auto", {}, fits, self._unfitted)

    def kept_timings(self) -> tuple[EventTimings, ...]:
        """Return the samples that the model is fitted to, in the order of the files."""
        kept = list(self.read.timings)
        for entry, result in zip(self.entries, self.results, strict=True):
            if result is not None:
                kept[entry] = kept[entry].part(result.choices.kept(len(kept[entry].seconds)))
        return tuple(kept)

    def event_json(self, event: int) -> dict[str, Any]:
        """Return the page's data of an event, with the fit before its last step."""
        row = {"row": self.row(event)}
        return event_json(self.view(event)) | self.comparison(event) | row

    def row(self, event: int) -> str:
        """Return an event's row of the overview, as HTML."""
        return row_html(self.view(event), event, self.most_parameters)

    def is_changed(self, event: int) -> bool:
        """Return whether an event's fit differs from its first one."""
        return self.results[event] is not self.first[event]

    def event_state(self, event: int) -> dict[str, Any]:
        """Return how an event is fitted, and the quality of the fit."""
        result = self.results[event]
        if result is None:
            choices = self.first_choices[event].to_json()
            return {"choices": choices, "changed": False, "terms": [], "numbers": {}}
        return {
            "choices": result.choices.to_json(),
            "changed": self.is_changed(event),
            "terms": [str(term) for term in result.fit.whole.function.terms],
            "numbers": _json_numbers(result.numbers(self.timings(event))),
        }

    def comparison(self, event: int) -> dict[str, Any]:
        """Return the numbers and predictions of the fit before the last step."""
        before = self.before(event)
        if before is None:
            return {"before": None}
        timings = self.timings(event)
        shown = before.view(timings, str)
        made = event_json(shown)
        rows = drawn_rows(shown, MOST_POINTS, SEED)
        return {
            "before": {
                "numbers": _json_numbers(before.numbers(timings)),
                "points": packed(shown.predicted_s[rows][:, None]),
                "curves": made["curves"],
                "steps": made["steps"],
            }
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


_OPTIONS = ("weights", "loss", "exact_match")


def _json_numbers(numbers: dict[str, float | None]) -> dict[str, float | None]:
    return {name: json_number(value) for name, value in numbers.items()}
