"""The options that all commands share, and the output of a command's result."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial, wraps
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from rewritelog import __version__
from rewritelog.cli import console
from rewritelog.cli.arguments import OTHER, OUTPUT, STANDARD_STREAM, Engine, is_stdout, to_path
from rewritelog.cli.console import Outcome
from rewritelog.cli.job import this_job
from rewritelog.cli.progress import shown_progress
from rewritelog.running import EngineName

Function = TypeVar("Function", bound=Callable[..., object])
Made = TypeVar("Made")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"rewritelog {__version__}")
        raise typer.Exit


def _set_debug(wanted: bool) -> None:
    if wanted:
        console.set_debug()


Debug = Annotated[
    bool,
    typer.Option(
        "--debug",
        callback=_set_debug,
        rich_help_panel=OTHER,
        help="Show where in the code an error comes from.",
    ),
]
Version = Annotated[
    bool,
    typer.Option(
        "--version",
        callback=_show_version,
        is_eager=True,
        rich_help_panel=OTHER,
        help="Print the version and exit.",
    ),
]
_Quiet = Annotated[
    bool,
    typer.Option(
        "--quiet",
        "-q",
        rich_help_panel=OUTPUT,
        help="Print no report and no progress, only warnings and errors.",
    ),
]
_Json = Annotated[
    bool, typer.Option("--json", rich_help_panel=OUTPUT, help="Print the report as JSON.")
]
_ReportFile = Annotated[
    Path | None,
    typer.Option(
        "--report",
        metavar="FILE",
        rich_help_panel=OUTPUT,
        help="Also write the report to this file, as JSON.",
    ),
]
_Html = Annotated[
    Path | None,
    typer.Option(
        "--html",
        metavar="PAGE",
        rich_help_panel=OUTPUT,
        help="Write a page of plots and tables to this file, to be opened in a browser.",
    ),
]
FailOnWarning = Annotated[
    bool,
    typer.Option(
        "--fail-on-warning",
        rich_help_panel=OUTPUT,
        help="Exit with code 1 if there were warnings, after the work is done.",
    ),
]


_DEFAULTS = {"report_file": None, "html_file": None, "engine": "threads"}


def plain(
    *, quiet: bool = True, prints_lines: bool = False, engines: bool = False
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that adds the common options to a command that prints its own output.

    With `prints_lines`, progress is not shown if stdout is a terminal, where it would mix with the
    lines that the command prints. Commands with `engines` take `--engine`.
    """
    own: dict[str, Any] = {"quiet": _Quiet} if quiet else {}
    own |= {"engine": Engine} if engines else {}

    def decorator(command: Callable[..., None]) -> Callable[..., None]:
        def run(given: dict[str, Any]) -> None:
            console.begin(quiet=given.pop("quiet", False))
            engine = given.pop("engine", None)
            run_it = partial(command, **given)
            with nullcontext() if prints_lines and sys.stdout.isatty() else shown_progress():
                _on_engine(engine, given, run_it) if engines else run_it()

        return _extended(command, run, {**own, "debug": Debug, "version": Version})

    return decorator


def reporting(
    *,
    warns: bool = False,
    quiet: bool = True,
    pages: bool = False,
    engines: bool = False,
    rereads: str = "",
) -> Callable[[Callable[..., Outcome | None]], Callable[..., None]]:
    """Return a decorator that prints a command's result as its options request.

    Commands with `warns` take `--fail-on-warning`, those with `pages` take `--html`, and those with
    `engines` take `--engine`. If pages read input files a second time, `rereads` names the argument
    with these files.
    """
    own = {"as_json": _Json, "report_file": _ReportFile}
    own |= {"quiet": _Quiet} if quiet else {}
    own |= {"fail_on_warning": FailOnWarning} if warns else {}
    own |= {"html_file": _Html} if pages else {}
    own |= {"engine": Engine} if engines else {}

    def decorator(command: Callable[..., Outcome | None]) -> Callable[..., None]:
        def run(given: dict[str, Any]) -> None:
            options = {name: given.pop(name) for name in own}
            file = to_path(options["report_file"])
            console.begin(quiet=options.get("quiet", False))
            html = to_path(options.get("html_file"))
            _check_reports([one for one in (file, html) if one is not None], given)
            if html is not None:
                _check_pages(given.get(rereads, ()))
            run_it = partial(command, **given)
            with shown_progress():
                outcome = _on_engine(options["engine"], given, run_it) if engines else run_it()
                pages = {}
                if outcome is not None and outcome.page is not None and html is not None:
                    pages = {html: outcome.page()}
            if outcome is not None:
                _present(outcome, file, options, pages)

        return _extended(command, run, {**own, "debug": Debug, "version": Version})

    return decorator


