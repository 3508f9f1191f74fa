"""The content of a figure of timelines: rows of PEs, cells and bars, the same for all formats.

Memory is bounded by the figure's size, not that of the logs: cells hold the share of time of each
colour, and SEBs are kept individually only while they are few enough to be drawn as bars.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rewritelog.arrays import Floats, Ints
from rewritelog.errors import UsageError
from rewritelog.formats.bgtrace.blocks import LoadedBlock
from rewritelog.formats.bgtrace.brackets import brackets_of
from rewritelog.formats.bgtrace.logset import LogSet
from rewritelog.formats.bgtrace.names import NameTable
from rewritelog.formats.bgtrace.records import BlockRecords, records_of
from rewritelog.inspection.survey import Survey, read_survey
from rewritelog.text import printable
from rewritelog.viewing.palette import COLOURS

MOST_ROWS = 128
"""If there are more PEs, each row is a group of PEs."""

MOST_BARS = 20_000
"""If there are more SEBs and brackets, they are drawn as shares of time."""

COLUMNS = 1600


@dataclass(frozen=True)
class TimelineOptions:
    """The part of the logs that is drawn."""

    pes: Sequence[int] | None = None
    """None for all."""
    from_s: float | None = None
    """Start of the time axis; None for the first start of a SEB."""
    to_s: float | None = None
    """End of the time axis; None for the last end of a SEB."""

    def __post_init__(self) -> None:
        for time in (self.from_s, self.to_s):
            if time is not None and not math.isfinite(time):
                raise UsageError(f"{time} is not a time in seconds")


@dataclass(frozen=True)
class Panel:
    """The timelines of one log set."""

    logs: LogSet
    cells: Floats
    """Share of the row's PE time, shape (rows, columns, layers); the last layer is brackets."""
    bars: Bars | None
    """The individual SEBs and brackets; None if there are too many."""
    sebs: int
    brackets: int
    unclosed: int
    """Number of SEBs that were never closed, which are not drawn."""
    not_finite: int
    """Number of SEBs with times that are not finite, which are not drawn."""


class Bars(NamedTuple):
    """Individual SEBs and brackets, in the order of the log."""

    row: Ints
    layer: Ints
    pe: Ints
    seb: Ints
    start_s: Floats
    end_s: Floats

    def take(self, which: Ints) -> Bars:
        """Return some of the bars."""
        return Bars._make(column[which] for column in self)


