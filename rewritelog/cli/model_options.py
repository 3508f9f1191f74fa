"""Flags of the built-in models, made from their options dataclasses."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any, get_type_hints

import typer

from rewritelog.errors import UsageError
from rewritelog.models.options import LeastSquaresOptions, SampledOptions

_BUILT_IN = {"least-squares": LeastSquaresOptions, "sampled": SampledOptions}


def _flags() -> dict[str, inspect.Parameter]:
    """Return a parameter for each option of the built-in models, None where it is not given."""
    flags: dict[str, inspect.Parameter] = {}
    for options in _BUILT_IN.values():
        kinds = get_type_hints(options)
        for field in dataclasses.fields(options):
            spelled = f"--{field.name.replace('_', '-')}"
            owners = " and ".join(
                name
                for name, owner in _BUILT_IN.items()
                if field.name in {one.name for one in dataclasses.fields(owner)}
            )
            default = "" if field.default is False else f"; default {field.default}"
            text = f"{field.metadata['help']} [{owners}{default}]"
            flags[field.name] = inspect.Parameter(
                field.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=None,
                annotation=Annotated[
                    kinds[field.name] | None, typer.Option(spelled, help=text, show_default=False)
                ],
            )
    return flags


def with_model_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the flags of all built-in models, as one dict `model_options`.

    The dict has what was given, together with the pairs of `--model-option`.
    """
    flags = _flags()
    signature = inspect.signature(command, eval_str=True)
    own = [p for name, p in signature.parameters.items() if name != "model_options"]

    @wraps(command)
    def extended(**given: Any) -> None:
        options = {name: given.pop(name) for name in flags}
        chosen = {name: value for name, value in options.items() if value is not None}
        command(**given, model_options=chosen)

    parameters = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in own]
    extended.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[*parameters, *flags.values()]
    )
    extended.__annotations__ = {p.name: p.annotation for p in [*own, *flags.values()]}
    return extended


def split_pairs(pairs: list[str], flag: str) -> list[tuple[str, str]]:
    """Return `NAME=VALUE` texts as pairs; raise `UsageError` for one without a name or `=`."""
    split = []
    for pair in pairs:
        name, equals, value = pair.rpartition("=")
        if not (equals and name):
            raise UsageError(f"{flag} takes NAME=VALUE, not {pair!r}")
        split.append((name, value))
    return split
