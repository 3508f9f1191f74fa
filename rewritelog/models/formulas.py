"""Formulas files: the terms of fits, and optionally their classes, for events by name or pattern.

Files of parameter names, for the reports of fits without formulas, are parsed here too. Both are
TOML, which `docs/formulas.md` describes; every error names file, line and column.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import msgspec
from msgspec import Meta, Struct

from rewritelog.models.base import EventKey, ModelText, ParamNames
from rewritelog.models.expressions import (
    MAX_PARAMETERS,
    Expression,
    FormulaError,
    Origin,
    checked_names,
    numbers_by_name,
    parse,
)
from rewritelog.models.located_toml import LocatedToml, read_toml
from rewritelog.text import count_text, matches

MAX_TERMS = 100
"""The most terms of a formula."""

TABLE = "formula"
"""The name of the array of tables that holds the formulas."""


class KernelKind(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A kind of kernel that a formulas file may name, with its terms: an entry of `kinds.toml`."""

    of: tuple[str, ...]
    """The names of its sizes, in the order of `of` in a formulas file."""
    terms: tuple[str, ...]
    use: str
    """The work that it describes, for documentation."""

    def expressions(self) -> tuple[Expression, ...]:
        """Return the terms, with p1 as the first size, p2 as the second and so on."""
        numbers = numbers_by_name(self.of)
        return tuple(parse(term, names=numbers) for term in self.terms)


@cache
def kinds() -> dict[str, KernelKind]:
    """Return the kinds by name."""
    text = Path(__file__).with_name("kinds.toml").read_text(encoding="utf-8")
    return msgspec.toml.decode(text, type=dict[str, KernelKind])


class EventFormula(Struct, frozen=True):
    """The formula of the events that match its patterns."""

    patterns: tuple[str, ...]
    """Event names, in which `*` matches any characters."""
    terms: tuple[Expression, ...]
    """The terms of the fit, at least one, all different; only `times` adds a constant by itself."""
    category: Expression | None = None
    """Divides the event into classes: rows with equal values have their own fit."""
    names: tuple[str, ...] = ()
    """The names of the parameters, `_` for one without a name; empty without names."""
    where: str = ""
    """File and line, for messages."""

    @property
    def needed(self) -> int:
        """How many parameters an event has to have: exactly with names, else at least."""
        expressions = (*self.terms, *([self.category] if self.category else []))
        return len(self.names) or max(
            (n for term in expressions for n in term.parameters), default=0
        )

    def matches(self, event: str) -> bool:
        """Return whether a pattern matches the event."""
        return any(matches(pattern, event) for pattern in self.patterns)

    def fits(self, event: str, parameters: int) -> bool:
        """Return whether a pattern matches, and parameters are as many as names, or as needed."""
        enough = parameters == self.needed if self.names else parameters >= self.needed
        return enough and self.matches(event)

    def why_unused(self, keys: Collection[EventKey]) -> str:
        """Return why it fits none of the events."""
        event, parameters = next((key for key in keys if self.matches(key[0])), ("", 0))
        if not event:
            return "no event has such a name"
        uses = f"names {self.needed}" if self.names else f"uses p{self.needed}"
        return f"{event!r} has {count_text(parameters, 'parameter')}, the formula {uses}"


class Formulas(Struct, frozen=True):
    """The entries of a formulas file, in its order."""

    entries: tuple[EventFormula, ...] = ()

    def for_event(self, event: str, parameters: int) -> EventFormula | None:
        """Return the first entry that matches the event and fits its number of parameters."""
        return next((entry for entry in self.entries if entry.fits(event, parameters)), None)

    def names(self, keys: Iterable[EventKey]) -> dict[EventKey, tuple[str, ...]]:
        """Return the names of the parameters of the events whose formulas name them."""
        found = ((key, self.for_event(*key)) for key in keys)
        return {key: formula.names for key, formula in found if formula and formula.names}

    def unused(self, keys: Collection[EventKey]) -> tuple[str, ...]:
        """Return a sentence for each entry that fits none of the events."""
        return tuple(
            f"{entry.where}: the formula for {', '.join(map(repr, entry.patterns))} is not used: "
            f"{entry.why_unused(keys)}"
            for entry in self.entries
            if not any(entry.fits(*key) for key in keys)
        )


_Pattern: TypeAlias = Annotated[str, Meta(min_length=1)]
_Texts: TypeAlias = Annotated[list[str], Meta(min_length=1)]


