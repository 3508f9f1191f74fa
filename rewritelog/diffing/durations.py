"""Durations by SEB name and by event: counts, exact sums, and histograms of ratios."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rewritelog.arrays import NOTHING, ExactSum, Flags, Floats, Ints
from rewritelog.core import core
from rewritelog.formats import ParamRecords
from rewritelog.formats.bgtrace.records import IRREGULAR, BlockRecords, NameTable, brackets_of
from rewritelog.text import printable

OCTAVES, BINS_AN_OCTAVE = 20, 64
BINS = 2 * OCTAVES * BINS_AN_OCTAVE + 3
"""Bins of ratios, of equal logarithmic width from 2⁻²⁰ to 2²⁰, with 1 and 0.5 in the middle of
bins; the first and the last bin contain all others."""

RATIO_ERROR = 2.0 ** (0.5 / BINS_AN_OCTAVE) - 1.0
"""The largest relative error of the median; the lowest and the highest ratio are exact."""

MOST_ROWS = 1024
"""The most names, and events, with their own rows, which bounds the memory for a log with many."""

NO_RECORD = ""
"""The event name of brackets without a param record."""

Sides = tuple[BlockRecords, BlockRecords]


@dataclass
class Row:
    """The durations of one SEB name or event."""

    sides: tuple[int, int] = (0, 0)
    """The numbers of SEBs or brackets in A and in B."""
    a_s: ExactSum = NOTHING
    b_s: ExactSum = NOTHING
    ratios: int = 0
    """The number of durations in both that have a ratio."""
    lowest: float = math.inf
    highest: float = -math.inf
    bins: Ints | None = None
    """The number of ratios in each bin; None without ratios."""

    def add(self, other: Row) -> None:
        """Add the durations of another block."""
        self.sides = self.sides[0] + other.sides[0], self.sides[1] + other.sides[1]
        self.a_s = self.a_s.plus(other.a_s.parts)
        self.b_s = self.b_s.plus(other.b_s.parts)
        self.ratios += other.ratios
        self.lowest = min(self.lowest, other.lowest)
        self.highest = max(self.highest, other.highest)
        if other.bins is not None:
            self.bins = other.bins if self.bins is None else self.bins + other.bins

    @property
    def median(self) -> float | None:
        """The median of the ratios, within `RATIO_ERROR`; None without ratios."""
        if self.bins is None:
            return None
        rank = math.ceil(0.5 * self.ratios)
        at = int(np.searchsorted(np.cumsum(self.bins), rank))
        if at == 0:
            return self.lowest
        if at == BINS - 1:
            return self.highest
        middle: float = 2.0 ** ((at - 1) / BINS_AN_OCTAVE - OCTAVES)
        return min(max(middle, self.lowest), self.highest)


Rows = dict[str | None, Row]
"""Durations by name; None is the row of all names beyond the first `MOST_ROWS`."""


def add_rows(rows: Rows, more: Rows) -> None:
    """Add rows; a new name beyond `MOST_ROWS` goes to the row of the others."""
    for name, row in more.items():
        full = name not in rows and len(rows) >= MOST_ROWS
        rows.setdefault(None if full else name, Row()).add(row)


@dataclass(frozen=True)
class Timed:
    """The durations of one side, and the row of each."""

    rows: Ints
    seconds: Floats

    def take(self, which: Flags | Ints) -> Timed:
        """Return some of the durations."""
        return Timed(self.rows[which], self.seconds[which])


def times_of(side: BlockRecords) -> tuple[Floats, Flags]:
    """Return the durations of SEBs in seconds, and whether they have one.

    A SEB has one if its end is not before its start, and both are finite.
    """
    start, end = side.sebs["start_time"], side.sebs["end_time"]
    with np.errstate(over="ignore", invalid="ignore"):
        return end - start, np.isfinite(start) & np.isfinite(end) & (end >= start)


def rows_by_name(whole: Sides, common: Sides) -> Rows:
    """Return the durations of all SEBs by name; those of `common`, the SEBs of both sides, pair."""
    table = NameTable()
    numbers = [np.minimum(table.add(side.sebs), MOST_ROWS) for side in whole]
    timed = [
        Timed(rows, seconds).take(closed)
        for rows, (seconds, closed) in zip(numbers, map(times_of, whole), strict=True)
    ]
    (old, old_closed), (new, new_closed) = map(times_of, common)
    rows = np.minimum(table.add(common[0].sebs), MOST_ROWS)
    pairs = [Timed(rows, seconds).take(old_closed & new_closed) for seconds in (old, new)]
    names = list(map(printable, table.names))
    return rows_of(named_rows(names), numbers, timed, pairs)


def rows_by_event(common: Sides, records: ParamRecords) -> tuple[Rows, list[int], int]:
    """Return the durations of the brackets of SEBs that both sides have, by event.

    A SEB without brackets but with a single record is a bracket as a whole. The second result is
    the number of SEBs of each side whose marks do not pair up, the third that of SEBs with
    different numbers of brackets.
    """
    times = [times_of(side) for side in common]
    both = times[0][1] & times[1][1]
    brackets = [brackets_of(side) for side in common]
    counts = [side.counts for side in brackets]
    same = both & (counts[0] == counts[1])
    first, number, event = _records_of_sebs(common[0], records)
    kept = [same[side.seb] for side in brackets]
    inside = brackets[0].seb[kept[0]]
    alone = np.flatnonzero(same & (counts[0] == 0) & (number == 1))
    named = np.flatnonzero(number[inside] == counts[0][inside])
    rows = np.zeros(len(inside) + len(alone), dtype=np.int64)
    rows[named] = event[first[inside[named]] + brackets[0].number[kept[0]][named]]
    rows[len(inside) :] = event[first[alone]]
    order = np.argsort(np.concatenate([inside, alone]), kind="stable")
    pairs = [
        Timed(rows, np.append((side.ends - side.starts)[mine], seconds[alone])).take(order)
        for side, mine, (seconds, _) in zip(brackets, kept, times, strict=True)
    ]
    names = [NO_RECORD, *map(printable, records.events[: MOST_ROWS - 1]), None]
    irregular = [int(np.count_nonzero(both & (counted == IRREGULAR))) for counted in counts]
    by_event = rows_of(names, [side.rows for side in pairs], pairs, pairs)
    return by_event, irregular, int(np.count_nonzero(both & ~same))


def _records_of_sebs(block: BlockRecords, records: ParamRecords) -> tuple[Ints, Ints, Ints]:
    """Return each SEB's first record and number of records, and the row of each record's event."""
    index = records.seb - block.loaded.pieces.firsts[records.piece]
    known = (index >= 0) & (index < block.walked[records.piece])
    begins = np.cumsum(block.walked) - block.walked
    sebs = (begins[records.piece] + index)[known]
    number = np.bincount(sebs, minlength=len(block.sebs))
    return np.cumsum(number) - number, number, np.minimum(records.event[known] + 1, MOST_ROWS)


def named_rows(names: Sequence[str]) -> list[str | None]:
    """Return the names of rows, the last one for all beyond the first `MOST_ROWS`."""
    return [*names[:MOST_ROWS], *[None] * (1 + max(0, MOST_ROWS - len(names)))]


def rows_of(
    names: Sequence[str | None],
    counted: Sequence[Ints],
    timed: Sequence[Timed],
    pairs: Sequence[Timed],
) -> Rows:
    """Return the used rows by name.

    `counted` are the rows of what is on each side, `timed` the durations there, `pairs` those that
    both sides have.
    """
    counts = [np.bincount(rows, minlength=len(names)) for rows in counted]
    sums = np.zeros((2, len(names), 2))
    for side, high_low in zip(timed, sums, strict=True):
        core.add_by_group(side.rows, side.seconds, high_low)
    old, new = (side.seconds for side in pairs)
    valid = np.flatnonzero((old > 0.0) & np.isfinite(old) & np.isfinite(new))
    valid = valid[np.argsort(pairs[0].rows[valid], kind="stable")]
    with np.errstate(over="ignore"):
        ratios = new[valid] / old[valid]
    bounds = np.searchsorted(pairs[0].rows[valid], np.arange(len(names) + 1))
    rows: Rows = {}
    for k in np.flatnonzero(counts[0] + counts[1]).tolist():
        mine = ratios[bounds[k] : bounds[k + 1]]
        a_s, b_s = (NOTHING.plus(side[k].tolist()) for side in sums)
        row = Row((int(counts[0][k]), int(counts[1][k])), a_s, b_s)
        if len(mine):
            row.ratios, row.bins = len(mine), np.bincount(_bins(mine), minlength=BINS)
            row.lowest, row.highest = float(mine.min()), float(mine.max())
        rows.setdefault(names[k], Row()).add(row)
    return rows


def _bins(ratios: Floats) -> Ints:
    """Return the bins of non-negative ratios."""
    inside = np.clip(ratios, 2.0**-OCTAVES, 2.0**OCTAVES)
    places = np.floor((np.log2(inside) + OCTAVES) * BINS_AN_OCTAVE + 0.5).astype(np.int64)
    bins = np.clip(places, 0, BINS - 3) + 1
    bins[ratios < 2.0**-OCTAVES] = 0
    bins[ratios > 2.0**OCTAVES] = BINS - 1
    return bins
