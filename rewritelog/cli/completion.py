"""Shell completion: the script of a shell, and the values of options that only a look-up knows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal

import typer


def completion_command(
    shell: Annotated[
        Literal["bash", "zsh", "fish"],
        typer.Argument(metavar="SHELL", help="bash, zsh or fish.", show_default=False),
    ],
) -> None:
    """Print the shell's completion script.

    To use it, have the shell's start-up file evaluate it: for bash
    `eval "$(rewritelog completion bash)"` in ~/.bashrc, for zsh the same with zsh after compinit in
    ~/.zshrc, for fish `rewritelog completion fish | source` in ~/.config/fish/config.fish.
    """
    from typer import completion  # noqa: PLC0415 - only here

    script: str = completion.get_completion_script(  # type: ignore[attr-defined] # no __all__
        prog_name="rewritelog", complete_var="_REWRITELOG_COMPLETE", shell=shell
    )
    typer.echo(script)


def enable() -> None:
    """Make typer answer a shell that asks for completions."""
    from typer._completion_classes import completion_init  # noqa: PLC0415

    completion_init()


def complete_model(incomplete: str) -> Iterable[tuple[str, str]]:
    """Return the models whose names begin so, each with what it is."""
    from importlib.metadata import entry_points  # noqa: PLC0415

    names = sorted({point.name for point in entry_points(group="rewritelog.models")})
    return [(name, "") for name in names if name.startswith(incomplete)]


def complete_models(incomplete: str) -> Iterable[tuple[str, str]]:
    """Return lists of models, with commas between, that begin so."""
    before, comma, last = incomplete.rpartition(",")
    taken = set(before.split(","))
    return [
        (f"{before}{comma}{name}", said) for name, said in complete_model(last) if name not in taken
    ]
