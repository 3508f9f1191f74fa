"""Counts and sums of rewritten traces."""

from __future__ import annotations

from dataclasses import dataclass, field

from rewritelog.rewriting.statistics import EventStatistics, total_of
from rewritelog.sums import NOTHING, ExactSum


@dataclass
class TypeSums:
    """The events of a type, and their seconds before and after."""

    events: int = 0
    old_s: ExactSum = NOTHING
    new_s: ExactSum = NOTHING


@dataclass
class TraceStatistics:
    """The counts and sums of one unit, or of all."""

    events: dict[str, EventStatistics] = field(default_factory=dict)
    types: dict[str, TypeSums] = field(default_factory=dict)
    by_exact: int = 0
    by_model: int = 0
    changed: int = 0
    chosen: int = 0
    rounded_s: float = 0.0
    """The most by which the duration of one event was rounded."""
    off_s: float = 0.0
    """The most by which the sum of a unit was rounded."""
    vanished: int = 0
    """The events whose new duration was rounded to 0."""
    on_device_s: float = 0.0
    """The new seconds of what devices compute."""
    size_bytes: int = 0
    busy: list[tuple[int, float, float]] = field(default_factory=list)
    """Rank, and its seconds before and after."""
    matched_patterns: frozenset[str] = frozenset()

    def add(self, other: TraceStatistics) -> None:
        """Add those of another unit."""
        for name, event in other.events.items():
            self.events.setdefault(name, EventStatistics()).add(event)
        for name, sums in other.types.items():
            own = self.types.setdefault(name, TypeSums())
            own.events += sums.events
            own.old_s, own.new_s = (
                total_of([own.old_s, sums.old_s]),
                total_of([own.new_s, sums.new_s]),
            )
        for name in (
            "by_exact",
            "by_model",
            "changed",
            "chosen",
            "vanished",
            "size_bytes",
            "on_device_s",
        ):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.rounded_s = max(self.rounded_s, other.rounded_s)
        self.off_s = max(self.off_s, other.off_s)
        self.busy += other.busy
        self.matched_patterns |= other.matched_patterns
