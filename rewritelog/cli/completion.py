"""Shell completion: the script of a shell, and the values of options that only a look-up knows."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

_BASH = """\
_rewritelog_completion() {
    # bash parts words at ':' and '=' too, as in Cell::bonded: typer gets them parted by blanks
    local line="${COMP_LINE:0:COMP_POINT}"
    local current="${line##*[[:space:]]}"
    local -a words
    read -ra words <<< "$line"
    local place=$((${#words[@]} - 1))
    [[ -z "$current" ]] && place=$((place + 1))
    local IFS=$'\\n'
    COMPREPLY=( $( env COMP_WORDS="$line" COMP_CWORD=$place \\
                   _REWRITELOG_COMPLETE=complete_bash "$1" ) )
    COMPREPLY=( "${COMPREPLY[@]#"${current%"${current##*[:=]}"}"}" )
    [[ "${COMPREPLY[0]}" == *= ]] && compopt -o nospace
    return 0
}

complete -o default -F _rewritelog_completion rewritelog"""
"""typer's own function does not know names with a colon."""

_MOST_BYTES = 4 << 20
"""Larger files of timings are not read while a user waits."""

_MOST_EVENTS = 1000
_HARMLESS = re.compile(r"[\w:.,+@%/~^-]+")
"""Names that no shell takes for anything else."""


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
    if shell == "bash":
        typer.echo(_BASH)
        return
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


def complete_event(context: typer.Context, incomplete: str) -> Iterable[str]:
    """Return the events of the timings that are named before, for options like EVENT=CATEGORY."""
    paths = [Path(one) for one in context.params.get("timings") or ()]
    events = dict.fromkeys(event for path in paths for event in _events_of(path))
    matching = (one for one in events if one.startswith(incomplete) and _HARMLESS.fullmatch(one))
    return [f"{one}=" for one in islice(matching, _MOST_EVENTS)]


def _events_of(path: Path) -> Iterable[Any]:
    """Return the names of the events of a file of timing lines; none of what cannot be read."""
    from tracebigsim import TraceBigSimError  # noqa: PLC0415
    from tracebigsim.files import scan_file  # noqa: PLC0415

    try:
        if not path.is_file() or path.stat().st_size > _MOST_BYTES:
            return ()
        return [event for table in scan_file(path) for event in table.events]
    except (OSError, TraceBigSimError):
        return ()
