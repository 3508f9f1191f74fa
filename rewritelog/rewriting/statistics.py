"""What a rewrite counts and adds up, of a block and of all, however the work is divided.

The durations of each timeline are added in the order of its SEBs, and the records of each event and
number of parameters in their order in a block, with twice the digits of a double; these sums are
then added exactly.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rewritelog.arrays import NOTHING, ExactSum, Floats, Ints
from rewritelog.core import core
from rewritelog.formats.traces import NOT_ROUNDED, Events, Rounding


class BlockCount(IntEnum):
    """The counts of a block."""

    SEBS = core.SEBS
    MESSAGES = core.MESSAGES
    BY_MODEL = core.SEBS_BY_MODEL
    BY_EXACT = core.SEBS_BY_EXACT
    BY_DILATION = core.SEBS_BY_DILATION
    UNCHANGED = core.SEBS_UNCHANGED
    UNCLOSED = core.SEBS_UNCLOSED
    ZERO_LENGTH = core.SEBS_ZERO_LENGTH
    BRACKETS = core.BRACKETS
    BRACKETS_WITHOUT_RECORD = core.BRACKETS_WITHOUT_RECORD
    MARKS_IRREGULAR = core.SEBS_MARKS_IRREGULAR
    RECORDS_MISMATCHED = core.SEBS_RECORDS_MISMATCHED
    UNMARKED_WITH_RECORD = core.SEBS_UNMARKED_WITH_RECORD
    MESSAGES_OUTSIDE = core.MESSAGES_OUTSIDE
    RECV_RAISED = core.MESSAGES_RECV_RAISED
    TRACER_REPLACES = core.PATCH_COUNTS
    """SEBs with a predicted duration that TraceR ignores because of their names."""


class DurationSum(IntEnum):
    """The sums of durations of a piece, in seconds."""

    OLD = core.SUM_OLD
    NEW = core.SUM_NEW
    BRACKETED_OLD = core.SUM_BRACKETED_OLD
    BRACKETED_NEW = core.SUM_BRACKETED_NEW
    AROUND_OLD = core.SUM_AROUND_OLD
    """The time outside of brackets in SEBs that have any."""
    AROUND_NEW = core.SUM_AROUND_NEW
    WITHOUT_OLD = core.SUM_WITHOUT_OLD
    """SEBs without brackets, or with irregular marks."""
    WITHOUT_NEW = core.SUM_WITHOUT_NEW


IRREGULAR = (
    BlockCount.MARKS_IRREGULAR,
    BlockCount.RECORDS_MISMATCHED,
    BlockCount.UNMARKED_WITH_RECORD,
)
"""The counts of irregular SEBs; outcomes have a flag for each."""

EXAMPLES = 5
"""The number of places that are kept of what is irregular."""


class EventSums(NamedTuple):
    """Sums over the brackets of one event with one number of parameters, in seconds."""

    old_s: ExactSum = NOTHING
    new_s: ExactSum = NOTHING
    dilated_old_s: ExactSum = NOTHING
    """The sum over brackets that the model does not cover."""
    dilated_new_s: ExactSum = NOTHING
    predicted_s: ExactSum = NOTHING
    """The sum of predictions before any spread."""
    squares_s2: ExactSum = NOTHING
    """The sum of the squares of these predictions."""
    exact_old_s: ExactSum = NOTHING
    """The sum over exact matches, of which the page of a rewrite shows the share."""
    exact_new_s: ExactSum = NOTHING

    def __add__(self, other: tuple[Any, ...]) -> EventSums:
        """Return the sums of the two."""
        return EventSums(*(a + b for a, b in zip(self, other, strict=True)))


@dataclass
class EventStatistics:
    """The param records of one event."""

    counts: Counter[str] = field(default_factory=Counter)
    """How many have each property that `Predicted.properties` names."""
    sums: dict[int, EventSums] = field(default_factory=dict)
    """The sums by number of parameters."""

    @property
    def total(self) -> EventSums:
        """The sums over all brackets of the event."""
        return sum(self.sums.values(), EventSums())

    def __add__(self, other: EventStatistics) -> EventStatistics:
        return EventStatistics(self.counts + other.counts, _together(self.sums, other.sums))


@dataclass(frozen=True)
class Noted:
    """How often something irregular was met, and the first few places."""

    count: int
    first: tuple[tuple[tuple[int, int], str], ...]
    """Each after the place of its block: file and offset."""

    @classmethod
    def of(cls, block: tuple[int, int], count: int, places: Sequence[str]) -> Noted:
        """Return what was met in a block, given its place."""
        return cls(count, tuple((block, place) for place in places[:EXAMPLES]))

    def __add__(self, other: Noted) -> Noted:
        first = sorted(self.first + other.first, key=itemgetter(0))[:EXAMPLES]
        return Noted(self.count + other.count, tuple(first))


@dataclass
class BlockStatistics:
    """The counts and sums of one block, or of all blocks, and what is irregular."""

    counts: NDArray[np.int64] = field(
        default_factory=lambda: np.zeros(len(BlockCount), dtype=np.int64)
    )
    sums: dict[DurationSum, ExactSum] = field(
        default_factory=lambda: dict.fromkeys(DurationSum, NOTHING)
    )
    events: dict[str, EventStatistics] = field(default_factory=dict)
    noted: dict[str, Noted] = field(default_factory=dict)
    """What is irregular in params and SEBs, by what it is."""
    size_bytes: int = 0
    busy: list[tuple[Ints, Floats, Floats]] = field(default_factory=list)
    """Arrays of PEs, and their busy seconds before and after the rewrite."""
    matched_patterns: frozenset[str] = frozenset()
    """The patterns of dilations that match a name."""
    rounding: Rounding = NOT_ROUNDED
    on_device_s: float = 0.0
    """The new seconds of what devices compute, where the format says what does."""
    kept: list[Events] = field(default_factory=list)
    """The events of each unit, with their new durations, as far as a replay is to have them."""

    def count(self, which: BlockCount) -> int:
        """Return a count."""
        return int(self.counts[which])

    def seconds(self, which: DurationSum) -> float:
        """Return a sum of durations in seconds, rounded once."""
        return float(self.sums[which])

    def busy_of_pes(self) -> tuple[Ints, Floats, Floats]:
        """Return PEs, unsorted, with their busy seconds before and after the rewrite."""
        none = np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0)
        pes, old_s, new_s = (
            np.concatenate(column) for column in zip(none, *self.busy, strict=True)
        )
        return pes, old_s, new_s

    def take_durations(self, pes: Ints, sums: Floats) -> None:
        """Take the sums of the timelines of some PEs, shape (PEs, DurationSum, 2)."""
        for which in DurationSum:
            self.sums[which] = exact_sum(sums[:, which])
        old_s, new_s = (sums[:, w].sum(axis=1) for w in (DurationSum.OLD, DurationSum.NEW))
        self.busy = [(pes, old_s, new_s)]

    def add(self, other: BlockStatistics) -> None:
        """Add the statistics of the next block."""
        for name, more in vars(other).items():
            setattr(self, name, _together(getattr(self, name), more))


def _together(first: Any, second: Any) -> Any:
    """Return two counts, sums or collections as one; those of the same key are added."""
    if isinstance(first, dict) and not isinstance(first, Counter):
        common = {key: _together(first[key], second[key]) for key in first.keys() & second.keys()}
        return first | second | common
    if isinstance(first, frozenset):
        return first | second
    first += second
    return first


def exact_sum(pairs: Floats) -> ExactSum:
    """Return the sum of the high and low parts of sums."""
    return ExactSum().plus(pairs.ravel().tolist())
