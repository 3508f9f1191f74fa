"""The content of a figure of timelines: rows of PEs, cells and bars, the same for all formats.

Times are those of the logs or of a replay. For times of logs, memory is bounded by the size of the
figure, not of the logs: cells hold the share of time of each colour, and SEBs are kept individually
only while they are few enough to be drawn as bars. Messages that are to be drawn are chosen from
all those of a timeline.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from rewritelog.arrays import Floats, Ints
from rewritelog.commands.logs import ALWAYS
from rewritelog.errors import UsageError
from rewritelog.formats.bgtrace.blocks import LoadedBlock
from rewritelog.formats.bgtrace.logset import LogSet
from rewritelog.formats.bgtrace.params import ParamFolder, list_params
from rewritelog.formats.traces import AnyTraces
from rewritelog.replaying.replay import ReplayedRun
from rewritelog.replaying.workload import Lanes
from rewritelog.running.locks import cached_property
from rewritelog.text import count_text, printable, time_range_text
from rewritelog.viewing.plots import BRACKET, COLOURS, OTHER, OUTSIDE
from rewritelog.viewing.spans import Extent, MessageLines, Spans, message_lines

MOST_ROWS = 128
"""If there are more PEs, each row is a group of PEs."""

MOST_BARS = 20_000
"""If there are more SEBs and brackets, they are drawn as shares of time."""

COLUMNS = 1600

MOST_STEPS = 400
"""The most steps in which shares over time are drawn or returned."""

_BUSIEST = 1.001
"""A larger share of a column's time is due to overlap, not to rounding."""

ColourBy = Literal["event", "name"]
Result = TypeVar("Result")


class Bars(NamedTuple):
    """Individual SEBs and brackets, in the order of the log."""

    row: Ints
    layer: Ints
    pe: Ints
    seb: Ints
    start_s: Floats
    end_s: Floats

    def take(self, rows: Ints) -> Bars:
        """Return some of the bars."""
        return Bars._make(column[rows] for column in self)


class Run(Struct, frozen=True, dict=True):
    """What a panel draws: the recorded times of a log set, or those of its replay."""

    logs: AnyTraces
    params: Path | None = None
    """The folder with the param files; None for that of the logs."""
    lanes: Lanes | None = None
    """The threads and streams of traces, which take the place of PEs."""
    spans: Spans | None = None
    """What is drawn; None if it is read part by part."""
    outcome: ReplayedRun | None = None
    """The replay whose times are drawn; None for recorded times."""

    @classmethod
    def replayed(cls, logs: AnyTraces, outcome: ReplayedRun, params: Path | None = None) -> Run:
        """Return the times of a replay."""
        nodes = outcome.workload.nodes
        lanes = None if nodes is None else nodes.lanes
        return cls(logs, params, lanes, Spans.of_replay(outcome), outcome)

    @property
    def pes(self) -> Sequence[int]:
        """The numbers of PEs, or of threads and streams."""
        return self.logs.pes if self.lanes is None else range(len(self.lanes.rank))

    def map(self, work: Callable[[Spans], Result], colour_by: ColourBy | None) -> Iterator[Result]:
        """Call `work` with the SEBs and brackets, of logs part by part; yield the results.

        Param files are not read if `colour_by` is `name`.
        """
        if self.spans is not None:
            yield work(self.spans)
        else:
            folder = self.params or self.logs.folder
            params = None if colour_by == "name" else list_params(folder)
            for results in self.logs.map(partial(_of_parts, work, params)):
                yield from results

    @cached_property
    def lane_names(self) -> tuple[str, ...]:
        """The names of threads and streams; none of PEs."""
        return () if self.lanes is None else tuple(self.lanes.names)

    @property
    def label(self) -> str:
        """The folder, and the network if times of a replay are drawn."""
        folder = printable(str(self.logs.path))
        if self.outcome is None:
            return folder
        return f"{folder}, replayed: {self.outcome.case.network.text(self.logs.terms.recorded)}"


def _of_parts(
    work: Callable[[Spans], Result], params: ParamFolder | None, parts: Iterator[LoadedBlock], /
) -> list[Result]:
    return [work(Spans.of_block(part, params)) for part in parts]


class Panel(Struct, frozen=True):
    """The timelines of one run."""

    run: Run
    cells: Floats
    """Share of the row's PE time, shape (rows, columns, layers)."""
    over_time: Floats
    """Share of all PEs' time, shape (columns, layers)."""
    bars: Bars | None
    """The individual SEBs and brackets; None if there are too many."""
    from_s: float
    to_s: float
    """The part of the window from the run's first start to its last end."""
    sebs: int
    left_out: int
    """Number of SEBs that are not drawn: never closed, never run, or without finite times.

    Those that start after the window are not counted.
    """
    messages: MessageLines | None
    """None if they are not to be drawn."""
    malformed: int
    """The number of malformed param lines."""


