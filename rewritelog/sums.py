"""Exact sums: what compensated sums of parts of a log are added up with."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class ExactSum:
    """A sum of non-negative floats without rounding, independent of their order.

    The parts are an expansion as in J. Shewchuk, "Adaptive precision floating-point arithmetic and
    fast robust geometric predicates" (1997). A sum too large for a float is infinite.
    """

    parts: tuple[float, ...] = ()

    def plus(self, values: Iterable[float]) -> ExactSum:
        """Return the sum with more values added."""
        items = [*self.parts, *values]
        parts = []
        try:
            while (rest := math.fsum(items)) != 0.0:
                if not math.isfinite(rest):
                    return _TOO_LARGE
                parts.append(rest)
                items.append(-rest)
        except OverflowError:
            return _TOO_LARGE
        return ExactSum(tuple(parts))

    def __float__(self) -> float:
        return math.fsum(self.parts)


NOTHING = ExactSum()
_TOO_LARGE = ExactSum((math.inf,))
