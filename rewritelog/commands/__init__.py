"""The commands, each declared in a module of its name: options, job and report."""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rewritelog.commands.command import Command

PANELS = {
    "Rewrite logs": ("rewrite",),
    "Fit models": ("timings", "fit", "predict", "verify", "compare", "sample", "explore", "models"),
    "Predict whole runs": ("replay", "sweep", "lost-cycles", "predict-run"),
    "Inspect logs": ("check", "rules", "info", "diff", "dump", "timeline"),
    "Create logs": ("convert", "export", "synth"),
    "Set up": ("completion",),
}
"""The registry: names of commands by purpose, in the order of the help."""

NAMES = tuple(name for names in PANELS.values() for name in names)


def command_class(name: str) -> type[Command[Any]]:
    """Import and return the class of a command: `LostCycles` of `lost-cycles`."""
    module = import_module(f"{__name__}.{name.replace('-', '_')}")
    cls: type[Command[Any]] = getattr(module, name.title().replace("-", ""))
    return cls


def summary(name: str) -> str:
    """Return the first sentence of a command's help, without the full stop."""
    text = inspect.cleandoc(command_class(name).__doc__ or "")
    return " ".join(text.partition("\n\n")[0].split()).rstrip(".")
