"""The content of a figure of timelines: rows of PEs, cells and bars, the same for all formats.

Times are those of the logs or of a replay. Of the former, memory is bounded by the figure's size,
not that of the logs: cells hold the share of time of each colour, and SEBs are kept individually
only while they are few enough to be drawn as bars.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from rewritelog.arrays import Floats, Ints
from rewritelog.errors import UsageError
from rewritelog.formats.bgtrace.blocks import LoadedBlock
from rewritelog.formats.bgtrace.logset import LogSet
from rewritelog.formats.bgtrace.params import ParamFolder, list_params
from rewritelog.replaying.simulate import ReplayedRun
from rewritelog.text import printable
from rewritelog.viewing.palette import BRACKET, COLOURS, OTHER, OUTSIDE
from rewritelog.viewing.spans import NOTHING, Extent, Spans

MOST_ROWS = 128
"""If there are more PEs, each row is a group of PEs."""

MOST_BARS = 20_000
"""If there are more SEBs and brackets, they are drawn as shares of time."""

COLUMNS = 1600

ColourBy = Literal["event", "name"]


@dataclass(frozen=True)
class TimelineOptions:
    """The part of the logs that is drawn, and what its colours mean."""

    pes: Sequence[int] | None = None
    """None for all."""
    from_s: float | None = None
    """Start of the time axis; None for the first start of a SEB."""
    to_s: float | None = None
    """End of the time axis; None for the last end of a SEB."""
    colour_by: ColourBy | None = None
    """None for events if brackets have any, else SEB names."""

    def __post_init__(self) -> None:
        for time in (self.from_s, self.to_s):
            if time is not None and not math.isfinite(time):
                raise UsageError(f"{time} is not a time in seconds")


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
class Run:
    """What a panel draws: the recorded times of a log set, or those of its replay."""

    logs: LogSet
    outcome: ReplayedRun | None = None
    params: Path | None = None
    """The folder with the param files; None for that of the logs."""

    @property
    def label(self) -> str:
        """The folder, and whose times are drawn."""
        folder = printable(str(self.logs.folder))
        if self.outcome is None:
            return folder
        return f"{folder}, replayed: {self.outcome.case.network.text()}"

    @property
    def left_out(self) -> str:
        """What is wrong with SEBs that cannot be drawn."""
        return "without an end" if self.outcome is None else "that never ran"


@dataclass(frozen=True)
class Panel:
    """The timelines of one run."""

    run: Run
    cells: Floats
    """Share of the row's PE time, shape (rows, columns, layers)."""
    bars: Bars | None
    """The individual SEBs and brackets; None if there are too many."""
    from_s: float
    to_s: float
    """The part of the window from the run's first start to its last end."""
    sebs: int
    brackets: int
    unclosed: int
    """Number of SEBs that were never closed, which are not drawn."""
    not_finite: int
    """Number of SEBs with times that are not finite, or that never ran, which are not drawn."""


