"""Options declared once: type, default, unit, help and group, for Python and the command line.

A command is a frozen dataclass whose fields are made by `argument` and `option`. The command line,
signatures, completion, `--help` and the reference pages are derived from these fields; they are
imported before anything else is, so the modules with declarations import nothing heavy.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from dataclasses import MISSING, dataclass, field
from typing import Any, TypeVar, dataclass_transform

Class = TypeVar("Class")

METADATA = "option"

Completer = Callable[[str, Callable[[str], list[str]]], Iterable[str]]
"""Returns the values that begin with a text, given a look-up of the values of other options."""


@dataclass(frozen=True)
class Declaration:
    """How a field of a command is spelled, read and described."""

    help: str
    positional: bool = False
    """Whether it is an argument on the command line, and not an option."""
    names: tuple[str, ...] = ()
    """How the command line spells it; by default as the field, with hyphens."""
    metavar: str = ""
    """What stands for the value in the help, with its unit."""
    group: str = ""
    """The heading that it is listed under."""
    rare: bool = False
    """Whether it is in `--help-all` only."""
    read: Callable[[list[str], str], Any] | None = None
    """Converts the texts of a command line; the second argument is the name for errors."""
    complete: Completer | None = None
    least: int | None = None
    """The least value of a number."""
    needed: bool = False
    """Whether the command line needs it, although Python has a default."""
    shell: bool = True
    """Whether the command line takes it."""


def option(help: str, *, default: Any, kw_only: bool = True, **more: Any) -> Any:  # noqa: A002
    """Declare a field that is an option; `more` are fields of `Declaration`."""
    declared = Declaration(help, **more)
    return field(default=default, kw_only=kw_only, metadata={METADATA: declared})


def argument(
    help: str,  # noqa: A002 - as everywhere
    *,
    metavar: str,
    kw_only: bool = True,
    default: Any = MISSING,
    positional: bool = True,
    **more: Any,
) -> Any:
    """Declare a field that is an argument of a command line; required without a default."""
    declared = Declaration(help, positional=positional, metavar=metavar, **more)
    return field(default=default, kw_only=kw_only, metadata={METADATA: declared})


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(option, argument))
def declared(cls: type[Class]) -> type[Class]:
    """Make a class of declared fields a frozen dataclass; fields of its last base come first."""
    return dataclass(frozen=True, kw_only=True, repr=False, eq=False, match_args=False)(cls)


def declarations(cls: type[Any]) -> Iterator[tuple[dataclasses.Field[Any], Declaration]]:
    """Yield the declared fields of a class."""
    for one in dataclasses.fields(cls):
        if METADATA in one.metadata:
            yield one, one.metadata[METADATA]


def spellings(one: dataclasses.Field[Any]) -> tuple[str, ...]:
    """Return how the command line spells an option."""
    return one.metadata[METADATA].names or (f"--{one.name.replace('_', '-')}",)
