"""Groups of options that several commands share, each declared once as a dataclass."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from rewritelog.cli.arguments import (
    DILATION,
    MODEL,
    ClockHz,
    Coefficients,
    Formulas,
    ModelName,
    ModelOption,
    ParamNames,
    Params,
    Strict,
    TimingsOption,
)
from rewritelog.cli.console import Outcome
from rewritelog.cli.model_options import add_pairs, split_pairs
from rewritelog.cli.standard import with_parameters
from rewritelog.errors import UsageError
from rewritelog.rewriting.options import RewriteOptions, check_factor

if TYPE_CHECKING:
    from rewritelog.replaying.network import Network

NETWORK = "Network"


@dataclass(frozen=True)
class DurationGroup:
    """The options that determine the new durations of SEBs."""

    timings: TimingsOption = None
    model: ModelName = None
    fitted: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            rich_help_panel=MODEL,
            help="A model file of `rewritelog fit -o`, instead of a model and timings.",
        ),
    ] = None
    formulas: Formulas = None
    param_names: ParamNames = None
    coefficients: Coefficients = None
    params: Params = None
    clock_hz: ClockHz = None
    dilation: Annotated[
        float | None,
        typer.Option(
            metavar="FACTOR",
            rich_help_panel=DILATION,
            help="Factor on durations that no model covers [default: 1].",
        ),
    ] = None
    speedup: Annotated[
        float | None,
        typer.Option(
            metavar="FACTOR",
            rich_help_panel=DILATION,
            help="The inverse of --dilation: 2 is --dilation 0.5.",
        ),
    ] = None
    dilation_for: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=FACTOR",
            rich_help_panel=DILATION,
            help="The dilation of SEBs of that name (* matches anything); repeatable, the last "
            "match wins.",
        ),
    ] = None
    strict: Strict = False
    model_option: ModelOption = None

    def options(self, model_options: dict[str, Any]) -> RewriteOptions:
        """Return the options of a rewrite, including those set by flags of models."""
        add_pairs(model_options, self.model_option)
        return RewriteOptions(
            model=self.model,
            model_options=model_options,
            timings=tuple(self.timings or ()),
            fitted=self.fitted,
            formulas=self.formulas,
            param_names=self.param_names,
            coefficients=self.coefficients,
            params=self.params,
            clock_hz=self.clock_hz,
            strict=self.strict,
            dilation=self._factor(),
            dilation_for=self._factors(),
        )

    def _factor(self) -> float | None:
        """Return the factor of --dilation, or the inverse of --speedup; None without either."""
        if self.speedup is None:
            return self.dilation
        if self.dilation is not None:
            raise UsageError("give --dilation or --speedup, not both")
        check_factor("the speedup", self.speedup)
        return 1 / self.speedup

    def _factors(self) -> tuple[tuple[str, float], ...]:
        """Return the patterns and factors of --dilation-for."""
        factors = []
        for name, text in split_pairs(self.dilation_for or [], "--dilation-for"):
            try:
                factors.append((name, float(text)))
            except ValueError as error:
                message = f"--dilation-for {name}={text}: {text!r} is not a number"
                raise UsageError(message) from error
        return tuple(factors)


@dataclass(frozen=True)
class NetworkGroup:
    """The options of the network that delays messages in a replay."""

    network: Annotated[
        str | None,
        typer.Option(
            metavar="log",
            rich_help_panel=NETWORK,
            help="log: each message keeps its recorded transit time [default without --latency, "
            "--bandwidth and --machine].",
        ),
    ] = None
    machine: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            rich_help_panel=NETWORK,
            help="A TOML file with the quantities below, which other options override.",
        ),
    ] = None
    latency: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", rich_help_panel=NETWORK, help="Latency between nodes, as in 1us."
        ),
    ] = None
    bandwidth: Annotated[
        str | None,
        typer.Option(
            metavar="RATE", rich_help_panel=NETWORK, help="Bandwidth between nodes, as in 10GB/s."
        ),
    ] = None
    cost_per_packet: Annotated[
        str | None,
        typer.Option(metavar="TIME", rich_help_panel=NETWORK, help="Time for each packet."),
    ] = None
    packet_size: Annotated[
        str | None,
        typer.Option(metavar="SIZE", rich_help_panel=NETWORK, help="Size of a packet."),
    ] = None
    node_latency: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            rich_help_panel=NETWORK,
            help="Latency from one worker thread of a node to another [default: 0].",
        ),
    ] = None

    def read(self, swept: Mapping[str, str] | None = None) -> Network:
        """Return the network, from the machine file if one is given.

        `swept` has quantities that a sweep replaces at each point, by the names of the options;
        an option that is given has precedence.
        """
        from rewritelog.replaying.network import Network, read_machine  # noqa: PLC0415

        quantities = dataclasses.asdict(self)
        chosen, machine = quantities.pop("network"), quantities.pop("machine")
        if chosen not in (None, "log"):
            raise UsageError(
                f"--network must be log, not {chosen!r}; --latency describes other networks"
            )
        if chosen == "log":
            refuse(
                "--network log",
                {"--machine": machine, "--latency": self.latency, "--bandwidth": self.bandwidth},
            )
        base = Network() if machine is None else read_machine(machine)
        given = {n.replace("_", "-"): text for n, text in quantities.items() if text is not None}
        return base.with_quantities({**(swept or {}), **given})


def refuse(what: str, others: dict[str, Any]) -> None:
    """Raise `UsageError` if any of these options is given."""
    given = [name for name, value in others.items() if value]
    if given:
        raise UsageError(f"{what} takes no {given[0]}")


def with_groups(
    *, without: str = ""
) -> Callable[[Callable[..., Outcome | None]], Callable[..., Outcome | None]]:
    """Return a decorator that gives a command an option for each field of its groups.

    The groups are its parameters of dataclass types; `without` names a field that the command
    does not take.
    """

    def decorator(command: Callable[..., Outcome | None]) -> Callable[..., Outcome | None]:
        parameters: list[inspect.Parameter] = []
        groups: dict[str, tuple[type, list[str]]] = {}
        for parameter in inspect.signature(command, eval_str=True).parameters.values():
            kind = parameter.annotation
            if not (isinstance(kind, type) and dataclasses.is_dataclass(kind)):
                parameters.append(parameter)
                continue
            taken = [field for field in dataclasses.fields(kind) if field.name != without]
            groups[parameter.name] = kind, [field.name for field in taken]
            hints = get_type_hints(kind, include_extras=True)
            parameters += [
                parameter.replace(name=one.name, default=one.default, annotation=hints[one.name])
                for one in taken
            ]

        @wraps(command)
        def grouped(**given: Any) -> Outcome | None:
            made = {
                name: kind(**{field: given.pop(field) for field in fields})
                for name, (kind, fields) in groups.items()
            }
            return command(**given, **made)

        return with_parameters(grouped, parameters)

    return decorator
