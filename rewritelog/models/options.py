"""The options of the built-in models, declared once; no heavy imports, the CLI reads them first.

A field's type (bool, int, float, str or a Literal of strings), default and metadata `help` are
all that a flag, a saved report and the docs need.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal


def option(default: Any, text: str) -> Any:
    """Declare a field of an options dataclass, with the help text of its flag."""
    return field(default=default, metadata={"help": text})


@dataclass(frozen=True)
class NoOptions:
    """The options of a model that has none."""


@dataclass(frozen=True)
class LeastSquaresOptions:
    """What the least-squares model may be told."""

    basis: Literal["quadratic", "linear"] = option(
        "quadratic", "Terms of the fit: 1, p and p² of each parameter, or 1 and p."
    )
    exact_match: bool = option(
        False, "Use the mean of identically parameterised samples in place of the fit."
    )


@dataclass(frozen=True)
class SampledOptions(LeastSquaresOptions):
    """What the sampled model may be told."""

    fraction: float = option(0.02, "Share of each event's timing lines to fit to, in (0, 1].")
    seed: int = option(1, "Seed of the draw; the same seed draws the same lines everywhere.")
