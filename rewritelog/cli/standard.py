"""The options that all commands share, and what is done with what a command ends with."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from rewritelog import __version__
from rewritelog.cli import console
from rewritelog.cli.arguments import OTHER, OUTPUT, to_path
from rewritelog.cli.console import Outcome
from rewritelog.cli.progress import shown_progress


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
        "--debug", callback=_set_debug, rich_help_panel=OTHER,
        help="Show where in the code an error comes from.",
    ),
]  # fmt: skip
Version = Annotated[
    bool,
    typer.Option(
        "--version", callback=_show_version, is_eager=True, rich_help_panel=OTHER,
        help="Print the version and exit.",
    ),
]  # fmt: skip
_Quiet = Annotated[
    bool,
    typer.Option(
        "--quiet", "-q", rich_help_panel=OUTPUT,
        help="Print no report and no progress, only warnings and errors.",
    ),
]  # fmt: skip
_Json = Annotated[
    bool, typer.Option("--json", rich_help_panel=OUTPUT, help="Print the report as JSON.")
]
_ReportFile = Annotated[
    Path | None,
    typer.Option(
        "--report", metavar="FILE", rich_help_panel=OUTPUT,
        help="Write the report to this file as JSON too.",
    ),
]  # fmt: skip
FailOnWarning = Annotated[
    bool,
    typer.Option(
        "--fail-on-warning", rich_help_panel=OUTPUT,
        help="Exit with 1 where there are warnings, after the work is done.",
    ),
]  # fmt: skip


def plain(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command that prints by itself the options of all commands."""

    def run(given: dict[str, Any]) -> None:
        console.begin()
        command(**given)

    return _extended(command, run, {"debug": Debug, "version": Version})


def reporting(
    *, warns: bool = False, quiet: bool = True
) -> Callable[[Callable[..., Outcome | None]], Callable[..., None]]:
    """Return a decorator that prints what a command returns, as its options ask.

    Commands that `warns` holds for take `--fail-on-warning`.
    """
    own = {"as_json": _Json, "report_file": _ReportFile}
    own |= {"quiet": _Quiet} if quiet else {}
    own |= {"fail_on_warning": FailOnWarning} if warns else {}

    def decorator(command: Callable[..., Outcome | None]) -> Callable[..., None]:
        def run(given: dict[str, Any]) -> None:
            options = {name: given.pop(name) for name in own}
            file = to_path(options["report_file"])
            console.begin(quiet=options.get("quiet", False))
            if file is not None:
                _check_report(file, given)
            with shown_progress():
                outcome = command(**given)
            if outcome is not None:
                _present(outcome, file, options)

        return _extended(command, run, {**own, "debug": Debug, "version": Version})

    return decorator


def _check_report(report: Path, given: Mapping[str, Any]) -> None:
    """Refuse a report that would replace what the command reads or writes."""
    from rewritelog.output import check_outputs  # noqa: PLC0415

    values = [one for value in given.values() for one in _listed(value)]
    paths = [path for path in values if isinstance(path, Path)]
    folders = [path for path in paths if path.is_dir()]
    files = [path for path in paths if path not in folders]
    check_outputs([report], files, folders, replaced=[given.get("out")])


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def _present(outcome: Outcome, file: Path | None, options: Mapping[str, Any]) -> None:
    """Print and write a report, and leave with the exit code that it asks for."""
    from rewritelog.text import json_text  # noqa: PLC0415

    report = outcome.report
    console.note_all(getattr(report, "warnings", ()))
    if options["as_json"]:
        typer.echo(json_text(report.to_json(), indent=2))
    elif not console.quiet():
        console.show(report.text(), err=outcome.stdout_taken)
    if file is not None:
        from rewritelog.output import write_text_file  # noqa: PLC0415

        write_text_file(file, json_text(report.to_json(), indent=2) + "\n")
    code = outcome.exit_code
    if code:
        raise typer.Exit(code)
    console.leave_if_warned(options.get("fail_on_warning", False))


def _extended(
    command: Callable[..., Any], run: Callable[[dict[str, Any]], None], added: Mapping[str, Any]
) -> Callable[..., None]:
    """Return a command with more options, of which `run` gets all but debug and version."""

    @wraps(command)
    def extended(**given: Any) -> None:
        del given["debug"], given["version"]
        run(given)

    signature = inspect.signature(command, eval_str=True)
    own = [
        p.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for name, p in signature.parameters.items()
        if name not in added
    ]
    more = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, annotation=kind,
            default=None if name == "report_file" else False,
        )
        for name, kind in added.items()
    ]  # fmt: skip
    extended.__signature__ = signature.replace(parameters=[*own, *more])  # type: ignore[attr-defined]
    extended.__annotations__ = {p.name: p.annotation for p in [*own, *more]}
    return extended
