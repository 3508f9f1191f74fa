"""Options that several commands have, each declared once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from rewritelog.errors import UsageError
from rewritelog.options import argument, declared, option

if TYPE_CHECKING:
    from rewritelog.api.arguments import InputPath, LogsLike, TracesLike
    from rewritelog.api.fitted import FittedLike
    from rewritelog.formats.bgtrace.logset import LogSet
    from rewritelog.formats.traces import Traces

SELECTION, MODEL, OUTPUT = "Selection", "Durations", "Output"
RUNNING, ADVANCED, OTHER = "Running", "Advanced", "Other options"
"""Headings of groups of options in the help."""

PesLike: TypeAlias = "str | Sequence[int]"

LOGS_HELP = "The log folder, or its bgTrace file."
TRACES_HELP = "The log folder, or Chakra traces: a folder, a file, or FOLDER/NAME."
OUT_HELP = "The folder to write: a new or empty one, or any with --force."
VERSION_HELP = "The log version to write, 0 to 6"
TIMINGS_HELP = (
    "Files of timing lines, plain or compressed (.gz, .bz2, .xz, .zst); - is standard input."
)
MODEL_FILE_HELP = "A model file of `rewritelog fit -o`."


def pairs(texts: Iterable[str], name: str) -> dict[str, str]:
    """Return `NAME=VALUE` texts by name, the last of a name last; raise `UsageError` for others."""
    found: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.rpartition("=")
        if not (equals and key):
            raise UsageError(f"{name} takes NAME=VALUE, not {text!r}")
        found.pop(key, None)
        found[key] = value
    return found


def listed(texts: Iterable[str], _: str) -> tuple[str, ...]:
    """Return the names in texts with commas."""
    return tuple(name.strip() for text in texts for name in text.split(",") if name.strip())


def factors(texts: Iterable[str], name: str) -> dict[str, float]:
    """Return `NAME=NUMBER` texts by name; raise `UsageError` for others."""
    found = {}
    for key, text in pairs(texts, name).items():
        try:
            found[key] = float(text)
        except ValueError as error:
            raise UsageError(f"{name} {key}={text}: {text!r} is not a number") from error
    return found


def unique_pairs(texts: list[str], name: str) -> dict[str, str]:
    """Return `NAME=VALUE` texts by name; raise `UsageError` if a name comes twice."""
    found = pairs(texts, name)
    if len(found) < len(texts):
        names = [text.rpartition("=")[0] for text in texts]
        twice = next(one for one in names if names.count(one) > 1)
        raise UsageError(f"{name} {twice} is given more than once")
    return found


@declared
class Logs:
    """The log set that a command reads."""

    logs: LogsLike = argument(LOGS_HELP, metavar="LOGS", kw_only=False)


@declared
class AnyTraces:
    """The logs or traces that a command reads, in any format."""

    logs: TracesLike = argument(TRACES_HELP, metavar="LOGS", kw_only=False)


@declared
class NodeChoice:
    """Which nodes of traces a command takes, and their events and parameters."""

    types: str | Sequence[str] | None = option(
        "Chakra traces: the types of nodes that it is about, as in COMP,MEM_LOAD [default: COMP].",
        default=None, metavar="TYPES", group=MODEL, rare=True, read=listed,
    )  # fmt: skip
    event_params: InputPath | None = option(
        "Chakra traces: a TOML file of the events and parameters of nodes.",
        default=None, metavar="FILE", group=MODEL, rare=True,
    )  # fmt: skip

    @property
    def chosen_types(self) -> tuple[str, ...]:
        """The types, none for the default."""
        types = self.types
        return listed([types], "") if isinstance(types, str) else tuple(types or ())


@declared
class Params:
    """The param records of the log set."""

    params: InputPath | None = option(
        "The folder of the param.P files [default: LOGS].",
        default=None, metavar="DIR", group=MODEL, rare=True,
    )  # fmt: skip


@declared
class Jobs:
    """The number of workers."""

    jobs: int = option(
        "Threads or processes to use [default: all cores].",
        default=0, names=("--jobs", "-j"), metavar="N", group=RUNNING, least=0,
    )  # fmt: skip


@declared
class Force:
    """Replacement of an existing output."""

    force: bool = option("Replace OUT if it exists.", default=False, group=OUTPUT)


@declared
class Flush:
    """Whether the output is on the disk when the command ends."""

    no_flush: bool = option(
        "Do not wait until OUT is on the disk; a power cut may then leave it damaged.",
        default=False, group=RUNNING, rare=True,
    )  # fmt: skip


@declared
class Seed:
    """The seed of random draws."""

    seed: int = option(
        "Seed of random draws; the same seed gives the same result.",
        default=1, metavar="N", group=ADVANCED, rare=True,
    )  # fmt: skip


@declared
class ClockHz:
    """The clock of times in cycles."""

    clock_hz: float | None = option(
        "Clock rate for timing lines whose times are in cycles.",
        default=None, metavar="HZ", group=MODEL, rare=True,
    )  # fmt: skip


@declared
class Strict:
    """What becomes of malformed lines."""

    strict: bool = option(
        "Stop at a malformed timing or param line.", default=False, group=RUNNING, rare=True
    )


@declared
class Formulas:
    """The file of formulas."""

    formulas: InputPath | None = option(
        "A formulas file for the model auto.",
        default=None, metavar="FILE", group=MODEL, rare=True,
    )  # fmt: skip


@declared
class ParamNames:
    """The file of parameter names."""

    param_names: InputPath | None = option(
        "A TOML file of parameter names, for the report.",
        default=None, metavar="FILE", group=MODEL, rare=True,
    )  # fmt: skip


@declared
class CopyParams:
    """Whether the output has the param records too."""

    copy_params: bool = option(
        "Also copy the param.P files to OUT.", default=False, group=OUTPUT, rare=True
    )


@declared
class ModelInputs(Strict, ClockHz, Formulas):
    """What a model is made from besides timings."""

    coefficients: InputPath | None = option(
        "The file of coefficients for --model coefficients.",
        default=None, metavar="FILE", group=MODEL, rare=True,
    )  # fmt: skip
    model_options: Mapping[str, object] | None = option(
        "An option of the model, as `rewritelog models NAME` lists them; those of built-in models "
        "are flags too.",
        default=None, names=("--model-option",), metavar="NAME=VALUE", group=MODEL, rare=True,
        read=unique_pairs,
    )  # fmt: skip


MODEL_HELP = "`rewritelog models` lists the models and their options"


@declared
class Fitted:
    """A fitted model."""

    model: FittedLike = argument(MODEL_FILE_HELP, metavar="MODEL", kw_only=False)


@declared
class Selection:
    """The part of the logs that is drawn or written."""

    pes: PesLike | None = option(
        "Only these PEs, as in 0-31,40 [default: all].",
        default=None, metavar="RANGES", group=SELECTION,
    )  # fmt: skip
    from_s: float | None = option(
        "Begin at this time.", default=None, names=("--from",), metavar="SECONDS", group=SELECTION
    )
    until_s: float | None = option(
        "End at this time.", default=None, names=("--until",), metavar="SECONDS", group=SELECTION
    )

    def chosen_pes(self, logs: LogSet | Traces) -> tuple[int, ...] | None:
        """Return the PEs that are chosen, None for all."""
        from rewritelog.formats.bgtrace.pes import parse_pes

        if isinstance(self.pes, str):
            return parse_pes(self.pes, len(logs.pes))
        return None if self.pes is None else tuple(self.pes)
