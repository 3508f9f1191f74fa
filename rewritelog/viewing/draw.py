"""Draws timelines: a page by Bokeh, or a figure for papers by matplotlib.

Both show SEBs over time. The page also has the share of busy PEs over time, and tables that follow
the zoom: a script adds up the shares of the columns in view. The figure is a PNG, SVG or PDF.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from rewritelog.arrays import Floats
from rewritelog.commands.durations import RewriteOptions
from rewritelog.commands.logs import TimelineCommand
from rewritelog.errors import UsageError, spelled
from rewritelog.formats.bgtrace.logset import LogSet
from rewritelog.formats.bgtrace.params import about_malformed, params_folder
from rewritelog.formats.traces import AnyTraces, joined, loaded
from rewritelog.output.files import write_file
from rewritelog.paths import is_stdout
from rewritelog.replaying.network import Network
from rewritelog.replaying.replay import prepare, replay_workload
from rewritelog.replaying.traces import lanes_of
from rewritelog.text import LABEL_WIDTH, count_text, shorten_all, time_text
from rewritelog.units import chosen_pes
from rewritelog.viewing.extra import drawing, require
from rewritelog.viewing.page import Section, page_text
from rewritelog.viewing.pictures import Picture
from rewritelog.viewing.plots import BRACKET, IDLE, MESSAGE, new_plot
from rewritelog.viewing.spans import Spans
from rewritelog.viewing.timeline import Bars, Panel, Run, TimelineView, timeline_view

KINDS = ("png", "svg", "pdf", "html")
"""The file formats of figures."""

WIDTH_INCHES = 12.0
LEGEND_WIDTH = 180
"""How many characters of a legend fit side by side into `WIDTH_INCHES`."""

MOST_LABELS = 32
"""At most this many rows of a figure are labelled."""

TOP, BOTTOM, BRACKET_TOP = 0.06, 0.94, 0.78
"""Edges of a bar in its PE's part of a row, of height 1, and where the strip of brackets begins."""

_SUBROWS = 8
"""How many lines of pixels a row of cells has."""


def draw_timeline(request: TimelineCommand) -> Picture:
    """Return the figure of one log set, or of two one above the other, and write it to the output.

    Raise `UsageError` for an unknown kind and if the extra `[view]` is not installed, `OutputError`
    if the output cannot be written, and what `timeline_view` raises.
    """
    sets = [logs for logs in (request.logs, request.against) if logs is not None]
    for logs in sets:
        if request.colour_by == "event" and not isinstance(logs, LogSet):
            by_event = spelled("colour_by", "event")
            raise UsageError(f"{by_event} is for bgTrace logs: {logs.path} has {logs.title}")
    output, kind = request.output, request.kind
    if kind is None:
        kind = "svg" if output is None or is_stdout(output) else output.suffix[1:].lower()
    if kind not in KINDS:
        if request.kind is None:
            raise UsageError(f"{output}: a picture needs the ending .{', .'.join(KINDS)}")
        raise UsageError(f"unknown kind of picture {kind!r}: use {', '.join(KINDS)}")
    require("bokeh" if kind == "html" else "matplotlib", "the picture")
    pes = chosen_pes(request.pes, sets[0].pes, sets[0].terms.lane)
    replayed = request.times == "replay" or (request.times is None and len(sets) > 1)
    runs = [_run(logs, sets[0], replayed=replayed) for logs in sets]
    window, seed = (request.from_s, request.until_s), request.seed if request.messages else None
    view = timeline_view(runs, pes, window, request.colour_by, seed=seed)
    over_time = tuple(view.over_time_json(panel) for panel in view.panels)
    warnings = tuple(
        f"{panel.run.logs.path}: {text}" if len(sets) > 1 else text
        for panel in view.panels
        for text in about_malformed(panel.malformed)
    )
    if kind == "html":
        page = page_text("Timelines", _summary(view), timeline_sections(view), warnings)
        content = page.encode()
    else:
        content = figure_bytes(view, kind)
    picture = Picture(content, kind, over_time, warnings)
    if output is not None:
        write_file(output, picture)
    return picture


def _run(logs: AnyTraces, first: AnyTraces, *, replayed: bool) -> Run:
    """Return the run to draw of a log set, or of traces with threads, streams and networks.

    The params of a rewritten log set may be in the folder of the first one.
    """
    params = params_folder(logs, first) if isinstance(logs, LogSet) else None
    if replayed:
        prepared = prepare(logs, RewriteOptions(params=params))
        return Run.replayed(
            logs, replay_workload(prepared.workload, prepared.case(Network())), params
        )
    if isinstance(logs, LogSet):
        return Run(logs, params=params)
    events = joined(list(logs.map(partial(loaded, more=("lane", "group", "start_us")))))
    lanes, lane = lanes_of(logs, events, by_group=True)
    spans = Spans.of_events(events, lane)
    if not spans.finite.any():
        raise UsageError(
            f"{logs.path}: no start times are recorded, so there is no time axis: "
            f"{spelled('times', 'replay')} draws those of a replay"
        )
    return Run(logs, lanes=lanes, spans=spans)


