"""`rewritelog completion`, and the answers to a shell's requests for completions."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from rewritelog.cli.standard import plain

_BASH = """\
_rewritelog_completion() {
    # bash also splits words at ':' and '=', as in Cell::bonded: typer gets words split at blanks
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
"""typer's own function does not handle names with a colon."""


@plain(quiet=False)
def completion_command(
    shell: Annotated[
        Literal["bash", "zsh", "fish"],
        typer.Argument(metavar="SHELL", help="bash, zsh or fish.", show_default=False),
    ],
) -> None:
    """Print a completion script for the shell.

    Evaluate it in the shell's start-up file: for bash `eval "$(rewritelog completion bash)"` in
    ~/.bashrc; for zsh the same with zsh, after compinit, in ~/.zshrc; for fish
    `rewritelog completion fish | source` in ~/.config/fish/config.fish.
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
    """Make typer answer a shell's requests for completions."""
    from typer._completion_classes import completion_init  # noqa: PLC0415

    completion_init()
