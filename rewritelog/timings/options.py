"""Timing lines and what is fitted to them, as options of several jobs; without heavy imports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, TypeAlias

from rewritelog.options import (
    MODEL,
    RUNNING,
    As,
    Kind,
    OptionalInput,
    Options,
    argument,
    check_factor,
    option,
    settle,
)

if TYPE_CHECKING:
    from pathlib import Path

    from rewritelog.timings.samples import Timings, TimingsLike

_SAMPLES = Kind("timings.samples:to_files_or_samples", several=True, nothing=())
TimingsArgument: TypeAlias = Annotated[As["TimingsLike", "Timings | tuple[Path, ...]"], _SAMPLES]
OptionalTimings: TypeAlias = Annotated[
    As["TimingsLike | None", "Timings | tuple[Path, ...]"], _SAMPLES
]
ModelOptions: TypeAlias = Annotated[
    As["Mapping[str, object] | None", "Mapping[str, object]"],
    Kind("options:settings", str, several=True, nothing=()),
]

MODEL_HELP = "`rewritelog models` lists the models and their options"
TIMINGS_HELP = (
    "Files of timing lines, plain or compressed (.gz, .bz2, .xz, .zst); - is standard input."
)


class TimingLines(Options):
    """The timing lines that a model is fitted to or compared with."""

    timings: TimingsArgument = argument(TIMINGS_HELP, metavar="TIMINGS...", kw_only=False)


class Reading(Options):
    """How timing lines and params are read."""

    clock_hz: float | None = option(
        "Clock rate for timing lines whose times are in cycles.",
        default=None, metavar="HZ", group=MODEL, rare=True, decides=True,
    )  # fmt: skip
    strict: bool = option(
        "Stop at a malformed timing or param line.", default=False, group=RUNNING, rare=True
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_factor("the clock", self.clock_hz)


class FormulasFile(Options, group=MODEL):
    """The file of formulas."""

    formulas: OptionalInput = option("A formulas file for the model auto.", default=None, rare=True)


class ParamNamesFile(Options, group=MODEL):
    """The file of parameter names."""

    param_names: OptionalInput = option(
        "A TOML file of parameter names, for the report.", default=None, rare=True
    )


class ModelInputs(Reading, FormulasFile, group=MODEL):
    """What a model is made from besides timings."""

    coefficients: OptionalInput = option(
        "The file of coefficients for --model coefficients.", default=None, rare=True
    )
    model_options: ModelOptions = option(
        "An option of the model, as `rewritelog models NAME` lists them; those of built-in models "
        "are flags too.",
        default=None, names=("--model-option",), metavar="NAME=VALUE", rare=True,
    )  # fmt: skip

    def __post_init__(self) -> None:
        super().__post_init__()
        settle(self, model_options=self.model_options or {})
