"""What the blocks add up to: counts, exact sums, and the first few places of each oddity."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from itertools import islice
from operator import itemgetter
from typing import Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from rewritelog.kernels.sums import NOTHING, ExactSum
from rewritelog.rewriting.kernels.interface import FIGURES, SUMS, BlockCount, RecordState, Sum

EXAMPLES_SHOWN = 5

Begin = tuple[int, int]
"""Where a block begins: its file's number and the offset in it."""
Item = TypeVar("Item")

_ROUNDING = 1e-15
"""The sums of timelines are rounded by less than this share."""


class Mark(IntEnum):
    """What a record may be besides its state."""

    EXACT = 0
    """Its duration is that of samples with the same parameters."""
    NEGATIVE = 1
    """The fit gives it less than zero."""
    OUTSIDE = 2
    """A parameter lies outside the range of the samples."""
    REMOTE = 3
    """Within every range, but further out than any sample by the fit's leverage."""
    NOT_SPREAD = 4
    """To be spread, but the model has no residuals for it."""
    UNCOUNTED = 5
    """Not covered by a model of counters, as it has none."""


class EventSums(NamedTuple):
    """Sums over the brackets of one event with one number of parameters, in seconds."""

    old_s: ExactSum = NOTHING
    new_s: ExactSum = NOTHING
    dilated_old_s: ExactSum = NOTHING
    """Of those that the model does not cover."""
    dilated_new_s: ExactSum = NOTHING
    predicted_s: ExactSum = NOTHING
    """What the model predicts, before any spread."""
    squares_s2: ExactSum = NOTHING
    """The squares of the same."""

    def plus(self, other: EventSums) -> EventSums:
        """Return both together."""
        return EventSums(*(a.plus(b.parts) for a, b in zip(self, other, strict=True)))


@dataclass
class EventFigures:
    """The param records of one event."""

    states: dict[RecordState, int] = field(default_factory=dict)
    marks: dict[Mark, int] = field(default_factory=dict)
    sums: dict[int, EventSums] = field(default_factory=dict)
    """By the number of parameters."""

    @property
    def whole(self) -> EventSums:
        """Return the sums over all brackets of the event."""
        whole = EventSums()
        for sums in self.sums.values():
            whole = whole.plus(sums)
        return whole

    def add(self, other: EventFigures) -> None:
        """Add the figures of another block."""
        for state, count in other.states.items():
            self.states[state] = self.states.get(state, 0) + count
        for mark, count in other.marks.items():
            self.marks[mark] = self.marks.get(mark, 0) + count
        for many, sums in other.sums.items():
            self.sums[many] = self.sums.get(many, EventSums()).plus(sums)


@dataclass(frozen=True)
class Firsts(Generic[Item]):
    """The first few of something in the order of the log, whatever order the blocks come in."""

    found: tuple[tuple[Begin, Item], ...] = ()

    @classmethod
    def of(cls, begin: Begin, items: Iterable[Item]) -> Firsts[Item]:
        """Return the first few of what was found in order in the block that begins there."""
        return cls(tuple((begin, item) for item in islice(items, EXAMPLES_SHOWN)))

    def plus(self, other: Firsts[Item]) -> Firsts[Item]:
        """Return the first few of both."""
        both = sorted((*self.found, *other.found), key=itemgetter(0))
        return Firsts(tuple(both[:EXAMPLES_SHOWN]))

    def __iter__(self) -> Iterator[Item]:
        return (item for _, item in self.found)


PeAndSeb = tuple[int, int]


@dataclass
class BlockFigures:
    """What was counted and summed in one block, or in all of them."""

    counts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(FIGURES, dtype=np.int64))
    sums: tuple[ExactSum, ...] = (NOTHING,) * (SUMS // 2)
    events: dict[str, EventFigures] = field(default_factory=dict)
    places: dict[BlockCount, Firsts[PeAndSeb]] = field(default_factory=dict)
    record_places: dict[RecordState, Firsts[PeAndSeb]] = field(default_factory=dict)
    faulty_lines: int = 0
    line_faults: Firsts[str] = Firsts()
    seqno_differs: int = 0
    seqno_examples: Firsts[str] = Firsts()
    size_bytes: int = 0

    def count(self, figure: BlockCount) -> int:
        """Return how often something was counted."""
        return int(self.counts[figure])

    def records(self, state: RecordState) -> int:
        """Return of how many param records that became."""
        return sum(event.states.get(state, 0) for event in self.events.values())

    def seconds(self, which: Sum) -> float:
        """Return a sum of durations in seconds, rounded once."""
        return float(self.sums[which // 2])

    def add(self, other: BlockFigures) -> None:
        """Add the figures of another block."""
        self.counts = self.counts + other.counts
        self.sums = tuple(
            mine.plus(more.parts) for mine, more in zip(self.sums, other.sums, strict=True)
        )
        for name, event in other.events.items():
            self.events.setdefault(name, EventFigures()).add(event)
        for figure, places in other.places.items():
            self.places[figure] = self.places.get(figure, Firsts()).plus(places)
        for state, places in other.record_places.items():
            self.record_places[state] = self.record_places.get(state, Firsts()).plus(places)
        self.faulty_lines += other.faulty_lines
        self.line_faults = self.line_faults.plus(other.line_faults)
        self.seqno_differs += other.seqno_differs
        self.seqno_examples = self.seqno_examples.plus(other.seqno_examples)
        self.size_bytes += other.size_bytes


def together(sums: Iterable[ExactSum]) -> ExactSum:
    """Return the sum of sums."""
    whole = NOTHING
    for part in sums:
        whole = whole.plus(part.parts)
    return whole


def rest_s(whole: ExactSum, part: ExactSum) -> float:
    """Return what is left of a sum without a part of it, in seconds; 0 where that is rounding."""
    all_s = float(whole)
    if not (math.isfinite(all_s) and math.isfinite(float(part))):
        return math.nan
    left_s = math.fsum([*whole.parts, *(-value for value in part.parts)])
    return left_s if left_s > _ROUNDING * all_s else 0.0
