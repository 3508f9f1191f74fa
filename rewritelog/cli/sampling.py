"""`rewritelog sample`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rewritelog.cli.arguments import (
    ClockHz,
    Jobs,
    Logs,
    Params,
    Seed,
    Strict,
    TimingsOption,
    is_stdout,
    output_option,
    to_path,
)
from rewritelog.cli.console import Outcome
from rewritelog.cli.standard import reporting
from rewritelog.models.options import SampleMethod


@reporting(warns=True, pages=True)
def sample_command(
    logs: Logs,
    output: Annotated[
        Path | None, output_option("The list to write [default: none, only report]")
    ] = None,
    fraction: Annotated[
        float,
        typer.Option(metavar="SHARE", help="Share of all SEBs with a param record, in (0, 1]."),
    ] = 0.02,
    method: Annotated[
        SampleMethod,
        typer.Option(
            help="design: half where a fit is least certain, half spread over the parameters; "
            "coverage: spread over the parameters; random: at random."
        ),
    ] = "design",
    floor: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="Choose at least N SEBs of each event and category, if there are as many.",
        ),
    ] = 5,
    params: Params = None,
    formulas: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A formulas file: SEBs are chosen from each category, to span its terms.",
        ),
    ] = None,
    timings: TimingsOption = None,
    clock_hz: ClockHz = None,
    replicates: Annotated[
        int,
        typer.Option(
            metavar="N", help="Choose some parameters of each event N times, if they recur."
        ),
    ] = 1,
    seed: Seed = 1,
    jobs: Jobs = 0,
    strict: Strict = False,
) -> Outcome:
    """Choose the SEBs to time, for a fit that predicts all others best.

    The list has the PE, SEB, event and parameters of each; a program that is instrumented with
    tracebigsim, or a cycle-accurate simulator, then times only these. Calls that are already timed
    (--timings) count as known.
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
        jobs=jobs,
    )
    account = sample(logs, options, to_path(output))

    def page() -> str:
        from rewritelog.viewing.sample_page import sample_page  # noqa: PLC0415 - an extra

        return sample_page(account)

    return Outcome(account, stdout_taken=is_stdout(output), page=page)
