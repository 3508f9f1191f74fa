"""`rewritelog timeline`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rewritelog.cli.arguments import Logs, Seed, output_option
from rewritelog.errors import UsageError


def timeline_command(
    logs: Logs,
    output: Annotated[Path, output_option("The picture to write: .png, .svg, .pdf or .html")],
    against: Annotated[
        Path | None,
        typer.Option(
            metavar="LOGS", help="A second log folder, drawn below on the same time axis.",
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
) -> None:  # fmt: skip
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
