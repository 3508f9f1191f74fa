"""Arguments and options that several commands take, each said once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

LOGS_HELP = "The log folder, or its bgTrace file."

Logs = Annotated[Path, typer.Argument(help=LOGS_HELP)]
Params = Annotated[
    Path | None, typer.Option(help="The folder of the param.P files [default: LOGS].")
]
Formulas = Annotated[
    Path | None, typer.Option(help="A file of formulas, for a model that takes one.")
]
Coefficients = Annotated[
    Path | None, typer.Option(help="The file of coefficients of --model coefficients.")
]
ClockHz = Annotated[
    float | None, typer.Option(help="Clock of the timing lines whose times are in cycles.")
]
ModelOption = Annotated[
    list[str] | None,
    typer.Option(help="NAME=VALUE, an option of a model from outside; repeatable."),
]
Strict = Annotated[bool, typer.Option("--strict", help="Stop at a malformed timing or param line.")]
Force = Annotated[bool, typer.Option("--force", help="Replace OUT if it exists.")]
Jobs = Annotated[int, typer.Option(help="Threads; 0 is as many as there are cores to use.", min=0)]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
