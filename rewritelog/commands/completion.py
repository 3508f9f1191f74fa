"""`rewritelog completion`, and the values of options that completion must look up."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Literal

from rewritelog.commands.command import Command
from rewritelog.options import argument, called

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

complete -o default -F _rewritelog_completion rewritelog"""
"""typer's own function does not handle names with a colon."""

_SCRIPTS = {
    "bash": _BASH,
    "zsh": f'eval "$(env {COMPLETE}=source_zsh rewritelog)"',
    "fish": f"env {COMPLETE}=source_fish rewritelog | source",
}


class CompletionCommand(Command[str]):
    """Print a completion script for the shell.

    Evaluate it in the shell's start-up file: for bash `eval "$(rewritelog completion bash)"` in
    ~/.bashrc; for zsh the same with zsh, after compinit, in ~/.zshrc; for fish
    `rewritelog completion fish | source` in ~/.config/fish/config.fish.
    """

    shell = frozenset()

    name: Literal["bash", "zsh", "fish"] = argument("bash, zsh or fish.", metavar="SHELL")

    def run(self) -> str:
        """Return a script: typer's own, except for bash."""
        return _SCRIPTS[self.name]


LookUp = Callable[[str], list[str]]
"""Returns what a command line gave to an option before, or else all its arguments."""

_MOST_BYTES = 4 << 20
"""Larger timings files are not read while a user waits."""

_PLAIN = re.compile(r"[\w:.,+@%/~^-]+")
"""Names without characters that are special to a shell."""


def _models(*_: object) -> list[str]:
    """Return the models."""
    from importlib.metadata import entry_points

    return sorted({point.name for point in entry_points(group="rewritelog.models")})


def _model_lists(incomplete: str, _: LookUp) -> list[str]:
    """Return comma-separated lists: the complete models, and each of the others in turn."""
    before, comma, _last = incomplete.rpartition(",")
    taken = set(before.split(","))
    return [f"{before}{comma}{name}" for name in _models() if name not in taken]


def _events(_: str, values: LookUp) -> list[str]:
    """Return the events of the timings given before."""
    paths = [Path(name) for name in values("timings")]
    events = dict.fromkeys(event for path in paths for event in _events_of(path))
    return [name for name in events if _PLAIN.fullmatch(name)]


def _events_of(path: Path) -> Iterable[Any]:
    """Return the names of events in a timings file, none if it cannot be read."""
    from tracebigsim import TraceBigSimError
    from tracebigsim.files import scan_file

    try:
        if not path.is_file() or path.stat().st_size > _MOST_BYTES:
            return ()
        return [event for table in scan_file(path) for event in table.events]
    except (OSError, TraceBigSimError):
        return ()


COMPLETERS: dict[str, Callable[[str, LookUp], Iterable[str]]] = {
    "model": _models,
    "models": _model_lists,
    "event": _events,
    "event=": lambda *arguments: [f"{name}=" for name in _events(*arguments)],
    "machine": lambda *_: called("replaying.network:machine_names"),
    "rule": lambda *_: called("checking.rules:rule_names"),
}
"""Functions that return the values to offer, by name; shells offer files if none matches."""
