"""The options of the built-in models, declared once; no heavy imports, the CLI reads them first.

A field's type (bool, int, float, str or a Literal of strings), default and metadata `help` are
all that a flag, a saved report and the docs need.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

SampleMethod: TypeAlias = Literal["design", "coverage", "random"]
"""How SEBs to be timed are chosen among those of an event."""


def option(default: Any, text: str) -> Any:
    """Declare a field of an options dataclass, with the help text of its flag."""
    return field(default=default, metadata={"help": text})


@dataclass(frozen=True)
class NoOptions:
    """The options of a model that has none."""


@dataclass(frozen=True)
class CoefficientsOptions:
    """What the coefficients model may be told."""

    unit_s: float = option(
        1.0, "Seconds in one unit of what the coefficients give: 1 / clock where it is cycles."
    )


@dataclass(frozen=True)
class FitOptions:
    """What every model that fits may be told."""

    weights: Literal["relative", "uniform"] = option(
        "relative", "Whether errors count in per cent of the measured time, or in seconds."
    )
    loss: Literal["huber", "squares"] = option(
        "huber", "Whether outliers count less (Huber's loss), or by their square."
    )
    exact_match: Literal["auto", "always", "never"] = option(
        "auto",
        "Whether the mean of identically parameterised samples replaces the fit: as far as their "
        "number and spread earn it, always, or never.",
    )


@dataclass(frozen=True)
class AutoOptions(FitOptions):
    """What the automatic model may be told."""


@dataclass(frozen=True)
class CountersOptions(FitOptions):
    """What the model of performance counters may be told."""

    exact_match: Literal["auto", "always", "never"] = option(
        "never", "Whether the mean of samples with identical counters replaces the fit."
    )


@dataclass(frozen=True)
class LeastSquaresOptions(FitOptions):
    """What the least-squares model may be told; as it is, it is the ordinary one."""

    weights: Literal["relative", "uniform"] = option(
        "uniform", "Whether errors count in per cent of the measured time, or in seconds."
    )
    loss: Literal["huber", "squares"] = option(
        "squares", "Whether outliers count less (Huber's loss), or by their square."
    )
    basis: Literal["quadratic", "linear"] = option(
        "quadratic", "Terms of the fit: 1, p and p² of each parameter, or 1 and p."
    )


@dataclass(frozen=True)
class SampledOptions(FitOptions):
    """What the sampled model may be told."""

    fraction: float = option(0.02, "Share of each event's timing lines to fit to, in (0, 1].")
    seed: int = option(1, "Seed of the draw; the same seed draws the same lines everywhere.")
