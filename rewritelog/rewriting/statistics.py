"""Statistics of blocks and of whole logs: counts, exact sums, and examples of irregularities."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from itertools import islice
from operator import itemgetter
from typing import Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from rewritelog.arrays import Floats, Ints
from rewritelog.kernels.sums import NOTHING, ExactSum
from rewritelog.rewriting.kernels.interface import EXAMPLES, BlockCount, DurationSum, RecordState

BlockStart = tuple[int, int]
"""A file's number, and the offset in it at which a block starts."""
Item = TypeVar("Item")

_ROUNDING = 1e-15
"""The sums of timelines are rounded by less than this share."""


class RecordFlag(IntEnum):
    """Properties of a record besides its state."""

    EXACT = 0
    """Its duration is that of samples with the same parameters."""
    NEGATIVE = 1
    """The fit gives it less than zero."""
    OUTSIDE = 2
    """A parameter lies outside the range of the samples."""
    REMOTE = 3
    """Within every range, but further out than any sample by the fit's leverage."""
    NOT_SPREAD = 4
    """It was to be spread, but the model has no residuals for it."""
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
    exact_old_s: ExactSum = NOTHING
    """Of those whose new duration is that of samples with the same parameters."""
    exact_new_s: ExactSum = NOTHING

    def plus(self, other: EventSums) -> EventSums:
        """Return the sums of both."""
        return EventSums(*(a.plus(b.parts) for a, b in zip(self, other, strict=True)))


@dataclass
class EventStatistics:
    """The param records of one event."""

    states: Counter[RecordState] = field(default_factory=Counter)
    flags: Counter[RecordFlag] = field(default_factory=Counter)
    sums: dict[int, EventSums] = field(default_factory=dict)
    """By the number of parameters."""

    @property
    def total(self) -> EventSums:
        """Return the sums over all brackets of the event."""
        total = EventSums()
        for sums in self.sums.values():
            total = total.plus(sums)
        return total

    def add(self, other: EventStatistics) -> None:
        """Add the statistics of another block."""
        self.states.update(other.states)
        self.flags.update(other.flags)
        for count, sums in other.sums.items():
            self.sums[count] = self.sums.get(count, EventSums()).plus(sums)


@dataclass(frozen=True)
class Examples(Generic[Item]):
    """The first few items in the order of the log, whatever the order of the blocks."""

    found: tuple[tuple[BlockStart, Item], ...] = ()

    @classmethod
    def of(cls, start: BlockStart, items: Iterable[Item]) -> Examples[Item]:
        """Return the first few items of the block that starts there."""
        return cls(tuple((start, item) for item in islice(items, EXAMPLES)))

    def plus(self, other: Examples[Item]) -> Examples[Item]:
        """Return the first few of both."""
        both = sorted((*self.found, *other.found), key=itemgetter(0))
        return Examples(tuple(both[:EXAMPLES]))

    def __iter__(self) -> Iterator[Item]:
        return (item for _, item in self.found)


PeAndSeb = tuple[int, int]


@dataclass
class BlockStatistics:
    """What was counted and summed in one block, or in all of them."""

    counts: NDArray[np.int64] = field(
        default_factory=lambda: np.zeros(len(BlockCount), dtype=np.int64)
    )
    sums: tuple[ExactSum, ...] = (NOTHING,) * len(DurationSum)
    events: dict[str, EventStatistics] = field(default_factory=dict)
    examples: dict[BlockCount, Examples[PeAndSeb]] = field(default_factory=dict)
    record_examples: dict[RecordState, Examples[PeAndSeb]] = field(default_factory=dict)
    faulty_lines: int = 0
    faulty_line_examples: Examples[str] = Examples()
    seqno_differs: int = 0
    seqno_examples: Examples[str] = Examples()
    size_bytes: int = 0
    busy: list[tuple[Ints, Floats, Floats]] = field(default_factory=list)
    """PEs with their busy seconds before and after, some at a time."""
    matched_patterns: frozenset[str] = frozenset()
    """The patterns of dilations that match a SEB name."""

    def count(self, which: BlockCount) -> int:
        """Return a count."""
        return int(self.counts[which])

    def records(self, state: RecordState) -> int:
        """Return the number of param records in a state."""
        return sum(event.states[state] for event in self.events.values())

    def seconds(self, which: DurationSum) -> float:
        """Return a sum of durations in seconds, rounded once."""
        return float(self.sums[which])

    def busy_of_pes(self) -> tuple[Ints, Floats, Floats]:
        """Return PEs, in no order, with their busy seconds before and after."""
        none = np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0)
        pes, old_s, new_s = (
            np.concatenate(column) for column in zip(none, *self.busy, strict=True)
        )
        return pes, old_s, new_s

    def add(self, other: BlockStatistics) -> None:
        """Add the statistics of another block."""
        self.counts = self.counts + other.counts
        self.sums = tuple(
            mine.plus(more.parts) for mine, more in zip(self.sums, other.sums, strict=True)
        )
        for name, event in other.events.items():
            self.events.setdefault(name, EventStatistics()).add(event)
        for which, examples in other.examples.items():
            self.examples[which] = self.examples.get(which, Examples()).plus(examples)
        for state, examples in other.record_examples.items():
            self.record_examples[state] = self.record_examples.get(state, Examples()).plus(examples)
        self.faulty_lines += other.faulty_lines
        self.faulty_line_examples = self.faulty_line_examples.plus(other.faulty_line_examples)
        self.seqno_differs += other.seqno_differs
        self.seqno_examples = self.seqno_examples.plus(other.seqno_examples)
        self.size_bytes += other.size_bytes
        self.busy += other.busy
        self.matched_patterns |= other.matched_patterns


def total_of(sums: Iterable[ExactSum]) -> ExactSum:
    """Return the sum of sums."""
    total = NOTHING
    for part in sums:
        total = total.plus(part.parts)
    return total


def rest_s(whole: ExactSum, part: ExactSum) -> float:
    """Return a sum less a part of it, in seconds; 0 where the difference is rounding."""
    all_s = float(whole)
    if not (math.isfinite(all_s) and math.isfinite(float(part))):
        return math.nan
    left_s = math.fsum([*whole.parts, *(-value for value in part.parts)])
    return left_s if left_s > _ROUNDING * all_s else 0.0
