"""The `rewritelog` program: a command at work, its report and exit code, and its errors."""

from __future__ import annotations

import os
import re
import sys
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, redirect_stderr
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from rewritelog import __version__, commands
from rewritelog.cli import console
from rewritelog.cli.process import OutputLost
from rewritelog.cli.words import (
    HELP,
    command_help,
    completing,
    flags_of_models,
    overview,
    parse,
    values_of,
    words_of,
    words_to_complete,
)
from rewritelog.commands.command import Command
from rewritelog.errors import (
    OutputError,
    OutputWarning,
    RewriteLogError,
    UsageError,
    spelled_as_flags,
)
from rewritelog.paths import STANDARD_STREAM, is_stdout
from rewritelog.running import WRONG_USAGE, is_shared, this_job
from tracebigsim.errors import CoreError

if TYPE_CHECKING:
    from rewritelog.text import Readable


def run() -> int:
    """Run the command line; return the exit code that `rewritelog.cli.process.main` describes."""
    console.reset()
    with _python_warnings_noted(), spelled_as_flags():
        if this_job().rank == 0 or not is_shared(sys.argv):
            return _exit_code()
        message = StringIO()
        with redirect_stderr(message):
            code = _exit_code()
    if code != WRONG_USAGE:  # which each rank detects, and rank 0 alone reports
        sys.stderr.write(message.getvalue())
    return code


def _exit_code() -> int:
    """Run the command line; print its errors, and return its exit code."""
    try:
        return _run_command(sys.argv[1:])
    except typer.TyperException as error:
        line = " ".join(error.format_message().split()).replace(". Choose from:", "; choose from")
        line = re.sub(r" \(Possible options: (.*)\)", r"; did you mean \1?", line)
        line = line.replace(". Did you mean", "; did you mean").rstrip(".")
        console.fail(line[:1].lower() + line[1:])
        known = console.run.command if console.run.command in commands.NAMES else ""
        typer.echo(f"Try '{f'rewritelog {known}'.rstrip()} --help' for help.", err=True)
        return WRONG_USAGE
    except OutputLost as lost:
        return console.lost_output(lost)
    except (RewriteLogError, CoreError) as error:
        code = WRONG_USAGE if isinstance(error, UsageError) else console.run.failure
        return _failed(error, str(error), code)
    except MemoryError as error:
        text = f"not enough memory: {error}".removesuffix(": ")
        return _failed(error, text, console.run.failure)
    except OSError as error:
        where = "" if error.filename is None else f"{os.fsdecode(error.filename)}: "
        return _failed(error, f"{where}{error.strerror or error}", console.run.failure)


def _failed(error: BaseException, message: str, code: int) -> int:
    """Print an error, with a traceback if it is asked for; return the exit code."""
    if console.run.debug:
        from rewritelog.text import printable  # noqa: PLC0415 - only errors need it

        for line in "".join(traceback.format_exception(error)).splitlines():
            typer.echo(printable(line), err=True)
    console.fail(message)
    return code


def _run_command(texts: list[str]) -> int:
    """Run the command that a command line names; return its exit code."""
    if completing():
        named = {*commands.NAMES} & {*words_to_complete()}
        known = {name: words_of(commands.command_class(name)) for name in named}
        parse(
            (), {name: [*declared, *flags_of_models(declared)] for name, declared in known.items()}
        )
    if not texts:
        typer.echo(overview(), err=True)
        return WRONG_USAGE
    words = [text for text in texts if not text.startswith("-")]
    if words[:1] == [HELP]:
        words = [word for word in words if word != HELP][:1]
        texts = [*words, "--help"]
    name = console.run.command = next(iter(words), "")
    if name not in commands.NAMES:
        parsed = parse(texts, {})  # raises an error for an unknown command
        return 0 if _answered("", parsed) else WRONG_USAGE
    cls = commands.command_class(name)
    console.run.failure = cls.failure
    declared, flags = words_of(cls), []
    spelled = {spelling for word in declared for spelling in word.names}
    if not all(text.partition("=")[0] in spelled for text in texts if text.startswith("--")):
        flags = flags_of_models(declared)
    parsed = parse(texts, {name: [*declared, *flags]})
    console.run.debug = "debug" in parsed
    if _answered(name, parsed):
        return 0
    for word in (*declared, *flags):
        has_one = word.names and not (word.is_flag or word.several)
        if has_one and len(parsed.get(word.field, ())) > 1:
            console.note(f"{word.name} is given more than once: the last value is used")
    values = values_of(parsed, [*declared, *flags])
    console.run.quiet = "quiet" in values
    code = _do(cls, values)
    return code or int("fail_on_warning" in values and console.run.warnings > 0)