class _Table(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A `[[formula]]` as it is written."""

    event: _Pattern | list[_Pattern]
    params: _Texts = []
    terms: _Texts = []
    kind: str | None = None
    of: list[str] | None = None
    times: str | None = None
    category: str | None = None


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A formulas file."""

    formula: list[dict[str, Any]] = []


def parse_formulas(text: str, name: str) -> Formulas:
    """Return the contents of a formulas file; `name` is its name in errors.

    Raise `FormulaError` with the location for text that is not TOML, for unknown or missing keys,
    and for invalid values.
    """
    toml = read_toml(text, name)
    if isinstance(toml.document.get(TABLE), dict):
        raise toml.place(TABLE).error(f"write [[{TABLE}]], in double brackets, for each formula")
    count = len(toml.declared(_File).formula)
    if not count:
        raise FormulaError(name, None, None, f"has no [[{TABLE}]]")
    return Formulas(tuple(_formula_of(toml, index) for index in range(count)))


def _formula_of(toml: LocatedToml, index: int) -> EventFormula:
    """Return the formula of a table: terms of `kind` and `terms`, each multiplied by `times`."""
    at = partial(toml.place, TABLE, index)
    table, here = toml.declared(_Table, TABLE, index), at()
    names = checked_names([(name, at("params", k)) for k, name in enumerate(table.params)])
    parsed = partial(parse, names=numbers_by_name(names), parameters=len(names) or MAX_PARAMETERS)
    if not table.event:
        raise at("event").error("event is empty")
    sizes = [parsed(text, where=at("of", k)) for k, text in enumerate(table.of or ())]
    terms = _kind_terms(table, sizes, at)
    for number, text in enumerate(table.terms):
        where = at("terms", number)
        term = parsed(text, where=where)
        if term in terms:
            raise where.error(f"the term {text!r} is duplicated")
        if len(terms) == MAX_TERMS:
            raise where.error(f"a formula has at most {MAX_TERMS} terms")
        terms.append(term)
    if not terms:
        raise here.error("terms or kind is missing")
    if table.times is not None:
        times, constant, where = parsed(table.times, where=at("times")), parse("1"), at("times")
        terms = [_checked(times.times(term), where) for term in terms]
        terms = list(dict.fromkeys([constant, *terms]))
    category = None if table.category is None else parsed(table.category, where=at("category"))
    patterns = (table.event,) if isinstance(table.event, str) else tuple(table.event)
    return EventFormula(patterns, tuple(terms), category, names, f"{toml.name}:{here.line}")


def _kind_terms(
    table: _Table, sizes: Sequence[Expression], at: Callable[[str], Origin]
) -> list[Expression]:
    """Return the terms of `kind` for the sizes in `of`, or for p1, p2, … without it.

    `at` returns the place of a key in the file.
    """
    if table.kind is None:
        if table.of is not None:
            raise at("of").error("of needs a kind")
        return []
    kind = kinds().get(table.kind)
    if kind is None:
        raise at("kind").error(f"unknown kind {table.kind!r}; known: {', '.join(kinds())}")
    if table.of is None:
        return list(kind.expressions())
    if len(sizes) != len(kind.of):
        needed = f"{table.kind} needs {count_text(len(kind.of), 'size')} ({', '.join(kind.of)})"
        raise at("of").error(f"{needed}, not {len(sizes)}")
    by_number = dict(enumerate(sizes, 1))
    return [_checked(term.with_parameters(by_number), at("kind")) for term in kind.expressions()]


def _checked(expression: Expression, where: Origin) -> Expression:
    """Return a composed expression; raise `FormulaError` if it exceeds the limits of `parse`."""
    try:
        return parse(str(expression))
    except FormulaError as error:
        raise where.error(error.problem) from error


def parse_param_names(text: ModelText) -> ParamNames:
    """Return the contents of a file with a list of names for each event or pattern of events.

    Raise `FormulaError` with the location of any error.
    """
    toml = read_toml(text.text, text.name)
    entries = {}
    for pattern in toml.document:
        names = toml.declared(_Texts, pattern)
        named = [(name, toml.place(pattern, index)) for index, name in enumerate(names)]
        entries[pattern] = checked_names(named)
    if not entries:
        raise FormulaError(text.name, None, None, "names no event")
    return ParamNames(entries)
