"""The totals of all blocks: counts, exact sums, histograms of ratios, and first differences.

They do not depend on the order in which threads finish: blocks are added in the order of the logs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rewritelog.arrays import Ints
from rewritelog.diffing.kernels.interface import (
    BINS,
    BINS_AN_OCTAVE,
    COUNT_A,
    COUNT_B,
    HIGHEST,
    LOWEST,
    OCTAVES,
    RATIOS,
    CommonCount,
    DiffCount,
    Durations,
    Field,
)
from rewritelog.sums import NOTHING, ExactSum

RATIO_ERROR = 2.0 ** (0.5 / BINS_AN_OCTAVE) - 1.0
"""The largest relative error of a quantile; the lowest and the highest ratio are exact."""

MOST_ROWS = 1024
"""The most names, and events, with their own rows."""


@dataclass(frozen=True)
class FirstDifference:
    """The location where a field first differs, and its values on both sides."""

    pe: int
    seb: int
    item: int | None
    """The index of the message or log event in the SEB."""
    a: str
    b: str


@dataclass
class Row:
    """The durations of one SEB name or event."""

    counts: Ints = field(default_factory=lambda: np.zeros(3, dtype=np.int64))
    a_s: ExactSum = NOTHING
    b_s: ExactSum = NOTHING
    lowest: float = math.inf
    highest: float = -math.inf
    bins: Ints | None = None
    """The number of ratios in each bin; None without ratios."""

    @property
    def sides(self) -> tuple[int, int]:
        """The numbers of durations in A and in B."""
        return int(self.counts[COUNT_A]), int(self.counts[COUNT_B])

    @property
    def ratios(self) -> int:
        """The number of durations in both that have a ratio."""
        return int(self.counts[RATIOS])

    def add(self, other: Row) -> None:
        """Add the durations of another block."""
        self.counts = self.counts + other.counts
        self.a_s = self.a_s.plus(other.a_s.parts)
        self.b_s = self.b_s.plus(other.b_s.parts)
        self.lowest = min(self.lowest, other.lowest)
        self.highest = max(self.highest, other.highest)
        if other.bins is not None:
            self.bins = other.bins if self.bins is None else self.bins + other.bins

    def quantile(self, share: float) -> float | None:
        """Return a quantile of the ratios, within `RATIO_ERROR`; None without ratios."""
        if self.bins is None:
            return None
        rank = max(1, math.ceil(share * self.ratios))
        at = int(np.searchsorted(np.cumsum(self.bins), rank))
        if at == 0:
            return self.lowest
        if at == BINS - 1:
            return self.highest
        middle: float = 2.0 ** ((at - 1) / BINS_AN_OCTAVE - OCTAVES)
        return min(max(middle, self.lowest), self.highest)


Rows = dict[str | None, Row]
"""Durations by name; None is the row of all names beyond the first `MOST_ROWS`."""


@dataclass
class Totals:
    """The differences in one block, or in all blocks."""

    changed: Ints = field(default_factory=lambda: np.zeros(len(Field), dtype=np.int64))
    examples: dict[Field, FirstDifference] = field(default_factory=dict)
    counts: Ints = field(default_factory=lambda: np.zeros((2, len(DiffCount)), dtype=np.int64))
    common: Ints = field(default_factory=lambda: np.zeros(len(CommonCount), dtype=np.int64))
    earlier_s: float = 0.0
    later_s: float = 0.0
    """The largest shifts of messages towards the start (negative) and the end of their SEBs."""
    by_name: Rows = field(default_factory=dict)
    by_event: Rows = field(default_factory=dict)
    faulty_lines: int = 0
    """The number of malformed lines of param files."""

    def add(self, other: Totals) -> None:
        """Add the totals of the next block."""
        self.changed = self.changed + other.changed
        self.examples = other.examples | self.examples
        self.counts = self.counts + other.counts
        self.common = self.common + other.common
        self.earlier_s = min(self.earlier_s, other.earlier_s)
        self.later_s = max(self.later_s, other.later_s)
        self.faulty_lines += other.faulty_lines
        add_rows(self.by_name, other.by_name)
        add_rows(self.by_event, other.by_event)


def add_rows(rows: Rows, more: Rows) -> None:
    """Add rows; a new name beyond `MOST_ROWS` goes to the row of the others."""
    for name, row in more.items():
        full = name not in rows and len(rows) >= MOST_ROWS
        rows.setdefault(None if full else name, Row()).add(row)


def rows_of(names: Sequence[str | None], found: Durations, used: int) -> Rows:
    """Return the used rows of a block by name; `used` is the number of its ratios."""
    keys, many = np.unique(found.keys[:used], return_counts=True)
    borders = np.searchsorted(keys // BINS, np.arange(len(found.counts) + 1))
    rows: Rows = {}
    for k in np.flatnonzero(found.counts.any(axis=1)).tolist():
        sums: list[Any] = found.seconds[k].tolist()
        a_s, b_s = NOTHING.plus(sums[0]), NOTHING.plus(sums[1])
        lowest, highest = (float(found.extremes[k, which]) for which in (LOWEST, HIGHEST))
        row = Row(found.counts[k].copy(), a_s, b_s, lowest, highest)
        if row.ratios:
            inside = slice(borders[k], borders[k + 1])
            row.bins = np.zeros(BINS, dtype=np.int64)
            row.bins[keys[inside] % BINS] = many[inside]
        rows.setdefault(names[k], Row()).add(row)
    return rows
