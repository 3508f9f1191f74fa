"""The options of the built-in models; without heavy imports, because the CLI reads them first.

Command-line flags, saved reports and the docs are derived from each field's type (bool, int, float,
str or a Literal of strings), default, and metadata `help`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal


def option(default: Any, text: str) -> Any:
    """Declare a field of an options dataclass, with the help text of its flag."""
    return field(default=default, metadata={"help": text})


@dataclass(frozen=True)
class NoOptions:
    """The options of a model without options."""


@dataclass(frozen=True)
class CoefficientsOptions:
    """Options of the coefficients model."""

    unit_s: float = option(
        1.0, "Seconds per unit of the results: 1 / clock rate if they are in cycles."
    )


@dataclass(frozen=True)
class FitOptions:
    """Options of every model that fits."""

    weights: Literal["relative", "uniform"] = option(
        "relative", "Whether errors count relative to the measured time, or in seconds."
    )
    loss: Literal["huber", "squares"] = option(
        "huber",
        "Whether residuals count by Huber's loss, which limits outliers, or by their square.",
    )
    exact_match: Literal["auto", "always", "never"] = option(
        "auto",
        "Whether the mean of samples with identical parameters replaces the fit: weighted by their "
        "number and variation, always, or never.",
    )


@dataclass(frozen=True)
class AutoOptions(FitOptions):
    """Options of the automatic model."""

    correction: Literal["auto", "none"] = option(
        "auto",
        "Whether a formula is corrected by a smooth function of the parameters where that clearly "
        "predicts held-out samples better, or never.",
    )


@dataclass(frozen=True)
class CountersOptions(FitOptions):
    """Options of the model of performance counters."""

    exact_match: Literal["auto", "always", "never"] = option(
        "never", "Whether the mean of samples with identical counters replaces the fit."
    )


@dataclass(frozen=True)
class LeastSquaresOptions(FitOptions):
    """Options of the least-squares model; the defaults make it the ordinary one."""

    weights: Literal["relative", "uniform"] = option(
        "uniform", "Whether errors count relative to the measured time, or in seconds."
    )
    loss: Literal["huber", "squares"] = option(
        "squares",
        "Whether residuals count by Huber's loss, which limits outliers, or by their square.",
    )
    basis: Literal["quadratic", "linear"] = option(
        "quadratic", "Terms of the fit: 1, p and p² of each parameter, or 1 and p."
    )


@dataclass(frozen=True)
class SampledOptions(FitOptions):
    """Options of the sampled model."""

    fraction: float = option(0.02, "Share of each event's timing lines to fit to, in (0, 1].")
    seed: int = option(1, "Seed of the draw; the same seed draws the same lines everywhere.")