def panel_title(view: TimelineView, panel: Panel) -> str:
    """Return the title of a panel: which logs, how much of them, and how it is drawn."""
    item = panel.run.logs.terms.item
    lanes = panel.run.logs.terms.rows
    text = f"{panel.run.label}: {count_text(len(view.pes), *lanes)}, {count_text(panel.sebs, item)}"
    if view.group > 1:
        text += f", {view.group} {lanes[1]} per row"
    if panel.bars is None:
        text += f"; {item}s shorter than a pixel as shares of time"
    if panel.left_out:
        lacks = "an end" if panel.run.lanes is None else "a start"
        why = f"without {lacks}" if panel.run.outcome is None else "that never ran"
        text += f"; {panel.left_out:,} {why} not drawn"
    if view.overlapping(panel):
        text += f"; {item}s of a {lanes[0]} overlap, and each counts"
    return text


def legend_texts(view: TimelineView) -> list[str]:
    """Return the names of the layers with their shares of the PE time in each panel."""
    names = shorten_all([name for name, _ in view.layers], LABEL_WIDTH)
    shares = np.transpose([view.shares(panel) for panel in view.panels])
    return [
        f"{name} ({' → '.join(f'{100 * share:.1f} %' for share in of_layer)})"
        for name, of_layer in zip(names, shares, strict=True)
    ]


def cell_colours(cells: Floats, view: TimelineView) -> Floats:
    """Return red, green and blue of the figure's pixels, shape (rows × lines, columns, 3).

    Within a row the layers are stacked, each as thick as its share of the time; a pixel that
    several layers share has their mean colour, so that no layer vanishes. If SEBs overlap, as
    they may in a rewritten log, their shares are scaled to a sum of 1.
    """
    rows, columns, layers = cells.shape
    strip_layer = layers - 1 if view.over_names(layers - 1) else layers
    stacked = cells[:, :, :strip_layer]
    shares = stacked / np.maximum(stacked.sum(axis=2, keepdims=True), 1.0)
    tops = np.cumsum(shares, axis=2) * _SUBROWS
    bottoms = tops - shares * _SUBROWS
    pixels = np.empty((rows, _SUBROWS, columns, 3))
    *colours, idle, bracket = (
        np.array([*bytes.fromhex(colour[1:])]) / 255
        for colour in (*(colour for _, colour in view.layers[:strip_layer]), IDLE, BRACKET)
    )
    for line in range(_SUBROWS):
        covered = np.clip(np.minimum(tops, line + 1) - np.maximum(bottoms, line), 0.0, 1.0)
        rest = np.clip(1.0 - covered.sum(axis=2, keepdims=True), 0.0, 1.0)
        pixels[:, line] = covered @ np.array(colours) + rest * idle
    if strip_layer < layers:
        strip = int(BRACKET_TOP * _SUBROWS)
        inside = np.clip(cells[:, :, -1], 0.0, 1.0)[:, None, :, None]
        pixels[:, strip:] = pixels[:, strip:] * (1 - inside) + bracket * inside
    return pixels.reshape(rows * _SUBROWS, columns, 3)


def layer_bars(view: TimelineView, bars: Bars, layer: int) -> tuple[Bars, Any]:
    """Return the bars of a layer, and their left, right, top and bottom, in seconds and rows.

    Rows are on an axis that points down. The PEs of a group divide its row between them.
    """
    of_layer = bars.take(np.flatnonzero(bars.layer == layer))
    place = np.searchsorted(view.pes, of_layer.pe)
    edges = (BRACKET_TOP if view.over_names(layer) else TOP), BOTTOM
    sides = ((place + edge) / view.group for edge in edges)
    return of_layer, np.stack([of_layer.start_s, of_layer.end_s, *sides])


def _over_time(view: TimelineView) -> dict[str, Any]:
    """Return the options of all plots over time; equal room for labels aligns their axes."""
    room = 40 + 6 * max(map(len, view.row_labels))
    tools = "xpan,xwheel_zoom,xbox_zoom,reset,save"
    return {"seconds": "x", "tools": tools, "min_border_left": max(100, room)}


_SIDES = ("left", "right", "top", "bottom")


