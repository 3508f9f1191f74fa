"""The row of one event in the report of a rewrite."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

from rewritelog.rewriting.counts import RecordState
from rewritelog.rewriting.intervals import Expected
from rewritelog.rewriting.statistics import EventStatistics, RecordFlag
from rewritelog.text import json_number


@dataclass(frozen=True)
class EventLine:
    """The counts and sums of one event."""

    event: str
    records: int
    by_model: int
    by_exact: int
    dilated: int
    """The number of brackets with a record that the model does not cover."""
    not_used: int
    uncounted: int
    """The number of those without counters, for a model of counters."""
    negative: int
    """The number of predictions that are negative before the bounds of the fit apply."""
    outside: int
    """The number of predictions with a parameter outside the range of the samples."""
    remote: int
    """The number of those within all ranges, but with more leverage than any sample."""
    not_spread: int
    """The number of predictions that were not spread because there are no residuals."""
    old_s: float
    new_s: float
    expected: Expected
    """The expectation of `new_s`, before any spread, with its uncertainty."""

    @property
    def extrapolated(self) -> float | None:
        """The share of extrapolated predictions; None without predictions."""
        predictions = self.by_model + self.by_exact
        return (self.outside + self.remote) / predictions if predictions else None

    def to_json(self) -> dict[str, Any]:
        """Return the row as a JSON object, with null for numbers that are not finite."""
        row = dataclasses.asdict(self) | {
            "old_s": json_number(self.old_s),
            "new_s": json_number(self.new_s),
            "speedup": speedup(self.old_s, self.new_s),
            "extrapolated": self.extrapolated,
        }
        del row["expected"]
        return row | expected_json(self.expected) | {"coverage": self.expected.coverage}


def event_line(name: str, event: EventStatistics, expected: Expected) -> EventLine:
    """Return the row of an event, given its statistics and the expected sum."""
    used = event.states[RecordState.PREDICTED]
    dilated = event.states[RecordState.NOT_COVERED]
    records = event.states.total()
    total = event.total
    return EventLine(
        event=name,
        records=records,
        by_model=used - event.flags[RecordFlag.EXACT],
        by_exact=event.flags[RecordFlag.EXACT],
        dilated=dilated,
        not_used=records - used - dilated,
        uncounted=event.flags[RecordFlag.UNCOUNTED],
        negative=event.flags[RecordFlag.NEGATIVE],
        outside=event.flags[RecordFlag.OUTSIDE],
        remote=event.flags[RecordFlag.REMOTE],
        not_spread=event.flags[RecordFlag.NOT_SPREAD],
        old_s=float(total.old_s),
        new_s=float(total.new_s),
        expected=expected,
    )


def speedup(old_s: float, new_s: float) -> float | None:
    """Return the old duration divided by the new one; None if that is undefined."""
    return json_number(old_s / new_s) if 0 < new_s < math.inf else None


def expected_json(expected: Expected) -> dict[str, float | None]:
    """Return an expected sum with its interval as a JSON object."""
    low_s, high_s = expected.interval_s or (None, None)
    return {"expected_s": json_number(expected.seconds), "low_s": low_s, "high_s": high_s}
