"""The text of a model file: a fit with all that its predictions need, and how it was made.

A file is JSON that a person can read; `docs/model-files.md` describes it. What is read back
predicts to the bit what the fit in memory does. A file holds no code, and every defect of one is a
`ModelError` that names the file and the JSON path.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, TypeAlias, cast, get_type_hints

import numpy as np

from rewritelog.errors import ModelError
from rewritelog.models.base import FittedModel, Timings
from rewritelog.models.exact_matches import ExactMatches
from rewritelog.models.exact_times import ExactTimes, hash_rows
from rewritelog.models.expressions import MAX_PARAMETERS, Expression, Origin, parse
from rewritelog.models.fitted_events import FittedEvents, Key
from rewritelog.models.fitting.diagnosis import Coefficient, Dropped, Quality
from rewritelog.models.fitting.event_fit import ClassFit, EventFit
from rewritelog.models.fitting.function import FittedFunction, PredictionBounds
from rewritelog.models.json_document import Node, load_document, readable
from rewritelog.text import exact_number

FORMAT = "rewritelog model"
VERSION = 1

MOST_ALIKE = 64
"""So many parameter sets may share a hash; more are no accident."""

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


def digest_of(timings: Timings) -> str:
    """Return the SHA-256 of samples: their events, shapes and numbers in little-endian order."""
    digest = hashlib.sha256()
    for samples in timings:
        name = samples.event.encode(errors="surrogatepass")
        shape = np.array([len(name), *samples.params.shape], dtype="<i8")
        digest.update(shape.tobytes() + name)
        digest.update(samples.params.astype("<f8").tobytes())
        digest.update(samples.seconds.astype("<f8").tobytes())
    return digest.hexdigest()


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
    document = load_document(text, name)
    _check_format(document)
    parts = document.fields(
        "format", "version", "source", "model", "columns", "options", "notes", "extra", "unfitted",
        "events",
    )  # fmt: skip
    fits: dict[Key, EventFit] = {}
    for node in parts["events"].items():
        fit = _read_event(node)
        if (fit.event, fit.parameters) in fits:
            raise node.error("stands twice")
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


def _check_format(document: Node) -> None:
    """Refuse other documents, and files of versions that are not known."""
    value = document.value
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        raise document.error(f'is no model file: it does not begin with "format": "{FORMAT}"')
    if type(value.get("version")) is not int or value["version"] != VERSION:
        raise document.error(f"is not of version {VERSION}, the one that this rewritelog reads")


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
        "events": [_event_json(fit) for fit in fitted.fits.values()],
    }


def _event_json(fit: EventFit) -> dict[str, Any]:
    return {
        "event": fit.event,
        "parameters": fit.parameters,
        "samples": fit.samples,
        "unusable": fit.unusable,
        "lowest": fit.lowest.tolist(),
        "highest": fit.highest.tolist(),
        "category": None if fit.category is None else str(fit.category),
        "tried": {name: exact_number(error) for name, error in fit.family_errors.items()},
        "classes": [_class_json(one) for one in fit.classes],
        "exact": None if fit.exact_matches is None else _exact_matches_json(fit.exact_matches),
    }


def _class_json(fit: ClassFit) -> dict[str, Any]:
    return {
        "value": fit.value,
        "samples": fit.samples,
        "family": fit.family,
        "law": {"bounds": None, **fit.function.to_json()},
        "coefficients": [
            {
                "term": one.term,
                "value": exact_number(one.value),
                "standard_error": exact_number(one.standard_error),
            }
            for one in fit.coefficients
        ],
        "dropped": [asdict(one) for one in fit.dropped],
        "quality": {
            name: value if isinstance(value, int) else exact_number(value)
            for name, value in asdict(fit.quality).items()
        },
        "leverage_root": [
            [exact_number(value) for value in row] for row in fit.leverage_root.tolist()
        ],
        "ratios": fit.ratios.tolist(),
    }


def _exact_matches_json(exact_matches: ExactMatches) -> dict[str, Any]:
    return {
        "seconds": exact_matches.times.seconds.tolist(),
        "samples": [int(count) for count in exact_matches.times.counts],
        "weights": exact_matches.weights.tolist(),
        "params": exact_matches.times.rows.tolist(),
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
    return parts["event"].text(), parts["parameters"].count()


def _scalar(node: Node) -> object:
    if isinstance(node.value, dict | list):
        raise node.error("must be a text, a number, true, false or null")
    return node.value


def _read_event(node: Node) -> EventFit:
    parts = node.fields(
        "event", "parameters", "samples", "unusable", "lowest", "highest", "category", "tried",
        "classes", "exact",
    )  # fmt: skip
    many = parts["parameters"].count()
    if many > MAX_PARAMETERS:
        raise parts["parameters"].error(f"is {many}; at most {MAX_PARAMETERS}")
    return EventFit(
        event=parts["event"].text(),
        samples=parts["samples"].count(),
        unusable=parts["unusable"].count(),
        lowest=parts["lowest"].numbers(many),
        highest=parts["highest"].numbers(many),
        classes=_read_classes(parts["classes"], many),
        category=parts["category"].maybe(lambda one: _read_expression(one, many)),
        family_errors={name: one.odd_number() for name, one in parts["tried"].entries().items()},
        exact_matches=parts["exact"].maybe(lambda one: _read_exact_matches(one, many)),
    )


def _read_classes(node: Node, many: int) -> tuple[ClassFit, ...]:
    """Return the laws: the one of all samples first, then one for each value."""
    nodes = node.items()
    if not nodes:
        raise node.error("is empty: the function of all samples is missing")
    classes = [_read_class(one, many) for one in nodes]
    for place, (one, found) in enumerate(zip(nodes, classes, strict=True)):
        if (found.value is None) != (place == 0):
            raise one.error("the first class has the value null, and all others a number")
    if len({found.value for found in classes}) < len(classes):
        raise node.error("has a value twice")
    return tuple(classes)


def _read_class(node: Node, many: int) -> ClassFit:
    parts = node.fields(
        "value", "samples", "family", "law", "coefficients", "dropped", "quality", "leverage_root",
        "ratios",
    )  # fmt: skip
    function = _read_function(parts["law"], many)
    ratios = parts["ratios"].numbers()
    if (np.diff(ratios) < 0).any():
        raise parts["ratios"].error("do not rise")
    root = parts["leverage_root"].odd_table(len(function.terms))
    if len(root) > len(function.terms):
        raise parts["leverage_root"].error(f"has more than {len(function.terms)} rows")
    return ClassFit(
        value=parts["value"].maybe(Node.number),
        samples=parts["samples"].count(),
        family=parts["family"].text(),
        function=function,
        coefficients=tuple(_read_coefficient(one) for one in parts["coefficients"].items()),
        dropped=tuple(_read_dropped(one) for one in parts["dropped"].items()),
        quality=_read_quality(parts["quality"]),
        leverage_root=root,
        ratios=ratios,
    )


def _read_function(node: Node, many: int) -> FittedFunction:
    """Return what `Law.to_json` wrote."""
    parts = node.fields("bounds", "terms", "calibration")
    terms: list[Expression] = []
    coefficients: list[float] = []
    for one in parts["terms"].items():
        term = one.fields("term", "coefficient")
        terms.append(_read_expression(term["term"], many))
        coefficients.append(term["coefficient"].number())
    return FittedFunction(
        tuple(terms),
        np.array(coefficients, dtype=np.float64),
        parts["calibration"].number(),
        parts["bounds"].maybe(lambda one: _read_bounds(one, many)),
    )


def _read_bounds(node: Node, many: int) -> PredictionBounds:
    parts = node.fields("least_s", "most_s", "lowest", "highest")
    return PredictionBounds(
        parts["lowest"].numbers(many),
        parts["highest"].numbers(many),
        parts["least_s"].number(),
        parts["most_s"].maybe(Node.number),
    )


def _read_expression(node: Node, many: int) -> Expression:
    return parse(node.text(), parameters=many, where=Origin(node.where))


def _read_coefficient(node: Node) -> Coefficient:
    parts = node.fields("term", "value", "standard_error")
    return Coefficient(
        parts["term"].text(),
        parts["value"].odd_number(),
        parts["standard_error"].maybe(Node.odd_number),
    )


def _read_dropped(node: Node) -> Dropped:
    parts = node.fields("term", "reason")
    return Dropped(parts["term"].text(), parts["reason"].text())


def _read_quality(node: Node) -> Quality:
    """Return the numbers of a fit, each of the type that it is declared with."""
    kinds: Mapping[str, Any] = get_type_hints(Quality)
    parts = node.fields(*kinds)
    values: dict[str, Any] = {}
    for name, kind in kinds.items():
        if kind is int:
            values[name] = parts[name].count()
        elif kind is bool:
            values[name] = parts[name].flag()
        elif kind is float:
            values[name] = parts[name].odd_number()
        else:
            values[name] = parts[name].maybe(Node.odd_number)
    return Quality(**values)


def _read_exact_matches(node: Node, many: int) -> ExactMatches:
    parts = node.fields("seconds", "samples", "weights", "params")
    rows = parts["params"].table(many)
    seconds = parts["seconds"].numbers(len(rows))
    counts = parts["samples"].numbers(len(rows))
    weights = parts["weights"].numbers(len(rows))
    if ((weights < 0) | (weights > 1)).any():
        raise parts["weights"].error("must lie between 0 and 1")
    keys = hash_rows(rows)
    order = np.lexsort((*rows.T, keys))
    if (rows[order[1:]] == rows[order[:-1]]).all(axis=1).any():
        raise parts["params"].error("holds a row twice")
    alike = int(np.unique(keys, return_counts=True)[1].max(initial=0))
    if alike > MOST_ALIKE:
        raise parts["params"].error(f"has {alike} rows of one hash; at most {MOST_ALIKE}")
    times = ExactTimes(keys[order], rows[order], seconds[order], counts[order], alike)
    return ExactMatches(times, weights[order])
