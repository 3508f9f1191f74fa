"""The options of a command line, made from the declarations of a command."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass
from typing import Any, get_args

from rewritelog.cli.shell import ALWAYS, ShellOptions
from rewritelog.commands.command import Command, Kind, choices, kinds_of
from rewritelog.errors import UsageError
from rewritelog.options import Declaration, declarations, spellings

METAVARS = {float: "NUMBER", int: "N", str: "TEXT"}


class WordsError(UsageError):
    """A word of a command line does not stand for a value."""


@dataclass(frozen=True)
class Spelled:
    """One argument or option of a command line."""

    field: str
    names: tuple[str, ...]
    """As an option is spelled; empty for an argument."""
    kind: Any
    """The type of the value, without None."""
    default: Any
    """Its default; `dataclasses.MISSING` if it is required."""
    declared: Declaration

    @property
    def is_flag(self) -> bool:
        """Whether it takes no value."""
        return self.kind is bool

    @property
    def many(self) -> bool:
        """Whether it can be given several times."""
        takes_many = isinstance(self.kind, Kind) and self.kind.many
        return takes_many or self.declared.read is not None

    @property
    def takes_one_value(self) -> bool:
        """Whether only the last of several values counts."""
        return bool(self.names) and not (self.is_flag or self.many)

    @property
    def required(self) -> bool:
        """Whether the command needs it."""
        return self.default is MISSING or self.declared.needed

    @property
    def metavar(self) -> str:
        """What stands for its value in the help."""
        return (
            self.declared.metavar or "|".join(choices(self.kind)) or METAVARS.get(self.kind, "FILE")
        )

    @property
    def name(self) -> str:
        """Its name in messages."""
        return self.names[0] if self.names else self.metavar

    def value(self, given: Sequence[str]) -> Any:
        """Return the value that words stand for; raise `UsageError` if they do not."""
        if self.declared.read is not None:
            return self.declared.read(list(given), self.name)
        if self.many:
            return [self.kind(text) for text in given]
        return self._converted(given[-1])

    def _converted(self, text: str) -> Any:
        """Return the value that a word stands for."""
        kind = self.kind
        allowed, least = choices(kind), self.declared.least
        if allowed:
            if text not in allowed:
                raise self._wrong(f"{text!r} is not one of {', '.join(map(repr, allowed))}")
            return text
        try:
            value = kind(text)
        except ValueError as error:
            what = "an integer" if kind is int else "a number"
            raise self._wrong(f"{text!r} is not {what}") from error
        if least is not None and value < least:
            raise self._wrong(f"{text} is less than {least}")
        return value

    def _wrong(self, problem: str) -> WordsError:
        return WordsError(f"invalid value for '{self.name}': {problem}")


def spelled_of(command: type[Command[Any]]) -> list[Spelled]:
    """Return what the command line takes: arguments, the command's options, and those of all."""
    own = [option for option in _spelled(command) if option.declared.shell]
    added = shell_options((*command.shell, *ALWAYS))
    return sorted([*own, *added], key=lambda option: bool(option.names))


def shell_options(fields: Collection[str]) -> list[Spelled]:
    """Return some of the options that the command line adds."""
    return [option for option in _spelled(ShellOptions) if option.field in fields]


def _spelled(cls: type[Any]) -> Iterator[Spelled]:
    kinds = dict(kinds_of(cls))
    for option, told in declarations(cls):
        names = () if told.positional else spellings(option)
        yield Spelled(option.name, names, _without_none(kinds[option.name]), option.default, told)


def _without_none(kind: Any) -> Any:
    """Return the type of a value that is given."""
    left = [option for option in get_args(kind) if option is not type(None)]
    return left[0] if len(left) == 1 and type(None) in get_args(kind) else kind


def values_of(
    given: Mapping[str, Any], spelled: Sequence[Spelled], cls: type[Any]
) -> dict[str, Any]:
    """Return the values of the fields of a class that the words of a command line give."""
    names = {option.name for option in dataclasses.fields(cls)}
    values: dict[str, Any] = {}
    for option in spelled:
        words = given.get(option.field)
        if option.field not in names or not words:
            if option.required and option.field in names:
                allowed = (
                    f"; choose from {', '.join(choices(option.kind))}"
                    if choices(option.kind)
                    else ""
                )
                raise WordsError(f"missing option '{option.name}'{allowed}")
            continue
        if option.is_flag:
            values[option.field] = True
        else:
            values[option.field] = option.value([words] if isinstance(words, str) else words)
    return values
