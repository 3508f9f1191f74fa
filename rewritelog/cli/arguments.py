"""Arguments and options that several commands take, each declared once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rewritelog.cli.completers import complete_model
from rewritelog.running import EngineName

MODEL, DILATION, OUTPUT = "Model", "Dilation", "Output"
RUNNING, ADVANCED, OTHER = "Running", "Advanced", "Other options"
"""Headings of groups of options in the help."""

STANDARD_STREAM = Path("-")
"""Means stdin as an input, and stdout as an output."""

LOGS_HELP = "The log folder, or its bgTrace file."
TIMINGS_HELP = (
    "Files of timing lines, plain or compressed (.gz, .bz2, .xz, .zst); - is standard input."
)
MODEL_HELP = (
    "auto (the default with timings), least-squares, sampled, counters, gaussian-process, "
    "coefficients, constant (the default without), the name of a plug-in, or MODULE:CLASS with "
    "scikit-learn's fit and predict, which runs that module's code."
)

Logs = Annotated[Path, typer.Argument(metavar="LOGS", help=LOGS_HELP, show_default=False)]
Out = Annotated[
    Path,
    typer.Argument(
        metavar="OUT",
        help="The folder to write: a new or empty one, or any with --force.",
        show_default=False,
    ),
]
Timings = Annotated[
    list[Path], typer.Argument(metavar="TIMINGS...", help=TIMINGS_HELP, show_default=False)
]
TimingsOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--timings",
        metavar="FILE...",
        rich_help_panel=MODEL,
        help="Files of timing lines, plain or compressed; - is standard input.",
    ),
]
ModelName = Annotated[
    str | None,
    typer.Option(
        "--model",
        metavar="NAME",
        help=MODEL_HELP,
        show_default=False,
        rich_help_panel=MODEL,
        autocompletion=complete_model,
    ),
]
Params = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="The folder of the param.P files [default: LOGS].",
        rich_help_panel=MODEL,
    ),
]
Formulas = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="A formulas file for the model auto.", rich_help_panel=MODEL),
]
ParamNames = Annotated[
    Path | None,
    typer.Option(
        "--param-names",
        metavar="FILE",
        rich_help_panel=MODEL,
        help="A TOML file of parameter names, for the report.",
    ),
]
Coefficients = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="The file of coefficients for --model coefficients.",
        rich_help_panel=MODEL,
    ),
]
ClockHz = Annotated[
    float | None,
    typer.Option(
        metavar="HZ",
        help="Clock rate for timing lines whose times are in cycles.",
        rich_help_panel=MODEL,
    ),
]
CopyParams = Annotated[
    bool,
    typer.Option(
        "--copy-params", help="Also copy the param.P files to OUT.", rich_help_panel=OUTPUT
    ),
]
ModelOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=VALUE",
        help="An option of a plug-in model; repeatable.",
        rich_help_panel=ADVANCED,
    ),
]
Strict = Annotated[
    bool,
    typer.Option(
        "--strict",
        help="Stop at a malformed timing or param line.",
        rich_help_panel=RUNNING,
    ),
]
Force = Annotated[
    bool, typer.Option("--force", help="Replace OUT if it exists.", rich_help_panel=OUTPUT)
]
NoFlush = Annotated[
    bool,
    typer.Option(
        "--no-flush",
        rich_help_panel=RUNNING,
        help="Do not wait until OUT is on the disk; a power cut may then leave it damaged.",
    ),
]
Jobs = Annotated[
    int,
    typer.Option(
        "--jobs",
        "-j",
        metavar="N",
        min=0,
        show_default=False,
        rich_help_panel=RUNNING,
        help="Threads or processes to use [default: one for each available core].",
    ),
]
Engine = Annotated[
    EngineName,
    typer.Option(help="Threads of this machine, or the ranks of mpiexec.", rich_help_panel=RUNNING),
]
Seed = Annotated[
    int,
    typer.Option(
        metavar="N",
        rich_help_panel=ADVANCED,
        help="Seed of random draws; the same seed gives the same result.",
    ),
]


def output_option(what: str) -> object:
    """Return the option of a command's main output file."""
    return typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help=f"{what}; - is standard output.",
        rich_help_panel=OUTPUT,
        show_default=False,
    )


def to_path(output: Path | None) -> Path | None:
    """Return the path of an output; for `-`, that of stdout."""
    return Path("/dev/stdout") if output == STANDARD_STREAM else output


def is_stdout(output: Path | None) -> bool:
    """Return whether an output is stdout, which reports are printed to."""
    return output is not None and str(output) in ("-", "/dev/stdout", "/dev/fd/1")