class TimelineView(Struct, frozen=True, dict=True):
    """One run, or two one above the other, with the same rows, time axis and layers.

    A layer is what has one colour: each name or event, by falling total time; all others; and last
    the time inside brackets, which is drawn over SEB names, or SEBs outside of events.
    """

    pes: tuple[int, ...]
    from_s: float
    to_s: float
    colour_by: ColourBy
    names: tuple[str, ...]
    """The names with a colour of their own, made printable, by falling total time."""
    columns: int
    panels: tuple[Panel, ...] = ()

    @property
    def group(self) -> int:
        """The number of PEs that share a row."""
        return -(-len(self.pes) // MOST_ROWS)

    @property
    def rows(self) -> int:
        """The number of rows of a panel."""
        return -(-len(self.pes) // self.group)

    @property
    def layers(self) -> list[tuple[str, str]]:
        """The label and the colour of each layer."""
        if self.colour_by == "name":
            others = [("other names", OTHER), ("inside brackets", BRACKET)]
        else:
            others = [("other brackets", OTHER), ("SEBs outside of events", OUTSIDE)]
        return [*zip(self.names, COLOURS, strict=False), *others]

    def over_names(self, layer: int) -> bool:
        """Return whether a layer is drawn over the others, as a strip."""
        return self.colour_by == "name" and layer == len(self.names) + 1

    def places_of_pes(self, total: int) -> Floats:
        """Return the middle of each PE, in rows from the top; −1 for PEs that are not drawn."""
        places = np.full(total, -1.0)
        places[list(self.pes)] = (np.arange(len(self.pes)) + 0.5) / self.group
        return places

    def layers_of(self, spans: Spans) -> Ints:
        """Return the layer of each SEB and each bracket."""
        last = len(self.names) + 1
        place = {name: layer for layer, name in enumerate(self.names)}
        layers = [place.get(label, len(self.names)) for label in (*spans.labels, "")]
        if self.colour_by == "name":
            layers[spans.name_count :] = [last] * (len(layers) - spans.name_count)
        else:
            layers[: spans.name_count] = [last] * spans.name_count
        return np.array(layers)[spans.label]

    @property
    def row_labels(self) -> list[str]:
        """The labels of the rows' PEs, such as `PE 3`, `PE 0–7`, or `PE 0, …, 9` with gaps."""
        groups = [
            self.pes[first : first + self.group] for first in range(0, len(self.pes), self.group)
        ]
        if names := self.panels[0].run.lane_names:
            return [f"{names[pes[0]]}{', …' if len(pes) > 1 else ''}" for pes in groups]
        return [_pes_text(pes) for pes in groups]

    @cached_property
    def shown_layers(self) -> list[int]:
        """The layers of which anything is drawn, in the order of drawing."""
        busy = sum(panel.cells.sum(axis=(0, 1)) for panel in self.panels)
        shown = [layer for layer in range(len(self.layers)) if busy[layer] > 0]
        return shown if self.colour_by == "name" else sorted(shown, key=lambda k: k < shown[-1])

    def in_steps(self, panel: Panel) -> tuple[Floats, Floats]:
        """Return the bounds of at most `MOST_STEPS` steps, and the shares over time in these."""
        shares = panel.over_time
        columns = np.linspace(0, len(shares), min(len(shares), MOST_STEPS) + 1).astype(np.int64)
        shares = np.add.reduceat(shares, columns[:-1], axis=0) / np.diff(columns)[:, None]
        return self.from_s + columns / columns[-1] * (self.to_s - self.from_s), shares

    def over_time_json(self, panel: Panel) -> dict[str, Any]:
        """Return the shares over time in steps of the layers that are shown, as JSON types."""
        edges, shares = self.in_steps(panel)
        return {
            "run": panel.run.label,
            "bounds_s": edges.tolist(),
            "shares": {
                self.layers[layer][0]: shares[:, layer].tolist()
                for layer in sorted(self.shown_layers)
            },
        }

    def overlapping(self, panel: Panel) -> bool:
        """Return whether SEBs of a PE overlap, so that it is busy for more than the time."""
        busy = panel.cells[:, :, : -1 if self.over_names(len(self.layers) - 1) else None]
        return bool((busy.sum(axis=2) > _BUSIEST).any())

    def shares(self, panel: Panel) -> Floats:
        """Return each layer's share of the PEs' time over the run's own length."""
        share = (panel.to_s - panel.from_s) / (self.to_s - self.from_s)
        return np.asarray(panel.over_time.mean(axis=0) / (share if share > 0 else 1.0))

    def busy_share(self, panel: Panel) -> float:
        """Return the share of the PEs' time in SEBs."""
        shares = self.shares(panel)
        return float(shares.sum() if self.colour_by == "event" else shares[:-1].sum())

    def bracket_share(self, panel: Panel) -> float:
        """Return the share of the PEs' time in brackets."""
        shares = self.shares(panel)
        return float(shares[-1] if self.colour_by == "name" else shares[:-1].sum())


def _pes_text(pes: Sequence[int]) -> str:
    if len(pes) == 1:
        return f"PE {pes[0]}"
    return f"PE {pes[0]}{'–' if pes[-1] - pes[0] < len(pes) else ', …, '}{pes[-1]}"


def timeline_view(
    runs: Sequence[Run],
    pes: Sequence[int] | None = None,
    window: tuple[float | None, float | None] = (None, None),
    colour_by: ColourBy | None = None,
    *,
    columns: int = COLUMNS,
    seed: int | None = None,
) -> TimelineView:
    """Read log sets twice, to find the names with the most time in the figure, and to fill it.

    By default it shows all PEs, from the first start of a SEB to the last end, in colours of events
    if any brackets in the picture have them, else of SEB names. Messages are drawn only with a
    seed, by which some are chosen if there are many. Raise `UsageError` if the runs have different
    PEs, if a PE is not in them, or if the PEs run nothing between the times; `DamagedLogError` if a
    block is damaged.
    """
    shown_pes = _chosen_pes(runs, pes)
    extents = [_extent(run, shown_pes, window, colour_by) for run in runs]
    has_events = any(+extent.event_s for extent in extents)
    colour_by = colour_by or ("event" if has_events else "name")
    seconds = Counter[str]()
    for extent in extents:
        seconds.update(extent.event_s if colour_by == "event" else extent.name_s)
    ranked = sorted(seconds, key=lambda name: (-seconds[name], name))
    names, times = tuple(ranked[: len(COLOURS)]), _window(runs[0], extents, *window)
    view = TimelineView(shown_pes, *times, colour_by, names, columns)
    panels = [_panel(run, extent, view, seed) for run, extent in zip(runs, extents, strict=True)]
    view = replace(view, panels=tuple(panels))
    if not view.shown_layers:
        terms, window_text = runs[0].logs.terms, time_range_text(*times)
        takes = f"no {terms.item} of these {terms.rows[1]} takes any of this time"
        raise UsageError(f"nothing to draw from {window_text}: {takes}")
    return view


def _chosen_pes(runs: Sequence[Run], chosen: Sequence[int] | None) -> tuple[int, ...]:
    first, rows = runs[0], runs[0].logs.terms.rows
    for other in runs[1:]:
        if len(other.pes) != len(first.pes) or other.lane_names != first.lane_names:
            has = f"{len(other.pes):,}" if len(other.pes) != len(first.pes) else "others"
            raise UsageError(
                f"{first.logs.path} has {count_text(len(first.pes), *rows)} and {other.logs.path} "
                f"{has}: they cannot be drawn on the same rows"
            )
    if chosen is None:
        return tuple(first.pes)
    if first.lanes is not None:
        chosen = np.flatnonzero(np.isin(first.lanes.rank, list(chosen))).tolist()
    if not chosen:
        raise UsageError(f"no {rows[0]} is chosen")
    return tuple(sorted(set(chosen)))


def _extent(
    run: Run,
    shown_pes: Sequence[int],
    window: tuple[float | None, float | None],
    colour_by: ColourBy | None,
) -> Extent:
    drawn = np.zeros(len(run.pes), dtype=np.bool_)
    drawn[list(shown_pes)] = True
    from_s, to_s = (end if at is None else at for at, end in zip(window, ALWAYS, strict=True))
    work = partial(Spans.extent, drawn=drawn, window=(from_s, to_s))
    extent = sum(run.map(work, colour_by), Extent())
    return extent if run.outcome is None else replace(extent, earliest_s=0.0)


def _window(
    run: Run, extents: Sequence[Extent], from_s: float | None, to_s: float | None
) -> tuple[float, float]:
    first_s = min(extent.earliest_s for extent in extents)
    last_s = max(extent.latest_s for extent in extents)
    if first_s > last_s:
        does = "has start and end" if run.outcome is None else "runs in the replay"
        raise UsageError(f"{run.logs.path}: nothing to draw: no {run.logs.terms.item} {does}")
    from_s = first_s if from_s is None else from_s
    to_s = last_s if to_s is None else to_s
    length_s = to_s - from_s
    in_range = 0 < length_s < math.inf and COLUMNS / length_s < math.inf
    if not (in_range and from_s < last_s and to_s > first_s):
        window_text = f" from {time_range_text(from_s, to_s)}" if from_s <= to_s else ""
        lasting = time_range_text(first_s, last_s)
        raise UsageError(f"nothing to draw{window_text}: the logs last from {lasting}")
    return from_s, to_s


def _panel(run: Run, extent: Extent, view: TimelineView, seed: int | None) -> Panel:
    places, sebs, left_out = view.places_of_pes(len(run.pes)), 0, 0
    rows = np.floor(places).astype(np.int64)
    all_bars, bar_count = list[Bars](), 0
    times = np.zeros((view.rows, 2, view.columns + 1, len(view.layers)))
    for part in run.map(partial(_panel_part, view, rows), view.colour_by):
        times.reshape(-1)[part.cells] += part.times
        sebs += part.sebs
        left_out += part.left_out
        bar_count += part.bar_count
        all_bars.append(part.bars)
        if bar_count > MOST_BARS:
            all_bars.clear()
    members = np.bincount(rows[rows >= 0])
    parts, steps = times[:, 0], times[:, 1].cumsum(axis=1)
    cells = (parts + steps)[:, :-1] / members[:, None, None]
    if view.colour_by == "event":  # brackets lie within their SEBs
        cells[:, :, -1] = np.maximum(cells[:, :, -1] - cells[:, :, :-1].sum(axis=2), 0.0)
    over_time = np.einsum("rcl,r->cl", cells, members / members.sum())
    bars = None
    if bar_count <= MOST_BARS:
        bars = Bars._make(map(np.concatenate, zip(*all_bars, strict=True)))
    from_s, to_s = max(view.from_s, extent.earliest_s), min(view.to_s, extent.latest_s)
    lines = None
    if seed is not None and isinstance(run.logs, LogSet):
        lines = message_lines(run.logs, run.outcome, places, (view.from_s, view.to_s), seed)
    drawn = run, cells, over_time, bars, from_s, to_s, sebs, left_out, lines
    return Panel(*drawn, extent.malformed)


class _PanelPart(NamedTuple):
    """What is drawn of some SEBs and brackets."""

    bars: Bars
    """Empty if there are too many to be drawn as bars."""
    bar_count: int
    """The number of SEBs and brackets in the time window."""
    cells: Ints
    """Indices into the flat array of shape (rows, parts and steps, columns + 1, layers)."""
    times: Floats
    """What is to be added there."""
    sebs: int
    left_out: int


def _panel_part(view: TimelineView, rows: Ints, spans: Spans, /) -> _PanelPart:
    """Return what is drawn in the time window.

    `rows` are the rows of the PEs, −1 for those that are not drawn.
    """
    row = rows[spans.pe]
    chosen = (row >= 0) & spans.closed
    in_window = chosen & (spans.end_s >= view.from_s) & (spans.start_s <= view.to_s)
    drawn = np.flatnonzero(in_window)
    drawn = drawn[np.argsort(spans.seb_row[drawn], kind="stable")]
    columns = row, view.layers_of(spans), spans.pe, spans.seb, spans.start_s, spans.end_s
    of_sebs = slice(spans.seb_count)
    is_later = spans.finite & (spans.start_s > view.to_s)
    left_out = np.count_nonzero(((row >= 0) & ~spans.closed & ~is_later)[of_sebs])
    bars = Bars._make(columns).take(drawn)
    kept_bars = bars if len(drawn) <= MOST_BARS else bars.take(drawn[:0])
    sebs = np.count_nonzero(in_window[of_sebs])
    return _PanelPart(kept_bars, len(drawn), *_times(bars, view), int(sebs), int(left_out))


def _times(bars: Bars, view: TimelineView) -> tuple[Ints, Floats]:
    """Return cells to which bars add PE time, as parts and steps, and the sum that they add.

    It is in units of a column's length: a PE that is busy throughout adds 1, and a SEB shorter than
    a column adds its fraction of it. A longer one is a step: +1 in its second column, −1 in its
    last one; their sums over time have to be added to the parts.
    """
    scale = view.columns / (view.to_s - view.from_s)
    with np.errstate(over="ignore"):
        left = np.maximum((bars.start_s - view.from_s) * scale, 0.0)
        right = np.minimum((bars.end_s - view.from_s) * scale, view.columns)
    first, last = left.astype(np.int64), right.astype(np.int64)
    long = first < last
    layers = len(view.layers)
    steps = (view.columns + 1) * layers
    parts = 2 * steps * bars.row + bars.layer
    of_long, second, last = parts[long], first[long] + 1, last[long]
    inside = np.where(long, first + 1 - left, right - left)
    cells = np.concatenate([
        parts + first * layers, of_long + last * layers,
        of_long + steps + second * layers, of_long + steps + last * layers,
    ])  # fmt: skip
    ones = np.ones(len(last))
    times = np.concatenate([inside, right[long] - last, ones, -ones])
    least = cells.min() if len(cells) else 0
    sums = np.asarray(np.bincount(cells - least, times), np.float64)  # blocks have few rows
    used = np.flatnonzero(sums)
    return least + used, sums[used]
