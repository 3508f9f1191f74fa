"""A power law for each event: seconds = a · (p1 + offset)^b1 · (p2 + offset)^b2 · …"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rewritelog.errors import UsageError
from rewritelog.models.base import EventTimings, Floats, Model, ModelFit, Timings


@dataclass(frozen=True)
class PowerLawOptions:
    """The options of the model."""

    offset: float = field(
        default=1.0, metadata={"help": "Added to each parameter, so that 0 has a logarithm."}
    )
    least_samples: int = field(
        default=3, metadata={"help": "An event with fewer usable samples is not covered."}
    )


@dataclass(frozen=True)
class FittedPowerLaw(ModelFit):
    """log a, b1, b2, … of each event and number of parameters."""

    offset: float
    exponents: dict[tuple[str, int], Floats]

    def predict(self, event: str, params: Floats) -> Floats:
        """Return the seconds of each row; NaN where there is no fit or no logarithm."""
        law = self.exponents.get((event, params.shape[1]))
        if law is None:
            return np.full(len(params), np.nan)
        with np.errstate(all="ignore"):
            logs = np.full(len(params), law[0])
            for column, power in zip(params.T, law[1:], strict=True):
                logs += power * np.log(column + self.offset)
            seconds = np.exp(logs)
        return np.where(np.isfinite(seconds), seconds, np.nan)

    def describe(self) -> dict[str, Any]:
        """Return the fit for the JSON report."""
        return {
            "events": [
                {"event": event, "parameters": count, "log_a": law[0], "b": law[1:].tolist()}
                for (event, count), law in self.exponents.items()
            ]
        }

    def summary(self) -> tuple[str, ...]:
        """Return one line for each event."""
        lines = []
        for (event, _), (log_a, *powers) in self.exponents.items():
            factors = (f" (p{i} + {self.offset:g})^{b:.3g}" for i, b in enumerate(powers, 1))
            lines.append(f"{event}: seconds = {np.exp(log_a):.4g}" + "".join(factors))
        return tuple(lines)


class PowerLaw(Model[PowerLawOptions]):
    """Least squares on the logarithms of times and parameters."""

    Options = PowerLawOptions

    def __init__(self, options: PowerLawOptions) -> None:
        if options.offset < 0:
            raise UsageError(f"offset must not be negative, but is {options.offset}")
        super().__init__(options)

    def fit(self, timings: Timings) -> FittedPowerLaw:
        """Return the fit of every event with enough samples."""
        exponents = {}
        for samples in timings:
            law = self._fit_event(samples)
            if law is not None:
                exponents[samples.event, samples.params.shape[1]] = law
        return FittedPowerLaw(self.options.offset, exponents)

    def _fit_event(self, samples: EventTimings) -> Floats | None:
        """Return log a, b1, b2, …; None with too few samples that have a logarithm."""
        shifted = samples.params + self.options.offset
        usable = (samples.seconds > 0) & (shifted > 0).all(axis=1)
        if np.count_nonzero(usable) < max(1, self.options.least_samples):
            return None
        columns = np.column_stack((np.ones(np.count_nonzero(usable)), np.log(shifted[usable])))
        solution: Floats = np.linalg.lstsq(columns, np.log(samples.seconds[usable]), rcond=None)[0]
        return solution
