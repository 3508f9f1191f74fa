"""The classes of a fit that model files and reports hold are `Form`s: their fields are its JSON.

Arrays become lists, and expressions texts. Reading a file checks the types and limits of fields;
each class checks what these cannot say, such as lengths that have to agree.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, TypeVar, get_args

import msgspec
import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from rewritelog.arrays import Floats
from rewritelog.models.expressions import MAX_PARAMETERS, Expression, FormulaError, parse
from rewritelog.models.wording import AT

Text: TypeAlias = Annotated[str, Meta(max_length=10_000)]
"""A name or sentence."""

EventName: TypeAlias = Annotated[str, Meta(max_length=1 << 20)]
"""The name of an event: no timing line is longer."""

Count: TypeAlias = Annotated[int, Meta(ge=0, le=2**63 - 1)]

ParameterCount: TypeAlias = Annotated[int, Meta(ge=0, le=MAX_PARAMETERS)]

NotNegative: TypeAlias = Annotated[float, Meta(ge=0)]

Share: TypeAlias = Annotated[float, Meta(gt=0, le=1)]

if TYPE_CHECKING:
    AnyFloat: TypeAlias = float
    PerParameter: TypeAlias = Floats
    ParameterRows: TypeAlias = Floats
else:

    class AnyFloat(float):
        """A number that need not be finite; all others have to be in a model file."""

    PerParameter = np.ndarray[Literal["parameters"], np.dtype[np.float64]]
    ParameterRows = np.ndarray[Literal["rows", "parameters"], np.dtype[np.float64]]
    """Arrays of shape (parameters,) and (rows, parameters)."""


LISTS: dict[Any, tuple[Any, Any]] = {
    np.float64: (list[float], list[list[float]]),
    np.int64: (list[Count], list[list[Count]]),
    np.bool_: (list[bool], list[list[bool]]),
}
"""For each type of array elements, the JSON lists that become arrays of one and two dimensions."""


class Form(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A part of a fit that is an object in JSON."""


def defect(problem: str, path: str = "") -> ValueError:
    """Return the error for values that contradict others; `path` leads to them from their part."""
    return ValueError(problem + (f"{AT}{path}`" if path else ""))


def require_shape(path: str, values: Any, *shape: int) -> None:
    """Raise `ValueError` for an array or tuple of any other shape."""
    if np.shape(values) != shape:
        needed, actual = (" × ".join(map(str, lengths)) for lengths in (shape, np.shape(values)))
        raise defect(f"must have {needed} numbers, not {actual}", path)


def require_ascending(path: str, values: Floats) -> None:
    """Raise `ValueError` for anything but one row of numbers in ascending order."""
    require_shape(path, values, len(values))
    if not (np.diff(values) >= 0).all():
        raise defect("must be in ascending order", path)


def as_json(value: Any, number: Callable[[float], object], *, complete: bool = False) -> Any:
    """Return a part of a fit as JSON values; `number` converts each float.

    Fields that have their default are left out unless it is to be `complete`.
    """
    again = partial(as_json, number=number, complete=complete)
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


FormT = TypeVar("FormT", bound=Form)


def from_json(written: Mapping[str, Any], form: type[FormT], parameters: int) -> FormT:
    """Return the part of a fit that a JSON object of a model file describes.

    `parameters` is the event's number of parameters. Raise `ValueError` for an invalid object: the
    problem, followed by `AT` and the path to it.
    """
    return msgspec.convert(written, form, dec_hook=partial(_decoded, parameters))


def _decoded(parameters: int, kind: Any, value: Any) -> Any:
    """Return a field's JSON value as a type that msgspec does not know."""
    try:
        if kind is Expression:
            return parse(msgspec.convert(value, str), parameters=parameters)
        if kind is AnyFloat:
            return AnyFloat(msgspec.convert(value, float | Literal["nan", "inf", "-inf"]))
        (number,) = get_args(get_args(kind)[-1])  # of numpy.ndarray[shape, numpy.dtype[number]]
        nested = isinstance(value, list) and value and isinstance(value[0], list)
        values = msgspec.convert(value, LISTS[number][bool(nested)])
        width = parameters if kind == ParameterRows else None
        for index, row in enumerate(values if nested else ()):
            require_shape(f"[{index}]", row, len(values[0]) if width is None else width)
        array: NDArray[Any] = np.array(values, number)
        if kind == PerParameter:
            require_shape("", array, parameters)
        elif width is not None:
            require_shape("", array, len(array), width)
    except FormulaError as error:
        raise ValueError(f"column {error.column}: {error.problem}") from None
    except msgspec.ValidationError as error:  # to which msgspec would not add a path
        raise ValueError(str(error)) from None
    return array
