"""Options that several commands have: what gives SEBs new durations, the output, the network."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, TypeAlias

from rewritelog.errors import UsageError, UsageTypeError, spelled
from rewritelog.options import (
    ADVANCED,
    MODEL,
    OUTPUT,
    RUNNING,
    As,
    Flush,
    Force,
    Jobs,
    Kind,
    ModelInput,
    NodeChoice,
    NumberOrText,
    Options,
    ParamsFolder,
    PathLike,
    argument,
    check_factor,
    is_given,
    option,
    settle,
)
from rewritelog.text import last_match

if TYPE_CHECKING:
    from rewritelog.models.base import Model
    from rewritelog.models.fitted import Fitted
    from rewritelog.replaying.network import Network
    from rewritelog.timings.samples import Timings, TimingsLike


_SAMPLES = Kind("timings.samples:to_files_or_samples", several=True, error="TimingError")
TimingsArgument: TypeAlias = Annotated[As["TimingsLike", "Timings | tuple[Path, ...]"], _SAMPLES]
OptionalTimings: TypeAlias = Annotated[
    As["TimingsLike | None", "Timings | tuple[Path, ...] | None"], _SAMPLES
]
ModelOptions: TypeAlias = Annotated[
    As["Mapping[str, object] | None", "Mapping[str, object]"],
    Kind("options:settings", several=True, nothing=(), use="text"),
]

Hertz: TypeAlias = Annotated[NumberOrText, Kind("units:hertz", use="text", metavar="HZ")]
"""A clock rate."""

MODEL_HELP = "`rewritelog models` lists the models and their options"


class TimingLines(Options):
    """The timing lines that a model is fitted to or compared with."""

    timings: TimingsArgument = argument(
        "Files of timing lines, plain or compressed (.gz, .bz2, .xz, .zst); - is standard input.",
        metavar="TIMINGS...", kw_only=False,
    )  # fmt: skip


class Reading(Options):
    """How timing lines and params are read."""

    clock_hz: Hertz = option(
        "Clock rate for timing lines whose times are in cycles, as in 2.4GHz.",
        default=None, group=MODEL, rare=True, decides=True,
    )  # fmt: skip
    strict: bool = option(
        "Stop at a malformed timing or param line.", default=False, group=RUNNING, rare=True
    )


class FormulasFile(Options, group=MODEL):
    """The file of formulas."""

    formulas: ModelInput = option("A formulas file for the model auto.", default=None, rare=True)


class ParamNamesFile(Options, group=MODEL):
    """The file of parameter names."""

    param_names: ModelInput = option(
        "A TOML file of parameter names, for the report.", default=None, rare=True
    )


class ModelInputs(Reading, FormulasFile, group=MODEL):
    """What a model is made from besides timings."""

    coefficients: ModelInput = option(
        "The file of coefficients, for the model of that name.", default=None, rare=True
    )
    model_options: ModelOptions = option(
        "An option of the model, as `rewritelog models NAME` lists them; on the command line, "
        "those of built-in models are flags too.",
        default=None, flag="--model-option", metavar="NAME=VALUE", rare=True,
    )  # fmt: skip

    def __post_init__(self) -> None:
        super().__post_init__()
        settle(self, model_options=self.model_options or {})
        if not isinstance(getattr(self, "model", None), str | None):
            for name in ("model_options", "formulas", "coefficients"):
                if is_given(getattr(self, name)):
                    raise UsageError(f"{spelled(name)} is for a model by name, not for a Model")


RecvPolicy: TypeAlias = Literal["shift", "keep"]
SpreadName: TypeAlias = Literal["none", "residual"]
TotalName: TypeAlias = Literal["measured", "typical"]
OptionalModel: TypeAlias = Annotated[
    As["str | Model[Any] | Fitted | None", "str | Model[Any] | None"],
    Kind(
        "commands.durations:to_model",
        shown="str | Model[Any] | FittedModel | None",
        use="text",
        error="ModelError",
    ),
]
DilationsByName: TypeAlias = Annotated[
    As["Mapping[str, float] | Iterable[tuple[str, float]] | None", "tuple[tuple[str, float], ...]"],
    Kind(
        "options:factors", several=True, nothing=(), shown="Mapping[str, float] | None", use="text"
    ),
]
OptionalFitted: TypeAlias = Annotated[
    As["Fitted | PathLike | None", "Fitted | None"],
    Kind("timings.read:to_fitted", shown="FittedModel | PathLike | None", error="ModelError"),
]


@dataclass(frozen=True)
class DilationRules:
    """The general dilation factor, and factors for certain names."""

    factor: float = 1.0
    by_name: tuple[tuple[str, float], ...] = ()
    """Pairs of a pattern with `*` wildcards and a factor; the last match wins."""

    def factor_for(self, name: str) -> float:
        """Return the factor of a name."""
        return last_match(self.by_name, name, self.factor)


NO_DILATION = DilationRules()


def to_model(model: object, what: str) -> object:
    """Return a model or its name; raise `UsageError` for a file, `UsageTypeError` otherwise."""
    if isinstance(model, os.PathLike) or (isinstance(model, str) and model.endswith(".json")):
        fitted = spelled("fitted", str(model))
        raise UsageError(f"{what} {model}: is a file, not the name of a model: write {fitted}")
    if not isinstance(model, str):
        from rewritelog.models.base import Model

        if not isinstance(model, Model):
            kind = type(model).__name__
            raise UsageTypeError(f"{what} must be a name or a Model, not {kind}")
    return model


class ModelAndDilation(Options, group=MODEL):
    """A model, and the factor for what it does not cover."""

    timings: OptionalTimings = option(
        "Files of timing lines; - is standard input.", default=None, metavar="FILE..."
    )
    model: OptionalModel = option(
        f"{MODEL_HELP} [default: auto with timings, else constant].",
        default=None, metavar="NAME", complete="model",
    )  # fmt: skip
    fitted: OptionalFitted = option("A model file, instead of a model and timings.", default=None)
    dilation: float | None = option(
        "Factor on durations that no model covers [default: 1].",
        default=None, metavar="FACTOR", above=0, decides=True,
    )  # fmt: skip
    speedup: float | None = option(
        "The inverse of a dilation: 2 instead of 0.5.",
        default=None, metavar="FACTOR", above=0, reported=False,
    )  # fmt: skip
    dilation_for: DilationsByName = option(
        "The dilation of SEBs of that name (* matches anything); the last match wins.",
        default=None, metavar="NAME=FACTOR", decides=True,
    )  # fmt: skip


_OF_A_FIT = (
    "model", "timings", "formulas", "coefficients", "param_names", "clock_hz", "model_options"
)  # fmt: skip
"""Options that cannot be combined with a fitted model."""


class DurationOptions(Jobs, ParamsFolder, ParamNamesFile, ModelInputs, ModelAndDilation):
    """What determines the new durations of SEBs; raises `UsageError` for invalid values."""

    names_groups: ClassVar[bool] = False
    """Whether reports name nodes of traces by their groups."""

    @property
    def dilations(self) -> DilationRules:
        """The factors for durations that no model covers."""
        return DilationRules(1.0 if self.dilation is None else self.dilation, self.dilation_for)

    @property
    def model_name(self) -> str:
        """The name of the model in reports: its own, or that of the model file."""
        if self.fitted is not None:
            return self.fitted.name
        if self.model is None:
            return "constant" if self.timings is None else "auto"
        return self.model if isinstance(self.model, str) else type(self.model).__name__

    def __post_init__(self) -> None:
        given = spelled("fitted")
        if not isinstance(self.model, str | None):
            from rewritelog.models.fitted import Fitted

            if isinstance(fitted := self.model, Fitted):
                if self.fitted is not None:
                    raise UsageError("give one fitted model, as model or as fitted")
                settle(self, model=None, fitted=fitted)
                given = "a fitted model"
        for name in _OF_A_FIT if self.fitted is not None else ():
            if is_given(getattr(self, name)):
                named = "model options" if name == "model_options" else spelled(name)
                raise UsageError(f"{given} cannot be combined with {named}")
        super().__post_init__()
        if self.speedup is not None:
            if self.dilation is not None:
                raise UsageError(f"give {spelled('dilation')} or {spelled('speedup')}, not both")
            settle(self, dilation=1 / self.speedup, speedup=None)
            check_factor("the dilation", self.dilation)

    def as_recorded(self) -> Self:
        """Return the options without what gives SEBs new durations."""
        none: dict[str, Any] = dict.fromkeys(("fitted", *_OF_A_FIT, "dilation", "dilation_for"))
        return replace(self, **none)


class OutputOptions(NodeChoice, Flush, Force, DurationOptions, group=OUTPUT):
    """The options of commands that write logs or traces with new durations."""

    copy_params: bool = option(
        "Also copy the param.P files to OUT.", default=False, rare=True, for_traces=False
    )

    def check_unused(self, what: str) -> None:
        """Raise `UsageError` if an option is given for an output, `what`, that is not written."""
        for name in ("force", "copy_params", "no_flush"):
            if getattr(self, name):
                raise UsageError(f"{spelled(name, True)} is for {what}")


class RewriteOptions(OutputOptions, group=ADVANCED):
    """The options of a rewrite; raises `UsageError` for invalid ones."""

    roofline: bool = option(
        "Chakra traces: ASTRA-sim runs with roofline-enabled; warn of the share that it replaces.",
        default=False, rare=True, for_traces=True,
    )  # fmt: skip
    recv: RecvPolicy = option(
        "A message's recvTime: shift it with sendTime, or keep it unless sendTime passes it.",
        default="shift", rare=True, decides=True, for_traces=False,
    )  # fmt: skip
    total: TotalName = option(
        "measured: predicted durations add up to the measured machine's sum, rare long calls "
        "included; typical: each is the usual duration of one call.",
        default="measured", rare=True, decides=True,
    )  # fmt: skip
    spread: SpreadName = option(
        "none: equal calls have the same predicted duration; residual: durations vary as held-out "
        "timing lines do.",
        default="none", rare=True, decides=True, for_traces=False,
    )  # fmt: skip
    seed: int | None = option(
        "Seed of the residual spread, and of the draw of the model sampled [default: 1].",
        default=None, metavar="N", least=0, most=(1 << 64) - 1, rare=True, decides=True,
    )  # fmt: skip

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.seed is None and self.spread == "residual":
            settle(self, seed=1)
        if self.seed is not None and self.model == "sampled":
            seed = self.model_options.get("seed", self.seed)
            if self.spread == "none" and str(seed) != str(self.seed):
                raise UsageError(f"{spelled('seed')} and the model option 'seed' differ")
            settle(self, model_options={"seed": self.seed, **self.model_options})
        elif self.seed is not None and self.spread == "none":
            uses = f"{spelled('spread', 'residual')} and {spelled('model', 'sampled')}"
            raise UsageError(f"{spelled('seed')} is for {uses}")


NetworkLike: TypeAlias = Annotated["Network | str", Kind(use="text")]
Machine: TypeAlias = Annotated[
    As["PathLike | None", "Network | None"], Kind("replaying.network:to_machine")
]
"""A machine file, or the name of one that comes with rewritelog."""
Time: TypeAlias = Annotated[NumberOrText, Kind("units:seconds", use="text", metavar="TIME")]
Size: TypeAlias = Annotated[NumberOrText, Kind("units:size_bytes", use="text", metavar="SIZE")]
Rate: TypeAlias = Annotated[NumberOrText, Kind("units:bytes_per_s", use="text", metavar="RATE")]
NETWORK = "Network"
"""The heading of the network options in the help."""
QUANTITIES = ("latency", "bandwidth", "cost_per_packet", "packet_size", "node_latency")


class NetworkOptions(Options, group=NETWORK):
    """A network: a `Network`, a machine file, or its quantities, as numbers or with units."""

    network: NetworkLike | None = option(
        "log: each message keeps its recorded transit time [default if no network is given].",
        default=None, metavar="log", rare=True,
    )  # fmt: skip
    machine: Machine = option(
        "A machine by name, as in alps, or its TOML file; latency, bandwidth, … override it.",
        default=None, complete="machine",
    )  # fmt: skip
    latency: Time = option("Latency between nodes, as in 1us.", default=None)
    bandwidth: Rate = option("Bandwidth between nodes, as in 10GB/s.", default=None)
    cost_per_packet: Time = option("Time for each packet.", default=None, rare=True)
    packet_size: Size = option("Size of a packet.", default=None, rare=True)
    node_latency: Time = option(
        "Latency from one worker thread of a node to another [default: 0].",
        default=None, rare=True, for_traces=False,
    )  # fmt: skip

    def read_network(self, swept: Mapping[str, float] | None = None) -> Network:
        """Return the network.

        `swept` has quantities that a sweep replaces at each point, by the names of the options.
        """
        from rewritelog.replaying.network import Network

        named = {name.replace("_", "-"): getattr(self, name) for name in QUANTITIES}
        quantities = {name: value for name, value in named.items() if value is not None}
        if isinstance(self.network, Network):
            if quantities or self.machine is not None:
                raise UsageError("give a Network, or its quantities, not both")
            return self.network
        if self.network is not None and str(self.network) != "log":
            raise UsageError(
                f"{spelled('network')} must be log, not {self.network!r}; {spelled('latency')} "
                "describes other networks"
            )
        for name in ("machine", *QUANTITIES[:-1]):  # node_latency has no recorded value
            if self.network == "log" and getattr(self, name) is not None:
                raise UsageError(f"{spelled('network', 'log')} takes no {spelled(name)}")
        quantities |= swept or {}
        network = (self.machine or Network()).with_quantities(quantities)
        if "packet-size" in quantities and not (
            network.cost_per_packet or "cost-per-packet" in quantities
        ):
            raise UsageError(f"{spelled('packet_size')} needs {spelled('cost_per_packet')}")
        return network

    @property
    def describes_network(self) -> bool:
        """Whether any option is given."""
        names = ("network", "machine", *QUANTITIES)
        return any(getattr(self, name) is not None for name in names)
