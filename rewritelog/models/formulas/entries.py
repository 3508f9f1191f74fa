"""The contents of a formulas file: entries for events by name or pattern, and how they match."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from rewritelog.models.expressions import Expression
from rewritelog.text import count_text, matches, printable


@dataclass(frozen=True)
class EventFormula:
    """The formula of the events that match its patterns."""

    patterns: tuple[str, ...]
    """Event names, in which `*` matches any characters."""
    terms: tuple[Expression, ...]
    """The terms of the fit, at least one, all different; a constant only if the file has one."""
    category: Expression | None = None
    """Divides the event into classes: rows with equal values have their own fit."""
    names: tuple[str, ...] = ()
    """The names of the parameters, `_` for one without a name; empty without names."""
    where: str = ""
    """File and line, for messages."""

    @property
    def highest_parameter(self) -> int:
        """The highest number of a parameter that terms and category need; 0 for none."""
        expressions = (*self.terms, *([self.category] if self.category else []))
        return max((number for term in expressions for number in term.parameters), default=0)

    def is_for(self, event: str) -> bool:
        """Return whether one of the patterns matches the event's name."""
        return any(matches(pattern, event) for pattern in self.patterns)

    def fits(self, parameters: int) -> bool:
        """Return whether it applies to this number of parameters: as many as names, or enough."""
        if self.names:
            return parameters == len(self.names)
        return parameters >= self.highest_parameter


@dataclass(frozen=True)
class Formulas:
    """The entries of a formulas file, in its order."""

    name: str
    """The name of the file in messages."""
    entries: tuple[EventFormula, ...]

    def for_event(self, event: str, parameters: int) -> EventFormula | None:
        """Return the first entry that matches the event and fits its number of parameters."""
        return next((entry for entry in self._matching(event) if entry.fits(parameters)), None)

    def misfits(self, event: str, parameters: int) -> tuple[str, ...]:
        """Return a sentence for each entry that matches the event but not its parameters.

        It is empty if any entry applies: then the others are meant for other parameter counts.
        """
        if self.for_event(event, parameters) is not None:
            return ()
        return tuple(
            f"{entry.where}: the formula is not used for {printable(event)} with "
            f"{count_text(parameters, 'parameter')}: it {_needed_text(entry)}"
            for entry in self._matching(event)
        )

    def unused(self, events: Collection[str]) -> tuple[str, ...]:
        """Return a sentence for each entry that matches none of the events."""
        return tuple(
            f"{entry.where}: the formula for {', '.join(map(repr, map(printable, entry.patterns)))}"
            " is not used: no event has such a name"
            for entry in self.entries
            if not any(map(entry.is_for, events))
        )

    def _matching(self, event: str) -> Iterator[EventFormula]:
        return (entry for entry in self.entries if entry.is_for(event))


def _needed_text(entry: EventFormula) -> str:
    """Return how many parameters an entry is for."""
    if entry.names:
        return f"names {len(entry.names)}"
    return f"needs p{entry.highest_parameter}"
