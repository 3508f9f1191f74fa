"""How far predicted times are from measured ones, in a few numbers."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from rewritelog.arrays import Flags, Floats


@dataclass(frozen=True)
class Score:
    """The errors of the predictions of some timing lines; None where there is nothing to tell."""

    lines: int
    predicted: int
    """Lines that the model has a prediction for; all errors are theirs."""
    mean_relative_error: float | None
    """Mean of |predicted − measured| / measured over measured times above 0."""
    median_relative_error: float | None
    sum_error: float | None
    """Σ predicted / Σ measured − 1."""
    later_sum_error: float | None
    """The same without each event's first line, whose time is often not like the others'."""
    r2: float | None
    """Share of the variation of the measured times that is explained."""
    negative: int
    """Lines for which the fit gives a time below zero; it counts as zero."""

    def to_json(self) -> dict[str, Any]:
        """Return the numbers in types that JSON has."""
        return asdict(self)


@dataclass(frozen=True)
class Pairs:
    """Measured and predicted times of lines, one array entry each."""

    measured_s: Floats
    predicted_s: Floats
    """Never below zero; NaN where there is no prediction."""
    first: Flags
    """True for the first line of an event."""
    negative: Flags
    """True where the fit gave less than zero."""

    def part(self, rows: Any) -> Pairs:
        """Return the pairs that a mask or places select."""
        return Pairs(
            self.measured_s[rows], self.predicted_s[rows], self.first[rows], self.negative[rows]
        )

    @classmethod
    def joined(cls, parts: list[Pairs]) -> Pairs:
        """Return all parts one after the other."""
        return cls(
            np.concatenate([np.zeros(0), *(part.measured_s for part in parts)]),
            np.concatenate([np.zeros(0), *(part.predicted_s for part in parts)]),
            np.concatenate([np.zeros(0, np.bool_), *(part.first for part in parts)]),
            np.concatenate([np.zeros(0, np.bool_), *(part.negative for part in parts)]),
        )

    def relative_errors(self) -> Floats:
        """Return |predicted − measured| / measured; NaN without a prediction or a time above 0."""
        with np.errstate(all="ignore"):
            errors = np.abs(self.predicted_s - self.measured_s) / self.measured_s
        return np.where((self.measured_s > 0) & np.isfinite(errors), errors, np.nan)

    def score(self) -> Score:
        """Return the errors."""
        known = self.part(np.isfinite(self.predicted_s) & np.isfinite(self.measured_s))
        errors = known.relative_errors()
        errors = errors[~np.isnan(errors)]
        return Score(
            lines=len(self.measured_s),
            predicted=len(known.measured_s),
            mean_relative_error=_finite(errors.mean()) if len(errors) else None,
            median_relative_error=_finite(np.median(errors)) if len(errors) else None,
            sum_error=known.sum_error(),
            later_sum_error=known.part(~known.first).sum_error(),
            r2=_explained(known.measured_s, known.predicted_s),
            negative=int(np.count_nonzero(known.negative)),
        )

    def sum_error(self) -> float | None:
        """Return Σ predicted / Σ measured − 1."""
        total = float(self.measured_s.sum())
        return _finite(self.predicted_s.sum() / total - 1) if total > 0 else None


def _explained(measured: Floats, predicted: Floats) -> float | None:
    """Return R², None where the measured times do not vary."""
    if not len(measured):
        return None
    with np.errstate(over="ignore"):
        variation = ((measured - measured.mean()) ** 2).sum()
        unexplained = ((predicted - measured) ** 2).sum()
    return _finite(1 - unexplained / variation) if variation > 0 else None


def _finite(value: Any) -> float | None:
    """Return a number as JSON can hold it: None for what is not finite."""
    return float(value) if math.isfinite(value) else None


def percent(value: float | None, sign: str = "") -> str:
    """Return a share in per cent as tables show it; `-` for none."""
    return "-" if value is None else f"{value:{sign}.2%}"
