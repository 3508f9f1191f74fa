"""The JSON of an event's fit, in model files and reports: the fields of its classes (`form`).

Model files leave out fields with default values. Reports have all, but lack what only predictions
need (leverages, ratios, measured times). Numbers of model files read back exactly, with NaN and
infinity as strings; in a report these are null. `docs/model-files.md` describes each key.

All that protects from a wrong or hostile file is here too: msgspec checks types and limits, and
`event_of` what contradicts other values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from rewritelog.arrays import Flags, Floats, Ints
from rewritelog.models.equal_rows import hash_rows
from rewritelog.models.exact_matches import ExactMatches, ExactTimes
from rewritelog.models.expressions import Expression, FormulaError, Origin, parse
from rewritelog.models.fitting.correction import MOST_POINTS, Correction
from rewritelog.models.fitting.event_fit import ClassFit, EventFit
from rewritelog.models.fitting.function import AnyFunction, FittedFunction, FittedMixture
from rewritelog.models.form import Count, Exact, Form, ParameterCount
from rewritelog.models.formulas import checked_names
from rewritelog.text import exact_number, json_number

MOST_SETS_OF_A_HASH = 64
"""More parameter sets with the same hash are no coincidence, and would make look-ups slow."""

LISTS: dict[Any, tuple[Any, Any]] = {
    Floats: (list[float], list[list[float]]),
    Ints: (list[Count], list[list[Count]]),
    Flags: (list[bool], list[list[bool]]),
}
"""The lists that become arrays of one and of two dimensions."""

DTYPES = {Floats: np.float64, Ints: np.int64, Flags: np.bool_}

AT = " - at `$"
"""What msgspec writes between a problem and the path to it, which ends with a backquote."""


def event_in_file(fit: EventFit) -> dict[str, Any]:
    """Return a fit as the JSON object of a model file; raise `ValueError` if that cannot be read.

    That is so for a number that has to be finite and is not.
    """
    document: dict[str, Any] = _plain(fit, exact_number)
    msgspec.convert(document, EventFit, dec_hook=partial(_decoded, fit.parameters))
    return document


def event_in_report(fit: EventFit) -> dict[str, Any]:
    """Return a fit as the JSON object of a report."""
    document: dict[str, Any] = _plain(fit, json_number, complete=True)
    for class_fit in document["classes"]:
        del class_fit["leverage_root"], class_fit["ratios"]
        if correction := class_fit["function"].get("correction"):
            del correction["params"], correction["weights"]
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
        members = dict(_tag_of(type(value)))
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
def _tag_of(form: type[Form]) -> dict[str, Any]:
    config = form.__struct_config__
    return {} if config.tag is None else {str(config.tag_field): config.tag}


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
    key = msgspec.convert(written, _Key)
    fit = msgspec.convert(written, EventFit, dec_hook=partial(_decoded, key.parameters))
    _check_event(fit)
    if fit.exact_matches is None:
        return fit
    return msgspec.structs.replace(fit, exact_matches=_by_hash(fit.exact_matches, fit.parameters))


def _decoded(parameters: int, kind: Any, value: Any) -> Any:
    """Return the value of a field of a type that msgspec does not know."""
    try:
        if kind is Expression:
            return parse(msgspec.convert(value, str), parameters=parameters)
        if kind is Exact:
            return Exact(msgspec.convert(value, float | Literal["nan", "inf", "-inf"]))
        nested = isinstance(value, list) and value and isinstance(value[0], list)
        values = msgspec.convert(value, LISTS[kind][bool(nested)])
        for index, row in enumerate(values if nested else ()):
            if len(row) != len(values[0]):
                raise _misfit(f"must have {len(values[0])} numbers, not {len(row)}", f"[{index}]")
        return np.array(values, DTYPES[kind])
    except FormulaError as error:
        raise ValueError(f"column {error.column}: {error.problem}") from None
    except msgspec.ValidationError as error:  # to which msgspec would not add a path
        raise ValueError(str(error)) from None


def _misfit(problem: str, path: str = "") -> ValueError:
    return ValueError(problem + (f"{AT}{path}`" if path else ""))


def _check_event(fit: EventFit) -> None:
    """Raise `ValueError` for parts of a fit that contradict each other."""
    count = fit.parameters
    _check_shape(fit.lowest, ".lowest", count)
    _check_shape(fit.highest, ".highest", count)
    if fit.names and len(fit.names) != count:
        raise _misfit(f"has {len(fit.names)} names for {count} parameters")
    try:
        checked_names([(name, Origin()) for name in fit.names])
    except FormulaError as error:
        raise _misfit(error.problem, ".names") from None
    values = [class_fit.value for class_fit in fit.classes]
    if values[0] is not None or None in values[1:]:
        raise _misfit("only the first of the `classes` has the `value` null")
    if len({*values}) < len(values):
        raise _misfit("two `classes` have the same `value`")
    for index, class_fit in enumerate(fit.classes):
        _check_class(class_fit, f".classes[{index}]", count)


def _check_class(fit: ClassFit, path: str, parameters: int) -> None:
    _check_shape(fit.ratios, f"{path}.ratios", len(fit.ratios))
    if not (np.diff(fit.ratios) >= 0).all():
        raise _misfit("`ratios` are not in ascending order", path)
    terms = len(fit.function.terms)
    rows = min(len(fit.leverage_root), terms)
    _check_shape(fit.leverage_root, f"{path}.leverage_root", rows, terms)
    _check_function(fit.function, f"{path}.function", parameters)
    if fit.growth is not None and fit.growth.function is not None:
        _check_function(fit.growth.function, f"{path}.growth.function", parameters)


def _check_function(function: AnyFunction, path: str, parameters: int) -> None:
    if isinstance(function, FittedFunction):
        _check_shape(function.coefficients, f"{path}.coefficients", len(function.terms))
        if function.bounds is not None:
            _check_shape(function.bounds.lowest, f"{path}.bounds.lowest", parameters)
            _check_shape(function.bounds.highest, f"{path}.bounds.highest", parameters)
    elif isinstance(function, FittedMixture):
        _check_shape(np.array(function.weights), f"{path}.weights", len(function.members))
        for index, member in enumerate(function.members):
            _check_function(member, f"{path}.members[{index}]", parameters)
    else:
        _check_function(function.formula, f"{path}.formula", parameters)
        _check_correction(function.correction, f"{path}.correction", parameters)


def _check_correction(correction: Correction, path: str, parameters: int) -> None:
    inputs, kernel = correction.inputs, correction.kernel
    count, points = len(inputs.kinds), len(correction.params)
    of_inputs = {
        f"inputs.{name}": getattr(inputs, name)
        for name in ("parameters", "units", "centres", "deviations")
    } | {
        f"kernel.{name}": getattr(kernel, name)
        for name in ("codes", "smooth_lengths", "rough_lengths")
    }
    for name, values in of_inputs.items():
        _check_shape(values, f"{path}.{name}", count)
        if name.endswith(("units", "deviations", "lengths")) and not (values > 0).all():
            raise _misfit("must be above 0", f"{path}.{name}")
    beyond = inputs.parameters[(inputs.parameters < 1) | (inputs.parameters > parameters)]
    if len(beyond):
        problem = f"has {beyond[0]}; the event has {parameters} parameters"
        raise _misfit(problem, f"{path}.inputs.parameters")
    if points > MOST_POINTS:
        raise _misfit(f"has {points} rows; at most {MOST_POINTS}", f"{path}.params")
    _check_shape(correction.params, f"{path}.params", points, parameters)
    _check_shape(correction.weights, f"{path}.weights", points)


def _check_shape(values: NDArray[Any], path: str, *shape: int) -> None:
    """Raise `ValueError` unless an array has this shape."""
    if values.shape != shape:
        needed, actual = (" × ".join(map(str, lengths)) for lengths in (shape, values.shape))
        raise _misfit(f"must have {needed} numbers, not {actual}", path)


def _by_hash(exact: ExactMatches, parameters: int) -> ExactMatches:
    """Return exact matches in the order of their hashes; raise `ValueError` if they are none."""
    times, path = exact.times, ".exact_matches"
    count = len(times.rows)
    _check_shape(times.rows, f"{path}.times.params", count, parameters)
    for name, values in (
        (".times.seconds", times.seconds),
        (".times.samples", times.counts),
        (".weights", exact.weights),
    ):
        _check_shape(values, path + name, count)
    if not ((exact.weights >= 0) & (exact.weights <= 1)).all():
        raise _misfit("must be between 0 and 1", f"{path}.weights")
    hashes = hash_rows(times.rows)
    order = np.lexsort((*times.rows.T, hashes))
    rows = times.rows[order]
    if (rows[1:] == rows[:-1]).all(axis=1).any():
        raise _misfit("has a duplicated row", f"{path}.times.params")
    same_hash = int(np.unique(hashes, return_counts=True)[1].max(initial=0))
    if same_hash > MOST_SETS_OF_A_HASH:
        problem = f"has {same_hash} rows with the same hash; at most {MOST_SETS_OF_A_HASH}"
        raise _misfit(problem, f"{path}.times.params")
    ordered = ExactTimes(times.seconds[order], times.counts[order], rows)
    return ExactMatches(ordered, exact.weights[order])
