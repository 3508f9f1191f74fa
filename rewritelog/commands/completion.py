"""`rewritelog completion`."""

from __future__ import annotations

from typing import Literal

from rewritelog.commands.command import Printing, Shell
from rewritelog.options import argument, declared

COMPLETE = "_REWRITELOG_COMPLETE"
"""The environment variable with which a shell asks for completions."""

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

complete -o default -F _rewritelog_completion rewritelog
"""
"""typer's own function does not handle names with a colon."""

_SCRIPTS = {
    "bash": _BASH,
    "zsh": f'eval "$(env {COMPLETE}=source_zsh rewritelog)"\n',
    "fish": f"env {COMPLETE}=source_fish rewritelog | source\n",
}


@declared
class Completion(Printing[None]):
    """Print a completion script for the shell.

    Evaluate it in the shell's start-up file: for bash `eval "$(rewritelog completion bash)"` in
    ~/.bashrc; for zsh the same with zsh, after compinit, in ~/.zshrc; for fish
    `rewritelog completion fish | source` in ~/.config/fish/config.fish.
    """

    shell = frozenset()

    name: Literal["bash", "zsh", "fish"] = argument("bash, zsh or fish.", metavar="SHELL")

    def print(self, shell: Shell) -> int:
        """Print a script: that of typer, but for bash."""
        shell.write(_SCRIPTS[self.name])
        return 0
