"""How evenly the work of a log set is spread over its PEs, before and after a rewrite."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from rewritelog.text import json_number


@dataclass(frozen=True)
class Largest:
    """The largest busy time of some PEs; of equal ones that of the lowest PE."""

    seconds: float = 0.0
    pe: int | None = None

    def plus(self, other: Largest) -> Largest:
        """Return the larger of both."""
        return max(self, other, key=Largest._rank)

    def _rank(self) -> tuple[float, float]:
        return self.seconds, float("-inf") if self.pe is None else -self.pe

    @classmethod
    def of(cls, found: Iterable[tuple[float, int]]) -> Largest:
        """Return the largest of pairs of seconds and PE."""
        return max((cls(seconds, pe) for seconds, pe in found), key=cls._rank, default=cls())


NO_TIME = Largest()


@dataclass(frozen=True)
class BusyTime:
    """The busy times of all PEs: a PE's is the sum of the durations of its SEBs."""

    largest: Largest
    mean_s: float

    @property
    def imbalance(self) -> float | None:
        """The largest busy time in units of their mean; None where there is no time."""
        return json_number(self.largest.seconds / self.mean_s) if self.mean_s > 0 else None

    def to_json(self) -> dict[str, Any]:
        """Return the numbers in types that JSON has."""
        return {
            "largest_s": json_number(self.largest.seconds),
            "largest_pe": self.largest.pe,
            "mean_s": json_number(self.mean_s),
            "imbalance": self.imbalance,
        }
