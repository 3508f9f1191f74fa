"""The `rewritelog` program: a command at work, its report and exit code, and its errors."""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, redirect_stderr
from io import StringIO
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import typer

from rewritelog import __version__, commands
from rewritelog.cli import console
from rewritelog.cli.help import command_help, overview
from rewritelog.cli.process import WRONG_USAGE, is_shared, this_job
from rewritelog.cli.words import HELP, completing, flags_of_models, parse, values_of, words_of
from rewritelog.commands.command import Command, Report
from rewritelog.errors import OutputWarning, RewriteLogError, UsageError
from rewritelog.options import OUTPUT
from rewritelog.paths import STANDARD_STREAM, is_stdout, to_output
from tracebigsim._streams import CLOSED_PIPE, OutputLost

FAILED = 1

Result = TypeVar("Result")

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


def _run_command(texts: list[str]) -> int:
    """Run the command that a command line names; return its exit code."""
    global _command  # noqa: PLW0603 - one process runs one command
    if completing():
        known = {name: words_of(commands.command_class(name)) for name in commands.NAMES}
        parse((), {name: [*own, *flags_of_models(own)] for name, own in known.items()})
    if not texts:
        typer.echo(overview(), err=True)
        return WRONG_USAGE
    words = [text for text in texts if not text.startswith("-")]
    if words[:1] == [HELP]:
        words = [word for word in words if word != HELP][:1]
        texts = [*words, "--help"]
    _command = next(iter(words), "")
    if _command not in commands.NAMES:
        before, _ = parse(texts, {})  # raises an error for an unknown command
        return 0 if _answered("", before) else WRONG_USAGE
    cls = commands.command_class(_command)
    own, flags = words_of(cls), []
    names = {name for word in own for name in word.names}
    if not all(text.partition("=")[0] in names for text in texts if text.startswith("--")):
        flags = flags_of_models(own)
    before, parsed = parse(texts, {_command: [*own, *flags]})
    console.run.debug = bool(before["debug"] or parsed["debug"])
    if _answered("", before) or _answered(_command, parsed):
        return 0
    for word in (*own, *flags):
        if word.names and not (word.is_flag or word.several) and len(parsed[word.field] or ()) > 1:
            console.note(f"{word.name} is given more than once: the last value is used")
    command = cls(**values_of(parsed, [*own, *flags]))
    console.run.quiet = command.quiet
    code = _do(command)
    return code or int(command.fail_on_warning and console.run.warnings > 0)


def _answered(command: str, flags: dict[str, Any]) -> bool:
    """Print the version or the help, if a flag asks for it; return whether one does."""
    if flags["version"]:
        typer.echo(f"rewritelog {__version__}")
    elif flags["help"] or flags.get("help_all"):
        rare = not flags["help"]
        typer.echo(command_help(command, rare=rare) if command else overview())
    else:
        return False
    return True


def _do(command: Command[Any]) -> int:
    """Do a command, and print or write what it makes; return its exit code."""
    command.check_words()
    report_file = to_output(command.report_file, "the report")
    page_file = to_output(command.html_file, "the page")
    _check_reports([path for path in (report_file, page_file) if path is not None], command)
    if page_file is not None:
        _check_page(command)
    page = ""
    output = getattr(command, "output", None)
    prints = command.prints_lines and (output is None or is_stdout(output))
    with nullcontext() if prints and sys.stdout.isatty() else console.progress():
        result = _on_engine(command)
        if result is None:
            return 0
        if command.prints_lines:
            for piece in result.pieces(as_json=command.as_json):
                sys.stdout.write(piece)
        if page_file is not None:
            page = command.page(result)
    if command.prints_lines:
        console.note_all(getattr(result, "warnings", ()))
        return command.exit_code(result)
    report = command.report(result)
    _show(report, command, err=is_stdout(output) or is_stdout(page_file))
    for path, text in ((report_file, json_of), (page_file, lambda _: page)):
        if path is not None and not isinstance(report, str):
            from rewritelog.output.files import write_text_file  # noqa: PLC0415

            write_text_file(path, text(report))
    return command.exit_code(result)


def _on_engine(command: Command[Any]) -> Any:
    """Return the result of a command on an engine; None in ranks that do not lead."""
    if "engine" not in command.shell:
        return command.done()
    from rewritelog.running.engines import lead  # noqa: PLC0415

    job = this_job()
    if command.engine != "mpi" and job.ranks > 1 and job.rank == 0:
        console.note(
            f"each of {job.ranks} ranks does this {_command} on its own; --engine mpi makes them "
            "share it"
        )
    return lead(command.engine, getattr(command, "jobs", 0), command.done)


def _show(report: Report | str, command: Command[Any], *, err: bool) -> None:
    """Print the warnings of a report, and the report as the options request."""
    if isinstance(report, str):
        sys.stdout.write(report and report + "\n")
        return
    console.note_all(getattr(report, "warnings", ()))
    if command.as_json:
        sys.stdout.write(json_of(report))
    elif not command.quiet:
        more = f"\n{report.details()}" if command.verbose else f"-v: {report.more}"
        console.show(f"{report.text()}\n{more}" if report.more else report.text(), err=err)
    console.hint_all(getattr(report, "hints", ()))


def json_of(report: Report) -> str:
    """Return a report as JSON."""
    from rewritelog.text import json_text  # noqa: PLC0415

    return json_text(report.to_json(), indent=2) + "\n"


def _check_reports(reports: list[Path], command: Command[Any]) -> None:
    """Raise an error for a report or page that would replace a file the command reads or writes."""
    if not reports:
        return
    from rewritelog.output.files import check_outputs  # noqa: PLC0415

    outputs, files, folders = list[Path | None](), list[Path](), list[Path]()
    for option in command.own():
        value = getattr(command, option.field)
        for path in value if isinstance(value, list | tuple) else [value]:
            if isinstance(path, Path) and path.is_dir():
                folders.append(path)
            elif isinstance(path, Path) and option.group == OUTPUT:
                outputs.append(to_output(path, option.field))
            elif isinstance(path, Path):
                files.append(path)
    replaced = [getattr(command, "out", None)]
    check_outputs(reports, files, folders, replaced, others=outputs)


def _check_page(command: Command[Any]) -> None:
    """Raise an error before any work if a page cannot be made."""
    from rewritelog.viewing.extra import require  # noqa: PLC0415

    require("bokeh", "--html")
    if STANDARD_STREAM in getattr(command, command.read_twice, ()):
        raise UsageError("--html reads the timing lines twice: name files, not standard input")


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
    line = line.replace(". Did you mean", "; did you mean")
    return line[:1].lower() + line[1:].rstrip(".")


def _show_wrong_words(message: str) -> None:
    console.fail(message)
    program = " ".join(("rewritelog", _command if _command in commands.NAMES else "")).rstrip()
    typer.echo(f"Try '{program} --help' for help.", err=True)


def _fail(error: BaseException, code: int, message: str | None = None) -> NoReturn:
    if console.run.debug:
        from rewritelog.text import printable  # noqa: PLC0415 - only errors need it

        for line in "".join(traceback.format_exception(error)).splitlines():
            typer.echo(printable(line), err=True)
    console.fail(str(error) if message is None else message)
    sys.exit(code)
