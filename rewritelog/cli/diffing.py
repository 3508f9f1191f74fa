"""`rewritelog diff`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rewritelog.cli.arguments import AsJson, Jobs
from rewritelog.errors import NotComparableError, RewriteLogError
from rewritelog.text import json_text

DIFFERENT = 1


def diff_command(
    a: Annotated[Path, typer.Argument(help="A log folder, or its bgTrace file.")],
    b: Annotated[Path, typer.Argument(help="Another one.")],
    params: Annotated[
        Path | None,
        typer.Option(help="The folder of the param.P files that name events [default: A or B]."),
    ] = None,
    as_json: AsJson = False,
    jobs: Jobs = 0,
) -> None:
    """Say what differs between two log sets; exit with 0 the same, 1 different, 2 no answer.

    SEBs are compared in the order of each PE's timeline, whatever the log version and byte order.
    """
    from rewritelog.diffing.run import compare_logs  # noqa: PLC0415
    from rewritelog.logs.logset import open_logs  # noqa: PLC0415 - numba is slow to import

    try:
        found = compare_logs(open_logs(a), open_logs(b), params, jobs=jobs)
    except RewriteLogError as error:
        raise NotComparableError(f"cannot be compared: {error}") from error
    if as_json:
        typer.echo(json_text(found.to_json(), indent=2))
    else:
        typer.echo(found.text())
    if not found.same:
        raise typer.Exit(DIFFERENT)
