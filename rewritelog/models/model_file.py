"""The text of a model file: a fit with all that its predictions need, and how it was made.

A file is JSON that a person can read; `docs/model-files.md` describes it. What is read back
predicts to the bit what the fit in memory does. A file holds no code, and every defect of one is a
`ModelError` that names the file and the JSON path.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, TypeAlias, cast

from rewritelog.errors import ModelError
from rewritelog.models.base import FittedModel
from rewritelog.models.fit_schema import VERSION_1_KEYS, event_json, read_event
from rewritelog.models.fitted_events import FittedEvents, Key
from rewritelog.models.fitting.event_fit import EventFit
from rewritelog.models.json_document import MAX_EVENT_NAME, Node, load_document, readable

FORMAT = "rewritelog model"
VERSION = 2
ALIASES: dict[int, dict[str, str]] = {1: VERSION_1_KEYS, VERSION: {}}
"""What each version that is read calls the keys that have another name now."""

Columns: TypeAlias = Literal["params", "counters"]
"""What the columns of a fit's tables are: the parameters of lines, or their counters."""


@dataclass(frozen=True)
class Source:
    """What a model was fitted to, and by what."""

    rewritelog: str
    """The version that made the fit."""
    files: tuple[str, ...]
    """The names of the files of timing lines."""
    lines: int
    """Timing lines in them."""
    clock_hz: float | None
    """The clock of times that were given in cycles."""
    sha256: str
    """Digest of the samples, as `digest_of` has it."""


@dataclass(frozen=True)
class ModelFile:
    """What a model file holds."""

    fitted: FittedEvents
    columns: Columns
    source: Source


def writable(fitted: FittedModel, model_name: str) -> FittedEvents:
    """Return the fit as one that a file can hold; raise `ModelError` naming the model for others.

    A regressor from outside is made of its own code, which no file of ours holds.
    """
    if (
        isinstance(fitted, FittedEvents)
        and type(fitted).predict_detailed is FittedEvents.predict_detailed
    ):
        return _plain(fitted)
    raise ModelError(
        f"the model {model_name!r} cannot be written as a model file, which holds formulas and no "
        "code; name it with --model and --timings where it is used"
    )


def _plain(fitted: FittedEvents) -> FittedEvents:
    """Return a fit without what a special kind of it knows, whose warnings become notes."""
    if type(fitted) is FittedEvents:
        return fitted
    plain = FittedEvents(
        fitted.model, fitted.options, fitted.fits, fitted.unfitted, fitted.notes, fitted.extra
    )
    known = set(plain.warnings())
    more = (warning for warning in fitted.warnings() if warning not in known)
    return replace(plain, notes=(*fitted.notes, *more))


def model_text(file: ModelFile) -> str:
    """Return the text of a model file; raise `ModelError` where a number of the fit is not finite.

    Floats are written so that they read back as they were.
    """
    try:
        return readable(_file_json(file)) + "\n"
    except ValueError as error:
        raise ModelError(f"the fit cannot be written: {error}") from error


def parse_model(text: str, name: str) -> ModelFile:
    """Return what the text of a model file says; `name` is what errors call it.

    Raise `ModelError` for everything that `model_text` would not have written.
    """
    document = _checked_format(load_document(text, name))
    parts = document.fields(
        "format",
        "version",
        "source",
        "model",
        "columns",
        "options",
        "notes",
        "extra",
        "unfitted",
        "events",
    )
    fits: dict[Key, EventFit] = {}
    for node in parts["events"].items():
        fit = read_event(node)
        if (fit.event, fit.parameters) in fits:
            raise node.error("is duplicated")
        fits[fit.event, fit.parameters] = fit
    fitted = FittedEvents(
        model=parts["model"].text(),
        options={key: _scalar(node) for key, node in parts["options"].entries().items()},
        fits=fits,
        unfitted=tuple(_read_key(node) for node in parts["unfitted"].items()),
        notes=tuple(node.text() for node in parts["notes"].items()),
        extra={key: node.value for key, node in parts["extra"].entries().items()},
    )
    columns = cast(Columns, parts["columns"].one_of("params", "counters"))
    return ModelFile(fitted, columns, _read_source(parts["source"]))


def _checked_format(document: Node) -> Node:
    """Return the document as its version is read; refuse other documents and later versions."""
    value = document.value
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        raise document.error(f'is not a model file: it does not begin with "format": "{FORMAT}"')
    version = value.get("version")
    if type(version) is not int or version not in ALIASES:
        versions = " and ".join(map(str, ALIASES))
        raise document.error(f"has version {version!r}; this rewritelog reads {versions}")
    return replace(document, aliases=ALIASES[version])


def _file_json(file: ModelFile) -> dict[str, Any]:
    fitted = file.fitted
    return {
        "format": FORMAT,
        "version": VERSION,
        "source": {**asdict(file.source), "files": list(file.source.files)},
        "model": fitted.model,
        "columns": file.columns,
        "options": dict(fitted.options),
        "notes": list(fitted.notes),
        "extra": dict(fitted.extra),
        "unfitted": [{"event": event, "parameters": count} for event, count in fitted.unfitted],
        "events": (event_json(fit, complete=True) for fit in fitted.fits.values()),
    }


def _read_source(node: Node) -> Source:
    parts = node.fields("rewritelog", "files", "lines", "clock_hz", "sha256")
    return Source(
        rewritelog=parts["rewritelog"].text(),
        files=tuple(one.text() for one in parts["files"].items()),
        lines=parts["lines"].count(),
        clock_hz=parts["clock_hz"].maybe(Node.number),
        sha256=parts["sha256"].text(),
    )


def _read_key(node: Node) -> Key:
    parts = node.fields("event", "parameters")
    return parts["event"].text(MAX_EVENT_NAME), parts["parameters"].count()


def _scalar(node: Node) -> object:
    if isinstance(node.value, dict | list):
        raise node.error("must be a text, a number, true, false or null")
    return node.value
