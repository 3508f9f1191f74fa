"""The JSON of an event's fit, in model files and reports: the fields of its classes (`form`).

Model files leave out fields with default values. Reports have all, but lack what only predictions
need (leverages, ratios, measured times). Numbers of model files read back exactly, with NaN and
infinity as strings; in a report these are null. `docs/model-files.md` describes each key.

All that protects from a wrong or hostile file is here too: msgspec checks types and limits, and
`_check_shapes` what contradicts other values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any, Literal

import msgspec
import numpy as np

from rewritelog.arrays import Flags, Floats, Ints
from rewritelog.models.equal_rows import hash_rows
from rewritelog.models.exact_matches import ExactMatches, ExactTimes
from rewritelog.models.expressions import Expression, FormulaError, Origin, parse
from rewritelog.models.fitting.event_fit import ClassFit, EventFit
from rewritelog.models.fitting.function import FittedFunction, FittedMixture, PredictionBounds
from rewritelog.models.fitting.process import MOST_POINTS, Correction, Inputs
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
    _check_shapes(fit, "", fit.parameters, {})
    if fit.names and len(fit.names) != fit.parameters:
        raise _misfit(f"has {len(fit.names)} names for {fit.parameters} parameters")
    try:
        checked_names([(name, Origin()) for name in fit.names])
    except FormulaError as error:
        raise _misfit(error.problem, ".names") from None
    values = [class_fit.value for class_fit in fit.classes]
    if values[0] is not None or None in values[1:]:
        raise _misfit("only the first of the `classes` has the `value` null")
    if len({*values}) < len(values):
        raise _misfit("two `classes` have the same `value`")
    if fit.exact_matches is None:
        return fit
    return msgspec.structs.replace(fit, exact_matches=_by_hash(fit.exact_matches))


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


def _check_shapes(
    part: Form, path: str, parameters: int, shapes: Mapping[str, tuple[int, ...]]
) -> None:
    """Raise `ValueError` if arrays of a part, or of its parts, are not as long as they have to be.

    `shapes` are those that the parts around it require, by path.
    """
    _check_values(part, path, parameters)
    shapes = {**shapes, **{f"{path}.{key}": s for key, s in _shapes(part, parameters).items()}}
    for name, key, _ in _fields_of(type(part)):
        value, place = getattr(part, name), f"{path}.{key}"
        if place in shapes and np.shape(value) != shapes[place]:
            needed, actual = (" × ".join(map(str, s)) for s in (shapes[place], np.shape(value)))
            raise _misfit(f"must have {needed} numbers, not {actual}", place)
        if isinstance(value, Form):
            _check_shapes(value, place, parameters, shapes)
        for index, member in enumerate(value if isinstance(value, tuple) else ()):
            if isinstance(member, Form):
                _check_shapes(member, f"{place}[{index}]", parameters, shapes)


def _shapes(part: Form, parameters: int) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the arrays in a part of a fit, by their paths below it."""
    shapes: dict[str, tuple[int, ...]] = {}
    match part:
        case EventFit() | PredictionBounds():
            shapes = {"lowest": (parameters,), "highest": (parameters,)}
        case ClassFit():
            terms = len(part.function.terms)
            shapes = {"ratios": (len(part.ratios),)}
            shapes["leverage_root"] = min(len(part.leverage_root), terms), terms
        case FittedFunction():
            shapes = {"coefficients": (len(part.terms),)}
        case FittedMixture():
            shapes = {"weights": (len(part.members),)}
        case Correction():
            inputs = (len(part.inputs.kinds),)
            for key in ("parameters", "units", "centres", "deviations"):
                shapes[f"inputs.{key}"] = inputs
            for key in ("codes", "smooth_lengths", "rough_lengths"):
                shapes[f"kernel.{key}"] = inputs
            shapes |= {"params": (len(part.params), parameters + 1), "weights": (len(part.params),)}
        case ExactMatches():
            sets = len(part.times.rows)
            shapes = dict.fromkeys(("times.seconds", "times.samples", "weights"), (sets,))
            shapes["times.params"] = (sets, parameters)
    return shapes


def _check_values(part: Form, path: str, parameters: int) -> None:
    """Raise `ValueError` for numbers beyond limits that their type does not have."""
    match part:
        case ClassFit() if not (np.diff(part.ratios) >= 0).all():
            raise _misfit("`ratios` are not in ascending order", path)
        case ExactMatches() if not ((part.weights >= 0) & (part.weights <= 1)).all():
            raise _misfit("must be between 0 and 1", f"{path}.weights")
        case Correction() if len(part.params) > MOST_POINTS:
            raise _misfit(f"has {len(part.params)} rows; at most {MOST_POINTS}", f"{path}.params")
        case Inputs():
            beyond = part.parameters[(part.parameters < 1) | (part.parameters > parameters + 1)]
            if len(beyond):
                problem = f"has {beyond[0]}; the event has {parameters} parameters"
                raise _misfit(problem, f"{path}.parameters")
    for key in ("units", "deviations", "smooth_lengths", "rough_lengths"):
        if not (getattr(part, key, np.ones(1)) > 0).all():
            raise _misfit("must be above 0", f"{path}.{key}")


def _by_hash(exact: ExactMatches) -> ExactMatches:
    """Return exact matches in the order of their hashes; raise `ValueError` for a row twice."""
    times, path = exact.times, ".exact_matches.times.params"
    hashes = hash_rows(times.rows)
    order = np.lexsort((*times.rows.T, hashes))
    rows = times.rows[order]
    if (rows[1:] == rows[:-1]).all(axis=1).any():
        raise _misfit("has a duplicated row", path)
    same_hash = int(np.unique(hashes, return_counts=True)[1].max(initial=0))
    if same_hash > MOST_SETS_OF_A_HASH:
        problem = f"has {same_hash} rows with the same hash; at most {MOST_SETS_OF_A_HASH}"
        raise _misfit(problem, path)
    ordered = ExactTimes(times.seconds[order], times.counts[order], rows)
    return ExactMatches(ordered, exact.weights[order])
