"""`rewritelog info`, `dump`, `convert` and `synth`."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from rewritelog.cli.arguments import OUTPUT, Force, Jobs, Logs, NoFlush, Out, Seed
from rewritelog.cli.console import Outcome
from rewritelog.cli.standard import plain, reporting

Order = Literal["little", "big"]
_VERSION_HELP = "The log version to write, 0 to 6"


@reporting(warns=True, engines=True)
def info_command(logs: Logs, jobs: Jobs = 0) -> Outcome:
    """Describe a log set: machine, sizes, brackets, where the time goes."""
    from rewritelog.inspection.info import survey  # noqa: PLC0415
    from rewritelog.logs.logset import open_logs  # noqa: PLC0415

    return Outcome(survey(open_logs(logs), jobs=jobs))


@plain(prints_lines=True)
def dump_command(
    logs: Logs,
    pe: Annotated[int, typer.Option(metavar="PE", help="The PE whose timeline is printed.")],
    as_json: Annotated[
        bool,
        typer.Option(
            "--json", rich_help_panel=OUTPUT, help="Print one JSON object per line for each SEB."
        ),
    ] = False,
) -> None:
    """Print every field of every SEB of a PE."""
    from rewritelog.inspection.dump import dump_pieces  # noqa: PLC0415
    from rewritelog.logs.logset import open_logs  # noqa: PLC0415

    for piece in dump_pieces(open_logs(logs), pe, "jsonl" if as_json else "text"):
        typer.echo(piece, nl=False)


@reporting(engines=True)
def convert_command(
    logs: Logs,
    out: Out,
    log_version: Annotated[
        int | None,
        typer.Option(metavar="N", help=f"{_VERSION_HELP} [default: as in LOGS]."),
    ] = None,
    byte_order: Annotated[
        Order | None, typer.Option(help="The byte order to write [default: as in LOGS].")
    ] = None,
    lossy: Annotated[
        bool,
        typer.Option("--lossy", help="Drop what the log version has no field for."),
    ] = False,
    force: Force = False,
) -> Outcome:
    """Write a log set in another log version or byte order."""
    from rewritelog.converting.convert import convert_logs  # noqa: PLC0415
    from rewritelog.logs.logset import open_logs  # noqa: PLC0415

    return Outcome(
        convert_logs(
            open_logs(logs),
            out,
            log_version=log_version,
            order=byte_order,
            lossy=lossy,
            force=force,
        )
    )


@reporting()
def synth_command(
    out: Out,
    pes: Annotated[int, typer.Option(metavar="N", help="Number of emulated PEs.")] = 16,
    sebs: Annotated[int, typer.Option(metavar="N", help="SEBs per PE.")] = 1000,
    messages: Annotated[
        float, typer.Option(metavar="MEAN", help="Mean number of messages per SEB.")
    ] = 0.6,
    files: Annotated[int, typer.Option(metavar="N", help="Number of timeline files.")] = 2,
    wth: Annotated[int, typer.Option(metavar="N", help="Worker threads per node.")] = 1,
    size: Annotated[
        int,
        typer.Option(
            metavar="D",
            min=0,
            help="Cells of the domain that the PEs share; work and messages grow with a PE's part "
            "[default: 1000 per PE].",
            show_default=False,
        ),
    ] = 0,
    seed: Seed = 1,
    byte_order: Annotated[Order, typer.Option(help="The byte order to write.")] = "little",
    log_version: Annotated[int, typer.Option(metavar="N", help=f"{_VERSION_HELP}.")] = 6,
    jobs: Jobs = 0,
    force: Force = False,
    no_flush: NoFlush = False,
) -> Outcome:
    """Generate a realistic log set with params and a timings file."""
    from rewritelog.cores import limited_to  # noqa: PLC0415
    from rewritelog.synthesis.synth import SynthOptions, synthesise  # noqa: PLC0415

    options = SynthOptions(
        pes=pes,
        sebs=sebs,
        messages=messages,
        files=files,
        wth=wth,
        size=size,
        seed=seed,
        order=byte_order,
        log_version=log_version,
    )
    with limited_to(jobs):
        return Outcome(synthesise(out, options, force=force, flush=not no_flush))
