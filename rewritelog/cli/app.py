"""The `rewritelog` command: its commands, and how errors leave it."""

from __future__ import annotations

import sys
import traceback
from typing import Annotated

import typer

from rewritelog import __version__
from rewritelog.cli.checking import check_command
from rewritelog.cli.diffing import diff_command
from rewritelog.cli.evaluation import (
    compare_command,
    fit_command,
    predict_command,
    verify_command,
)
from rewritelog.cli.rewrite import rewrite_command
from rewritelog.cli.sampling import sample_command
from rewritelog.cli.tools import convert_command, dump_command, info_command, synth_command
from rewritelog.errors import RewriteLogError, UsageError

DONE, FAILED, WRONG_USAGE, INTERRUPTED = 0, 1, 2, 130

app = typer.Typer(
    name="rewritelog",
    help="Rewrite BigSim bgTrace logs with new SEB durations.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("rewrite")(rewrite_command)
app.command("sample")(sample_command)
app.command("fit")(fit_command)
app.command("predict")(predict_command)
app.command("verify")(verify_command)
app.command("compare")(compare_command)
app.command("check")(check_command)
app.command("diff")(diff_command)
app.command("info")(info_command)
app.command("dump")(dump_command)
app.command("convert")(convert_command)
app.command("synth")(synth_command)

_debug = False


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"rewritelog {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    debug: Annotated[bool, typer.Option("--debug", help="Show where an error comes from.")] = False,
    version: Annotated[  # noqa: ARG001 - its callback does the work
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Show the version and stop."
        ),
    ] = False,
) -> None:
    global _debug  # noqa: PLW0603 - one process runs one command
    _debug = debug


def run() -> None:
    """Run the command line; exit 0 done, 2 wrong usage, 130 interrupted, 1 everything else."""
    try:
        app()
    except UsageError as error:
        _fail(error, WRONG_USAGE)
    except RewriteLogError as error:
        _fail(error, FAILED)
    except KeyboardInterrupt:
        typer.echo("rewritelog: interrupted", err=True)
        sys.exit(INTERRUPTED)


def _fail(error: RewriteLogError, code: int) -> None:
    from rewritelog.text import printable  # noqa: PLC0415

    if _debug:
        for line in "".join(traceback.format_exception(error)).splitlines():
            typer.echo(printable(line), err=True)
    typer.echo(f"rewritelog: {printable(str(error))}", err=True)
    sys.exit(code)
