"""The options that the command line adds to those of a command."""

from __future__ import annotations

from rewritelog.options import OTHER, OUTPUT, RUNNING, OptionalOutput, declared, option
from rewritelog.running import EngineName

ALWAYS = ("debug", "version", "help", "help_all")
"""Options of every command; `version` and the help end it before it begins."""


@declared
class ShellOptions:
    """Options of the command line alone."""

    as_json: bool = option(
        "Print the report as JSON.", default=False, names=("--json",), group=OUTPUT
    )
    verbose: bool = option(
        "Print the whole report.", default=False, names=("--verbose", "-v"), group=OUTPUT
    )
    report_file: OptionalOutput = option(
        "Also write the report to this file, as JSON.",
        default=None, names=("--report",), metavar="FILE", group=OUTPUT, rare=True,
    )  # fmt: skip
    html_file: OptionalOutput = option(
        "Write a page of plots and tables for a browser.",
        default=None, names=("--html",), metavar="PAGE", group=OUTPUT,
    )  # fmt: skip
    quiet: bool = option(
        "Print only warnings and errors.",
        default=False, names=("--quiet", "-q"), group=OUTPUT,
    )  # fmt: skip
    fail_on_warning: bool = option(
        "Exit with code 1 if there were warnings, after the work is done.",
        default=False, group=OUTPUT, rare=True,
    )  # fmt: skip
    engine: EngineName = option(
        "Threads of this machine, or the ranks of mpiexec.",
        default="threads", group=RUNNING, rare=True,
    )  # fmt: skip
    debug: bool = option(
        "Show where in the code an error comes from.", default=False, group=OTHER, rare=True
    )
    version: bool = option("Print the version and exit.", default=False, group=OTHER, rare=True)
    help: bool = option(
        "Show the usual options and exit.",
        default=False, names=("--help", "-h"), group=OTHER, rare=True,
    )  # fmt: skip
    help_all: bool = option("Show all options and exit.", default=False, group=OTHER, rare=True)
