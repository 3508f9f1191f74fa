"""The page of timelines, drawn by Bokeh: SEBs over time, and the share of busy PEs over time.

Tables follow the zoom: a script adds up the shares of the columns in view.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rewritelog.text import time_text
from rewritelog.viewing.messages import MessageLines
from rewritelog.viewing.page import Section, page_text
from rewritelog.viewing.plots import MESSAGE, legend_below, new_plot
from rewritelog.viewing.timeline import Panel, TimelineView
from rewritelog.viewing.timeline_figure import bar_heights, cell_colours, legend_text, panel_title

_OF_TIME: dict[str, Any] = {
    "seconds": "x",
    "tools": "xpan,xwheel_zoom,xbox_zoom,reset,save",
    "min_border_left": 100,
}
"""What plots over time share; the room for labels left of them aligns their axes."""

_SIDES = ("left", "right", "top", "bottom")


def timeline_page(view: TimelineView, messages: Sequence[MessageLines]) -> str:
    """Return the HTML page of timelines."""
    return page_text("Timelines", _summary(view, messages), timeline_sections(view, messages))


def timeline_sections(view: TimelineView, messages: Sequence[MessageLines] = ()) -> list[Section]:
    """Return the sections of all panels: timelines, busy share over time, and a table of both."""
    sections: list[Section] = []
    followed: list[dict[str, Any]] = []
    for number, panel in enumerate(view.panels):
        shown, table = view.shown_layers, f"shares-{number}"
        x_range = sections[0].plot.x_range if sections else None
        plot = _timelines(view, panel, x_range, f"timeline-{number}")
        if messages:
            _add_messages(plot, messages[number])
        plot.legend.click_policy = "hide"
        legend_below(plot)
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
            "lane": panel.run.lane_words,
            "item": panel.run.logs.terms.item,
            "over": [view.over_names(layer) for layer in shown],
            "from": view.from_s,
            "to": view.to_s,
            "run": [panel.from_s, panel.to_s],
            "pes": len(view.pes),
            "columns": view.columns,
            "shares": view.over_time(panel)[:, shown],
        })  # fmt: skip
    return sections


def _summary(view: TimelineView, messages: Sequence[MessageLines]) -> list[str]:
    lines = []
    for panel in view.panels:
        run, inside = panel.run, f", {100 * view.bracket_share(panel):.1f} % inside brackets"
        lines.append(
            f"{run.label}: {run.lane_words[1]} are busy {100 * view.busy_share(panel):.1f} % of "
            f"the {time_text(panel.to_s - panel.from_s)} from the first start to the last end in "
            f"the picture{'' if run.lanes else inside}."
        )
    lines += [
        f"{lines.drawn:,} of {lines.messages:,} messages are drawn, chosen at random."
        for lines in messages
        if lines.drawn < lines.messages
    ]
    return lines


def _timelines(view: TimelineView, panel: Panel, x_range: Any, name: str) -> Any:
    """Return the plot of a panel, on the range of the first one; PE 0 is on top."""
    from bokeh.models import FixedTicker, Range1d  # noqa: PLC0415 - an extra

    bounds = (view.from_s, view.to_s)
    plot = new_plot(
        "time",
        panel.run.lane_words[0],
        height=int(np.clip(24 * view.rows + 140, 260, 900)),
        x_range=x_range or Range1d(start=bounds[0], end=bounds[1], bounds=bounds),
        y_range=(view.rows, 0),
        active_scroll="xwheel_zoom",
        active_drag="xbox_zoom",
        name=name,
        **_OF_TIME,
    )
    labelled = range(0, view.rows, -(-view.rows // 64))
    plot.yaxis.ticker = FixedTicker(ticks=[row + 0.5 for row in labelled])
    plot.yaxis.major_label_overrides = {row + 0.5: view.row_label(row) for row in labelled}
    plot.ygrid.visible = False
    if panel.bars is None:
        _add_cells(plot, view, panel)
    _add_bars(plot, view, panel)
    return plot


def _add_cells(plot: Any, view: TimelineView, panel: Panel) -> None:
    pixels = np.round(255 * cell_colours(panel.cells, view)).astype(np.uint8)
    opaque = np.full((*pixels.shape[:2], 1), 255, dtype=np.uint8)
    image = np.concatenate([pixels, opaque], axis=2).view(np.uint32)[:, :, 0]
    plot.image_rgba([image], x=view.from_s, y=0, dw=view.to_s - view.from_s, dh=view.rows)


def _add_bars(plot: Any, view: TimelineView, panel: Panel) -> None:
    """Draw bars; without any only the legend is made, for cells."""
    from bokeh.models import HoverTool  # noqa: PLC0415 - an extra

    for layer in view.shown_layers:
        label, colour = view.layers[layer]
        data: dict[str, Any] = {side: [np.nan] for side in _SIDES}
        if panel.bars is not None:
            bars = panel.bars.take(np.flatnonzero(panel.bars.layer == layer))
            tops, bottoms = bar_heights(bars, view)
            data = {"left": bars.start_s, "right": bars.end_s, "top": tops, "bottom": bottoms}
            data |= {"pe": bars.pe, "seb": bars.seb}
            data["start"] = [time_text(time_s, 7) for time_s in bars.start_s.tolist()]
            data["length"] = list(map(time_text, (bars.end_s - bars.start_s).tolist()))
            data["name"] = [label] * len(bars.pe)
        style = {"fill_color": colour, "line_color": colour, "line_width": 0.5}
        sides = {side: side for side in _SIDES}
        plot.quad(**sides, source=data, legend_label=legend_text(view, layer), **style)
    if panel.bars is not None:
        place = f"{panel.run.lane_words[0]}, {panel.run.logs.terms.item}"
        places = [(place, "@pe, @seb"), ("start", "@start"), ("length", "@length")]
        plot.add_tools(HoverTool(tooltips=[("", "@name"), *places]))


def _add_messages(plot: Any, lines: MessageLines) -> None:
    style = {"line_color": MESSAGE, "line_alpha": 0.5, "line_width": 0.7}
    rows = lines.from_row + 0.5, lines.to_row + 0.5
    plot.segment(lines.sent_s, rows[0], lines.arrived_s, rows[1], legend_label="messages", **style)


def _busy_plot(view: TimelineView, panel: Panel, x_range: Any) -> Any:
    """Return the plot of the share of PEs in each layer over time, one layer above the other."""
    over_time = view.over_time_json(panel)
    edges, shares = np.array(over_time["bounds_s"]), list(over_time["shares"].values())
    share = f"share of the {panel.run.lane_words[1]}, %"
    plot = new_plot("time", share, height=220, x_range=x_range, y_range=(0, 100), **_OF_TIME)
    bottom = np.zeros(len(edges) - 1)
    for layer in sorted(view.shown_layers):
        if not view.over_names(layer):
            top = bottom + 100 * np.array(shares[layer])
            data = {"left": edges[:-1], "right": edges[1:], "bottom": bottom, "top": top}
            style = {"color": view.layers[layer][1], "line_width": 0}
            plot.quad(**{side: side for side in data}, source=data, **style)
            bottom = top
    return plot
