"""Model files: a fit with everything that its predictions need, and its origin.

A file is JSON that a person can read; `docs/model-files.md` describes it. A fit that is read back
makes the same predictions to the bit. A file contains no code, and any defect in one raises a
`ModelError` that names the file and the JSON path.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

from rewritelog import __version__
from rewritelog.errors import ModelError
from rewritelog.models.base import EventKey, FittedModel, Timings
from rewritelog.models.fit_schema import VERSION_1_KEYS, event_json, read_event
from rewritelog.models.fitted_events import FittedEvents
from rewritelog.models.fitting.event_fit import EventFit
from rewritelog.models.json_document import MAX_EVENT_NAME, Node, load_document, pretty_json
from rewritelog.models.sample_digest import digest_of

FORMAT = "rewritelog model"
VERSION = 2
ALIASES: dict[int, dict[str, str]] = {1: VERSION_1_KEYS, VERSION: {}}
"""For each supported version, its keys that have been renamed since."""

Columns: TypeAlias = Literal["params", "counters"]
"""Whether the columns of a fit's tables are the parameters or the counters of timing lines."""


@dataclass(frozen=True)
class Source:
    """The origin of a fit: its timing lines, and the version that made it."""

    rewritelog: str
    """The version of rewritelog that made the fit."""
    files: tuple[str, ...]
    """The names of the files of timing lines."""
    lines: int
    """The number of timing lines in them."""
    clock_hz: float | None
    """The clock in Hz for times given in cycles; None without such times."""
    sha256: str
    """The digest of the samples (`sample_digest.digest_of`)."""

    @classmethod
    def of(cls, files: Iterable[Path], timings: Timings, clock_hz: float | None) -> Source:
        """Return the origin of a fit of this version to samples from files."""
        lines = sum(len(samples.seconds) for samples in timings)
        names = tuple(path.name for path in files)
        return cls(__version__, names, lines, clock_hz, digest_of(timings))


@dataclass(frozen=True)
class ModelFile:
    """The contents of a model file."""

    fitted: FittedEvents
    columns: Columns
    source: Source


def writable(fitted: FittedModel, model_name: str) -> FittedEvents:
    """Return the fit in a form that a file can hold; raise `ModelError` naming the model otherwise.

    A third-party regressor consists of its own code, which no model file contains.
    """
    if (
        isinstance(fitted, FittedEvents)
        and type(fitted).predict_detailed is FittedEvents.predict_detailed
    ):
        return _as_fitted_events(fitted)
    raise ModelError(
        f"the model {model_name!r} cannot be written to a model file, which holds formulas and no "
        "code; use it directly, with --model and --timings"
    )


def _as_fitted_events(fitted: FittedEvents) -> FittedEvents:
    """Return a plain `FittedEvents` of a subclass, with the subclass's warnings as notes."""
    if type(fitted) is FittedEvents:
        return fitted
    plain = FittedEvents(
        fitted.model, fitted.options, fitted.fits, fitted.unfitted, fitted.notes, fitted.extra
    )
    known = set(plain.warnings())
    more = (warning for warning in fitted.warnings() if warning not in known)
    return replace(plain, notes=(*fitted.notes, *more))


def model_text(file: ModelFile) -> str:
    """Return the text of a model file; raise `ModelError` if a number of the fit is not finite.

    Floats are written so that they read back exactly.
    """
    try:
        return pretty_json(_file_json(file)) + "\n"
    except ValueError as error:
        raise ModelError(f"the fit cannot be written: {error}") from error


def parse_model(text: str, name: str) -> ModelFile:
    """Return the contents of a model file's text; `name` is its name in errors.

    Raise `ModelError` for any text that `model_text` would not have written.
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
    fits: dict[EventKey, EventFit] = {}
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
    """Return the document with its version's keys; raise `ModelError` for unknown versions."""
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


def _read_key(node: Node) -> EventKey:
    parts = node.fields("event", "parameters")
    return parts["event"].text(MAX_EVENT_NAME), parts["parameters"].count()


def _scalar(node: Node) -> object:
    if isinstance(node.value, dict | list):
        raise node.error("must be a string, a number, true, false or null")
    return node.value
