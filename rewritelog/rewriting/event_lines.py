"""One event's row in the report of a rewrite."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

from rewritelog.rewriting.intervals import Expected
from rewritelog.rewriting.kernels.interface import RecordState
from rewritelog.rewriting.statistics import EventStatistics, RecordFlag
from rewritelog.text import json_number


@dataclass(frozen=True)
class EventLine:
    """One event's row of the table."""

    event: str
    records: int
    by_model: int
    by_exact: int
    dilated: int
    """Brackets that were found but that the model does not cover."""
    not_used: int
    uncounted: int
    """Those of them that have no counters for a model of counters."""
    negative: int
    """Predictions below zero, before any bounds of the fit."""
    outside: int
    """Predictions with a parameter outside the range of the samples."""
    remote: int
    """Those within every range, but further out than any sample by the fit's leverage."""
    not_spread: int
    """Predictions that were to be spread, but have no residuals to draw from."""
    old_s: float
    new_s: float
    expected: Expected
    """What `new_s` is before any spread, and how far off it may be."""

    @property
    def extrapolated(self) -> float | None:
        """Return the share of predictions that the samples do not span; None without any."""
        predictions = self.by_model + self.by_exact
        return (self.outside + self.remote) / predictions if predictions else None

    def to_json(self) -> dict[str, Any]:
        """Return the row in types that JSON has, null for what is not a finite number."""
        row = dataclasses.asdict(self) | {
            "old_s": json_number(self.old_s),
            "new_s": json_number(self.new_s),
            "speedup": speedup(self.old_s, self.new_s),
            "extrapolated": self.extrapolated,
        }
        del row["expected"]
        return row | expected_json(self.expected) | {"coverage": self.expected.coverage}


def event_line(name: str, event: EventStatistics, expected: Expected) -> EventLine:
    """Return the row of an event, given what was counted and what its brackets are to take."""
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
    """Return how many times shorter the new duration is; None where that is undefined."""
    return json_number(old_s / new_s) if 0 < new_s < math.inf else None


def expected_json(expected: Expected) -> dict[str, float | None]:
    """Return an expected sum with its interval in types that JSON has."""
    low_s, high_s = expected.interval_s or (None, None)
    return {"expected_s": json_number(expected.seconds), "low_s": low_s, "high_s": high_s}
