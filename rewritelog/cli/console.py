"""Output of commands: reports on stdout, warnings and errors on stderr."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TextIO

import typer

WRITTEN_AT_ONCE = 1000
BOLD, YELLOW, RED = "1", "33", "31"


@dataclass
class _Run:
    """Settings and warnings of the one command of this process."""

    quiet: bool = False
    debug: bool = False
    warnings: int = 0


_run = _Run()


def begin(*, quiet: bool = False) -> None:
    """Begin a command; warnings from parsing its arguments count as its own."""
    _run.quiet = quiet


def reset() -> None:
    """Reset the state left by an earlier command of this process."""
    _run.quiet, _run.debug, _run.warnings = False, False, 0


def set_debug() -> None:
    """Make errors show a traceback."""
    _run.debug = True


def debug() -> bool:
    """Return whether errors show a traceback."""
    return _run.debug


def quiet() -> bool:
    """Return whether reports and progress are suppressed."""
    return _run.quiet


def warned() -> bool:
    """Return whether there were warnings."""
    return _run.warnings > 0


def note(warning: str) -> None:
    """Print a warning, even with `--quiet`: one line, wrapped on a terminal."""
    note_all([warning])


def note_all(warnings: Sequence[str]) -> None:
    """Print warnings, each on its own line, with few writes."""
    from rewritelog.text import printable, wrapped  # noqa: PLC0415 - only some runs need it

    _run.warnings += len(warnings)
    on_terminal, head = sys.stderr.isatty(), coloured("warning:", YELLOW, sys.stderr)
    for start in range(0, len(warnings), WRITTEN_AT_ONCE):
        lines = [
            f"warning: {printable(warning)}"
            for warning in warnings[start : start + WRITTEN_AT_ONCE]
        ]
        lines = [wrapped(line) for line in lines] if on_terminal else lines
        typer.echo("\n".join(line.replace("warning:", head, 1) for line in lines), err=True)


def fail(message: str) -> None:
    """Print an error."""
    from rewritelog.text import printable  # noqa: PLC0415

    prefix = coloured("rewritelog: error:", RED, sys.stderr)
    typer.echo(f"{prefix} {printable(message)}", err=True)


def show(text: str, *, err: bool = False) -> None:
    """Print a report, with headings in bold on a terminal."""
    stream = sys.stderr if err else sys.stdout
    if has_colours(stream):
        lines = text.split("\n")
        text = "\n".join(line if line.startswith(" ") else _bold(line) for line in lines)
    typer.echo(text, err=err, color=True)


def _bold(line: str) -> str:
    return f"\x1b[{BOLD}m{line}\x1b[0m" if line else line


def coloured(text: str, code: str, stream: TextIO) -> str:
    """Return a text in a colour if the stream is a terminal with colours."""
    return f"\x1b[{code}m{text}\x1b[0m" if has_colours(stream) else text


def has_colours(stream: TextIO) -> bool:
    """Return whether a stream is a terminal with colours and NO_COLOR is not set."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM", "dumb") == "dumb":
        return False
    return stream.isatty()
