"""Parses the text of a formulas file; every error names file, line and column."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rewritelog.models.expressions import (
    MAX_PARAMETERS,
    Expression,
    FormulaError,
    Origin,
    parse,
)
from rewritelog.models.formulas.entries import EventFormula, Formulas
from rewritelog.models.formulas.library import KINDS
from rewritelog.models.formulas.names import checked_names
from rewritelog.models.formulas.toml_locations import KeyPath, TomlLocations, find_locations
from rewritelog.text import count_text

MAX_FILE = 200_000
"""The most characters of a formulas file."""

MAX_LINE = 1000
"""The most characters of a line: tomllib's time grows with the square of a dotted key's parts."""

MAX_TERMS = 100
"""The most terms of a formula."""

TABLE = "formula"
"""The name of the array of tables that holds the formulas."""

_KEYS = ("event", "params", "terms", "category", "kind", "of", "times")
_TOMLLIB_LOCATION = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


def parse_formulas(text: str, name: str) -> Formulas:
    """Return the contents of a formulas file; `name` is its name in errors.

    Raise `FormulaError` with the location for text that is not TOML, for unknown or missing keys,
    and for invalid values.
    """
    try:
        document = load_toml(text, name)
        locations = find_locations(text, name)
    except RecursionError as error:
        raise FormulaError(name, None, None, "is nested too deeply") from error
    for key in document:
        if key != TABLE:
            problem = f"unknown key {key!r}; formulas go under [[{TABLE}]]"
            raise locations.of_key((key,)).error(problem)
    tables = document.get(TABLE, [])
    where = locations.of_value((TABLE,))
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise where.error(f"{TABLE} is written [[{TABLE}]], in double brackets, for each formula")
    if not tables:
        raise FormulaError(name, None, None, f"has no [[{TABLE}]]")
    entries = (
        _Entry(locations, (TABLE, index), table).formula() for index, table in enumerate(tables)
    )
    return Formulas(name, tuple(entries))


def load_toml(text: str, name: str) -> Mapping[str, Any]:
    """Return the parsed document; raise `FormulaError` if it is too large or invalid."""
    if len(text) > MAX_FILE:
        raise FormulaError(name, None, None, f"has more than {MAX_FILE} characters")
    for number, line in enumerate(text.split("\n"), 1):
        if len(line) > MAX_LINE:
            problem = f"the line has more than {MAX_LINE} characters; split it"
            raise FormulaError(name, number, MAX_LINE + 1, problem)
    try:
        return tomllib.loads(text)
    except ValueError as error:  # also for a number with thousands of digits
        found = _TOMLLIB_LOCATION.search(str(error))
        location = (int(found[1]), int(found[2])) if found and found[1] else _end(text)
        problem = _TOMLLIB_LOCATION.sub("", str(error))
        raise FormulaError(name, *location, f"is not TOML: {problem}") from error


def _end(text: str) -> tuple[int, int]:
    """Return line and column just after the last character."""
    return text.count("\n") + 1, len(text) - text.rfind("\n")


@dataclass(frozen=True)
class _Entry:
    """One `[[formula]]` table while it is parsed."""

    locations: TomlLocations
    path: KeyPath
    table: Mapping[str, Any]

    def formula(self) -> EventFormula:
        """Return the formula of the table."""
        for key in self.table:
            if key not in _KEYS:
                raise self._key(key).error(f"unknown key {key!r}; known: {', '.join(_KEYS)}")
        names = self._names()
        return EventFormula(
            self._patterns(),
            self._terms(names),
            self._expression("category", names),
            names,
            f"{self.locations.name}:{self._header().line}",
        )

    def _patterns(self) -> tuple[str, ...]:
        """Return the event names and patterns."""
        if "event" not in self.table:
            raise self._header().error("event is missing: the name or pattern of an event")
        patterns = self._texts("event")
        for text, where in patterns:
            if not text:
                raise where.error("the event name is empty")
        return tuple(text for text, _ in patterns)

    def _names(self) -> tuple[str, ...]:
        """Return the names of the parameters, validated."""
        return checked_names(self._texts("params"))

    def _terms(self, names: tuple[str, ...]) -> tuple[Expression, ...]:
        """Return the terms of `kind` and `terms`; with `times`, their products and a constant."""
        terms = list(self._kind_terms(names))
        for text, where in self._texts("terms"):
            term = _parsed(text, names, where)
            if term in terms:
                raise where.error(f"the term {text!r} is duplicated")
            if len(terms) == MAX_TERMS:
                raise where.error(f"a formula has at most {MAX_TERMS} terms")
            terms.append(term)
        if not terms:
            raise self._header().error("terms or kind is missing")
        times = self._expression("times", names)
        if times is None:
            return tuple(terms)
        one = parse("1")
        where = self._value("times")
        products = [times if term == one else _checked(times.times(term), where) for term in terms]
        return tuple(dict.fromkeys([one, *products]))

    def _kind_terms(self, names: tuple[str, ...]) -> tuple[Expression, ...]:
        """Return the terms of `kind` for the sizes in `of`, or for p1, p2, … without it."""
        sizes = [_parsed(text, names, where) for text, where in self._texts("of")]
        named = self._text("kind")
        if named is None:
            if "of" in self.table:
                raise self._key("of").error("of needs a kind")
            return ()
        text, where = named
        if text not in KINDS:
            raise where.error(f"unknown kind {text!r}; known: {', '.join(KINDS)}")
        kind = KINDS[text]
        if "of" not in self.table:
            if names and len(kind.of) > len(names):
                needed = count_text(len(kind.of), "size")
                problem = f"{text} needs {needed}, but params has {count_text(len(names), 'name')}"
                raise where.error(problem)
            return kind.expressions()
        if len(sizes) != len(kind.of):
            needed = f"{text} needs {count_text(len(kind.of), 'size')} ({', '.join(kind.of)})"
            raise self._key("of").error(f"{needed}, not {len(sizes)}")
        given = dict(enumerate(sizes, 1))
        return tuple(_checked(term.with_parameters(given), where) for term in kind.expressions())

    def _expression(self, key: str, names: tuple[str, ...]) -> Expression | None:
        """Return the expression of a key, None without the key."""
        found = self._text(key)
        return None if found is None else _parsed(found[0], names, found[1])

    def _text(self, key: str) -> tuple[str, Origin] | None:
        """Return the text of a key with its location, None without the key."""
        if key not in self.table:
            return None
        return _text(key, self.table[key], self._value(key))

    def _texts(self, key: str) -> list[tuple[str, Origin]]:
        """Return the texts of a key's list with their locations; an empty list without the key.

        A single event needs no list; only `of` may be empty, for a constant.
        """
        values = self.table.get(key)
        if values is None:
            return []
        if key == "event" and isinstance(values, str):
            return [(values, self._value(key))]
        if not isinstance(values, list):
            raise self._value(key).error(f"{key} must be a list of strings")
        if not values and key != "of":
            raise self._value(key).error(f"{key} is empty")
        return [_text(key, value, self._value(key, at)) for at, value in enumerate(values)]

    def _header(self) -> Origin:
        return self.locations.of_key(self.path)

    def _key(self, key: str) -> Origin:
        return self.locations.of_key((*self.path, key))

    def _value(self, *key: str | int) -> Origin:
        return self.locations.of_value((*self.path, *key))


def _parsed(text: str, names: tuple[str, ...], where: Origin) -> Expression:
    """Return the expression of a text with the entry's names of parameters."""
    numbers = {name: number for number, name in enumerate(names, 1) if name != "_"}
    return parse(text, names=numbers, parameters=len(names) or MAX_PARAMETERS, where=where)


def _checked(expression: Expression, where: Origin) -> Expression:
    """Return a composed expression; raise `FormulaError` if it exceeds the limits of `parse`."""
    try:
        return parse(str(expression))
    except FormulaError as error:
        raise where.error(error.problem) from error


def _text(key: str, value: object, where: Origin) -> tuple[str, Origin]:
    """Return a value that has to be text, with its location."""
    if not isinstance(value, str):
        raise where.error(f"{key} must be a string, not {_type_text(value)}")
    return value, where


def _type_text(value: object) -> str:
    """Return the name of a value's TOML type, with its article."""
    names = {bool: "a boolean", int: "a number", float: "a number", list: "a list", dict: "a table"}
    return names.get(type(value), "a date or time")
