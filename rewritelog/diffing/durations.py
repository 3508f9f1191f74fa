"""Durations by SEB name and by event: counts, exact sums, and histograms of ratios."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from rewritelog.arrays import ZERO_SUM, ExactSum, Flags, Floats, Ints, joined_texts
from rewritelog.core import core
from rewritelog.formats import ParamRecords
from rewritelog.formats.bgtrace.params import Paired
from rewritelog.formats.bgtrace.records import IRREGULAR, BlockRecords
from rewritelog.text import decoded

OCTAVES, BINS_AN_OCTAVE = 20, 64
BINS = 2 * OCTAVES * BINS_AN_OCTAVE + 3
"""Bins of ratios, of equal logarithmic width from 2⁻²⁰ to 2²⁰, with 1 and 0.5 in the middle of
bins; the first and the last bin contain all others."""

RATIO_ERROR = 2.0 ** (0.5 / BINS_AN_OCTAVE) - 1.0
"""The largest relative error of the median; the lowest and the highest ratio are exact."""

MOST_ROWS = 1024
"""The most names, and the most events, with rows of their own, to bound the memory."""

NO_RECORD = ""
"""The event name of brackets without a param record."""

Sides = tuple[BlockRecords, BlockRecords]
SideRecords = tuple[ParamRecords, ParamRecords]


class Row(Struct):
    """The durations of one SEB name or event."""

    sides: tuple[int, int] = (0, 0)
    """The numbers of SEBs or brackets in A and in B."""
    a_s: ExactSum = ZERO_SUM
    b_s: ExactSum = ZERO_SUM
    lowest: float = math.inf
    highest: float = -math.inf
    """The range of the ratios of durations that both sides have."""
    bins: Ints | None = None
    """The number of ratios in each bin; None without ratios."""

    def add(self, other: Row) -> None:
        """Add the durations of another block."""
        self.sides = self.sides[0] + other.sides[0], self.sides[1] + other.sides[1]
        self.a_s, self.b_s = self.a_s + other.a_s, self.b_s + other.b_s
        self.lowest = min(self.lowest, other.lowest)
        self.highest = max(self.highest, other.highest)
        if other.bins is not None:
            self.bins = other.bins if self.bins is None else self.bins + other.bins

    @property
    def ratios(self) -> int:
        """The number of ratios."""
        return 0 if self.bins is None else int(self.bins.sum())

    @property
    def median(self) -> float | None:
        """The median of the ratios, within `RATIO_ERROR`; None without ratios."""
        if self.bins is None:
            return None
        at = int(np.searchsorted(np.cumsum(self.bins), math.ceil(0.5 * self.ratios)))
        if at == 0:
            return self.lowest
        if at == BINS - 1:
            return self.highest
        middle: float = 2.0 ** ((at - 1) / BINS_AN_OCTAVE - OCTAVES)
        return min(max(middle, self.lowest), self.highest)


Rows = dict[str | None, Row]
"""Durations by name; None is the row of all names beyond the first `MOST_ROWS`."""


def add_rows(rows: Rows, others: Rows) -> None:
    """Add rows; a new name beyond `MOST_ROWS` goes to the row of the others."""
    for name, row in others.items():
        full = name not in rows and len(rows) >= MOST_ROWS
        rows.setdefault(None if full else name, Row()).add(row)


class NamedDurations(Struct, frozen=True):
    """The durations of one side, NaN for none, each with the number of its name."""

    name: Ints
    seconds: Floats

    def take(self, rows: Ints) -> NamedDurations:
        """Return some of the durations."""
        return NamedDurations(self.name[rows], self.seconds[rows])


def rows_by_name(whole: Sides, common: Sides) -> Rows:
    """Return the durations of all SEBs by name.

    `common` are the SEBs of both sides: they pair, unless they have different names.
    """
    sides = (*whole, *common)
    names, number = joined_texts([side.names for side in sides])
    parts = np.split(number, np.cumsum([len(side.sebs) for side in sides])[:-1])
    durations = [
        NamedDurations(part, side.seconds) for part, side in zip(parts, sides, strict=True)
    ]
    same = np.flatnonzero(parts[2] == parts[3])
    return rows_of(
        [*map(decoded, names)], durations[:2], [pair.take(same) for pair in durations[2:]]
    )


def rows_by_event(common: Sides, records: SideRecords) -> tuple[Rows, list[int], int]:
    """Return the durations of the brackets of SEBs that both sides have, by event.

    A SEB without brackets but with a single record is a bracket as a whole. The second result is
    the number of SEBs of each side whose marks do not pair up, the third the number of SEBs whose
    brackets differ in number or event.
    """
    seconds, brackets = zip(*((side.seconds, side.brackets) for side in common), strict=True)
    are_timed = ~np.isnan(seconds[0]) & ~np.isnan(seconds[1])
    counts = [side.counts for side in brackets]
    same = are_timed & (counts[0] == counts[1])
    names, event = joined_texts(
        [((NO_RECORD,), np.zeros(1, dtype=np.int64)), *((of.events, of.event) for of in records)]
    )
    of_records = np.split(event[1:], [len(records[0])])
    sides = zip(common, records, of_records, strict=True)
    of_brackets, of_sebs = zip(*(_events(*side, same) for side in sides), strict=True)
    rows = [np.flatnonzero(same[side.seb]) for side in brackets]
    differ = of_brackets[0][rows[0]] != of_brackets[1][rows[1]]
    same[brackets[0].seb[rows[0][differ]]] = False
    same &= of_sebs[0] == of_sebs[1]
    rows = [np.flatnonzero(same[side.seb]) for side in brackets]
    whole_sebs = np.flatnonzero(same & (of_sebs[0] >= 0))
    event = np.append(of_brackets[0][rows[0]], of_sebs[0][whole_sebs])
    order = np.argsort(np.append(brackets[0].seb[rows[0]], whole_sebs), kind="stable")
    pairs = [
        NamedDurations(
            event, np.append((side.ends - side.starts)[of_side], of_side_s[whole_sebs])
        ).take(order)
        for side, of_side, of_side_s in zip(brackets, rows, seconds, strict=True)
    ]
    irregular = [int(np.count_nonzero(are_timed & (counted == IRREGULAR))) for counted in counts]
    return rows_of(names, pairs, pairs), irregular, int(np.count_nonzero(are_timed & ~same))


def _events(
    side: BlockRecords, records: ParamRecords, event: Ints, usable: Flags
) -> tuple[Ints, Ints]:
    """Return the event of each bracket (0: no record) and of each SEB (−1: not a whole bracket)."""
    paired = Paired.of(side, records, usable)
    is_whole_seb, of_brackets = paired.bracket < 0, np.zeros(len(side.brackets), dtype=np.int64)
    of_brackets[paired.bracket[~is_whole_seb]] = event[paired.record[~is_whole_seb]]
    of_sebs = np.full(len(side.sebs), -1)
    of_sebs[paired.seb[is_whole_seb]] = event[paired.record[is_whole_seb]]
    return of_brackets, of_sebs


def rows_of(
    names: Sequence[str], sides: Sequence[NamedDurations], pairs: Sequence[NamedDurations]
) -> Rows:
    """Return rows by name: the counts and sums of each side, and the ratios of the pairs.

    Names that do not occur have no row; names beyond the first `MOST_ROWS` share one.
    """
    labels: list[str | None] = [*names[:MOST_ROWS], None]
    counts, sums = [], np.zeros((2, len(labels), 2))
    for side, high_low in zip(sides, sums, strict=True):
        own = np.minimum(side.name, len(labels) - 1)
        counts.append(np.bincount(own, minlength=len(labels)))
        is_timed = ~np.isnan(side.seconds)
        core.add_by_group(own[is_timed], side.seconds[is_timed], high_low)
    old, new = (side.seconds for side in pairs)
    valid = np.flatnonzero((old > 0.0) & np.isfinite(old) & np.isfinite(new))
    label = np.minimum(pairs[0].name[valid], len(labels) - 1)
    order = np.argsort(label, kind="stable")
    valid = valid[order]
    with np.errstate(over="ignore"):
        ratios = new[valid] / old[valid]
    bins = _bins(ratios)
    bounds = np.searchsorted(label[order], np.arange(len(labels) + 1))
    rows: Rows = {}
    for k in np.flatnonzero(counts[0] + counts[1]).tolist():
        of_name = slice(bounds[k], bounds[k + 1])
        ratios_of_name = ratios[of_name]
        a_s, b_s = (ZERO_SUM.plus(side[k].tolist()) for side in sums)
        row = Row((int(counts[0][k]), int(counts[1][k])), a_s, b_s)
        if len(ratios_of_name):
            row.bins = np.bincount(bins[of_name], minlength=BINS)
            row.lowest, row.highest = float(ratios_of_name.min()), float(ratios_of_name.max())
        rows.setdefault(labels[k], Row()).add(row)
    return rows


def _bins(ratios: Floats) -> Ints:
    """Return the bins of non-negative ratios."""
    inside = np.clip(ratios, 2.0**-OCTAVES, 2.0**OCTAVES)
    places = np.floor((np.log2(inside) + OCTAVES) * BINS_AN_OCTAVE + 0.5).astype(np.int64)
    bins = np.clip(places, 0, BINS - 3) + 1
    bins[ratios < 2.0**-OCTAVES] = 0
    bins[ratios > 2.0**OCTAVES] = BINS - 1
    return bins
