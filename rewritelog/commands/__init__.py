"""The commands, each declared as a class: its options, its job, and what is printed."""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import TYPE_CHECKING, Any

from rewritelog import MODULES

if TYPE_CHECKING:
    from rewritelog.commands.command import Command

NAMES = tuple(MODULES)


def command_class(name: str) -> type[Command[Any]]:
    """Import and return the class of a command: `LostCyclesCommand` of `lost-cycles`."""
    module = import_module(f"{__name__}.{MODULES[name]}")
    cls: type[Command[Any]] = getattr(module, f"{name.title().replace('-', '')}Command")
    return cls


def summary(name: str) -> str:
    """Return the first sentence of a command's help, without the full stop."""
    text = inspect.cleandoc(command_class(name).__doc__ or "")
    return " ".join(text.partition("\n\n")[0].split()).rstrip(".")
