"""JSON documents: untrusted ones read value by value, and our own written for people to read.

Every error names the file and the JSON path of the value, as in `m.json: $.events[2].event`.

`msgspec`, which also decodes into types, is not used: it accepts duplicated keys, does not name
arbitrary keys of an object in a path (`$.tried[...]`), would be one more package that all users
need, and takes longer to import than a model file takes to read. Lengths that depend on other
values would still have to be checked here.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np

from rewritelog.arrays import Floats
from rewritelog.errors import ModelError
from rewritelog.text import json_text, printable

MAX_DEPTH = 20
"""Lists and objects nest at most this deep."""

MAX_CONTAINERS = 4_000_000
"""The most lists and objects in a document: each takes about 200 bytes of memory for 2 of text."""

MAX_VALUES = 16_000_000
"""The most values in a document: each takes about 32 bytes of memory for 2 of text."""

MAX_TEXT = 10_000
"""The most characters of a name or sentence."""

MAX_EVENT_NAME = 1 << 20
"""The most characters of an event's name: no timing line is longer."""

LINE_WIDTH = 100
"""The width of the lines that are written, in characters."""

FEW = 16
"""A list of at most this many values is written faster one by one than by the encoder."""

T = TypeVar("T")

NOT_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
"""How numbers are written that JSON cannot represent."""


_NO_DEFAULTS: Mapping[str, Any] = {}


@dataclass(frozen=True)
class Node:
    """One value of a document, with its JSON path."""

    value: Any
    name: str
    """The name of the file in errors."""
    path: str = "$"
    aliases: Mapping[str, str] = field(default_factory=dict)
    """The keys in this document of those that have been renamed since its version."""

    def error(self, problem: str) -> ModelError:
        """Return the error for a problem with this value."""
        return ModelError(f"{self.where}: {problem}")

    @property
    def where(self) -> str:
        """The file and the path."""
        return f"{printable(self.name)}: {printable(self.path)}"

    def fields(self, *keys: str, defaults: Mapping[str, Any] = _NO_DEFAULTS) -> dict[str, Node]:
        """Return the values of an object with these keys and no others.

        A key with a default may be missing, and then has that value.
        """
        if not isinstance(self.value, dict):
            raise self.error(f"must be an object, not {self._found}")
        names = {key: self.aliases.get(key, key) for key in (*keys, *defaults)}
        for key in keys:
            if names[key] not in self.value:
                raise self.error(f"has no {names[key]!r}")
        unknown = self.value.keys() - names.values()
        if unknown:
            raise self.error(f"has an unknown key, {printable(min(unknown)[:80])!r}")
        return {
            key: self._child(f".{name}", self.value.get(name, defaults.get(key)))
            for key, name in names.items()
        }

    def entries(self) -> dict[str, Node]:
        """Return the values of an object with arbitrary keys."""
        if not isinstance(self.value, dict):
            raise self.error(f"must be an object, not {self._found}")
        return {key: self._child(f".{key[:80]}", value) for key, value in self.value.items()}

    def items(self) -> Sequence[Node]:
        """Return the values of a list."""
        return _Items(self, self._list())

    def text(self, most: int = MAX_TEXT) -> str:
        """Return a text of at most `most` characters."""
        if not isinstance(self.value, str):
            raise self.error(f"must be a string, not {self._found}")
        if len(self.value) > most:
            raise self.error(f"has {len(self.value)} characters; at most {most}")
        return self.value

    def one_of(self, *texts: str) -> str:
        """Return a text that has to be one of these."""
        if self.value not in texts:
            raise self.error(f"must be {' or '.join(map(repr, texts))}, not {self._found}")
        return self.text()

    def flag(self) -> bool:
        """Return a boolean."""
        if not isinstance(self.value, bool):
            raise self.error(f"must be true or false, not {self._found}")
        return self.value

    def count(self) -> int:
        """Return a non-negative integer."""
        if type(self.value) is not int or not 0 <= self.value < 2**63:
            raise self.error(f"must be a non-negative integer, not {self._found}")
        return self.value

    def number(self) -> float:
        """Return a finite number."""
        if type(self.value) not in (int, float):
            raise self.error(f"must be a number, not {self._found}")
        return float(self._finite([self.value])[0])

    def exact_number(self) -> float:
        """Return a number, which may be one of `NOT_FINITE`."""
        if isinstance(self.value, str) and self.value in NOT_FINITE:
            return NOT_FINITE[self.value]
        return self.number()

    def maybe(self, read: Callable[[Node], T]) -> T | None:
        """Return `read(self)`, or None if the value is null."""
        return None if self.value is None else read(self)

    def numbers(self, length: int | None = None) -> Floats:
        """Return a list of finite numbers, of the given length."""
        values = self._list()
        if length is not None and len(values) != length:
            raise self.error(f"must have {length} numbers, not {len(values)}")
        if not {type(value) for value in values} <= {int, float}:
            for item in self.items():
                item.number()
        return self._finite(values)

    def table(self, columns: int) -> Floats:
        """Return a list of lists of `columns` finite numbers, shape (rows, columns)."""
        rows = self._list()
        plain = all(
            type(row) is list and len(row) == columns and {*map(type, row)} <= {int, float}
            for row in rows
        )
        if not plain:
            for row in self.items():
                row.numbers(columns)
        return self._finite(rows).reshape(len(rows), columns)

    def exact_table(self, columns: int) -> Floats:
        """Return a table of numbers that need not be finite, shape (rows, columns)."""
        rows = [[item.exact_number() for item in row.items()] for row in self.items()]
        for index, row in enumerate(rows):
            if len(row) != columns:
                raise self._child(f"[{index}]", None).error(f"must have {columns} numbers")
        return np.array(rows, dtype=np.float64).reshape(len(rows), columns)

    def _child(self, step: str, value: Any) -> Node:
        return Node(value, self.name, self.path + step, self.aliases)

    def _list(self) -> list[Any]:
        if not isinstance(self.value, list):
            raise self.error(f"must be a list, not {self._found}")
        return self.value

    def _finite(self, values: list[Any]) -> Floats:
        try:
            return np.array(values, dtype=np.float64)
        except OverflowError as error:
            raise self.error("contains a number larger than any float64") from error

    @property
    def _found(self) -> str:
        """The value as errors show it."""
        if isinstance(self.value, dict | list):
            return "an object" if isinstance(self.value, dict) else "a list"
        return json.dumps(self.value)[:80]


