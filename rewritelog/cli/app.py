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

from rewritelog.cli import console
from rewritelog.cli.commands import Entry, Group
from rewritelog.cli.job import WRONG_USAGE, is_shared, this_job
from rewritelog.cli.standard import Debug, Version
from rewritelog.errors import OutputWarning, RewriteLogError, UsageError
from tracebigsim._streams import CLOSED_PIPE, OutputLost

DONE, FAILED = 0, 1

_ParsingError: Any = typer.BadParameter.__mro__[2]
"""The base class of what typer raises for arguments that it cannot parse."""

_PLAIN_WORDS = {
    "float_parsing": "{input!r} is not a number",
    "int_parsing": "{input!r} is not an integer",
    "greater_than_equal": "{input} is less than {ge}",
    "value_error": "{error}",
}
"""Messages on invalid values, by the type of error of pydantic, which checks typer's values."""

_command = ""


_COMMANDS = {
    "Rewrite logs": (Entry("rewrite", "rewrite", "Rewrite a log set with new SEB durations"),),
    "Fit models": (
        Entry("fit", "evaluation", "Fit a model to timing lines, and write it to a model file"),
        Entry(
            "predict",
            "evaluation",
            "Print the predictions of a model file as CSV, one line for each record",
        ),
        Entry(
            "verify",
            "evaluation",
            "Compare the predictions of a model file with measured times",
        ),
        Entry("compare", "evaluation", "Compare models on held-out timing lines"),
        Entry(
            "sample",
            "sampling",
            "Choose the SEBs to time, for a fit that predicts all others best",
        ),
        Entry(
            "explore",
            "viewing",
            "Look at fits on a live page, change them, and save the result",
        ),
    ),
    "Predict whole runs": (
        Entry(
            "replay",
            "replaying",
            "Predict how long the whole program takes, and what bounds it",
        ),
        Entry(
            "lost-cycles",
            "replaying",
            "Split all PE time of a replay into useful work and categories of lost cycles",
        ),
    ),
    "Inspect logs": (
        Entry("check", "checking", "Find damage and oddities in a log set and its params"),
        Entry(
            "info",
            "tools",
            "Describe a log set: machine, sizes, brackets, where the time goes",
        ),
        Entry("diff", "diffing", "Compare two log sets: fields, durations and messages"),
        Entry("dump", "tools", "Print every field of every SEB of a PE"),
        Entry(
            "timeline",
            "viewing",
            "Draw the SEBs of each PE over time, coloured by name, with brackets and messages",
        ),
    ),
    "Create logs": (
        Entry("convert", "tools", "Write a log set in another log version or byte order"),
        Entry(
            "export",
            "exporting",
            "Write a log set in the format of another tool: a trace viewer, tables, or a simulator",
        ),
        Entry("synth", "tools", "Generate a realistic log set with params and a timings file"),
    ),
    "Set up": (Entry("completion", "completion", "Print a completion script for the shell"),),
}
"""The commands by purpose, in the order of the help."""


class _Commands(Group):
    panels = _COMMANDS


app = typer.Typer(
    name="rewritelog",
    cls=_Commands,
    help="Rewrite BigSim bgTrace logs with new SEB durations, so that a network simulator predicts "
    "the run time on the target machine.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def _common(
    context: typer.Context,
    debug: Debug = False,  # noqa: ARG001 - its callback does the work
    version: Version = False,  # noqa: ARG001 - its callback does the work
) -> None:
    global _command  # noqa: PLW0603 - one process runs one command
    _command = context.invoked_subcommand or ""


def run() -> None:
    """Run the command line; exit as `rewritelog.cli.process.main` says, by `SystemExit`."""
    console.reset()
    if "_REWRITELOG_COMPLETE" in os.environ:
        from rewritelog.cli.completion import enable  # noqa: PLC0415 - for shells only

        enable()
    with _usage_errors_once(), _python_warnings_noted():
        try:
            code = app(standalone_mode=False)
        except _ParsingError as error:
            _show_parsing_error(error)
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
        sys.exit(code if isinstance(code, int) else DONE)


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
    said = StringIO()
    try:
        with redirect_stderr(said):
            yield
    except SystemExit as left:
        if left.code != WRONG_USAGE:
            sys.stderr.write(said.getvalue())
        raise


def code_of_lost_output(lost: OutputLost) -> int:
    """Report that standard output cannot be written, unless its reader left; return the code."""
    if not lost.strerror:
        return CLOSED_PIPE
    console.fail(f"standard output cannot be written: {lost.strerror}")
    return _code_without_answer()


def _code_without_answer() -> int:
    """Return the exit code of a failure; that of `diff` differs from its code for a difference."""
    return WRONG_USAGE if _command == "diff" else FAILED


def _show_parsing_error(error: Any) -> None:
    """Print the error in the arguments and a hint to the help."""
    _simplify_message(error)
    message = error.format_message()
    if type(error).__name__ == "NoArgsIsHelpError":
        typer.echo(message, err=True)
        return
    message = " ".join(message.split()).replace(". Choose from:", "; choose from")
    console.fail(message[:1].lower() + message[1:].rstrip("."))
    if error.ctx is not None:
        typer.echo(f"Try '{error.ctx.command_path} --help' for help.", err=True)


def _simplify_message(error: Any) -> None:
    """Replace pydantic's message on an invalid value by a plain one."""
    for found in getattr(error.__cause__, "errors", list)():
        if said := _PLAIN_WORDS.get(found["type"]):
            error.message = said.format(**{**found, **found.get("ctx", {})})


def _fail(error: BaseException, code: int, message: str | None = None) -> NoReturn:
    if console.debug():
        from rewritelog.text import printable  # noqa: PLC0415 - only errors need it

        for line in "".join(traceback.format_exception(error)).splitlines():
            typer.echo(printable(line), err=True)
    console.fail(str(error) if message is None else message)
    sys.exit(code)
