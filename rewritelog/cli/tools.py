"""`rewritelog info`, `dump`, `convert` and `synth`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from rewritelog.cli.arguments import AsJson, Force, Logs
from rewritelog.text import json_text

Out = Annotated[Path, typer.Argument(help="The folder to write; it must not exist or be empty.")]
Order = Literal["little", "big"]


def info_command(
    logs: Logs,
    as_json: AsJson = False,
) -> None:
    """Say what a log set holds: machine, sizes, SEBs, messages, brackets, where the time goes."""
    from rewritelog.inspection.info import survey  # noqa: PLC0415
    from rewritelog.logs.logset import open_logs  # noqa: PLC0415

    found = survey(open_logs(logs))
    if as_json:
        typer.echo(json_text(found.to_json(), indent=2))
    else:
        typer.echo(found.text())


def dump_command(
    logs: Logs,
    pe: Annotated[int, typer.Option(help="The PE whose timeline is shown.")],
    kind: Annotated[
        Literal["text", "jsonl"], typer.Option("--format", help="For reading, or a line a SEB.")
    ] = "text",
) -> None:
    """Show every field of every SEB of a PE."""
    from rewritelog.inspection.dump import dump_lines  # noqa: PLC0415
    from rewritelog.logs.logset import open_logs  # noqa: PLC0415

    for line in dump_lines(open_logs(logs), pe, kind):
        typer.echo(line)


def convert_command(
    logs: Logs,
    out: Out,
    log_version: Annotated[
        int | None, typer.Option(help="The log version to write, 0 to 6 [default: as it is].")
    ] = None,
    byte_order: Annotated[
        Order | None, typer.Option(help="The byte order to write [default: as it is].")
    ] = None,
    lossy: Annotated[
        bool, typer.Option("--lossy", help="Go on where the version cannot hold everything.")
    ] = False,
    force: Force = False,
) -> None:
    """Write a log set in another log version or byte order."""
    from rewritelog.converting.convert import convert_logs  # noqa: PLC0415
    from rewritelog.logs.logset import open_logs  # noqa: PLC0415

    done = convert_logs(
        open_logs(logs), out, log_version=log_version, order=byte_order, lossy=lossy, force=force
    )
    typer.echo(done.text())


def synth_command(
    out: Out,
    pes: Annotated[int, typer.Option(help="Emulated PEs.")] = 16,
    sebs: Annotated[int, typer.Option(help="SEBs of a PE.")] = 1000,
    messages: Annotated[float, typer.Option(help="Messages of a SEB, on average.")] = 0.6,
    files: Annotated[int, typer.Option(help="Timeline files.")] = 2,
    wth: Annotated[int, typer.Option(help="Worker threads of a node.")] = 1,
    seed: Annotated[int, typer.Option(help="The same seed gives the same bytes.")] = 1,
    byte_order: Annotated[Order, typer.Option(help="The byte order to write.")] = "little",
    log_version: Annotated[int, typer.Option(help="The log version to write, 0 to 6.")] = 6,
    force: Force = False,
) -> None:
    """Make a realistic log set with brackets, params and a timings file."""
    from rewritelog.synthesis.synth import SynthOptions, synthesise  # noqa: PLC0415

    options = SynthOptions(
        pes=pes, sebs=sebs, messages=messages, files=files, wth=wth, seed=seed,
        order=byte_order, log_version=log_version,
    )  # fmt: skip
    typer.echo(synthesise(out, options, force=force).text())