def _answered(command: str, parsed: dict[str, Any]) -> bool:
    """Print the version or the help, if a flag asks for it; return whether one does."""
    if "version" in parsed:
        typer.echo(f"rewritelog {__version__}")
    elif "help" in parsed or "help_all" in parsed:
        rare = "help" not in parsed
        typer.echo(command_help(command, rare=rare) if command else overview())
    else:
        return False
    return True


def _do(cls: type[Command[Any]], values: dict[str, Any]) -> int:
    """Do a command, and print or write what it makes; return its exit code."""
    prints = cls.prints_lines and is_stdout(values.get("output", STANDARD_STREAM))
    with nullcontext() if prints and sys.stdout.isatty() else console.progress():
        outcome = _on_engine(cls, values)
        if outcome is None:
            return 0
        command, result = outcome
        if cls.prints_lines:
            for piece in result.pieces(as_json=command.as_json):
                sys.stdout.write(piece)
        page = "" if command.html is None else command.page(result)
    report = result if cls.prints_lines else command.report(result)
    warned_of = result if isinstance(report, str) else report
    console.note_all(getattr(warned_of, "warnings", ()))
    if isinstance(report, str):
        sys.stdout.write(report and report + "\n")
    elif not cls.prints_lines:
        json = _json(report, command)
        try:
            _show(report, json, command)
        finally:  # even if the reader of standard output has gone
            for path, text in ((command.report_file, json), (command.html, page)):
                if path is not None:
                    _write_report(path, text, command.written)
    return command.exit_code(result)


def _write_report(path: Path, text: str, written: Sequence[Path]) -> None:
    """Write a report or page; raise `OutputError`, which names the outputs that are written."""
    from rewritelog.output.files import write_text_file  # noqa: PLC0415

    try:
        write_text_file(path, text)
    except OutputError as error:
        raise OutputError(
            "; ".join([str(error), *(f"{out} is written" for out in written)])
        ) from error


def _on_engine(cls: type[Command[Any]], values: dict[str, Any]) -> tuple[Command[Any], Any] | None:
    """Return a command and its result, done on an engine; None in ranks that do not lead."""

    def do() -> tuple[Command[Any], Any] | None:
        command = cls.of_shell(values)  # which opens logs
        result = command.run()
        return None if result is None else (command, result)

    job, engine, shares = this_job(), values.get("engine", "threads"), "engine" in cls.shell
    if engine != "mpi" and job.ranks > 1 and job.rank == 0 and cls.shell:
        advice = "--engine mpi makes them share it" if shares else "one rank is enough"
        console.note(
            f"each of {job.ranks} ranks does this {console.run.command} on its own; {advice}"
        )
    if not shares:
        return do()
    from rewritelog.running import lead  # noqa: PLC0415

    return lead(engine, values.get("jobs", 0), do)


def _json(report: Readable, command: Command[Any]) -> str:
    """Return a report as JSON if the options request that."""
    if not command.as_json and command.report_file is None:
        return ""
    from rewritelog.text import json_text  # noqa: PLC0415

    return json_text(report.to_json(), indent=2) + "\n"


def _show(report: Readable, json: str, command: Command[Any]) -> None:
    """Print a report as the options request."""
    beside = command.writes_to_stdout
    if command.as_json:
        if not is_stdout(command.report_file):  # else it is written there anyway
            (sys.stderr if beside else sys.stdout).write(json)
    elif not command.quiet:
        rest = f"\n{report.details()}" if command.verbose else f"-v: {report.more}"
        text = f"{report.text()}\n{rest}" if report.more else report.text()
        console.show(text, err=beside)
    console.hint_all(getattr(report, "hints", ()))


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
