"""The `rewritelog` program: its commands, and how errors are reported."""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from io import StringIO
from typing import Any, NoReturn

import typer

from rewritelog import commands
from rewritelog.cli import console
from rewritelog.cli.help import overview
from rewritelog.cli.job import WRONG_USAGE, is_shared, this_job
from rewritelog.cli.spelling import WordsError
from rewritelog.cli.words import parse
from rewritelog.cli.working import complete, work
from rewritelog.commands.completion import COMPLETE
from rewritelog.errors import OutputWarning, RewriteLogError, UsageError
from tracebigsim._streams import CLOSED_PIPE, OutputLost

FAILED = 1

_command = ""


def run() -> None:
    """Run the command line; exit as `rewritelog.cli.process.main` says, by `SystemExit`."""
    console.reset()
    with _usage_errors_once(), _python_warnings_noted():
        try:
            code = _run_command(sys.argv[1:])
        except typer.TyperException as error:
            _show_wrong_words(_sentence(error.format_message()))
            sys.exit(WRONG_USAGE)
        except WordsError as error:
            _show_wrong_words(str(error))
            sys.exit(WRONG_USAGE)
        except UsageError as error:
            _fail(error, WRONG_USAGE)
        except RewriteLogError as error:
            _fail(error, FAILED)
        except OutputLost as lost:
            sys.exit(code_of_lost_output(lost))
        except MemoryError as error:
            text = f"not enough memory: {error}".removesuffix(": ")
            _fail(error, _code_without_answer(), text)
        except OSError as error:
            where = "" if error.filename is None else f"{os.fsdecode(error.filename)}: "
            _fail(error, _code_without_answer(), f"{where}{error.strerror or error}")
        sys.exit(code)


def _run_command(words: list[str]) -> int:
    """Run the command that the words name; return its exit code."""
    global _command  # noqa: PLW0603 - one process runs one command
    if COMPLETE in os.environ:
        complete()
    if not words:
        typer.echo(overview(), err=True)
        return WRONG_USAGE
    if words[0] == "help":
        words = [*words[1:2], "--help"]
    _command = next((word for word in words if not word.startswith("-")), "")
    if _command in commands.NAMES:
        return work(_command, words)
    parse(words, {})  # prints the help or the version, or raises an error
    return WRONG_USAGE


@contextmanager
def _python_warnings_noted() -> Iterator[None]:
    """Print Python warnings issued while an output is written as the command's own warnings."""
    with warnings.catch_warnings():
        plain = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
            if issubclass(category, OutputWarning):
                console.note(str(message))
            else:
                plain(message, category, *where, **more)

        warnings.showwarning = show
        warnings.simplefilter("always", OutputWarning)
        yield


@contextmanager
def _usage_errors_once() -> Iterator[None]:
    """Print errors of wrong usage on rank 0 only in a shared MPI run."""
    if this_job().rank == 0 or not is_shared(sys.argv):
        yield
        return
    message = StringIO()
    try:
        with redirect_stderr(message):
            yield
    except SystemExit as left:
        if left.code != WRONG_USAGE:
            sys.stderr.write(message.getvalue())
        raise


def code_of_lost_output(lost: OutputLost) -> int:
    """Report that standard output cannot be written, unless its reader left; return the code."""
    if not lost.strerror:
        return CLOSED_PIPE
    console.fail(f"standard output cannot be written: {lost.strerror}")
    return _code_without_answer()


def _code_without_answer() -> int:
    """Return the exit code of a failure; that of `diff` differs from its code for a difference."""
    known = _command in commands.NAMES
    return commands.command_class(_command).failure if known else FAILED


def _sentence(message: str) -> str:
    """Return typer's message as errors are written here."""
    line = " ".join(message.split()).replace(". Choose from:", "; choose from")
    return line[:1].lower() + line[1:].rstrip(".")


def _show_wrong_words(message: str) -> None:
    console.fail(message)
    program = " ".join(("rewritelog", _command if _command in commands.NAMES else "")).rstrip()
    typer.echo(f"Try '{program} --help' for help.", err=True)


def _fail(error: BaseException, code: int, message: str | None = None) -> NoReturn:
    if console.debug():
        from rewritelog.text import printable  # noqa: PLC0415 - only errors need it

        for line in "".join(traceback.format_exception(error)).splitlines():
            typer.echo(printable(line), err=True)
    console.fail(str(error) if message is None else message)
    sys.exit(code)
