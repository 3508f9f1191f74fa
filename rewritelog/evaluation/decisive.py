"""A single line that causes most of the error of a sum, often a disturbed call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from rewritelog.arrays import Flags, Floats
from rewritelog.text import json_number, percent_text, printable, time_text

WORTH_SAYING = 0.02
"""Smaller relative errors of the sum need no explanation."""


@dataclass(frozen=True)
class EntryTimes:
    """Measured and predicted times of lines of one entry of the timings."""

    entry: int
    rows: Flags
    """The rows of the entry, as a mask."""
    measured_s: Floats
    predicted_s: Floats


@dataclass(frozen=True)
class DecisiveLine:
    """A line without which the relative error of the sum would be less than half."""

    where: str
    """The location, `file:line`."""
    measured_s: float
    predicted_s: float
    sum_error: float
    sum_error_without: float

    def to_json(self) -> dict[str, Any]:
        """Return the line as a JSON object."""
        return {
            name: json_number(value) if isinstance(value, float) else printable(value)
            for name, value in asdict(self).items()
        }

    def text(self) -> str:
        """Return a sentence about the line."""
        error, without = (
            percent_text(share, sign="+") for share in (self.sum_error, self.sum_error_without)
        )
        measured, predicted = map(time_text, (self.measured_s, self.predicted_s))
        return (
            f"one line makes up most of the sum's error of {error}: {printable(self.where)}, "
            f"measured {measured}, predicted {predicted}; without it {without}"
        )


def decisive_line(
    parts: Sequence[EntryTimes], where: Callable[[int, int], str]
) -> DecisiveLine | None:
    """Return the line that causes most of the error of the sum over all parts, if one does.

    `where` returns the location of a row of an entry.
    """
    measured = np.concatenate([np.zeros(0), *(part.measured_s for part in parts)])
    predicted = np.concatenate([np.zeros(0), *(part.predicted_s for part in parts)])
    errors = predicted - measured
    known = np.isfinite(errors)
    total, error = float(measured[known].sum()), float(errors[known].sum())
    if not known.any() or total <= 0 or abs(error) < WORTH_SAYING * total:
        return None
    largest = int(np.argmax(np.where(known, np.abs(errors), -1)))
    rest = total - float(measured[largest])
    without = error - float(errors[largest])
    if rest <= 0 or abs(without) / rest >= 0.5 * abs(error) / total:
        return None
    entries = np.concatenate([np.full(len(part.measured_s), part.entry) for part in parts])
    rows = np.concatenate([np.flatnonzero(part.rows) for part in parts])
    return DecisiveLine(
        where(int(entries[largest]), int(rows[largest])),
        float(measured[largest]),
        float(predicted[largest]),
        error / total,
        without / rest,
    )
