"""`rewritelog check`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rewritelog.cli.arguments import LOGS_HELP, AsJson, Jobs, Params
from rewritelog.errors import UsageError
from rewritelog.text import json_text


def check_command(
    logs: Annotated[Path | None, typer.Argument(help=LOGS_HELP)] = None,
    params: Params = None,
    as_json: AsJson = False,
    jobs: Jobs = 0,
    explain: Annotated[
        str | None, typer.Option(metavar="RULE", help="Say what a rule protects, and stop.")
    ] = None,
    rules: Annotated[bool, typer.Option("--rules", help="List the rules, and stop.")] = False,
) -> None:
    """Say what is wrong with a log set; exit with 1 where it is more than odd.

    Run it first on logs that you do not trust: it takes little memory and no harm from any damage.
    """
    if explain is not None or rules:
        typer.echo(_about_rules(explain))
        return
    if logs is None:
        raise UsageError("LOGS is needed")
    from rewritelog.checking.run import check_logs  # noqa: PLC0415 - numba is slow to import

    report = check_logs(logs, params, jobs=jobs)
    if as_json:
        typer.echo(json_text(report.to_json(), indent=2))
    else:
        typer.echo(report.text())
    if not report.sound:
        raise typer.Exit(1)


def _about_rules(explain: str | None) -> str:
    from rewritelog.checking.rules import rule_named, rules_text  # noqa: PLC0415

    return rules_text() if explain is None else rule_named(explain).text()
