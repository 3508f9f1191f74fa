"""Validation of names for the parameters of events."""

from __future__ import annotations

from collections.abc import Sequence

from rewritelog.models.expressions import (
    FUNCTIONS,
    MAX_PARAMETERS,
    Origin,
    is_name,
    parameter_number,
)


def checked_names(named: Sequence[tuple[str, Origin]]) -> tuple[str, ...]:
    """Return the names, in the order of the parameters; raise `FormulaError` for an invalid one."""
    if len(named) > MAX_PARAMETERS:
        where = named[MAX_PARAMETERS][1]
        raise where.error(f"there are at most {MAX_PARAMETERS} parameters")
    seen: set[str] = set()
    for number, (text, where) in enumerate(named, 1):
        if not is_name(text):
            raise where.error(f"{text!r} is not a valid name: a letter, then letters, digits and _")
        if text in FUNCTIONS:
            raise where.error(f"{text!r} is a function and cannot be a parameter's name")
        if parameter_number(text) not in (None, number):
            raise where.error(f"{text!r} cannot be the name of p{number}")
        if text in seen and text != "_":
            raise where.error(f"the name {text!r} is duplicated")
        seen.add(text)
    return tuple(text for text, _ in named)
