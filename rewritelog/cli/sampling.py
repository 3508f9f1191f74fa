"""`rewritelog sample`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rewritelog.cli.arguments import ClockHz, Logs, Params, Strict
from rewritelog.models.options import SampleMethod


def sample_command(
    logs: Logs,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="The list to write [default: only report]."),
    ] = None,
    fraction: Annotated[
        float, typer.Option(help="Share of all SEBs with a param record to choose, in (0, 1].")
    ] = 0.02,
    method: Annotated[
        SampleMethod,
        typer.Option(
            help="design: where a fit is least certain, and spread over the run; coverage: spread "
            "over the run only; random: by chance."
        ),
    ] = "design",
    seed: Annotated[int, typer.Option(help="The same seed chooses the same SEBs.")] = 1,
    floor: Annotated[
        int, typer.Option(help="Each event and category gets at least so many, if it has them.")
    ] = 5,
    params: Params = None,
    formulas: Annotated[
        Path | None,
        typer.Option(
            help="A formulas file: its categories are chosen from each, its terms spanned."
        ),
    ] = None,
    timings: Annotated[
        list[Path] | None,
        typer.Option(
            help="A file of lines that are timed already: they count as known, and replicates are "
            "asked for where identical parameters differ; repeatable."
        ),
    ] = None,
    clock_hz: ClockHz = None,
    replicates: Annotated[
        int, typer.Option(help="Choose some parameters of each event so often, where they recur.")
    ] = 1,
    report: Annotated[
        Path | None, typer.Option("--json", help="Write the report to this file as JSON too.")
    ] = None,
    strict: Strict = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No report on stdout.")] = False,
) -> None:
    """Choose which SEBs of a run to time, so that a fit to them says most about all others.

    OUT lists PE, SEB, event and parameters of each; a program that is instrumented with
    tracebigsim, or a cycle-accurate simulator, times these alone.
    """
    from rewritelog.sampling.choose import sample  # noqa: PLC0415 - heavy
    from rewritelog.sampling.options import SampleOptions  # noqa: PLC0415

    options = SampleOptions(
        fraction=fraction,
        method=method,
        seed=seed,
        floor=floor,
        replicates=replicates,
        params=params,
        timings=tuple(timings or ()),
        clock_hz=clock_hz,
        formulas=formulas,
        strict=strict,
    )
    account = sample(logs, options, out, report)
    if not quiet:
        typer.echo(account.text())
