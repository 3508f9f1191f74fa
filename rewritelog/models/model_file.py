"""Model files: a fit with everything that its predictions need, and its origin.

A file is JSON that a person can read; `docs/model-files.md` describes it. A fit that is read back
makes the same predictions to the bit. A file contains no code, and any defect in one raises a
`ModelError` that names the file and the JSON path.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, TypeAlias, TypeVar

import msgspec

from rewritelog.arrays import Columns
from rewritelog.errors import ModelError, spelled
from rewritelog.models.base import EventKey
from rewritelog.models.fitted import Fitted, Source
from rewritelog.models.fitted_events import FittedEvents
from rewritelog.models.fitting.event_fit import EventFit
from rewritelog.models.form import EventName, Form, ParameterCount, Text, as_json, defect, from_json
from rewritelog.models.wording import AT, in_words
from rewritelog.text import exact_number, printable, shorten

FORMAT = "rewritelog model"
VERSION = 13

MAX_CONTAINERS = 4_000_000
"""The most lists and objects in a document: each takes about 200 bytes of memory for 2 of text."""

MAX_VALUES = 16_000_000
"""The most values in a document: each takes about 32 bytes of memory for 2 of text."""

LINE_WIDTH = 100
"""Innermost lists and objects are written in one line if it has at most this many characters."""


def model_file_text(fitted: Fitted) -> str:
    """Return the text of a model file; raise `ModelError` naming the model if there can be none.

    Floats are written so that they read back exactly.
    """
    fit = fitted.raw
    if type(fit) is not FittedEvents:  # a third-party regressor is code, which no model file holds
        raise ModelError(
            f"the model {fitted.name!r} cannot be written to a model file, which holds formulas "
            f"and no code; use it directly, with {spelled('model')} and {spelled('timings')}"
        )
    document = {
        "format": FORMAT,
        "version": VERSION,
        "source": fitted.source,
        "model": fit.model,
        "columns": fitted.columns,
        "options": dict(fit.options),
        "notes": fit.notes,
        "unfitted": [{"event": event, "parameters": count} for event, count in fit.unfitted],
    }
    try:
        document["events"] = [event_in_file(event) for event in fit.fits.values()]
        return _pretty(document) + "\n"
    except ValueError as error:
        raise ModelError(f"the fit cannot be written: {error}") from error


def event_in_file(fit: EventFit) -> dict[str, Any]:
    """Return a fit as the JSON object of a model file; raise `ValueError` if it could not be read.

    Reading fails for a number that has to be finite and is not, or a name that no formula can have.
    """
    document: dict[str, Any] = as_json(fit, exact_number)
    event_of(document)
    return document


_INNERMOST = re.compile(r"[\[{]\n[^\[\]{}]*\n *[\]}]")
"""A list or object, written over several lines, that contains no other one and no bracket."""
_UNPRINTABLE = re.compile(r"[^\n -~]")


def _pretty(value: object) -> str:
    """Return JSON in printable ASCII, innermost values in one line if they fit, numbers always."""

    def in_one_line(match: re.Match[str]) -> str:
        line = re.sub(r"\n *", " ", match[0])
        line = line[0] + line[2:-2] + line[-1]
        fits = len(line) <= LINE_WIDTH or (line[0] == "[" and '"' not in line)
        return line if fits else match[0]

    def escaped(match: re.Match[str]) -> str:
        return json.dumps(match[0])[1:-1].replace("\x7f", "\\u007f")

    text = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    text = _INNERMOST.sub(in_one_line, text)
    return text if text.isascii() and "\x7f" not in text else _UNPRINTABLE.sub(escaped, text)


class _Head(msgspec.Struct):
    """The keys that say whether a document is a model file of a version that can be read."""

    format: object = None
    version: object = None


class _UnfittedEvent(Form, frozen=True, kw_only=True):
    """An event without a usable sample."""

    event: EventName
    parameters: ParameterCount


_Scalar: TypeAlias = bool | int | float | Text | None


class _Parameters(msgspec.Struct):
    """What has to be known of an event before its expressions are parsed."""

    parameters: ParameterCount


class _Document(Form, frozen=True, kw_only=True):
    """The document of a model file."""

    format: str
    version: int
    source: Source
    model: Text
    columns: Columns
    options: dict[Text, _Scalar]
    notes: list[Text]
    unfitted: list[_UnfittedEvent]
    events: list[dict[str, Any]]


def parse_model(text: str, name: str) -> Fitted:
    """Return the fit that a model file's text holds; `name` is its name in errors.

    Raise `ModelError`, with line and column or with the JSON path, for any other text.
    """
    if problem := size_problem(text):
        raise ModelError(f"{printable(name)}: {problem}")
    head = _decoded(text, _Head, name)
    if head.format != FORMAT:
        raise ModelError(
            f'{printable(name)}: $: is not a model file: it lacks "format": "{FORMAT}"'
        )
    if head.version != VERSION:
        version = f"is of version {shorten(repr(head.version), 80)}"
        version = "has no version" if head.version is None else version
        raise ModelError(
            f"{printable(name)}: $: {version}; this rewritelog reads {VERSION}: fit again"
        )
    document = _decoded(text, _Document, name)
    fits: dict[EventKey, EventFit] = {}
    for index, written in enumerate(document.events):
        path = f"$.events[{index}]"
        try:
            fit = event_of(written)
        except ValueError as error:
            raise _refused(name, path, error) from error
        if (fit.event, fit.parameters) in fits:
            raise ModelError(f"{printable(name)}: {path}: is duplicated")
        fits[fit.event, fit.parameters] = fit
    events = FittedEvents(
        model=document.model,
        options=document.options,
        fits=fits,
        unfitted=tuple((entry.event, entry.parameters) for entry in document.unfitted),
        notes=tuple(document.notes),
    )
    return Fitted(name, events, document.columns, document.source).as_from_file()


def event_of(written: Mapping[str, Any]) -> EventFit:
    """Return the fit of a JSON object; raise `ValueError` as `from_json` does for anything else."""
    fit = from_json(written, EventFit, msgspec.convert(written, _Parameters).parameters)
    exact = fit.exact_matches
    if exact is not None and len(exact.points) < len(exact.rows):
        raise defect("has a duplicated row", ".exact_matches.params")
    return fit


def size_problem(text: str) -> str:
    """Return which limit a document exceeds, or "": values may take far more memory than text."""
    containers = text.count("{") + text.count("[")
    for count, most, what in (
        (containers, MAX_CONTAINERS, "lists and objects"),
        (containers + text.count(","), MAX_VALUES, "values"),
    ):
        if count > most:
            return f"holds {count:,} {what}; at most {most:,}"
    return ""


T = TypeVar("T")


def _decoded(text: str, kind: type[T], name: str) -> T:
    """Return a document; raise `ModelError` with the path or the line of what is wrong."""
    try:
        return msgspec.json.decode(text, type=kind)
    except msgspec.DecodeError as error:
        if isinstance(error, msgspec.ValidationError) and kind is not _Head:
            raise _refused(name, "$", error) from error
        hint = "; `fit` makes one of timing lines" if "TRACEBIGSIM:" in text else ""
        problem = in_words(str(error), value="its JSON ")
        raise ModelError(f"{printable(name)}: is not a model file: {problem}{hint}") from error
    except RecursionError as error:
        raise ModelError(f"{printable(name)}: is nested too deeply") from error


def _refused(name: str, path: str, error: Exception) -> ModelError:
    """Return the error for a value at or below `path`; in `error`, innermost steps come first."""
    problem, *steps = str(error).split(AT)
    path += "".join(step.removesuffix("`") for step in reversed(steps))
    return ModelError(f"{printable(name)}: {shorten(path, 200)}: {shorten(in_words(problem), 200)}")