@dataclass(frozen=True)
class _Items(Sequence[Node]):
    """The values of a list, whose nodes are made on access: a list may have millions."""

    list_: Node
    values: Sequence[Any]

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, index: Any) -> Any:
        return Node(
            self.values[index], self.list_.name, f"{self.list_.path}[{index}]", self.list_.aliases
        )


def load_document(text: str, name: str) -> Node:
    """Return the document in a text.

    Raise `ModelError` with line and column for text that is not JSON, and without them for NaN,
    infinity, duplicated keys in an object, nesting deeper than `MAX_DEPTH`, and more lists, objects
    or values than the limits allow.
    """
    if problem := size_problem(text):
        raise ModelError(f"{printable(name)}: {problem}")
    try:
        value = json.loads(
            text, object_pairs_hook=_object, parse_constant=_refused, parse_float=_float
        )
    except json.JSONDecodeError as error:
        where = f"{printable(name)}:{error.lineno}:{error.colno}"
        raise ModelError(f"{where}: is not JSON, so not a model file ({error.msg})") from error
    except (ValueError, RecursionError) as error:
        problem = "is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise ModelError(f"{printable(name)}: {problem}") from error
    _check_depth(value, name)
    return Node(value, name)


def size_problem(text: str) -> str:
    """Return which limit a document exceeds, or "": its values may take far more than its text."""
    containers = text.count("{") + text.count("[")
    for found, most, what in (
        (containers, MAX_CONTAINERS, "lists and objects"),
        (containers + text.count(","), MAX_VALUES, "values"),
    ):
        if found > most:
            return f"holds {found:,} {what}; at most {most:,}"
    return ""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        duplicated = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"the key {duplicated[:80]!r} is duplicated in an object")
    return made


def _refused(token: str) -> Any:
    raise ValueError(f"{token} is not a JSON number")


def _float(token: str) -> float:
    value = float(token)
    if not math.isfinite(value):
        raise ValueError(f"{token[:80]} is larger than any float64")
    return value


def _check_depth(value: Any, name: str) -> None:
    """Raise `ModelError` for a document that is nested too deep; without recursion."""
    level: list[Any] = [value]
    for _ in range(MAX_DEPTH + 1):
        inner: list[Any] = []
        for one in level:
            values: Iterable[Any] = one.values() if isinstance(one, dict) else one
            if isinstance(one, dict | list):
                inner.extend(part for part in values if isinstance(part, dict | list))
        if not inner:
            return
        level = inner
    raise ModelError(f"{printable(name)}: is nested more than {MAX_DEPTH} deep")


def without_defaults(made: dict[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object without the keys that have their default values."""
    absent = object()
    return {key: value for key, value in made.items() if defaults.get(key, absent) != value}


def pretty_json(value: Any, indent: str = "") -> str:
    """Return JSON for people to read: lists of scalars, and whatever else fits, in one line.

    An iterator is written as a list, without holding all of its values in memory.
    Raise `ValueError` for a number that is not finite.
    """
    if not isinstance(value, dict | list | Iterator):
        return _scalar(value)
    inner = indent + "  "
    if isinstance(value, dict):
        begin, end = "{", "}"
        parts = [f"{_key(key)}: {pretty_json(one, inner)}" for key, one in value.items()]
    else:
        begin, end = "[", "]"
        if isinstance(value, list) and _is_flat(value):
            return json_text(value) if len(value) > FEW else f"[{', '.join(map(_scalar, value))}]"
        parts = [pretty_json(one, inner) for one in value]
    width = len(indent) + 2 * len(parts) + sum(map(len, parts))
    if width <= LINE_WIDTH and not any("\n" in part for part in parts):
        return begin + ", ".join(parts) + end
    separator = f",\n{inner}"
    return f"{begin}\n{inner}{separator.join(parts)}\n{indent}{end}"


def _scalar(value: Any) -> str:
    """Return the JSON of a scalar; common ones without the encoder, whose start is slow."""
    if type(value) is float and math.isfinite(value):
        return repr(value)
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    return str(value) if type(value) is int else json_text(value)


@lru_cache(maxsize=1 << 10)
def _key(key: str) -> str:
    return json_text(key)


def _is_flat(value: list[Any]) -> bool:
    """Return whether a list contains neither lists nor objects."""
    return not any(isinstance(part, dict | list) for part in value)
