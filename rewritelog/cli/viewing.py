"""`rewritelog timeline` and `explore`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rewritelog.cli import console
from rewritelog.cli.arguments import (
    OUTPUT,
    ClockHz,
    Formulas,
    Jobs,
    Logs,
    Params,
    Seed,
    Strict,
    Timings,
    is_stdout,
    output_option,
    to_path,
)
from rewritelog.cli.standard import plain


@plain(engines=True)
def timeline_command(
    logs: Logs,
    output: Annotated[Path, output_option("The picture: .png, .svg, .pdf or .html (for -, SVG)")],
    against: Annotated[
        Path | None,
        typer.Option(
            metavar="LOGS",
            help="A second log folder, drawn below on the same time axis.",
            show_default=False,
        ),
    ] = None,
    pes: Annotated[
        str | None,
        typer.Option(metavar="RANGES", help="PEs to draw, as in 0-31,40 [default: all]."),
    ] = None,
    from_s: Annotated[
        float | None,
        typer.Option("--from", metavar="SECONDS", help="Where the time axis begins, in seconds."),
    ] = None,
    to_s: Annotated[
        float | None,
        typer.Option("--to", metavar="SECONDS", help="Where the time axis ends, in seconds."),
    ] = None,
    messages: Annotated[
        bool,
        typer.Option(
            "--messages", help="Draw messages as lines; if there are many, a random part of them."
        ),
    ] = False,
    seed: Seed = 1,
) -> None:
    """Draw the SEBs of each PE over time, coloured by name, with brackets and messages."""
    from rewritelog.logs.logset import open_logs  # noqa: PLC0415
    from rewritelog.logs.pes import parse_pes  # noqa: PLC0415
    from rewritelog.text import bytes_text, printable  # noqa: PLC0415
    from rewritelog.viewing.draw import draw_timeline  # noqa: PLC0415
    from rewritelog.viewing.timeline import TimelineOptions  # noqa: PLC0415

    sets = [open_logs(one) for one in (logs, against) if one is not None]
    chosen = None if pes is None else parse_pes(pes, len(sets[0].pes))
    options = TimelineOptions(chosen, from_s, to_s)
    path, kind = to_path(output) or output, "svg" if is_stdout(output) else None
    drawn = draw_timeline(sets, path, kind, options, messages=messages, seed=seed)
    if not (console.quiet() or is_stdout(output)):
        typer.echo(f"{printable(str(output))}: {bytes_text(len(drawn))}")


@plain()
def explore_command(
    timings: Timings,
    logs: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Logs on which to show the effect of the fits.", show_default=False
        ),
    ] = None,
    formulas: Formulas = None,
    params: Params = None,
    clock_hz: ClockHz = None,
    jobs: Jobs = 0,
    strict: Strict = False,
    out: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="DIR",
            rich_help_panel=OUTPUT,
            show_default=False,
            help="The folder for formulas.toml and model.json [default: the current folder].",
        ),
    ] = Path(),
    force: Annotated[
        bool,
        typer.Option(
            "--force", help="Replace existing files of these names.", rich_help_panel=OUTPUT
        ),
    ] = False,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Print the address, and open no browser.")
    ] = False,
) -> None:
    """Look at fits on a live page, change them, and save the result.

    The page is served to browsers on this machine only, at an address that cannot be guessed, until
    Ctrl-C.
    """
    from rewritelog.cores import limited_to  # noqa: PLC0415
    from rewritelog.viewing.explore import ExploreOptions, explore  # noqa: PLC0415 - heavy

    options = ExploreOptions(
        timings=tuple(timings),
        logs=logs,
        params=params,
        formulas=formulas,
        clock_hz=clock_hz,
        strict=strict,
        out=out,
        force=force,
        browser=not no_browser,
    )

    def say(address: str) -> None:
        typer.echo(f"open {address}\nCtrl-C stops the server")

    with limited_to(jobs):
        explore(options, say)
