"""Output of commands: reports on stdout; warnings, errors and progress on stderr."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TextIO

import typer

from rewritelog.cli.process import CLOSED_PIPE, OutputLost
from rewritelog.progress import Unit, listening

BOLD, YELLOW, RED = "1", "33", "31"

_WITH_TOTAL = "{desc}: {percentage:3.0f} %|{bar}|"
_BAR_WIDTH = 20


@dataclass
class RunState:
    """Settings and warnings of the one command of this process."""

    command: str = ""
    """The name of the command, empty until it is known."""
    failure: int = 1
    """The exit code if it has no result; 2 for `diff`, whose code for a difference is 1."""
    quiet: bool = False
    """Whether reports and progress are suppressed."""
    debug: bool = False
    """Whether errors show a traceback."""
    warnings: int = 0
    """How many warnings there were."""


run = RunState()


def reset() -> None:
    """Reset the state left by an earlier command of this process."""
    vars(run).update(vars(RunState()))


def note(warning: str) -> None:
    """Print a warning, even with `--quiet`: one line, wrapped on a terminal."""
    note_all([warning])


def note_all(warnings: Sequence[str]) -> None:
    """Print warnings, each on its own line."""
    run.warnings += len(warnings)
    _print_all("warning:", warnings)


def hint_all(hints: Sequence[str]) -> None:
    """Print what only some users have to know; it does not count as a warning."""
    if not run.quiet:
        _print_all("note:", hints)


def _print_all(head: str, texts: Sequence[str]) -> None:
    """Print texts on stderr, each on its own line after a head, wrapped on a terminal."""
    from rewritelog.text import printable, wrapped  # noqa: PLC0415 - only some runs need it

    lines = [f"{head} {printable(text)}" for text in texts]
    if sys.stderr.isatty():
        coloured_head = coloured(head, YELLOW, sys.stderr)
        lines = [wrapped(line).replace(head, coloured_head, 1) for line in lines]
    if lines:
        typer.echo("\n".join(lines), err=True)


def fail(message: str) -> None:
    """Print an error."""
    from rewritelog.text import printable  # noqa: PLC0415

    prefix = coloured("rewritelog: error:", RED, sys.stderr)
    typer.echo(f"{prefix} {printable(message)}", err=True)


def lost_output(lost: OutputLost) -> int:
    """Print that standard output cannot be written, unless its reader left; return the code."""
    if not lost.strerror:
        return CLOSED_PIPE
    fail(f"standard output cannot be written: {lost.strerror}")
    return run.failure


def show(text: str, *, err: bool = False) -> None:
    """Print a report, with headings in bold on a terminal."""
    stream = sys.stderr if err else sys.stdout
    lines = (
        line if line.startswith(" ") else coloured(line, BOLD, stream) for line in text.split("\n")
    )
    typer.echo("\n".join(lines), err=err, color=True)


def coloured(text: str, code: str, stream: TextIO) -> str:
    """Return a text in a colour; unchanged if the terminal has none, with NO_COLOR, or in a rank.

    Open MPI's launcher gives ranks a terminal of its own, even if what they print goes to a file.
    """
    launched = "OMPI_COMM_WORLD_RANK" in os.environ
    plain = launched or os.environ.get("NO_COLOR") or os.environ.get("TERM", "dumb") == "dumb"
    return text if plain or not text or not stream.isatty() else f"\x1b[{code}m{text}\x1b[0m"


@contextmanager
def progress() -> Iterator[None]:
    """Show progress on stderr if it is a terminal and `--quiet` is not given.

    It is the name of the stage, and a bar if the total is known.
    """
    if run.quiet or not sys.stderr.isatty():
        yield
        return
    from tqdm import tqdm  # noqa: PLC0415 - only for terminals

    from rewritelog.text import bytes_text, shorten  # noqa: PLC0415 - as above

    columns, rows = os.get_terminal_size(sys.stderr.fileno())
    size = {} if columns and rows else {"ncols": 79, "nrows": 24}  # some terminals do not know it
    with tqdm(leave=False, bar_format="{desc}", **size) as bar:

        def advance(stage: str, done: int, total: int, unit: Unit) -> None:
            amount = f" {done:,} of {total:,}" if total else ""
            if total and unit == "bytes":
                amount = f" {bytes_text(done)} of {bytes_text(total)}"
            bar.bar_format = _WITH_TOTAL if total else "{desc}"
            bar.total, bar.n = total or None, done
            shown = shorten(stage, max(20, (columns or 79) - len(amount) - _BAR_WIDTH))
            bar.set_description_str(f"{shown}{amount}", refresh=False)
            bar.refresh()

        with listening(advance):
            yield
