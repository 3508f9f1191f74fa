"""All events with their fits as they stand, what was done, and what can be undone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from rewritelog.models.auto import Auto
from rewritelog.models.base import EventTimings, ModelText
from rewritelog.models.fitted_events import FittedEvents
from rewritelog.models.fitting.single_terms import single_term_laws
from rewritelog.models.formulas import Formulas
from rewritelog.models.options import AutoOptions
from rewritelog.models.parallel import map_in_processes
from rewritelog.progress import report_progress
from rewritelog.text import json_number
from rewritelog.timings.read import TimingsRead
from rewritelog.viewing.event_data import MOST_POINTS, SEED, drawn_rows, event_json, packed
from rewritelog.viewing.events import EventView
from rewritelog.viewing.explorer.asking import Sizes
from rewritelog.viewing.explorer.choices import FitChoices, Result
from rewritelog.viewing.overview import row_html


@dataclass(frozen=True)
class Change:
    """A step that can be undone."""

    event: int
    before: Result
    after: Result


class Session:
    """The events of a page, numbered as in its overview."""

    def __init__(
        self, read: TimingsRead, entries: Sequence[int], results: Sequence[Result], unfitted: Any
    ) -> None:
        self.read = read
        self.entries = tuple(entries)
        """Which entry of the timings each event is."""
        self.results = list(results)
        self.first = tuple(results)
        self._unfitted = unfitted
        self._done: list[Change] = []
        self._undone: list[Change] = []
        self.version = 0
        """Counts the changes."""
        self.most_parameters = max(
            (self.timings(k).params.shape[1] for k in self.numbers), default=0
        )

    @property
    def numbers(self) -> range:
        """Return the numbers of all events."""
        return range(len(self.entries))

    @property
    def sizes(self) -> Sizes:
        """Return what a request can name."""
        every = [self.timings(number) for number in self.numbers]
        return Sizes(
            tuple(len(one.seconds) for one in every), tuple(one.params.shape[1] for one in every)
        )

    def timings(self, event: int) -> EventTimings:
        """Return the lines of an event."""
        return self.read.timings[self.entries[event]]

    def view(self, event: int) -> EventView:
        """Return what the page shows of an event."""
        where = partial(self.read.where, self.entries[event])
        return self.results[event].view(self.timings(event), where)

    def put(self, event: int, result: Result) -> None:
        """Take a new fit of an event; what was undone is forgotten."""
        self._done.append(Change(event, self.results[event], result))
        self._undone.clear()
        self._set(event, result)

    def undo(self) -> int | None:
        """Take back the last step; return its event, None where there is none."""
        if not self._done:
            return None
        change = self._done.pop()
        self._undone.append(change)
        self._set(change.event, change.before)
        return change.event

    def redo(self) -> int | None:
        """Take the last step that was undone again; return its event, None where there is none."""
        if not self._undone:
            return None
        change = self._undone.pop()
        self._done.append(change)
        self._set(change.event, change.after)
        return change.event

    def _set(self, event: int, result: Result) -> None:
        self.results[event] = result
        self.version += 1

    @property
    def steps(self) -> dict[str, int]:
        """Return how many steps can be undone and redone."""
        return {"undo": len(self._done), "redo": len(self._undone)}

    def before(self, event: int) -> Result | None:
        """Return the fit before the last step with an event; None where there was none."""
        return next((one.before for one in reversed(self._done) if one.event == event), None)

    def fitted(self) -> FittedEvents:
        """Return the model as it stands, whose file says which lines were left out."""
        fits = {
            (result.fit.event, result.fit.parameters): result.fit
            for _, result in sorted(zip(self.entries, self.results, strict=True), key=_entry)
        }
        left_out = [
            self.read.where(entry, row)
            for entry, result in sorted(zip(self.entries, self.results, strict=True), key=_entry)
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
            for result in self.results
        ]
        plain = FitChoices()
        odd = [one for one in changed if any(one[k] != getattr(plain, k) for k in _OPTIONS)]
        extra: dict[str, Any] = {"left_out": left_out} if left_out else {}
        extra |= {"options_of_events": odd} if odd else {}
        options = {name: getattr(plain, name) for name in _OPTIONS}
        return FittedEvents("auto", options, fits, self._unfitted, extra=extra)

    def first_fitted(self) -> FittedEvents:
        """Return the model as it was at the start."""
        fits = {(result.fit.event, result.fit.parameters): result.fit for result in self.first}
        return FittedEvents("auto", {}, fits, self._unfitted)

    def kept_timings(self) -> tuple[EventTimings, ...]:
        """Return the samples that the model is fitted to, in the order of the files."""
        kept = list(self.read.timings)
        for entry, result in zip(self.entries, self.results, strict=True):
            kept[entry] = kept[entry].part(result.choices.kept(len(kept[entry].seconds)))
        return tuple(kept)

    def event_json(self, event: int) -> dict[str, Any]:
        """Return an event as the page has it, with the law before the last step beside it."""
        view = self.view(event)
        row = row_html(view, event, self.most_parameters)
        return event_json(view) | self.comparison(event) | {"row": row}

    def event_state(self, event: int) -> dict[str, Any]:
        """Return how an event is fitted, and how good that is."""
        result = self.results[event]
        return {
            "choices": result.choices.to_json(),
            "changed": result is not self.first[event],
            "terms": [str(term) for term in result.fit.whole.function.terms],
            "numbers": _json_numbers(result.numbers(self.timings(event))),
        }

    def comparison(self, event: int) -> dict[str, Any]:
        """Return the numbers and predictions of the law before the last step."""
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
                "summary": made["summary"],
                "points": packed(shown.predicted_s[rows][:, None]),
                "curves": made["curves"],
                "steps": made["steps"],
            }
        }

    def predict(self, event: int, params: Sequence[float]) -> dict[str, Any]:
        """Return what the law says of parameters."""
        fit = self.results[event].fit
        table = np.array([params], dtype=np.float64).reshape(1, -1)
        found = fit.predict_detailed(table)
        low, high = fit.interval(table)
        said = "exact match" if found.exact[0] else "law"
        if found.outside[0]:
            said += ", outside the range of the lines"
        return {
            "seconds": json_number(max(float(found.seconds[0]), 0.0)),
            "low": json_number(float(low[0])),
            "high": json_number(float(high[0])),
            "by": said,
        }


_OPTIONS = ("weights", "loss", "exact_match")


def _entry(pair: tuple[int, Result]) -> int:
    return pair[0]


def _json_numbers(numbers: dict[str, float | None]) -> dict[str, float | None]:
    return {name: json_number(value) for name, value in numbers.items()}


def begin(read: TimingsRead, text: ModelText | None, formulas: Formulas | None) -> Session:
    """Fit all events as `fit` does, and try the laws of one term; the worst event comes first."""
    fitted = Auto(AutoOptions(), text).fit(read.timings)
    entries = [
        entry
        for entry, timings in enumerate(read.timings)
        if (timings.event, timings.params.shape[1]) in fitted.fits
    ]
    laws = []
    for found in map_in_processes(single_term_laws, [read.timings[k] for k in entries]):
        laws.append(found)
        report_progress("trying laws of one term, event", len(laws), len(entries))
    results = []
    for entry, tried in zip(entries, laws, strict=True):
        timings = read.timings[entry]
        count = timings.params.shape[1]
        formula = None if formulas is None else formulas.for_event(timings.event, count)
        fit = fitted.fits[timings.event, count]
        results.append((entry, Result(FitChoices.of_formula(formula), fit, tried)))
    results.sort(key=lambda one: _r2(one[1]))
    return Session(
        read, [entry for entry, _ in results], [result for _, result in results], fitted.unfitted
    )


def _r2(result: Result) -> tuple[bool, float]:
    r2 = result.fit.whole.quality.held_out_r2
    return r2 is None, r2 or 0.0
