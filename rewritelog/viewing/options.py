"""The options of the live page; without heavy imports, as the command line reads them first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, TypeAlias

from rewritelog.options import (
    MODEL,
    OUTPUT,
    As,
    InputPaths,
    Kind,
    OutputPath,
    ParamsFolder,
    argument,
    option,
)
from rewritelog.timings.options import TIMINGS_HELP, FormulasFile, ParamNamesFile, Reading

if TYPE_CHECKING:
    from rewritelog.formats.bgtrace.logset import LogSet
    from rewritelog.formats.traces import LogsLike

OptionalLogs: TypeAlias = Annotated[
    As["LogsLike | None", "LogSet | None"], Kind("api.logs:to_logs")
]


class ExploreOptions(Reading, ParamNamesFile, ParamsFolder, FormulasFile):
    """The inputs of the live page, and where its results are saved."""

    timings: InputPaths = argument(TIMINGS_HELP, metavar="TIMINGS...", kw_only=False)
    logs: OptionalLogs = option(
        "Logs on which to show the effect of the fits.", default=None, metavar="DIR", kw_only=False
    )
    dilation: float | None = option(
        "Factor on durations that no fit covers, for the effect on LOGS; the page can change it "
        "[default: 1].",
        default=None, metavar="FACTOR", group=MODEL,
    )  # fmt: skip
    output: OutputPath = option(
        "The folder for formulas.toml and model.json [default: the current folder].",
        default=".", names=("--output", "-o"), metavar="DIR", group=OUTPUT,
    )  # fmt: skip
    force: bool = option("Replace existing files of these names.", default=False, group=OUTPUT)
    no_browser: bool = option("Print the address, and open no browser.", default=False)
