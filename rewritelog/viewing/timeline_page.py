"""The page of timelines, drawn by Bokeh: SEBs over time, and the share of busy PEs over time.

Tables follow the zoom: a script adds up the shares of the columns in view.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from rewritelog.text import time_text
from rewritelog.viewing.event_data import packed
from rewritelog.viewing.messages import MessageLines
from rewritelog.viewing.page import Page, Section, page_text
from rewritelog.viewing.palette import MESSAGE
from rewritelog.viewing.plots import legend_below, new_plot
from rewritelog.viewing.timeline import Bars, Panel, TimelineView
from rewritelog.viewing.timeline_figure import bar_heights, cell_colours, legend_text, panel_title

LEFT = 100
"""Room for labels left of all plots, which aligns their axes of time."""


def timeline_page(view: TimelineView, messages: Sequence[MessageLines]) -> str:
    """Return the HTML page of timelines."""
    sections, data, shared = [], [], None
    for number, panel in enumerate(view.panels):
        lines = messages[number] if messages else None
        plot = timeline_plot(view, panel, lines, shared, number)
        shared = plot.x_range
        sections += timeline_sections(view, panel, plot, number)
        data.append(timeline_data(view, panel, number))
    verdict = _summary(view, messages)
    return page_text(
        Page("Timelines", verdict, sections, scripts=("timeline.js",), data={"timelines": data})
    )


def timeline_sections(
    view: TimelineView, panel: Panel, plot: Any, number: int = 0
) -> list[Section]:
    """Return the sections of a panel: timelines, busy share over time, and the table of both."""
    table = f'<div id="shares-{number}"></div>'
    return [
        Section(panel_title(view, panel), plot=plot),
        Section("Busy share over time", plot=_busy_plot(view, panel, plot.x_range)),
        Section("Time in view", html=table),
    ]


def timeline_data(view: TimelineView, panel: Panel, number: int = 0) -> dict[str, Any]:
    """Return what a script needs to fill the table of a panel as its plot is zoomed."""
    shown = view.shown_layers
    return {
        "table": f"shares-{number}",
        "plot": f"timeline-{number}",
        "layers": [view.layers[layer][0] for layer in shown],
        "over": [view.over_names(layer) for layer in shown],
        "from": view.from_s,
        "to": view.to_s,
        "run": [panel.from_s, panel.to_s],
        "pes": len(view.pes),
        "columns": panel.cells.shape[1],
        "shares": packed(view.over_time(panel)[:, shown]),
    }


def _summary(view: TimelineView, messages: Sequence[MessageLines]) -> list[str]:
    lines = [
        f"{panel.run.label}: PEs are busy {100 * view.busy_share(panel):.1f} % of the "
        f"{time_text(panel.to_s - panel.from_s)} from the first start to the last end in the "
        f"picture, {100 * view.bracket_share(panel):.1f} % inside brackets."
        for panel in view.panels
    ]
    lines += [
        f"{lines.drawn:,} of {lines.messages:,} messages are drawn, chosen at random."
        for lines in messages
        if lines.drawn < lines.messages
    ]
    return lines


def timeline_plot(
    view: TimelineView, panel: Panel, messages: MessageLines | None, x_range: Any, number: int = 0
) -> Any:
    """Return the plot of a panel; PE 0 is on top."""
    from bokeh.models import FixedTicker, Range1d  # noqa: PLC0415 - an extra

    bounds = (view.from_s, view.to_s)
    plot = new_plot(
        "time",
        "PE",
        height=int(np.clip(24 * view.rows + 140, 260, 900)),
        seconds="x",
        tools="xpan,xwheel_zoom,xbox_zoom,reset,save",
        x_range=x_range or Range1d(start=bounds[0], end=bounds[1], bounds=bounds),
        y_range=Range1d(start=view.rows, end=0),
        min_border_left=LEFT,
        active_scroll="xwheel_zoom",
        active_drag="xbox_zoom",
        name=f"timeline-{number}",
    )
    step = -(-view.rows // 64)
    labelled = range(0, view.rows, step)
    plot.yaxis.ticker = FixedTicker(ticks=[row + 0.5 for row in labelled])
    plot.yaxis.major_label_overrides = {row + 0.5: view.row_label(row) for row in labelled}
    plot.ygrid.visible = False
    if panel.bars is None:
        _add_cells(plot, view, panel)
    else:
        _add_bars(plot, view, panel.bars)
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


def _add_bars(plot: Any, view: TimelineView, bars: Bars) -> None:
    from bokeh.models import ColumnDataSource, HoverTool  # noqa: PLC0415

    tops, bottoms = bar_heights(bars, view)
    for layer in view.shown_layers:
        mine = bars.layer == layer
        label, colour = view.layers[layer]
        start_s, end_s = bars.start_s[mine], bars.end_s[mine]
        data = {
            "left": start_s,
            "right": end_s,
            "top": tops[mine],
            "bottom": bottoms[mine],
            "pe": bars.pe[mine],
            "seb": bars.seb[mine],
            "start": [time_text(time_s, 7) for time_s in start_s.tolist()],
            "length": [time_text(time_s) for time_s in (end_s - start_s).tolist()],
            "name": [label] * int(mine.sum()),
        }
        plot.quad(
            left="left",
            right="right",
            top="top",
            bottom="bottom",
            fill_color=colour,
            line_color=colour,
            line_width=0.5,
            source=ColumnDataSource(data),
            legend_label=legend_text(view, layer),
        )
    tooltips = [("", "@name"), ("PE, SEB", "@pe, @seb"), ("start", "@start"), ("length", "@length")]
    plot.add_tools(HoverTool(tooltips=tooltips))


def _add_cells(plot: Any, view: TimelineView, panel: Panel) -> None:
    pixels = cell_colours(panel.cells, view)
    image = np.full(pixels.shape[:2], 0xFF000000, dtype=np.uint32)
    bytes_of = image.view(np.uint8).reshape(*pixels.shape[:2], 4)
    bytes_of[:, :, :3] = np.round(255 * pixels)
    plot.image_rgba([image], x=view.from_s, y=0, dw=view.to_s - view.from_s, dh=view.rows)
    nowhere = [math.nan]
    for layer in view.shown_layers:
        plot.quad(
            left=nowhere,
            right=nowhere,
            top=nowhere,
            bottom=nowhere,
            color=view.layers[layer][1],
            legend_label=legend_text(view, layer),
        )


def _busy_plot(view: TimelineView, panel: Panel, x_range: Any) -> Any:
    """Return the plot of the share of PEs in each layer over time, one layer above the other."""
    from bokeh.models import ColumnDataSource  # noqa: PLC0415 - an extra

    over_time = view.over_time_json(panel)
    edges, shares = np.array(over_time["bounds_s"]), list(over_time["shares"].values())
    plot = new_plot(
        "time",
        "share of the PEs, %",
        height=220,
        seconds="x",
        tools="xpan,xwheel_zoom,xbox_zoom,reset,save",
        x_range=x_range,
        min_border_left=LEFT,
    )
    bottom = np.zeros(len(edges) - 1)
    for layer in sorted(view.shown_layers):
        if not view.over_names(layer):
            top = bottom + 100 * np.array(shares[layer])
            data = {"left": edges[:-1], "right": edges[1:], "bottom": bottom, "top": top}
            colour, source = view.layers[layer][1], ColumnDataSource(data)
            plot.quad(source=source, color=colour, line_width=0, **{name: name for name in data})
            bottom = top
    plot.y_range.start = 0  # type: ignore[attr-defined]
    plot.y_range.end = 100  # type: ignore[attr-defined]
    return plot
