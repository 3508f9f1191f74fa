"""A command at work: progress, the report and its files, warnings, and the exit code."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from rewritelog import commands
from rewritelog.cli import console
from rewritelog.cli.job import this_job
from rewritelog.cli.model_flags import model_flags, takes_model_options, understood, with_flags
from rewritelog.cli.progress import shown_progress
from rewritelog.cli.shell import ShellOptions
from rewritelog.cli.spelling import spelled_of, values_of
from rewritelog.cli.words import parse
from rewritelog.commands.command import Command, Printing, Report
from rewritelog.errors import UsageError
from rewritelog.paths import STANDARD_STREAM, to_output
from rewritelog.running import EngineName

Result = TypeVar("Result")


def complete() -> NoReturn:
    """Answer a shell's request for completions."""
    classes = {name: commands.command_class(name) for name in commands.NAMES}
    spelled = {name: spelled_of(cls) for name, cls in classes.items()}
    for name, cls in classes.items():
        if takes_model_options(cls):
            spelled[name] += model_flags(spelled[name])
    parse((), spelled)
    sys.exit(0)


def work(name: str, words: Sequence[str]) -> int:
    """Do a command; return the exit code."""
    cls = commands.command_class(name)
    own, flags = spelled_of(cls), []
    if takes_model_options(cls) and not understood(words, own):
        flags = model_flags(own)
    given = parse(words, {name: [*own, *flags]})
    for option in (*own, *flags):
        if option.takes_one_value and len(given.get(option.field) or ()) > 1:
            console.note(f"{option.name} is given more than once: the last value is used")
    shell = _Shell(ShellOptions(**values_of(given, own, ShellOptions)))
    command = cls(**with_flags(values_of(given, own, cls), given, flags))
    console.begin(quiet=shell.quiet)
    if isinstance(command, Printing):
        mixed = command.prints_lines and sys.stdout.isatty()
        with nullcontext() if mixed else shown_progress():
            code = _on_engine(name, command, shell, partial(command.print, shell)) or 0
    else:
        code = _report(name, command, shell)
    return code or int(shell.options.fail_on_warning and console.warned())


def _report(name: str, command: Command[Any], shell: _Shell) -> int:
    """Do a command that has a report; return the exit code."""
    options = shell.options
    file = to_output(options.report_file, "the report")
    html = to_output(options.html_file, "the page")
    _check_reports([option for option in (file, html) if option is not None], command)
    if html is not None:
        _check_page(command)
    with shown_progress():
        result = _on_engine(name, command, shell, command.job)
        if result is None:
            return 0
        page = "" if html is None else command.page(result)
    report = command.report(result)
    shell.show(report, err=is_stdout(getattr(command, "output", None)) or is_stdout(html))
    from rewritelog.output import write_text_file  # noqa: PLC0415

    if file is not None:
        write_text_file(file, json_of(report) + "\n")
    if html is not None:
        write_text_file(html, page)
    return command.exit_code(result)


def _on_engine(
    name: str, command: Command[Any], shell: _Shell, job: Callable[[], Result]
) -> Result | None:
    """Return what a job returns on an engine; None in ranks that do not lead."""
    if "engine" not in command.shell:
        return job()
    from rewritelog.running.engines import lead  # noqa: PLC0415

    warn_of_ranks(shell.options.engine, name)
    return lead(shell.options.engine, getattr(command, "jobs", 0), job)


class _Shell:
    """Standard output and standard error, for a command."""

    def __init__(self, options: ShellOptions) -> None:
        self.options = options
        self.quiet, self.as_json = options.quiet, options.as_json

    def write(self, text: str) -> None:
        """Print a text as it is."""
        sys.stdout.write(text)

    def warn(self, warnings: Sequence[str]) -> None:
        """Print warnings."""
        console.note_all(warnings)

    def is_stdout(self, output: object) -> bool:
        """Return whether an output is standard output."""
        return is_stdout(output)

    def show(self, report: Report, *, err: bool = False) -> None:
        """Print the warnings of a report, and the report as the options request."""
        console.note_all(getattr(report, "warnings", ()))
        if self.as_json:
            self.write(json_of(report) + "\n")
        elif not self.quiet:
            more = f"\n{report.details()}" if self.options.verbose else f"-v: {report.more}"
            console.show(f"{report.text()}\n{more}" if report.more else report.text(), err=err)


def json_of(report: Report) -> str:
    """Return a report as JSON."""
    from rewritelog.text import json_text  # noqa: PLC0415

    return json_text(report.to_json(), indent=2)


def is_stdout(output: object) -> bool:
    """Return whether an output is stdout, which reports are printed to."""
    return output is not None and str(output) in ("-", "/dev/stdout", "/dev/fd/1")


def warn_of_ranks(engine: EngineName, command: str) -> None:
    """Warn, once, if every rank of an MPI job does the same work."""
    job = this_job()
    if engine != "mpi" and job.ranks > 1 and job.rank == 0:
        console.note(
            f"each of {job.ranks} ranks does this {command} on its own; --engine mpi makes them "
            "share it"
        )


def _check_reports(reports: list[Path], command: Command[Any]) -> None:
    """Raise an error for a report or page that would replace a file the command reads or writes."""
    if not reports:
        return
    from rewritelog.output import check_outputs  # noqa: PLC0415

    given = [getattr(command, option.name) for option in fields(command)]  # type: ignore[arg-type]
    values = [option for value in given for option in _listed(value)]
    paths = [path for path in values if isinstance(path, Path)]
    folders = [path for path in paths if path.is_dir()]
    files = [path for path in paths if path not in folders]
    check_outputs(reports, files, folders, replaced=[getattr(command, "out", None)])


def _check_page(command: Command[Any]) -> None:
    """Raise an error before any work if a page cannot be made."""
    from rewritelog.viewing.extra import require  # noqa: PLC0415

    require("bokeh", "--html")
    if STANDARD_STREAM in getattr(command, command.read_twice, ()):
        raise UsageError("--html reads the timing lines twice: name files, not standard input")


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]
