"""Parses the text of a formulas file; every error names file, line and column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

import msgspec
from msgspec import UNSET, Meta, UnsetType

from rewritelog.models.expressions import MAX_PARAMETERS, Expression, FormulaError, Origin, parse
from rewritelog.models.formulas.entries import EventFormula, Formulas
from rewritelog.models.formulas.library import KINDS
from rewritelog.models.formulas.located_toml import KeyPath, LocatedToml, read_toml
from rewritelog.models.formulas.names import checked_names
from rewritelog.text import count_text

MAX_TERMS = 100
"""The most terms of a formula."""

TABLE = "formula"
"""The name of the array of tables that holds the formulas."""

_Pattern: TypeAlias = Annotated[str, Meta(min_length=1)]
_Texts: TypeAlias = Annotated[list[str], Meta(min_length=1)]


class _Table(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A `[[formula]]` as it is written."""

    event: _Pattern | list[_Pattern]
    params: _Texts = []
    terms: _Texts = []
    kind: str | UnsetType = UNSET
    of: list[str] | UnsetType = UNSET
    times: str | UnsetType = UNSET
    category: str | UnsetType = UNSET


def parse_formulas(text: str, name: str) -> Formulas:
    """Return the contents of a formulas file; `name` is its name in errors.

    Raise `FormulaError` with the location for text that is not TOML, for unknown or missing keys,
    and for invalid values.
    """
    toml = read_toml(text, name)
    for key in toml.document:
        if key != TABLE:
            problem = f"unknown key {key!r}; formulas go under [[{TABLE}]]"
            raise toml.of_key((key,)).error(problem)
    tables = toml.document.get(TABLE, [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        problem = f"{TABLE} is written [[{TABLE}]], in double brackets, for each formula"
        raise toml.of_value((TABLE,)).error(problem)
    if not tables:
        raise FormulaError(name, None, None, f"has no [[{TABLE}]]")
    return Formulas(
        name, tuple(_formula(toml, (TABLE, at), table) for at, table in enumerate(tables))
    )


def _formula(toml: LocatedToml, path: KeyPath, written: Any) -> EventFormula:
    """Return the formula of a table."""
    table = toml.declared(written, _Table, path)
    if not table.event:
        raise toml.of_value((*path, "event")).error("event is empty")
    places = (toml.of_value((*path, "params", at)) for at in range(len(table.params)))
    names = checked_names(list(zip(table.params, places, strict=True)))
    entry = _Entry(toml, path, table, names)
    return EventFormula(
        (table.event,) if isinstance(table.event, str) else tuple(table.event),
        entry.terms(),
        entry.expression("category"),
        names,
        f"{toml.name}:{toml.of_key(path).line}",
    )


@dataclass(frozen=True)
class _Entry:
    """One `[[formula]]` table while its expressions are parsed."""

    toml: LocatedToml
    path: KeyPath
    table: _Table
    names: tuple[str, ...]

    def terms(self) -> tuple[Expression, ...]:
        """Return the terms of `kind` and `terms`; with `times`, their products and a constant."""
        terms = list(self._kind_terms())
        for index, text in enumerate(self.table.terms):
            where = self._value("terms", index)
            term = self._parsed(text, where)
            if term in terms:
                raise where.error(f"the term {text!r} is duplicated")
            if len(terms) == MAX_TERMS:
                raise where.error(f"a formula has at most {MAX_TERMS} terms")
            terms.append(term)
        if not terms:
            raise self.toml.of_key(self.path).error("terms or kind is missing")
        times = self.expression("times")
        if times is None:
            return tuple(terms)
        constant, where = parse("1"), self._value("times")
        products = [
            times if term == constant else _checked(times.times(term), where) for term in terms
        ]
        return tuple(dict.fromkeys([constant, *products]))

    def _kind_terms(self) -> tuple[Expression, ...]:
        """Return the terms of `kind` for the sizes in `of`, or for p1, p2, … without it."""
        name, of = self.table.kind, self.table.of
        of_key = self.toml.of_key((*self.path, "of"))
        sizes = [self._parsed(text, self._value("of", at)) for at, text in enumerate(of or ())]
        if name is UNSET:
            if of is not UNSET:
                raise of_key.error("of needs a kind")
            return ()
        where = self._value("kind")
        if name not in KINDS:
            raise where.error(f"unknown kind {name!r}; known: {', '.join(KINDS)}")
        kind = KINDS[name]
        needed = count_text(len(kind.of), "size")
        if of is UNSET:
            if self.names and len(kind.of) > len(self.names):
                available = count_text(len(self.names), "name")
                raise where.error(f"{name} needs {needed}, but params has {available}")
            return kind.expressions()
        if len(sizes) != len(kind.of):
            named = f"{name} needs {needed} ({', '.join(kind.of)})"
            raise of_key.error(f"{named}, not {len(sizes)}")
        by_number = dict(enumerate(sizes, 1))
        return tuple(
            _checked(term.with_parameters(by_number), where) for term in kind.expressions()
        )

    def expression(self, key: str) -> Expression | None:
        """Return the expression of a key, None without the key."""
        text = getattr(self.table, key)
        return None if text is UNSET else self._parsed(text, self._value(key))

    def _parsed(self, text: str, where: Origin) -> Expression:
        """Return the expression of a text with the entry's names of parameters."""
        numbers = {name: number for number, name in enumerate(self.names, 1) if name != "_"}
        count = len(self.names) or MAX_PARAMETERS
        return parse(text, names=numbers, parameters=count, where=where)

    def _value(self, *key: str | int) -> Origin:
        return self.toml.of_value((*self.path, *key))


def _checked(expression: Expression, where: Origin) -> Expression:
    """Return a composed expression; raise `FormulaError` if it exceeds the limits of `parse`."""
    try:
        return parse(str(expression))
    except FormulaError as error:
        raise where.error(error.problem) from error
