"""The distribution of busy time over the PEs, before and after a rewrite."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rewritelog.arrays import Floats, Ints
from rewritelog.text import NO_VALUE, json_number, ratio_text, time_column


@dataclass(frozen=True)
class Largest:
    """The largest busy time of some PEs; of equal times that of the lowest PE."""

    seconds: float = 0.0
    pe: int | None = None

    @classmethod
    def of(cls, pes: Ints, seconds: Floats) -> Largest:
        """Return the largest of the busy times of PEs; 0 without any PE."""
        order = np.lexsort((pes, -seconds))
        return cls(float(seconds[order[0]]), int(pes[order[0]])) if len(order) else cls()


@dataclass(frozen=True)
class BusyTime:
    """The busy times of all PEs, the sums of the durations of their SEBs."""

    largest: Largest
    mean_s: float

    @property
    def imbalance(self) -> float | None:
        """The largest busy time divided by the mean; None if all are 0."""
        return json_number(self.largest.seconds / self.mean_s) if self.mean_s > 0 else None

    def cells(self) -> tuple[str, str, str, str]:
        """Return largest, its PE, mean and imbalance as cells of a table."""
        pe = NO_VALUE if self.largest.pe is None else str(self.largest.pe)
        largest, mean = time_column([self.largest.seconds, self.mean_s])
        return largest, pe, mean, ratio_text(self.imbalance)

    def to_json(self) -> dict[str, Any]:
        """Return the numbers as a JSON object."""
        return {
            "largest_s": json_number(self.largest.seconds),
            "largest_pe": self.largest.pe,
            "mean_s": json_number(self.mean_s),
            "imbalance": self.imbalance,
        }
