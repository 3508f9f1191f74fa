"""`rewritelog rewrite`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from rewritelog.cli.arguments import (
    ADVANCED,
    OUTPUT,
    CopyParams,
    Engine,
    Force,
    Jobs,
    Logs,
    NoFlush,
)
from rewritelog.cli.console import Outcome
from rewritelog.cli.model_options import with_model_options
from rewritelog.cli.option_groups import DurationGroup, with_groups
from rewritelog.cli.standard import reporting, warn_of_ranks
from rewritelog.errors import UsageError
from rewritelog.rewriting.options import (
    RecvPolicy,
    RewriteOptions,
    SpreadName,
    TotalName,
)


@reporting(warns=True, pages=True)
@with_model_options
@with_groups()
def rewrite_command(
    logs: Logs,
    out: Annotated[
        Path | None,
        typer.Argument(
            metavar="OUT",
            help="The folder to write: a new or empty one, or any with --force.",
            show_default=False,
        ),
    ] = None,
    force: Force = False,
    copy_params: CopyParams = False,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Print the report without writing OUT; takes no OUT.",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
    jobs: Jobs = 0,
    engine: Engine = "threads",
    no_flush: NoFlush = False,
    recv: Annotated[
        RecvPolicy,
        typer.Option(
            rich_help_panel=ADVANCED,
            help="A message's recvTime: shift it with sendTime, or keep it unless sendTime "
            "passes it.",
        ),
    ] = "shift",
    total: Annotated[
        TotalName,
        typer.Option(
            rich_help_panel=ADVANCED,
            help="measured: predicted durations add up to the measured machine's sum, rare long "
            "calls included; quiet: each is the usual duration of one call.",
        ),
    ] = "measured",
    spread: Annotated[
        SpreadName,
        typer.Option(
            rich_help_panel=ADVANCED,
            help="none: each predicted duration is the fit's mean; residual: it varies around the "
            "mean as held-out timing lines do.",
        ),
    ] = "none",
    seed: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            rich_help_panel=ADVANCED,
            help="Seed of --spread residual, and of the draw of --model sampled [default: 1].",
        ),
    ] = None,
    *,
    durations: DurationGroup,
    model_options: dict[str, Any],
) -> Outcome | None:
    """Rewrite a log set with new SEB durations.

    Without a model every duration is multiplied by the dilation. A fitted model predicts the
    bracketed parts of SEBs from their parameters, and the rest is dilated.
    """
    if (out is None) != dry_run:
        raise UsageError(
            "missing argument 'OUT' (--dry-run needs none)"
            if out is None
            else "--dry-run takes no OUT"
        )
    given = durations.options(model_options)
    if seed is not None and given.model == "sampled":
        given = replace(given, model_options={"seed": seed, **given.model_options})
    options = replace(
        given,
        total=total,
        spread=spread,
        spread_seed=1 if seed is None else seed,
        recv=recv,
        copy_params=copy_params,
        force=force,
        flush=not no_flush,
        engine=engine,
        jobs=jobs,
    )
    return _run(logs, out, options)


def _run(logs: Path, out: Path | None, options: RewriteOptions) -> Outcome | None:
    from rewritelog.rewriting.run import rewrite_or_serve  # noqa: PLC0415

    warn_of_ranks(engine=options.engine, command="rewrite")
    report = rewrite_or_serve(logs, out, options)
    if report is None:
        return None

    def page() -> str:
        from rewritelog.viewing.rewrite_page import rewrite_page  # noqa: PLC0415 - an extra

        return rewrite_page(report)

    return Outcome(report, page=page)
