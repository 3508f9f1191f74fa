"""The job of `fit`: a model fitted to timing lines, its report, and its model file."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import rewritelog
from rewritelog.commands.fits import FitCommand
from rewritelog.errors import OutputError, UsageError, UsageTypeError, spelled
from rewritelog.models.base import Model
from rewritelog.models.fitted import Fitted, Source
from rewritelog.models.fitted_events import FittedEvents
from rewritelog.models.model_file import model_file_text, size_problem
from rewritelog.models.registry import load_model
from rewritelog.output.files import write_text_file
from rewritelog.paths import STANDARD_STREAM
from rewritelog.text import (
    Readable,
    bytes_text,
    matches,
    printable,
    some_text,
    time_text,
    wrapped,
)
from rewritelog.timings.read import MAX_MODEL_BYTES, read_param_names, read_texts, samples_of
from rewritelog.timings.samples import Timings, files_of, fit_named


@dataclass(frozen=True, repr=False)
class FitReport(Readable):
    """The report of a fit."""

    request: FitCommand
    timings: Timings
    fitted: Fitted

    @property
    def more(self) -> str:
        """The contents of `details`, as a phrase."""
        of_one = "" if self.request.event else "; --event NAME: those of one event"
        return f"options and formulas{of_one}"

    @property
    def warnings(self) -> tuple[str, ...]:
        """The warnings, one sentence each; of fits, those of the events asked for."""
        return (*self.timings.warnings, *self.fitted.notes, *self._asked.lines("warnings"))

    def to_json(self) -> dict[str, Any]:
        """Return the report as a JSON object."""
        return {
            "rewritelog": rewritelog.__version__,
            "timings": [str(path) for path in files_of(self.request.timings)],
            "timing_lines": len(self.timings),
            "sha256": self.fitted.source.sha256,
            "model": {
                "name": self.fitted.name,
                "options": self.fitted.options,
                "fit": self.fitted.described(),
            },
            "warnings": list(self.warnings),
            "output": None if self.request.output is None else str(self.request.output),
        }

    def text(self) -> str:
        """Return a line for each event, worst first, or the whole fit of the event asked for."""
        names = printable(some_text([str(path) for path in files_of(self.request.timings)], 3))
        if self.request.event is None:
            shown = self.fitted.lines("overview")
        else:
            shown = tuple(f"  {line}" for line in self._asked.lines("summary"))
        out, clock_hz = self.request.output, self.fitted.source.clock_hz
        cycles = f", cycles of {time_text(1 / clock_hz, 3)}" if clock_hz else ""
        fitted_to = f"{self.fitted.fitted_to(len(self.timings))} of {names}{cycles}"
        lines = [
            wrapped(f"{self.fitted.name}, {fitted_to}"),
            *shown,
            f"written: {out}" if out else "not written: no -o FILE was given",
        ]
        return "\n".join(printable(line) for text in lines for line in text.split("\n"))

    def details(self) -> str:
        """Return the options of the model, and every fit with its formula."""
        fitted = self.fitted
        listed = fitted.options_text
        lines = [wrapped(f"model: {fitted.name}" + (f" ({listed})" if listed else ""))]
        lines += [f"  {line}" for line in fitted.lines("summary")]
        return "\n".join(printable(line) for text in lines for line in text.split("\n"))

    @property
    def _asked(self) -> Fitted:
        """The fits of the events asked for, if the model has a fit for each."""
        raw, pattern = self.fitted.raw, self.request.event
        if pattern is None or not isinstance(raw, FittedEvents):
            return self.fitted
        fits = {key: fit for key, fit in raw.fits.items() if matches(pattern, fit.event)}
        unfitted = tuple(key for key in raw.unfitted if matches(pattern, key[0]))
        return replace(self.fitted, raw=replace(raw, fits=fits, unfitted=unfitted))


def fit(request: FitCommand) -> FitReport:
    """Fit a model, and write it to the output, a model file, if there is one.

    Raise a `RewriteLogError` for any invalid input; the output is then not changed.
    """
    texts = read_texts(request.formulas, request.coefficients)
    name, model = request.model_name, request.model
    if isinstance(model, str):
        model = load_model(model, request.model_options, texts)
    if not isinstance(model, Model):
        raise UsageTypeError(f"the model must be a name or a Model, not {type(model).__name__}")
    if not model.needs_timings:
        raise UsageError(
            f"the model {name!r} is not fitted, so there is nothing to write: "
            f"use it directly, with {spelled('model', name)}"
        )
    names = read_param_names(request.param_names)
    timings = samples_of(
        request.timings, request.clock_hz, strict=request.strict, columns=model.columns
    )
    events = dict.fromkeys(samples.event for samples in timings.timings)
    if request.event is not None and not any(matches(request.event, name) for name in events):
        known = some_text([printable(name) for name in events], 5) or "none"
        raise UsageError(
            f"{spelled('event', request.event)}: no timing line of it; events: {known}"
        )
    files = files_of(request.timings)
    fitted = replace(
        fit_named(model, name, timings, names),
        source=Source.of(files, timings.timings, request.clock_hz),
        inputs=tuple(path.absolute() for path in files if path != STANDARD_STREAM),
    )
    if request.output is not None:
        write_model(request.output, fitted)
    return FitReport(request, timings, fitted)


def write_model(out: Path, fitted: Fitted, *, through_links: bool = True) -> None:
    """Write a model file; raise `OutputError` if it is too large to be read back, or on failure."""
    text = model_file_text(fitted)
    problem = size_problem(text)
    if len(text) > MAX_MODEL_BYTES:
        problem = f"has {bytes_text(len(text))}; at most {bytes_text(MAX_MODEL_BYTES)}"
    if problem:
        raise OutputError(
            f"{out}: the model file {problem}, and could not be read back: leave out the exact "
            f"matches with {spelled('exact_match', 'never')}"
        )
    write_text_file(out, text, through_links=through_links)
