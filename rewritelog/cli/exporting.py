"""`rewritelog export`."""

from __future__ import annotations

import math
from typing import Annotated

import typer

from rewritelog.cli.arguments import Force, Logs, Out, Params
from rewritelog.cli.console import Outcome
from rewritelog.cli.option_groups import NETWORK, NetworkGroup, with_groups
from rewritelog.cli.standard import reporting
from rewritelog.errors import UsageError
from rewritelog.exporting.options import ExportOptions, Target

CHOICE = "Selection"


@reporting(warns=True)
@with_groups()
def export_command(
    logs: Logs,
    out: Out,
    network: NetworkGroup,
    to: Annotated[
        Target,
        typer.Option(
            "--to",
            show_default=False,
            help="chrome: JSON for Perfetto and chrome://tracing; parquet, csv: tables; goal: "
            "LogGOPSim; simgrid: smpirun -replay.",
        ),
    ],
    pes: Annotated[
        str | None,
        typer.Option(
            metavar="RANGES", rich_help_panel=CHOICE, help="Only these PEs, as in 0-31,40."
        ),
    ] = None,
    from_s: Annotated[
        float | None,
        typer.Option(
            "--from", metavar="SECONDS", rich_help_panel=CHOICE, help="Only SEBs that end later."
        ),
    ] = None,
    to_s: Annotated[
        float | None,
        typer.Option(
            "--until",
            metavar="SECONDS",
            rich_help_panel=CHOICE,
            help="Only SEBs that start earlier.",
        ),
    ] = None,
    replayed: Annotated[
        bool,
        typer.Option(
            "--replayed",
            rich_help_panel=NETWORK,
            help="goal, simgrid: each PE runs its SEBs in the order of a replay over this network.",
        ),
    ] = False,
    params: Params = None,
    force: Force = False,
) -> Outcome:
    """Write a log set in the format of another tool: a trace viewer, tables, or a simulator."""
    from rewritelog.exporting.run import export  # noqa: PLC0415 - few commands need it

    if not replayed and network != NetworkGroup():
        raise UsageError("a network is for --replayed")
    begin = -math.inf if from_s is None else from_s
    end = math.inf if to_s is None else to_s
    options = ExportOptions(to, pes, begin, end, params, network.read() if replayed else None)
    return Outcome(export(logs, out, options, force=force))
