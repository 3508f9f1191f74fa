"""`rewritelog diff`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rewritelog.cli.arguments import Jobs
from rewritelog.cli.console import Outcome
from rewritelog.cli.standard import reporting
from rewritelog.errors import NotComparableError, RewriteLogError

DIFFERENT = 1


@reporting(engines=True)
def diff_command(
    a: Annotated[
        Path,
        typer.Argument(metavar="A", help="A log folder, or its bgTrace file.", show_default=False),
    ],
    b: Annotated[
        Path,
        typer.Argument(
            metavar="B",
            help="The log folder to compare with A, or its bgTrace file.",
            show_default=False,
        ),
    ],
    params: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="The folder of the param.P files that name events [default: A or B].",
        ),
    ] = None,
    jobs: Jobs = 0,
) -> Outcome:
    """Compare two log sets: fields, durations and messages.

    SEBs are compared in the order of each PE's timeline, whatever the log version and byte order.
    The exit code is 0 if they are the same, 1 if they differ, and 2 if they cannot be compared.
    """
    from rewritelog.diffing.run import compare_logs  # noqa: PLC0415
    from rewritelog.logs.logset import open_logs  # noqa: PLC0415

    try:
        found = compare_logs(open_logs(a), open_logs(b), params, jobs=jobs)
    except RewriteLogError as error:
        raise NotComparableError(f"cannot be compared: {error}") from error
    return Outcome(found, 0 if found.same else DIFFERENT)
