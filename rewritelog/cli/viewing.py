"""`rewritelog timeline` and `explore`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rewritelog.cli.arguments import (
    OUTPUT,
    ClockHz,
    Formulas,
    Logs,
    Params,
    Seed,
    Strict,
    Timings,
    output_option,
)
from rewritelog.cli.progress import shown_progress
from rewritelog.errors import UsageError


def timeline_command(
    logs: Logs,
    output: Annotated[Path, output_option("The picture to write: .png, .svg, .pdf or .html")],
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
        typer.Option(metavar="LIST", help="PEs to draw, as in 0-31,40 [default: all]."),
    ] = None,
    from_s: Annotated[
        float | None,
        typer.Option("--from", metavar="S", help="Where the time axis begins, in seconds."),
    ] = None,
    to_s: Annotated[
        float | None,
        typer.Option("--to", metavar="S", help="Where the time axis ends, in seconds."),
    ] = None,
    messages: Annotated[
        bool, typer.Option("--messages", help="Draw messages as lines, some where many.")
    ] = False,
    seed: Seed = 1,
) -> None:
    """Draw the SEBs of each PE over time, coloured by name, with brackets and messages."""
    from rewritelog.logs.logset import open_logs  # noqa: PLC0415
    from rewritelog.output import check_outputs, write_file  # noqa: PLC0415
    from rewritelog.text import bytes_text, printable  # noqa: PLC0415
    from rewritelog.viewing.draw import KINDS, draw_timeline  # noqa: PLC0415
    from rewritelog.viewing.timeline import TimelineOptions, parse_pes  # noqa: PLC0415

    kind = output.suffix.lower().removeprefix(".")
    if kind not in KINDS:
        raise UsageError(f"{output}: unknown kind of picture: use .png, .svg, .pdf or .html")
    sets = [open_logs(path) for path in (logs, against) if path is not None]
    check_outputs([output], [], [logs.folder for logs in sets])
    options = TimelineOptions(None if pes is None else parse_pes(pes), from_s, to_s)
    drawn = draw_timeline(sets, kind, options, messages=messages, seed=seed)
    write_file(output, drawn)
    typer.echo(f"{printable(str(output))}: {bytes_text(len(drawn))}")


def explore_command(
    timings: Timings,
    logs: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Logs to show the effect on.", show_default=False),
    ] = None,
    formulas: Formulas = None,
    params: Params = None,
    clock_hz: ClockHz = None,
    strict: Strict = False,
    out: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="DIR",
            rich_help_panel=OUTPUT,
            show_default=False,
            help="The folder to save formulas.toml and model.json in [default: this one].",
        ),
    ] = Path(),
    force: Annotated[
        bool,
        typer.Option("--force", help="Replace files of these names.", rich_help_panel=OUTPUT),
    ] = False,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Print the address, and open no browser.")
    ] = False,
) -> None:
    """Look at fits in a live page, change them, and save what comes out.

    The page is served to this machine's browser alone, at an address that cannot be guessed, until
    Ctrl-C.
    """
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
        typer.echo(f"open {address}\nCtrl-C ends it")

    with shown_progress():
        explore(options, say)