def timeline_sections(view: TimelineView) -> list[Section]:
    """Return the sections of all panels: timelines, busy share over time, and a table of both."""
    sections: list[Section] = []
    followed: list[dict[str, Any]] = []
    for number, panel in enumerate(view.panels):
        shown, table = view.shown_layers, f"shares-{number}"
        x_range = sections[0].plot.x_range if sections else None
        plot = _timelines(view, panel, x_range, f"timeline-{number}")
        if (lines := panel.messages) is not None:
            ends = lines.sent_s, lines.from_row, lines.arrived_s, lines.to_row
            style = {"line_color": MESSAGE, "line_alpha": 0.5, "line_width": 0.7}
            plot.segment(*ends, legend_label="messages", **style)
        plot.legend.click_policy = "hide"
        heading, data = panel_title(view, panel), {"timelines": followed}
        sections += [
            Section(heading, plot=plot, script="timeline.js", data=data),
            Section("Busy share over time", plot=_busy_plot(view, panel, plot.x_range)),
            Section("Time in view", html=f'<div id="{table}"></div>'),
        ]
        followed.append({
            "table": table,
            "plot": plot.name,
            "layers": [view.layers[layer][0] for layer in shown],
            "lane": panel.run.logs.terms.rows,
            "item": panel.run.logs.terms.item,
            "over": [view.over_names(layer) for layer in shown],
            "from": view.from_s,
            "to": view.to_s,
            "run": [panel.from_s, panel.to_s],
            "pes": len(view.pes),
            "columns": view.columns,
            "shares": panel.over_time[:, shown],
        })  # fmt: skip
    return sections


def _summary(view: TimelineView) -> list[str]:
    lines = []
    for panel in view.panels:
        run, inside = panel.run, f", {100 * view.bracket_share(panel):.1f} % inside brackets"
        busy = f"{run.logs.terms.rows[1]} are busy {100 * view.busy_share(panel):.1f} %"
        length = time_text(panel.to_s - panel.from_s)
        lines.append(f"{run.label}: {busy} of the {length} shown{'' if run.lanes else inside}.")
        if panel.messages is not None and panel.messages.drawn < panel.messages.in_window:
            count = f"{panel.messages.drawn:,} of {panel.messages.in_window:,}"
            lines.append(f"{count} messages are drawn, chosen at random.")
    return lines


def _timelines(view: TimelineView, panel: Panel, x_range: Any, name: str) -> Any:
    """Return the plot of a panel, on the range of the first one; PE 0 is on top."""
    from bokeh.models import Range1d  # noqa: PLC0415 - an extra

    bounds = (view.from_s, view.to_s)
    plot = new_plot(
        "time",
        panel.run.logs.terms.rows[0],
        rows=view.row_labels,
        height=int(np.clip(24 * view.rows + 30, 150, 790)),
        x_range=x_range or Range1d(start=bounds[0], end=bounds[1], bounds=bounds),
        active_scroll="xwheel_zoom",
        active_drag="xbox_zoom",
        name=name,
        **_over_time(view),
    )
    plot.ygrid.visible = False
    if panel.bars is None:
        pixels = np.round(255 * cell_colours(panel.cells, view)).astype(np.uint8)
        opaque = np.full((*pixels.shape[:2], 1), 255, dtype=np.uint8)
        image = np.concatenate([pixels, opaque], axis=2).view("<u4")[:, :, 0].astype(np.uint32)
        plot.image_rgba([image], x=view.from_s, y=0, dw=view.to_s - view.from_s, dh=view.rows)
    _add_bars(plot, view, panel)
    return plot


def _add_bars(plot: Any, view: TimelineView, panel: Panel) -> None:
    """Draw the bars and make the legend; a panel of cells has only the legend."""
    from bokeh.models import HoverTool  # noqa: PLC0415 - an extra

    nothing, texts = Bars(*np.full((6, 1), np.nan)), legend_texts(view)
    lanes = dict(enumerate(panel.run.lane_names))
    for layer in view.shown_layers:
        bars, sides = layer_bars(view, panel.bars or nothing, layer)
        if not len(bars.pe):  # without a row, Bokeh's legend would not show the colour
            bars, sides = nothing, np.full((4, 1), np.nan)
        label, colour = view.layers[layer]
        data: dict[str, Any] = dict(zip(_SIDES, sides, strict=True))
        data |= {"pe": bars.pe, "seb": bars.seb, "name": [label] * len(bars.pe)}
        if lanes:
            data["pe"] = [lanes.get(pe) for pe in bars.pe.tolist()]
        data["start"] = [time_text(time_s, 7) for time_s in bars.start_s.tolist()]
        data["length"] = list(map(time_text, (bars.end_s - bars.start_s).tolist()))
        style = {"fill_color": colour, "line_color": colour, "line_width": 0.5}
        named = {side: side for side in _SIDES}
        plot.quad(**named, source=data, legend_label=texts[layer], **style)
    if panel.bars is not None:
        place = f"{panel.run.logs.terms.rows[0]}, {panel.run.logs.terms.item}"
        places = [(place, "@pe, @seb"), ("start", "@start"), ("length", "@length")]
        plot.add_tools(HoverTool(tooltips=[("", "@name"), *places]))


