"""The page of timelines, drawn by Bokeh: SEBs over time, and the share of busy PEs over time.

Tables follow the zoom: a script adds up the shares of the columns in view.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from rewritelog.text import time_text
from rewritelog.viewing.messages import MessageLines
from rewritelog.viewing.page import Page, Section, page_text
from rewritelog.viewing.plots import MESSAGE, legend_below, new_plot
from rewritelog.viewing.timeline import Bars, Panel, TimelineView
from rewritelog.viewing.timeline_figure import bar_heights, cell_colours, legend_text, panel_title

_OF_TIME: dict[str, Any] = {
    "seconds": "x",
    "tools": "xpan,xwheel_zoom,xbox_zoom,reset,save",
    "min_border_left": 100,
}
"""What plots over time share; the room for labels left of them aligns their axes."""


class DrawnPanel(NamedTuple):
    """A panel of a page: its plot, its sections, and the data with which a script follows zooms."""

    plot: Any
    sections: list[Section]
    data: dict[str, Any]


def timeline_page(view: TimelineView, messages: Sequence[MessageLines]) -> str:
    """Return the HTML page of timelines."""
    panels: list[DrawnPanel] = []
    for number in range(len(view.panels)):
        lines = messages[number] if messages else None
        panels.append(draw_panel(view, number, lines, panels[0].plot.x_range if panels else None))
    sections = [section for panel in panels for section in panel.sections]
    data = {"timelines": [panel.data for panel in panels]}
    verdict = _summary(view, messages)
    return page_text(Page("Timelines", verdict, sections, scripts=("timeline.js",), data=data))


def draw_panel(
    view: TimelineView, number: int, messages: MessageLines | None = None, x_range: Any = None
) -> DrawnPanel:
    """Draw a panel by its number: timelines, busy share over time, and a table of both.

    `x_range` is the range of the other panel's plot.
    """
    panel, shown = view.panels[number], view.shown_layers
    plot = _timelines(view, panel, messages, x_range, f"timeline-{number}")
    sections = [
        Section(panel_title(view, panel), plot=plot),
        Section("Busy share over time", plot=_busy_plot(view, panel, plot.x_range)),
        Section("Time in view", html=f'<div id="shares-{number}"></div>'),
    ]
    data = {
        "table": f"shares-{number}",
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
    }
    return DrawnPanel(plot, sections, data)


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


def _timelines(
    view: TimelineView, panel: Panel, messages: MessageLines | None, x_range: Any, name: str
) -> Any:
    """Return the plot of a panel; PE 0 is on top."""
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
    if messages is not None:
        plot.segment(
            messages.sent_s,
            messages.from_row + 0.5,
            messages.arrived_s,
            messages.to_row + 0.5,
            line_color=MESSAGE,
            line_alpha=0.5,
            line_width=0.7,
            legend_label="messages",
        )
    plot.legend.click_policy = "hide"
    legend_below(plot)
    return plot


def _add_bars(plot: Any, view: TimelineView, panel: Panel) -> None:
    """Draw bars; without any only the legend is made, for cells."""
    from bokeh.models import HoverTool  # noqa: PLC0415 - an extra

    bars, place = panel.bars, f"{panel.run.lane_words[0]}, {panel.run.logs.terms.item}"
    for layer in view.shown_layers:
        label, colour = view.layers[layer]
        layer_bars = None if bars is None else bars.take(np.flatnonzero(bars.layer == layer))
        style = {"fill_color": colour, "line_color": colour, "line_width": 0.5}
        columns = _columns(view, layer_bars, label)
        sides = {side: side for side in ("left", "right", "top", "bottom")}
        plot.quad(**sides, source=columns, legend_label=legend_text(view, layer), **style)
    if bars is not None:
        places = [(place, "@pe, @seb"), ("start", "@start"), ("length", "@length")]
        plot.add_tools(HoverTool(tooltips=[("", "@name"), *places]))


def _columns(view: TimelineView, bars: Bars | None, label: str) -> dict[str, Any]:
    """Return the columns of a data source of bars."""
    if bars is None:
        return {side: [np.nan] for side in ("left", "right", "top", "bottom")}
    tops, bottoms = bar_heights(bars, view)
    return {
        "left": bars.start_s,
        "right": bars.end_s,
        "top": tops,
        "bottom": bottoms,
        "pe": bars.pe,
        "seb": bars.seb,
        "start": [time_text(time_s, 7) for time_s in bars.start_s.tolist()],
        "length": [time_text(time_s) for time_s in (bars.end_s - bars.start_s).tolist()],
        "name": [label] * len(bars.pe),
    }


def _add_cells(plot: Any, view: TimelineView, panel: Panel) -> None:
    pixels = np.round(255 * cell_colours(panel.cells, view)).astype(np.uint8)
    opaque = np.full((*pixels.shape[:2], 1), 255, dtype=np.uint8)
    image = np.concatenate([pixels, opaque], axis=2).view(np.uint32)[:, :, 0]
    plot.image_rgba([image], x=view.from_s, y=0, dw=view.to_s - view.from_s, dh=view.rows)


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
