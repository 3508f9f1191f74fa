"""`rewritelog check`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rewritelog.cli.arguments import LOGS_HELP, Jobs, Params
from rewritelog.cli.console import Outcome
from rewritelog.cli.standard import reporting
from rewritelog.errors import UsageError

UNSOUND = 1


@reporting(engines=True)
def check_command(
    logs: Annotated[
        Path | None, typer.Argument(metavar="LOGS", help=LOGS_HELP, show_default=False)
    ] = None,
    params: Params = None,
    jobs: Jobs = 0,
    explain: Annotated[
        str | None,
        typer.Option(metavar="RULE", help="Explain what a rule protects, and exit."),
    ] = None,
    rules: Annotated[bool, typer.Option("--rules", help="List the rules, and exit.")] = False,
) -> Outcome | None:
    """Find damage and oddities in a log set and its params.

    Run it first on logs that you do not trust: it takes little memory, and no damage makes it fail.
    The exit code is 1 if any finding is more than an oddity.
    """
    if explain is not None or rules:
        typer.echo(_about_rules(explain))
        return None
    if logs is None:
        raise UsageError("missing argument 'LOGS'")
    from rewritelog.checking.run import check_logs  # noqa: PLC0415

    report = check_logs(logs, params, jobs=jobs)
    return Outcome(report, 0 if report.sound else UNSOUND)


def _about_rules(explain: str | None) -> str:
    from rewritelog.checking.rules import rule_of_name, rules_text  # noqa: PLC0415

    return rules_text() if explain is None else rule_of_name(explain).text()
