"""Flags of the built-in models, made from their options dataclasses."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Collection
from functools import wraps
from typing import Annotated, Any, get_type_hints

import typer

from rewritelog.cli.console import Outcome
from rewritelog.cli.standard import with_parameters
from rewritelog.errors import UsageError
from rewritelog.models.options import (
    AutoOptions,
    CoefficientsOptions,
    CountersOptions,
    GaussianProcessOptions,
    LeastSquaresOptions,
    SampledOptions,
)

MODEL_OPTIONS = "Options of models"
"""The heading of these flags in the help."""

_BUILT_IN = {
    "auto": AutoOptions,
    "least-squares": LeastSquaresOptions,
    "sampled": SampledOptions,
    "counters": CountersOptions,
    "coefficients": CoefficientsOptions,
    "gaussian-process": GaussianProcessOptions,
}


def _flags(taken: Collection[str]) -> dict[str, inspect.Parameter]:
    """Return a parameter, with default None, for each built-in model's option except those `taken`.

    Models with the same option share its flag.
    """
    flags: dict[str, inspect.Parameter] = {}
    for options in _BUILT_IN.values():
        kinds = get_type_hints(options)
        for field in dataclasses.fields(options):
            if field.name not in flags and field.name not in taken:
                spelled = f"--{field.name.replace('_', '-')}"
                text = f"{field.metadata['help']} [{_owners(field.name)}]"
                declared = typer.Option(
                    spelled,
                    help=text,
                    show_default=False,
                    metavar=_metavar(kinds[field.name]),
                    rich_help_panel=MODEL_OPTIONS,
                )
                flags[field.name] = inspect.Parameter(
                    field.name,
                    inspect.Parameter.KEYWORD_ONLY,
                    default=None,
                    annotation=Annotated[kinds[field.name] | None, declared],
                )
    return flags


def _metavar(kind: object) -> str | None:
    """Return the metavar of an option's value in the help, None to show its choices."""
    return {float: "NUMBER", int: "N", str: "TEXT"}.get(kind)  # type: ignore[call-overload,no-any-return]


def _owners(option: str) -> str:
    """Return the models with an option and its defaults, as in `auto: huber; sampled: huber`."""
    by_default: dict[object, list[str]] = {}
    for name, options in _BUILT_IN.items():
        for field in dataclasses.fields(options):
            if field.name == option:
                by_default.setdefault(field.default, []).append(name)
    if len(by_default) == 1:
        ((default, names),) = by_default.items()
        return f"{', '.join(names)}; default {default}"
    defaults = (f"{default} for {', '.join(names)}" for default, names in by_default.items())
    return f"default {'; '.join(defaults)}"


def with_model_options(
    command: Callable[..., Outcome | None],
) -> Callable[..., Outcome | None]:
    """Give a command the flags of all built-in models, passed on as one dict `model_options`.

    The dict has the flags that were given, except those that the command declares itself.
    """
    parameters = inspect.signature(command, eval_str=True).parameters
    flags = _flags(parameters)
    own = [p for name, p in parameters.items() if name != "model_options"]

    @wraps(command)
    def extended(**given: Any) -> Outcome | None:
        options = {name: given.pop(name) for name in flags}
        chosen = {name: value for name, value in options.items() if value is not None}
        return command(**given, model_options=chosen)

    return with_parameters(extended, [*own, *flags.values()])


def split_pairs(pairs: list[str], flag: str) -> list[tuple[str, str]]:
    """Return `NAME=VALUE` texts as pairs; raise `UsageError` for one without a name or `=`."""
    split = []
    for pair in pairs:
        name, equals, value = pair.rpartition("=")
        if not (equals and name):
            raise UsageError(f"{flag} takes NAME=VALUE, not {pair!r}")
        split.append((name, value))
    return split


def add_pairs(options: dict[str, Any], pairs: list[str] | None) -> None:
    """Add the pairs of `--model-option` to the options set by flags; no name may come twice."""
    for name, value in split_pairs(pairs or [], "--model-option"):
        if name in options:
            raise UsageError(f"the model option {name!r} is given more than once")
        options[name] = value
