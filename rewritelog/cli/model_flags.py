"""The options of the built-in models as flags of the commands that make models.

They are known only after all models have been imported, so this is done only for command lines with
an option that the command itself does not have.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from rewritelog.cli.spelling import Spelled
from rewritelog.commands.command import Command
from rewritelog.errors import UsageError
from rewritelog.options import Declaration

_PREFIX = "model_option_"


def takes_model_options(command: type[Command[Any]]) -> bool:
    """Return whether a command makes a model."""
    return any(option.name == "model_options" for option in dataclasses.fields(command))  # type: ignore[arg-type]


def understood(words: Sequence[str], spelled: Sequence[Spelled]) -> bool:
    """Return whether a command has all the options that the words name."""
    known = {name for option in spelled for name in option.names}
    return all(word.partition("=")[0] in known for word in words if word.startswith("--"))


def model_flags(spelled: Sequence[Spelled]) -> list[Spelled]:
    """Return the options of all built-in models, except those that a command has itself."""
    from rewritelog.models.registry import built_in_options  # noqa: PLC0415 - imports all models

    taken = {name for option in spelled for name in option.names}
    return [
        Spelled(
            _PREFIX + name,
            (f"--{name.replace('_', '-')}",),
            str if info.kind is bool else info.kind,
            None,
            Declaration(info.help),
        )
        for name, info in built_in_options().items()
        if f"--{name.replace('_', '-')}" not in taken
    ]


def with_flags(
    values: Mapping[str, Any], given: Mapping[str, Any], flags: Sequence[Spelled]
) -> dict[str, Any]:
    """Return the values of a command with the options of a model that flags give."""
    options = dict(values.get("model_options") or {})
    for option in flags:
        if words := given.get(option.field):
            name = option.field.removeprefix(_PREFIX)
            if name in options:
                raise UsageError(f"the model option {name!r} is given more than once")
            options[name] = option.value(words)
    return {**values, "model_options": options} if options else dict(values)
