"""The job of `fit`: a model fitted to timing lines, its report, and its model file."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import rewritelog
from rewritelog.cores import limited_to
from rewritelog.errors import OutputError, UsageError
from rewritelog.models.base import FittedModel, Model
from rewritelog.models.checks import checked_fit
from rewritelog.models.model_file import ModelFile, Source, model_text, size_problem, writable
from rewritelog.models.registry import load_model
from rewritelog.output import check_outputs, write_text_file
from rewritelog.text import Readable, bytes_text, count_text, printable, wrapped
from rewritelog.timings.read import TimingsRead, read_timings
from rewritelog.timings.texts import MAX_MODEL_BYTES, named_fit, read_param_names, read_texts


@dataclass(frozen=True)
class FitRequest:
    """The request of a fit: timing lines, model and options."""

    timings: tuple[Path, ...]
    model: str = "auto"
    model_options: Mapping[str, object] = field(default_factory=dict)
    formulas: Path | None = None
    coefficients: Path | None = None
    param_names: Path | None = None
    """A file of names for the parameters in the report."""
    clock_hz: float | None = None
    strict: bool = False
    jobs: int = 0
    """The number of processes; 0 means one for each core."""


@dataclass(frozen=True, repr=False)
class FitReport(Readable):
    """The report of a fit."""

    request: FitRequest
    model: Model[Any]
    read: TimingsRead
    fitted: FittedModel
    sha256: str
    """The digest of the samples."""
    out: Path | None
    """The model file that was written; None without one."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """The warnings, one sentence each."""
        return (*self.read.warnings(), *self.fitted.warnings())

    def to_json(self) -> dict[str, Any]:
        """Return the report as a JSON object."""
        return {
            "rewritelog": rewritelog.__version__,
            "timings": [str(path) for path in self.request.timings],
            "timing_lines": self.read.lines,
            "sha256": self.sha256,
            "model": {
                "name": self.request.model,
                "options": dataclasses.asdict(self.model.options),
                "fit": self.fitted.describe(),
            },
            "warnings": list(self.warnings),
            "out": None if self.out is None else str(self.out),
        }

    def text(self) -> str:
        """Return the report as text."""
        options = dataclasses.asdict(self.model.options)
        told = ", ".join(f"{name.replace('_', '-')} {value}" for name, value in options.items())
        names = printable(", ".join(str(path) for path in self.request.timings))
        lines = [
            wrapped(f"model: {self.request.model}" + (f" ({told})" if told else "")),
            wrapped(f"fitted to {count_text(self.read.lines, 'timing line')} of {names}"),
            *(f"  {line}" for line in self.fitted.summary()),
            f"written: {self.out}" if self.out else "not written: no -o FILE was given",
        ]
        return "\n".join(printable(line) for text in lines for line in text.split("\n"))


def fit(request: FitRequest, out: Path | None = None) -> FitReport:
    """Fit a model, and write it to the model file `out` if that is given.

    Raise a `RewriteLogError` for any invalid input; `out` is then not changed.
    """
    texts = read_texts(request.formulas, request.coefficients)
    model = load_model(request.model, request.model_options, texts)
    if not model.needs_timings:
        raise UsageError(
            f"the model {request.model!r} is not fitted, so there is nothing to write: "
            f"use it directly, with --model {request.model}"
        )
    names = read_param_names(request.param_names)
    texts_given = (request.formulas, request.coefficients, request.param_names)
    check_outputs([out], (*request.timings, *texts_given))
    read = read_timings(
        request.timings, request.clock_hz, strict=request.strict, columns=model.columns
    )
    with limited_to(request.jobs):
        fitted = named_fit(checked_fit(model, request.model, read.timings), names)
    source = Source.of(request.timings, read.timings, request.clock_hz)
    if out is not None:
        write_model(out, ModelFile(writable(fitted, request.model), model.columns, source))
    return FitReport(request, model, read, fitted, source.sha256, out)


def write_model(out: Path, file: ModelFile, *, through_links: bool = True) -> None:
    """Write a model file; raise `OutputError` if it is too large to be read back, or on failure."""
    text = model_text(file)
    problem = size_problem(text)
    if len(text) > MAX_MODEL_BYTES:
        problem = f"has {bytes_text(len(text))}; at most {bytes_text(MAX_MODEL_BYTES)}"
    if problem:
        raise OutputError(
            f"{out}: the model file {problem}, and could not be read back: leave out the exact "
            "matches with --exact-match never"
        )
    write_text_file(out, text, through_links=through_links)