@dataclass(frozen=True)
class TimelineView:
    """One log set, or two one above the other, on one time axis."""

    panels: tuple[Panel, ...]
    pes: tuple[int, ...]
    group: int
    """Number of PEs that share a row."""
    from_s: float
    to_s: float
    names: tuple[str, ...]
    """The names with a colour of their own, made printable, by falling total time."""
    other_names: int
    """Number of names that share the last colour."""

    @property
    def rows(self) -> int:
        """The number of rows of a panel."""
        return -(-len(self.pes) // self.group)

    @property
    def other_layer(self) -> int:
        """The layer of all names without a colour of their own."""
        return len(self.names)

    def row_label(self, row: int) -> str:
        """Return the label of a row's PEs, such as `PE 3` or `PE 0–7`."""
        members = self.pes[row * self.group : (row + 1) * self.group]
        return f"PE {members[0]}" if len(members) == 1 else f"PE {members[0]}–{members[-1]}"

    def shares(self, panel: Panel) -> tuple[float, ...]:
        """Return the share of all PE time in the window by layer, with that of brackets last."""
        members = np.full(self.rows, self.group)
        members[-1] = len(self.pes) - (self.rows - 1) * self.group
        weights = members / members.sum() / panel.cells.shape[1]
        return tuple(float(share) for share in np.einsum("rcl,r->l", panel.cells, weights))


def timeline_view(
    sets: Sequence[LogSet], options: TimelineOptions | None = None, columns: int = COLUMNS
) -> TimelineView:
    """Read log sets twice, to find the names with the most time and to fill the figure.

    Raise `UsageError` if the sets have different PEs, if a PE is not in them or if there is nothing
    between the times; `DamagedLogError` if a block is damaged.
    """
    options = options or TimelineOptions()
    pes = _chosen_pes(sets, options.pes)
    surveys = [read_survey(logs) for logs in sets]
    from_s, to_s = _window(surveys, options)
    names, others = _names(surveys)
    group = -(-len(pes) // MOST_ROWS)
    frame = _Frame(pes, group, from_s, to_s, tuple(names), columns)
    return TimelineView(
        panels=tuple(_panel(logs, frame) for logs in sets),
        pes=pes,
        group=group,
        from_s=from_s,
        to_s=to_s,
        names=tuple(printable(name) for name in names),
        other_names=others,
    )


@dataclass(frozen=True)
class _Frame:
    """The properties that all panels of a figure share."""

    pes: tuple[int, ...]
    group: int
    from_s: float
    to_s: float
    names: tuple[bytes, ...]
    columns: int

    @property
    def layers(self) -> int:
        """The number of layers: one for each name, one for all others, one for brackets."""
        return len(self.names) + 2

    def rows_of_pes(self, total: int) -> Ints:
        """Return the row of each PE, −1 for PEs that are not drawn."""
        rows = np.full(total, -1, dtype=np.int64)
        rows[list(self.pes)] = np.arange(len(self.pes)) // self.group
        return rows


def _chosen_pes(sets: Sequence[LogSet], wanted: Sequence[int] | None) -> tuple[int, ...]:
    first = sets[0]
    for other in sets[1:]:
        if len(other.pes) != len(first.pes):
            raise UsageError(
                f"{first.folder} has {len(first.pes):,} PEs and {other.folder} "
                f"{len(other.pes):,}: they cannot be drawn on the same rows"
            )
    if wanted is None:
        return tuple(first.pes)
    for pe in wanted:
        first.timeline_block(pe)
    if not wanted:
        raise UsageError("no PE is chosen")
    return tuple(sorted(set(wanted)))


def _window(surveys: Sequence[Survey], options: TimelineOptions) -> tuple[float, float]:
    starts = min(found.earliest_s for found in surveys)
    ends = max(found.latest_s for found in surveys)
    from_s = starts if options.from_s is None else options.from_s
    to_s = ends if options.to_s is None else options.to_s
    if not to_s > from_s:
        raise UsageError(f"nothing to draw: the time from {from_s:.9g} s to {to_s:.9g} s is empty")
    return from_s, to_s


def _names(surveys: Sequence[Survey]) -> tuple[list[bytes], int]:
    """Return the names with the most time over all sets, and the number of other names."""
    seconds: dict[bytes, float] = {}
    for found in surveys:
        for name, _, seconds_of_name in found.by_name():
            seconds[name] = seconds.get(name, 0.0) + seconds_of_name
    ranked = sorted(seconds, key=lambda name: (-seconds[name], name))
    return ranked[: len(COLOURS)], max(0, len(ranked) - len(COLOURS))


def _panel(logs: LogSet, frame: _Frame) -> Panel:
    rows = frame.rows_of_pes(len(logs.pes))
    canvas = _Canvas(frame, int(rows.max()) + 1)
    for drawn in logs.map(_Drawing(frame, rows)):
        canvas.add(drawn)
    members = np.bincount(rows[rows >= 0]).astype(np.float64)
    cells = canvas.cells() / members[:, None, None]
    return Panel(logs, cells, canvas.bars.joined(), *canvas.counts.tolist())


@dataclass(frozen=True)
class _Drawing:
    """Draws one block."""

    frame: _Frame
    rows: Ints
    """The row of each PE, −1 for PEs that are not drawn."""

    def __call__(self, parts: Iterator[LoadedBlock], /) -> _Drawn:
        """Return what is drawn of a block."""
        drawn, names = _Drawn(self.frame), NameTable(self.frame.names)
        for loaded in parts:
            self._draw(records_of(loaded), names, drawn)
        return drawn

    def _draw(self, block: BlockRecords, names: NameTable, drawn: _Drawn) -> None:
        start, end = block.sebs["start_time"], block.sebs["end_time"]
        row = self.rows[block.pe]
        finite = np.isfinite(start) & np.isfinite(end)
        closed = (row >= 0) & finite & (end >= start)
        layers = names.find(block.sebs)
        sebs = np.flatnonzero(closed)
        brackets = brackets_of(block)
        inside = np.flatnonzero(closed[brackets.seb])
        of = brackets.seb[inside]
        bars = Bars(
            row=np.concatenate([row[sebs], row[of]]),
            layer=np.concatenate([layers[sebs], np.full(len(of), self.frame.layers - 1)]),
            pe=np.concatenate([block.pe[sebs], block.pe[of]]),
            seb=np.concatenate([block.index[sebs], block.index[of]]),
            start_s=np.concatenate([start[sebs], start[of] + brackets.starts[inside]]),
            end_s=np.concatenate([end[sebs], start[of] + brackets.ends[inside]]),
        )
        bars.layer[bars.layer < 0] = len(self.frame.names)
        drawn.add(bars.take(np.argsort(np.concatenate([sebs, of]), kind="stable")))
        unclosed, not_finite = finite & (end < start), ~finite
        drawn.counts += [len(sebs), len(of), *((row >= 0) & (unclosed, not_finite)).sum(axis=1)]


class _FewBars:
    """Bars, kept while there are few enough."""

    def __init__(self) -> None:
        self._kept: list[Bars] = []
        self._known = 0

    def add(self, bars: Bars) -> None:
        """Add bars."""
        self._known += len(bars.row)
        self._kept = [*self._kept, bars] if self._known <= MOST_BARS else []

    def add_all(self, other: _FewBars) -> None:
        """Add the bars of a later block."""
        self._known += other._known
        self._kept = [*self._kept, *other._kept] if self._known <= MOST_BARS else []

    def joined(self) -> Bars | None:
        """Return the bars in the order of the log; None if there are too many."""
        if self._known > MOST_BARS:
            return None
        return Bars._make(map(np.concatenate, zip(*self._kept, strict=True)))


class _Drawn:
    """The cells and bars of one block, with memory for those cells that it covers.

    A cell holds the PE time of a layer in units of a column's length: a PE that is busy throughout
    adds 1, and a SEB shorter than a column adds its fraction of it. A longer one is a step: +1 in
    its second column, −1 in its last one.
    """

    def __init__(self, frame: _Frame) -> None:
        self._frame = frame
        self.counts = np.zeros(4, dtype=np.int64)
        """The numbers of SEBs and brackets drawn, and of SEBs unclosed and not finite."""
        self.bars = _FewBars()
        none = np.empty(0, dtype=np.int64), np.empty(0)
        self.sums: list[tuple[Ints, Floats]] = [none, none]
        """The cells, and the sums of their parts; then those of their steps."""

    def add(self, bars: Bars) -> None:
        """Add the bars that the figure shows."""
        columns, from_s = self._frame.columns, self._frame.from_s
        scale = columns / (self._frame.to_s - from_s)
        with np.errstate(over="ignore"):
            left, right = ((times - from_s) * scale for times in (bars.start_s, bars.end_s))
        shown = np.flatnonzero((right >= 0.0) & (left <= columns))
        bars = bars.take(shown)
        left, right = np.maximum(left[shown], 0.0), np.minimum(right[shown], columns)
        first, last = left.astype(np.int64), right.astype(np.int64)
        long = first < last
        line, layers = bars.row * (columns + 1), self._frame.layers
        begins, ends = ((line + column) * layers + bars.layer for column in (first, last))
        parts = np.where(long, first + 1 - left, right - left)
        ones = np.ones(np.count_nonzero(long))
        self._sum(0, np.append(begins, ends[long]), np.append(parts, (right - last)[long]))
        self._sum(1, np.append(begins[long] + layers, ends[long]), np.append(ones, -ones))
        self.bars.add(bars)

    def _sum(self, what: int, cells: Ints, values: Floats) -> None:
        known, sums = self.sums[what]
        every, place = np.unique(np.append(known, cells), return_inverse=True)
        added = np.bincount(place, np.append(sums, values), minlength=len(every))
        self.sums[what] = every, added.astype(np.float64)


class _Canvas:
    """The cells and bars of a figure, to which the blocks of a log set are added in order."""

    def __init__(self, frame: _Frame, rows: int) -> None:
        self.counts = np.zeros(4, dtype=np.int64)
        self.bars = _FewBars()
        self._parts, self._steps = np.zeros((2, rows, frame.columns + 1, frame.layers))

    def add(self, drawn: _Drawn) -> None:
        """Add a block."""
        self.counts += drawn.counts
        self.bars.add_all(drawn.bars)
        for cells, (places, sums) in zip((self._parts, self._steps), drawn.sums, strict=True):
            cells.reshape(-1)[places] += sums

    def cells(self) -> Floats:
        """Return the cells, shape (rows, columns, layers); the last layer is for brackets."""
        return np.asarray((self._parts + self._steps.cumsum(axis=1))[:, :-1])
