"""The `rewritelog` command: its commands, and how errors leave it."""

from __future__ import annotations

import os
import re
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr
from io import StringIO
from typing import Any, NoReturn

import typer

from rewritelog.cli import console
from rewritelog.cli.checking import check_command
from rewritelog.cli.commands import Command, Group
from rewritelog.cli.completion import completion_command, enable
from rewritelog.cli.diffing import diff_command
from rewritelog.cli.evaluation import (
    compare_command,
    fit_command,
    predict_command,
    verify_command,
)
from rewritelog.cli.exporting import export_command
from rewritelog.cli.job import WRONG_USAGE, is_shared, this_job
from rewritelog.cli.replaying import lost_cycles_command, replay_command
from rewritelog.cli.rewrite import rewrite_command
from rewritelog.cli.sampling import sample_command
from rewritelog.cli.standard import Debug, Version, plain
from rewritelog.cli.tools import convert_command, dump_command, info_command, synth_command
from rewritelog.cli.viewing import explore_command, timeline_command
from rewritelog.errors import OutputWarning, RewriteLogError, UsageError
from rewritelog.text import printable
from tracebigsim._streams import CLOSED_PIPE, OutputLost

DONE, FAILED = 0, 1

_ParsingError: Any = typer.BadParameter.__mro__[2]
"""The root of what typer raises for arguments that it cannot parse."""

app = typer.Typer(
    name="rewritelog",
    cls=Group,
    help="Rewrite BigSim bgTrace logs with new SEB durations, so that a network simulator predicts "
    "the target machine.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

_PLAIN_WORDS = {
    r"Value error, ": "",
    r"Input should be a valid number.*": "it is not a number",
    r"Input should be a valid integer.*": "it is not a whole number",
    r"Input should be greater than or equal to (\S+)": r"it is less than \1",
    r"\. Choose from:": "; choose from",
}

_command = ""


def _add(name: str, command: Callable[..., None], panel: str) -> None:
    app.command(name, cls=Command, rich_help_panel=panel)(command)


_add("rewrite", rewrite_command, "Rewrite logs")
_add("fit", fit_command, "Fit models")
_add("predict", predict_command, "Fit models")
_add("verify", verify_command, "Fit models")
_add("compare", compare_command, "Fit models")
_add("sample", sample_command, "Fit models")
_add("explore", explore_command, "Fit models")
_add("replay", replay_command, "Predict whole runs")
_add("lost-cycles", lost_cycles_command, "Predict whole runs")
_add("check", check_command, "Inspect logs")
_add("info", info_command, "Inspect logs")
_add("diff", diff_command, "Inspect logs")
_add("dump", dump_command, "Inspect logs")
_add("timeline", timeline_command, "Inspect logs")
_add("convert", convert_command, "Make logs")
_add("export", export_command, "Make logs")
_add("synth", synth_command, "Make logs")
_add("completion", plain(quiet=False)(completion_command), "Set up")


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
        enable()
    with _usage_errors_once(), _warnings_noted():
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
def _warnings_noted() -> Iterator[None]:
    """Print what is warned of while an output is written, as other warnings are."""
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
    """Drop what a rank of a shared MPI run says of wrong usage, unless it is rank 0."""
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
    """Say that standard output cannot be written, unless nobody reads it; return the exit code."""
    if not lost.strerror:
        return CLOSED_PIPE
    console.fail(f"standard output cannot be written: {lost.strerror}")
    return _code_without_answer()


def _code_without_answer() -> int:
    """Return the exit code of a failure, which of `diff` must not look like a difference."""
    return WRONG_USAGE if _command == "diff" else FAILED


def _show_parsing_error(error: Any) -> None:
    """Print what is wrong with the arguments, and where to look it up."""
    message = error.format_message()
    if type(error).__name__ == "NoArgsIsHelpError":
        typer.echo(message, err=True)
        return
    console.fail(_in_plain_words(message[:1].lower() + message[1:].rstrip(".")))
    if error.ctx is not None:
        typer.echo(f"Try '{error.ctx.command_path} --help' for help.", err=True)


def _in_plain_words(message: str) -> str:
    """Return what typer says of an argument on one line and in words for people."""
    message = " ".join(message.split())
    for said, meant in _PLAIN_WORDS.items():
        message = re.sub(said, meant, message)
    return message


def _fail(error: BaseException, code: int, message: str | None = None) -> NoReturn:
    if console.debug():
        for line in "".join(traceback.format_exception(error)).splitlines():
            typer.echo(printable(line), err=True)
    console.fail(str(error) if message is None else message)
    sys.exit(code)
