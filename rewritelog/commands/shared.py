"""The arguments and options that several commands have, and no job."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from rewritelog.options import As, OutputPath, argument, declared

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from rewritelog.evaluation.predictions import LinePredictor
    from rewritelog.formats.bgtrace.logset import LogSet
    from rewritelog.formats.traces import LogsLike, Traces, TracesLike
    from rewritelog.rewriting.options import FittedLike

LogsArgument: TypeAlias = "As[LogsLike, LogSet]"
OptionalTraces: TypeAlias = "As[TracesLike | None, LogSet | Traces | None]"
TracesArgument: TypeAlias = "As[TracesLike, LogSet | Traces]"
"""Logs or traces in any format."""
ManyTraces: TypeAlias = "As[TracesLike | Iterable[TracesLike], tuple[LogSet | Traces, ...]]"
UncheckedArgument: TypeAlias = "As[TracesLike, Path | Traces]"
"""Logs or traces that may be too damaged to open."""
FittedArgument: TypeAlias = "As[FittedLike, LinePredictor]"

OUT_HELP = "The folder to write: a new or empty one, or any with --force."
LOGS_HELP = "The log folder, or its bgTrace file."
TRACES_HELP = "The log folder, or Chakra traces: a folder, a file, or FOLDER/NAME."


@declared
class Logs:
    """The log set that a command reads."""

    logs: LogsArgument = argument(LOGS_HELP, metavar="LOGS", kw_only=False)


@declared
class AnyTraces:
    """The logs or traces that a command reads, in any format."""

    logs: TracesArgument = argument(TRACES_HELP, metavar="LOGS", kw_only=False)


@declared
class Out:
    """The folder that a command writes."""

    out: OutputPath = argument(OUT_HELP, metavar="OUT", kw_only=False)


@declared
class Fitted:
    """A fitted model."""

    model: FittedArgument = argument(
        "A model file of `rewritelog fit -o`.", metavar="MODEL", kw_only=False
    )