def _busy_plot(view: TimelineView, panel: Panel, x_range: Any) -> Any:
    """Return the plot of the share of PEs in each layer over time, one layer above the other."""
    edges, shares = view.in_steps(panel)
    plot = new_plot(
        "time", "busy, %", height=140, x_range=x_range, y_range=(0, 100), **_over_time(view)
    )
    stacked = [layer for layer in sorted(view.shown_layers) if not view.over_names(layer)]
    columns = {str(layer): 100 * np.repeat(shares[:, layer], 2) for layer in stacked}
    colours = [view.layers[layer][1] for layer in stacked]
    # Areas, since bars beside each other would have bright seams.
    source = {"time": np.repeat(edges, 2)[1:-1], **columns}
    plot.varea_stack([*columns], x="time", source=source, color=colours)
    return plot


def figure_bytes(view: TimelineView, kind: str) -> bytes:
    """Return a figure in the format `png`, `svg` or `pdf`; its bytes are reproducible."""
    from matplotlib.lines import Line2D  # noqa: PLC0415 - an extra
    from matplotlib.patches import Patch  # noqa: PLC0415
    from matplotlib.ticker import EngFormatter  # noqa: PLC0415

    height = float(np.clip(0.22 * view.rows, 1.2, 9.0)) * len(view.panels) + 1.6
    with drawing((WIDTH_INCHES, height), {"font.size": 8}) as (figure, saved):
        axes = figure.subplots(len(view.panels), 1, sharex=True, squeeze=False)[:, 0]
        for panel, ax in zip(view.panels, axes, strict=True):
            _draw_panel(ax, view, panel)
        axes[-1].set_xlim(view.from_s, view.to_s)
        axes[-1].set_xlabel("time")
        axes[-1].xaxis.set_major_formatter(EngFormatter("s"))
        texts = legend_texts(view)
        keys: list[Any] = [
            Patch(facecolor=view.layers[layer][1], label=texts[layer])
            for layer in view.shown_layers
        ]
        if view.panels[0].messages is not None:
            keys.append(Line2D([], [], color=MESSAGE, lw=0.8, label="messages"))
        longest = max(len(key.get_label()) for key in keys)
        columns = min(4, LEGEND_WIDTH // (longest + 10)) or 1
        place = {"loc": "outside lower center", "frameon": False}
        figure.legend(handles=keys, ncols=columns, fontsize=8, **place)
        return saved(kind)


def _draw_panel(ax: Any, view: TimelineView, panel: Panel) -> None:
    from matplotlib.collections import LineCollection, PolyCollection  # noqa: PLC0415 - an extra

    if panel.bars is None:
        extent = (view.from_s, view.to_s, view.rows, 0)
        pixels = cell_colours(panel.cells, view)
        ax.imshow(pixels, extent=extent, aspect="auto", interpolation="antialiased")
    else:
        for layer in view.shown_layers:
            colour, (_, sides) = view.layers[layer][1], layer_bars(view, panel.bars, layer)
            left, right = np.clip(sides[:2], view.from_s, view.to_s)
            top, bottom = sides[2:]
            corners = [[left, top], [right, top], [right, bottom], [left, bottom]]
            bars = list(np.transpose(corners, (2, 0, 1)))
            # A thin edge of the same colour keeps the shortest bars visible.
            ax.add_collection(PolyCollection(bars, facecolor=colour, edgecolor=colour, lw=0.25))
    if (lines := panel.messages) is not None:
        ends = [[lines.sent_s, lines.from_row], [lines.arrived_s, lines.to_row]]
        segments = list(np.transpose(ends, (2, 0, 1)))
        ax.add_collection(LineCollection(segments, colors=MESSAGE, linewidths=0.35, alpha=0.6))
    ax.set_title(panel_title(view, panel), loc="left", fontsize=9)
    ax.set_ylim(view.rows, 0)
    labelled = range(0, view.rows, -(-view.rows // MOST_LABELS))
    ax.set_yticks([row + 0.5 for row in labelled])
    ax.set_yticklabels([view.row_labels[row] for row in labelled])
    ax.tick_params(axis="y", length=0)
