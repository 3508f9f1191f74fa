"""The commands, each declared as a class: its options, its job, and what is printed."""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rewritelog.commands.command import Command

PANELS = {
    "Rewrite logs": {"rewrite": "logs"},
    "Fit models": {
        **dict.fromkeys(("stats", "merge", "timings", "fit", "predict", "verify"), "fits"),
        **dict.fromkeys(("compare", "sample", "explore", "models"), "fits"),
    },
    "Predict whole runs": dict.fromkeys(("replay", "sweep", "lost-cycles", "predict-run"), "runs"),
    "Inspect logs": dict.fromkeys(("check", "rules", "info", "diff", "dump", "timeline"), "logs"),
    "Create logs": dict.fromkeys(("convert", "export", "synth"), "logs"),
    "Set up": {"completion": "completion"},
}
"""The registry: commands by purpose, in the order of the help, and the modules that have them."""

MODULES = {name: module for panel in PANELS.values() for name, module in panel.items()}
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