def _on_engine(engine: EngineName, given: Mapping[str, Any], job: partial[Made]) -> Made | None:
    """Return what a command returns on an engine; None in ranks that do not lead."""
    from rewritelog.running.engines import lead  # noqa: PLC0415

    warn_of_ranks(engine, inspect.unwrap(job.func).__name__.removesuffix("_command"))
    return lead(engine, given.get("jobs", 0), job)


def warn_of_ranks(engine: EngineName, command: str) -> None:
    """Warn, once, if every rank of an MPI job does the same work."""
    job = this_job()
    if engine != "mpi" and job.ranks > 1 and job.rank == 0:
        console.note(
            f"each of {job.ranks} ranks does this {command} on its own; --engine mpi makes them "
            "share it"
        )


def _check_reports(reports: list[Path], given: Mapping[str, Any]) -> None:
    """Raise an error for a report or page that would replace a file the command reads or writes."""
    if not reports:
        return
    from rewritelog.output import check_outputs  # noqa: PLC0415

    values = [one for value in given.values() for one in _listed(value)]
    paths = [path for path in values if isinstance(path, Path)]
    folders = [path for path in paths if path.is_dir()]
    files = [path for path in paths if path not in folders]
    check_outputs(reports, files, folders, replaced=[given.get("out")])


def _check_pages(reread: Sequence[Path]) -> None:
    """Raise an error before any work if a page cannot be made."""
    from rewritelog.errors import UsageError  # noqa: PLC0415
    from rewritelog.viewing.extra import require  # noqa: PLC0415

    require("bokeh", "--html")
    if STANDARD_STREAM in reread:
        raise UsageError("--html reads the timing lines twice: name files, not standard input")


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def _present(
    outcome: Outcome, file: Path | None, options: Mapping[str, Any], pages: dict[Path, str]
) -> None:
    """Print and write a report and its pages, and exit with the outcome's code."""
    from rewritelog.text import json_text  # noqa: PLC0415

    report = outcome.report
    console.note_all(getattr(report, "warnings", ()))
    if options["as_json"]:
        typer.echo(json_text(report.to_json(), indent=2))
    elif not console.quiet():
        taken = outcome.stdout_taken or any(map(is_stdout, pages))
        console.show(report.text(), err=taken)
    written = {} if file is None else {file: json_text(report.to_json(), indent=2) + "\n"}
    for path, text in (*written.items(), *pages.items()):
        from rewritelog.output import write_text_file  # noqa: PLC0415

        write_text_file(path, text)
    code = outcome.exit_code
    if code:
        raise typer.Exit(code)
    console.leave_if_warned(options.get("fail_on_warning", False))


def _extended(
    command: Callable[..., Any], run: Callable[[dict[str, Any]], None], added: Mapping[str, Any]
) -> Callable[..., None]:
    """Return a command with added options; `run` gets all options but debug and version."""

    @wraps(command)
    def extended(**given: Any) -> None:
        del given["debug"], given["version"]
        run(given)

    own = inspect.signature(command, eval_str=True).parameters
    more = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            annotation=kind,
            default=_DEFAULTS.get(name, False),
        )
        for name, kind in added.items()
    ]
    return with_parameters(extended, [*own.values(), *more])


def with_parameters(function: Function, parameters: Iterable[inspect.Parameter]) -> Function:
    """Return a function of keyword arguments with a signature of `parameters` for typer."""
    shown = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in parameters]
    function.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    function.__annotations__ = {one.name: one.annotation for one in shown}
    return function
