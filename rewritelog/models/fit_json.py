"""The JSON of an event's fit, in model files and reports: the fields of its classes (`form`).

Model files leave out fields with default values. Reports have all, but lack what only predictions
need (leverages, ratios, measured times). Numbers of model files read back exactly, with NaN and
infinity as strings; in a report these are null. `docs/model-files.md` describes each key.

What protects from a wrong or hostile file: msgspec checks types and limits, the classes what
contradicts other values of theirs, and this module the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any, Literal, get_args

import msgspec
import numpy as np
from numpy.typing import NDArray

from rewritelog.models.expressions import Expression, FormulaError, Origin, parse
from rewritelog.models.fitting.event_fit import EventFit
from rewritelog.models.form import (
    Count,
    Exact,
    Form,
    ParameterCount,
    ParameterRows,
    PerParameter,
    RowsWithSeconds,
    misfit,
    require_shape,
)
from rewritelog.models.formulas import checked_names
from rewritelog.text import exact_number, json_number

LISTS: dict[Any, tuple[Any, Any]] = {
    np.float64: (list[float], list[list[float]]),
    np.int64: (list[Count], list[list[Count]]),
    np.bool_: (list[bool], list[list[bool]]),
}
"""The lists that become arrays of one and of two dimensions, by the type of their numbers."""


def event_in_file(fit: EventFit) -> dict[str, Any]:
    """Return a fit as the JSON object of a model file; raise `ValueError` if that cannot be read.

    That is so for a number that has to be finite and is not, or a name that no formula can have.
    """
    document: dict[str, Any] = _plain(fit, exact_number)
    event_of(document)
    return document


def event_in_report(fit: EventFit) -> dict[str, Any]:
    """Return a fit as the JSON object of a report."""
    document: dict[str, Any] = _plain(fit, json_number, complete=True)
    for name in ("check", "by_class"):
        if document[name] is None:
            del document[name]
    if fit.by_class is not None:
        del document["by_class"]["ratios"]
    for class_fit in document["classes"]:
        del class_fit["leverage_root"], class_fit["ratios"]
        if correction := class_fit["function"].get("correction"):
            del correction["params"]
            for process in correction["processes"]:
                del process["weights"]
    if fit.exact_matches is not None:
        weights = fit.exact_matches.weights
        mean = json_number(float(weights.mean())) if len(weights) else None
        document["exact_matches"] = {"sets": len(weights), "mean_weight": mean}
    return document


def _plain(value: Any, number: Callable[[float], object], *, complete: bool = False) -> Any:
    """Return a part of a fit as JSON values, with or without fields that have their defaults.

    `number` converts each float.
    """
    again = partial(_plain, number=number, complete=complete)
    if isinstance(value, Form):
        config = value.__struct_config__
        members = {} if config.tag is None else {str(config.tag_field): config.tag}
        for name, key, default in _fields_of(type(value)):
            part = getattr(value, name)
            if complete or default is msgspec.NODEFAULT or part != default:
                members[key] = again(part)
        return members
    if isinstance(value, dict):
        return {key: again(part) for key, part in value.items()}
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [again(part) for part in value]
    if isinstance(value, Expression):
        return str(value)
    return number(value) if isinstance(value, float) else value


@cache
def _fields_of(form: type[Form]) -> list[tuple[str, str, Any]]:
    """Return name, key and default of each field."""
    return [
        (
            field.name,
            field.encode_name,
            field.default
            if field.default_factory is msgspec.NODEFAULT
            else field.default_factory(),
        )
        for field in msgspec.structs.fields(form)
    ]


class _Key(msgspec.Struct):
    """What has to be known of an event before its expressions are parsed."""

    parameters: ParameterCount


def event_of(written: Mapping[str, Any]) -> EventFit:
    """Return the fit of a JSON object in a model file.

    Raise `ValueError` for anything else: the problem, followed by `AT` and the path to it.
    """
    parameters = msgspec.convert(written, _Key).parameters
    fit = msgspec.convert(written, EventFit, dec_hook=partial(_decoded, parameters))
    if fit.names and len(fit.names) != fit.parameters:
        raise misfit(f"has {len(fit.names)} names for {fit.parameters} parameters")
    try:
        checked_names([(name, Origin()) for name in fit.names])
    except FormulaError as error:
        raise misfit(error.problem, ".names") from None
    values = [class_fit.value for class_fit in fit.classes]
    if values[0] is not None or None in values[1:]:
        raise misfit("only the first of the `classes` has the `value` null")
    if len({*values}) < len(values):
        raise misfit("two `classes` have the same `value`")
    exact = fit.exact_matches
    if exact is not None and len(exact.times.points) < len(exact.times.rows):
        raise misfit("has a duplicated row", ".exact_matches.times.params")
    return fit


def _decoded(parameters: int, kind: Any, value: Any) -> Any:
    """Return the value of a field of a type that msgspec does not know."""
    try:
        if kind is Expression:
            return parse(msgspec.convert(value, str), parameters=parameters)
        if kind is Exact:
            return Exact(msgspec.convert(value, float | Literal["nan", "inf", "-inf"]))
        (number,) = get_args(get_args(kind)[-1])  # of numpy.ndarray[shape, numpy.dtype[number]]
        nested = isinstance(value, list) and value and isinstance(value[0], list)
        values = msgspec.convert(value, LISTS[number][bool(nested)])
        widths = {ParameterRows: parameters, RowsWithSeconds: parameters + 1}
        for index, row in enumerate(values if nested else ()):
            require_shape(f"[{index}]", row, widths.get(kind, len(values[0])))
        array: NDArray[Any] = np.array(values, number)
        if kind == PerParameter:
            require_shape("", array, parameters)
        elif kind in widths:
            require_shape("", array, len(array), widths[kind])
    except FormulaError as error:
        raise ValueError(f"column {error.column}: {error.problem}") from None
    except msgspec.ValidationError as error:  # to which msgspec would not add a path
        raise ValueError(str(error)) from None
    return array