@dataclass(frozen=True)
class TimelineView:
    """One run, or two one above the other, on one time axis.

    Layers are the colours: of names or events by falling total time, of all others, and last of
    time inside brackets, which lies over SEB names, or of SEBs outside of events.
    """

    panels: tuple[Panel, ...]
    pes: tuple[int, ...]
    group: int
    """Number of PEs that share a row."""
    from_s: float
    to_s: float
    colour_by: ColourBy
    names: tuple[str, ...]
    """The names with a colour of their own, made printable, by falling total time."""
    other_names: int
    """Number of names that share a colour."""

    @property
    def rows(self) -> int:
        """The number of rows of a panel."""
        return -(-len(self.pes) // self.group)

    @property
    def layers(self) -> list[tuple[str, str]]:
        """The label and the colour of each layer."""
        labels = list(zip(self.names, COLOURS, strict=False))
        if self.colour_by == "name":
            return [
                *labels,
                (f"{self.other_names:,} other names", OTHER),
                ("inside brackets", BRACKET),
            ]
        return [*labels, ("other brackets", OTHER), ("SEBs outside of events", OUTSIDE)]

    @property
    def shown_layers(self) -> list[int]:
        """The layers of which anything is drawn, in the order of drawing."""
        busy = sum(panel.cells.sum(axis=(0, 1)) for panel in self.panels)
        shown = [layer for layer in range(len(self.layers)) if busy[layer] > 0]
        return shown if self.colour_by == "name" else sorted(shown, key=lambda k: k < shown[-1])

    def over_names(self, layer: int) -> bool:
        """Return whether a layer is drawn over the others, as a strip."""
        return self.colour_by == "name" and layer == len(self.layers) - 1

    def row_label(self, row: int) -> str:
        """Return the label of a row's PEs, such as `PE 3` or `PE 0–7`."""
        members = self.pes[row * self.group : (row + 1) * self.group]
        return f"PE {members[0]}" if len(members) == 1 else f"PE {members[0]}–{members[-1]}"

    def over_time(self, panel: Panel) -> Floats:
        """Return the share of all PEs' time in each column by layer, shape (columns, layers)."""
        members = np.full(self.rows, self.group)
        members[-1] = len(self.pes) - (self.rows - 1) * self.group
        return np.asarray(np.einsum("rcl,r->cl", panel.cells, members / members.sum()))

    def over_time_json(self, panel: Panel, most: int = 400) -> dict[str, Any]:
        """Return the shares over time as JSON types, in at most `most` columns of equal length."""
        shares = self.over_time(panel)
        columns = np.linspace(0, len(shares), min(len(shares), most) + 1).astype(np.int64)
        shares = np.add.reduceat(shares, columns[:-1], axis=0) / np.diff(columns)[:, None]
        edges = self.from_s + columns / columns[-1] * (self.to_s - self.from_s)
        return {
            "run": panel.run.label,
            "bounds_s": edges.tolist(),
            "shares": {
                label: shares[:, layer].tolist() for layer, (label, _) in enumerate(self.layers)
            },
        }

    def shares(self, panel: Panel) -> Floats:
        """Return the share of the PEs' time over the run's own length by layer."""
        own = (panel.to_s - panel.from_s) / (self.to_s - self.from_s)
        return np.asarray(self.over_time(panel).mean(axis=0) / (own if own > 0 else 1.0))

    def busy_share(self, panel: Panel) -> float:
        """Return the share of the PEs' time in SEBs."""
        shares = self.shares(panel)
        return float(shares.sum() if self.colour_by == "event" else shares[:-1].sum())

    def bracket_share(self, panel: Panel) -> float:
        """Return the share of the PEs' time in brackets."""
        shares = self.shares(panel)
        return float(shares[-1] if self.colour_by == "name" else shares[:-1].sum())


def timeline_view(
    runs: Sequence[Run], options: TimelineOptions | None = None, columns: int = COLUMNS
) -> TimelineView:
    """Read log sets twice, to find the names with the most time and to fill the figure.

    Raise `UsageError` if the runs have different PEs, if a PE is not in them or if there is nothing
    between the times; `DamagedLogError` if a block is damaged.
    """
    options = options or TimelineOptions()
    pes = _chosen_pes([run.logs for run in runs], options.pes)
    extents = [_extent(run, _params(run, options.colour_by)) for run in runs]
    has_events = any(extent.event_s for extent in extents)
    colour_by = options.colour_by or ("event" if has_events else "name")
    from_s, to_s = _window(extents, options)
    seconds = Counter[str]()
    for extent in extents:
        seconds.update(extent.event_s if colour_by == "event" else extent.name_s)
    ranked = sorted(seconds, key=lambda name: (-seconds[name], name))
    group = -(-len(pes) // MOST_ROWS)
    frame = Frame(pes, group, from_s, to_s, colour_by, tuple(ranked[: len(COLOURS)]), columns)
    panels = [_panel(run, extent, frame) for run, extent in zip(runs, extents, strict=True)]
    names = tuple(printable(name) for name in frame.names)
    others = max(0, len(ranked) - len(COLOURS))
    return TimelineView(tuple(panels), pes, group, from_s, to_s, colour_by, names, others)


@dataclass(frozen=True)
class Frame:
    """The properties that all panels of a figure share."""

    pes: tuple[int, ...]
    group: int
    from_s: float
    to_s: float
    colour_by: ColourBy
    names: tuple[str, ...]
    columns: int

    @property
    def layers(self) -> int:
        """The number of layers; see `TimelineView`."""
        return len(self.names) + 2

    def rows_of_pes(self, total: int) -> Ints:
        """Return the row of each PE, −1 for PEs that are not drawn."""
        rows = np.full(total, -1, dtype=np.int64)
        rows[list(self.pes)] = np.arange(len(self.pes)) // self.group
        return rows

    def layers_of(self, names: Sequence[str]) -> Ints:
        """Return the layer of each name, or event."""
        place = {name: layer for layer, name in enumerate(self.names)}
        return np.array([place.get(name, len(self.names)) for name in names], dtype=np.int64)


def _chosen_pes(sets: Sequence[LogSet], chosen: Sequence[int] | None) -> tuple[int, ...]:
    first = sets[0]
    for other in sets[1:]:
        if len(other.pes) != len(first.pes):
            raise UsageError(
                f"{first.folder} has {len(first.pes):,} PEs and {other.folder} "
                f"{len(other.pes):,}: they cannot be drawn on the same rows"
            )
    if chosen is None:
        return tuple(first.pes)
    for pe in chosen:
        first.timeline_block(pe)
    if not chosen:
        raise UsageError("no PE is chosen")
    return tuple(sorted(set(chosen)))


def _bars(spans: Spans, frame: Frame, rows: Ints) -> tuple[Bars, Ints]:
    """Return the bars of the PEs that have a row, and the counts of a `Panel`."""
    row, finite = rows[spans.pe], spans.finite
    closed = (row >= 0) & finite & (spans.end_s >= spans.start_s)
    sebs, inside = np.flatnonzero(closed), np.flatnonzero(closed[spans.of])
    of, last = spans.of[inside], frame.layers - 1
    if frame.colour_by == "name":
        layers, within = frame.layers_of(spans.names)[spans.name[sebs]], np.full(len(of), last)
    else:
        layers = np.full(len(sebs), last)
        within = frame.layers_of([*spans.events, ""])[spans.event[inside]]
    bars = Bars(
        row=np.concatenate([row[sebs], row[of]]),
        layer=np.concatenate([layers, within]),
        pe=np.concatenate([spans.pe[sebs], spans.pe[of]]),
        seb=np.concatenate([spans.seb[sebs], spans.seb[of]]),
        start_s=np.concatenate([spans.start_s[sebs], spans.begins_s[inside]]),
        end_s=np.concatenate([spans.end_s[sebs], spans.ends_s[inside]]),
    )
    unclosed = finite & (spans.end_s < spans.start_s)
    counts = [len(sebs), len(of), *((row >= 0) & (unclosed, ~finite)).sum(axis=1)]
    order = np.argsort(np.concatenate([sebs, of]), kind="stable")
    return bars.take(order), np.array(counts, dtype=np.int64)


@dataclass(frozen=True)
class _Extents:
    """Finds the extent of a block."""

    params: ParamFolder

    def __call__(self, parts: Iterator[LoadedBlock], /) -> Extent:
        """Return the extent of a block."""
        return sum((Spans.of_block(part, self.params).extent() for part in parts), NOTHING)


def _params(run: Run, colour_by: ColourBy | None) -> ParamFolder:
    """Return the param files of a run, none if no events are asked for."""
    if colour_by == "name":
        return ParamFolder(run.logs.folder, frozenset())
    return list_params(run.params or run.logs.folder)


def _extent(run: Run, params: ParamFolder) -> Extent:
    if run.outcome is not None:
        return replace(Spans.of_replay(run.outcome).extent(), earliest_s=0.0)
    return sum(run.logs.map(_Extents(params)), NOTHING)


def _window(extents: Sequence[Extent], options: TimelineOptions) -> tuple[float, float]:
    first_s = min(extent.earliest_s for extent in extents)
    last_s = max(extent.latest_s for extent in extents)
    from_s = first_s if options.from_s is None else options.from_s
    to_s = last_s if options.to_s is None else options.to_s
    if not (to_s > from_s and from_s < last_s and to_s > first_s):
        raise UsageError(
            f"nothing to draw from {from_s:.9g} s to {to_s:.9g} s: "
            f"the logs last from {first_s:.9g} s to {last_s:.9g} s"
        )
    return from_s, to_s


def _panel(run: Run, extent: Extent, frame: Frame) -> Panel:
    rows = frame.rows_of_pes(len(run.logs.pes))
    canvas = _Canvas(frame, int(rows.max()) + 1)
    if run.outcome is not None:
        canvas.add(_BlockCells.of(frame, rows, [Spans.of_replay(run.outcome)]))
    else:
        for drawn in run.logs.map(_DrawBlock(frame, rows, _params(run, frame.colour_by))):
            canvas.add(drawn)
    members = np.bincount(rows[rows >= 0]).astype(np.float64)
    cells = canvas.cells() / members[:, None, None]
    if frame.colour_by == "event":  # brackets lie within their SEBs
        cells[:, :, -1] = np.maximum(cells[:, :, -1] - cells[:, :, :-1].sum(axis=2), 0.0)
    from_s, to_s = max(frame.from_s, extent.earliest_s), min(frame.to_s, extent.latest_s)
    return Panel(run, cells, canvas.bars.joined(), from_s, to_s, *canvas.counts.tolist())


@dataclass(frozen=True)
class _DrawBlock:
    """Draws one block."""

    frame: Frame
    rows: Ints
    """The row of each PE, −1 for PEs that are not drawn."""
    params: ParamFolder

    def __call__(self, parts: Iterator[LoadedBlock], /) -> _BlockCells:
        """Return what is drawn of a block."""
        spans = (Spans.of_block(part, self.params) for part in parts)
        return _BlockCells.of(self.frame, self.rows, spans)


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


class _BlockCells:
    """The cells and bars of one block, with memory for those cells that it covers.

    A cell holds the PE time of a layer in units of a column's length: a PE that is busy throughout
    adds 1, and a SEB shorter than a column adds its fraction of it. A longer one is a step: +1 in
    its second column, −1 in its last one.
    """

    def __init__(self, frame: Frame) -> None:
        self._frame = frame
        self.counts = np.zeros(4, dtype=np.int64)
        """The numbers of SEBs and brackets drawn, and of SEBs unclosed and not finite."""
        self.bars = _FewBars()
        none = np.empty(0, dtype=np.int64), np.empty(0)
        self.sums: list[tuple[Ints, Floats]] = [none, none]
        """The cells, and the sums of their parts; then those of their steps."""

    @classmethod
    def of(cls, frame: Frame, rows: Ints, spans: Iterable[Spans]) -> _BlockCells:
        """Return what is drawn of some spans."""
        drawn = cls(frame)
        for part in spans:
            bars, counts = _bars(part, frame, rows)
            drawn.counts += counts
            drawn.add(bars)
        return drawn

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

    def __init__(self, frame: Frame, rows: int) -> None:
        self.counts = np.zeros(4, dtype=np.int64)
        self.bars = _FewBars()
        self._parts, self._steps = np.zeros((2, rows, frame.columns + 1, frame.layers))

    def add(self, drawn: _BlockCells) -> None:
        """Add a block."""
        self.counts += drawn.counts
        self.bars.add_all(drawn.bars)
        for cells, (places, sums) in zip((self._parts, self._steps), drawn.sums, strict=True):
            cells.reshape(-1)[places] += sums

    def cells(self) -> Floats:
        """Return the cells, shape (rows, columns, layers); the last layer is for brackets."""
        return np.asarray((self._parts + self._steps.cumsum(axis=1))[:, :-1])
