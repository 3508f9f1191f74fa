"""What the blocks add up to: counts, exact sums, and the first few places of each oddity."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rewritelog.kernels.account import FIGURES, SUMS, Figure, RecordState, Sum

EXAMPLES_SHOWN = 5


@dataclass(frozen=True)
class ExactSum:
    """A sum of floats without any rounding, whatever the order they come in (after Shewchuk)."""

    parts: tuple[float, ...] = ()

    def plus(self, values: Iterable[float]) -> ExactSum:
        """Return the sum with more values added."""
        items = [*self.parts, *values]
        parts = []
        while (rest := math.fsum(items)) != 0.0:
            parts.append(rest)
            if not math.isfinite(rest):
                break
            items.append(-rest)
        return ExactSum(tuple(parts))

    def __float__(self) -> float:
        return math.fsum(self.parts)


@dataclass
class EventFigures:
    """The param records of one event."""

    states: dict[RecordState, int] = field(default_factory=dict)
    exact: int = 0
    negative: int = 0
    outside: int = 0
    old_s: ExactSum = ExactSum()
    new_s: ExactSum = ExactSum()

    def add(self, other: EventFigures) -> None:
        """Add the figures of another block."""
        for state, count in other.states.items():
            self.states[state] = self.states.get(state, 0) + count
        self.exact += other.exact
        self.negative += other.negative
        self.outside += other.outside
        self.old_s = self.old_s.plus(other.old_s.parts)
        self.new_s = self.new_s.plus(other.new_s.parts)


@dataclass
class BlockFigures:
    """What was counted and summed in one block, or in all of them."""

    counts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(FIGURES, dtype=np.int64))
    sums: tuple[ExactSum, ...] = (ExactSum(),) * (SUMS // 2)
    events: dict[str, EventFigures] = field(default_factory=dict)
    places: dict[Figure, list[tuple[int, int]]] = field(default_factory=dict)
    """PE and SEB of the first few of a figure."""
    record_places: dict[RecordState, list[tuple[int, int]]] = field(default_factory=dict)
    """PE and SEB of the first few records of a state."""
    faulty_lines: int = 0
    line_faults: list[str] = field(default_factory=list)
    seqno_differs: int = 0
    seqno_examples: list[str] = field(default_factory=list)
    size_bytes: int = 0

    def count(self, figure: Figure) -> int:
        """Return how often something was counted."""
        return int(self.counts[figure])

    def seconds(self, which: Sum) -> float:
        """Return a sum of durations in seconds, rounded once."""
        return float(self.sums[which // 2])

    def add(self, other: BlockFigures) -> None:
        """Add the figures of the next block; examples stay those of the first blocks."""
        self.counts = self.counts + other.counts
        self.sums = tuple(
            mine.plus(more.parts) for mine, more in zip(self.sums, other.sums, strict=True)
        )
        for name, event in other.events.items():
            self.events.setdefault(name, EventFigures()).add(event)
        for figure, places in other.places.items():
            _extend(self.places.setdefault(figure, []), places)
        for state, places in other.record_places.items():
            _extend(self.record_places.setdefault(state, []), places)
        self.faulty_lines += other.faulty_lines
        _extend(self.line_faults, other.line_faults)
        self.seqno_differs += other.seqno_differs
        _extend(self.seqno_examples, other.seqno_examples)
        self.size_bytes += other.size_bytes


def _extend(shown: list[Any], more: list[Any]) -> None:
    shown.extend(more[: EXAMPLES_SHOWN - len(shown)])
