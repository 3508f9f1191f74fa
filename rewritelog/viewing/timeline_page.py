"""A page of timelines drawn by Bokeh, with zoom and with details of each SEB on hover."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rewritelog.viewing.messages import MessageLines
from rewritelog.viewing.page import Page, PageTable, Section, page_text
from rewritelog.viewing.palette import MESSAGE
from rewritelog.viewing.plots import legend_below, new_plot
from rewritelog.viewing.timeline import Bars, Panel, TimelineView
from rewritelog.viewing.timeline_figure import (
    bar_heights,
    cell_colours,
    layer_colour,
    layer_name,
    legend_text,
    panel_title,
    shown_layers,
    time_unit,
)


def timeline_page(view: TimelineView, messages: Sequence[MessageLines]) -> str:
    """Return the HTML page of timelines."""
    plots: list[Any] = []
    for number, panel in enumerate(view.panels):
        shared = plots[0].x_range if plots else None
        lines = messages[number] if messages else None
        plots.append(_plot(view, panel, lines, shared))
    sections = [
        Section(panel_title(view, panel), plot=plot, table=_shares_table(view, panel))
        for panel, plot in zip(view.panels, plots, strict=True)
    ]
    return page_text(Page("Timelines", _summary(view, messages), sections))


def _summary(view: TimelineView, messages: Sequence[MessageLines]) -> list[str]:
    lines = []
    for panel in view.panels:
        busy = sum(view.shares(panel)[:-1])
        inside = view.shares(panel)[-1]
        lines.append(
            f"{panel.logs.folder}: PEs are busy {100 * busy:.1f} % of the time from "
            f"{view.from_s:.6g} s to {view.to_s:.6g} s, {100 * inside:.1f} % inside brackets."
        )
    lines += [
        f"{found.drawn:,} of {found.messages:,} messages are drawn, chosen at random."
        for found in messages
        if found.drawn < found.messages
    ]
    return lines


def _shares_table(view: TimelineView, panel: Panel) -> PageTable:
    shares = view.shares(panel)
    rows = [
        (layer_name(view, layer), f"{100 * shares[layer]:.2f} %") for layer in shown_layers(view)
    ]
    return PageTable("Share of all PE time in the window", ("SEB name", "share"), rows)


def _plot(view: TimelineView, panel: Panel, messages: MessageLines | None, x_range: Any) -> Any:
    from bokeh.models import FixedTicker, HoverTool, Range1d  # noqa: PLC0415 - an extra

    scale, unit = time_unit(view)
    bounds = (view.from_s * scale, view.to_s * scale)
    plot = new_plot(
        f"time, {unit}",
        "PE",
        height=int(np.clip(24 * view.rows + 140, 260, 900)),
        tools="xpan,xwheel_zoom,box_zoom,reset,save",
        x_range=x_range or Range1d(start=bounds[0], end=bounds[1], bounds=bounds),
        y_range=Range1d(start=view.rows, end=0),
        active_scroll="xwheel_zoom",
    )
    plot.yaxis.ticker = FixedTicker(ticks=[row + 0.5 for row in range(view.rows)][:200])
    plot.yaxis.major_label_overrides = {row + 0.5: view.row_label(row) for row in range(view.rows)}
    plot.ygrid.visible = False
    if panel.bars is None:
        _add_cells(plot, view, panel, scale)
    else:
        _add_bars(plot, view, panel.bars, scale)
        plot.add_tools(
            HoverTool(
                tooltips=[
                    ("SEB", "@name"),
                    ("PE", "@pe"),
                    ("number", "@seb"),
                    (f"start, {unit}", "@left{0.000000}"),
                    (f"duration, {unit}", "@length{0.000000}"),
                ]
            )
        )
    if messages is not None:
        plot.segment(
            messages.sent_s * scale,
            messages.from_row + 0.5,
            messages.arrived_s * scale,
            messages.to_row + 0.5,
            line_color=MESSAGE,
            line_alpha=0.5,
            line_width=0.7,
            legend_label="messages",
        )
    plot.legend.click_policy = "hide"
    legend_below(plot)
    return plot


def _add_bars(plot: Any, view: TimelineView, bars: Bars, scale: float) -> None:
    from bokeh.models import ColumnDataSource  # noqa: PLC0415 - an extra

    tops, bottoms = bar_heights(bars, view)
    for layer in shown_layers(view):
        mine = bars.layer == layer
        left, right = bars.start_s[mine] * scale, bars.end_s[mine] * scale
        data = {
            "left": left,
            "right": right,
            "length": right - left,
            "top": tops[mine],
            "bottom": bottoms[mine],
            "pe": bars.pe[mine],
            "seb": bars.seb[mine],
            "name": [layer_name(view, layer)] * int(mine.sum()),
        }
        colour = layer_colour(view, layer)
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


def _add_cells(plot: Any, view: TimelineView, panel: Panel, scale: float) -> None:
    pixels = cell_colours(panel.cells, view)[::-1]
    image = np.full(pixels.shape[:2], 0xFF000000, dtype=np.uint32)
    bytes_of = image.view(np.uint8).reshape(*pixels.shape[:2], 4)
    bytes_of[:, :, :3] = np.round(255 * pixels)
    plot.image_rgba(
        [image],
        x=view.from_s * scale,
        y=view.rows,
        dw=(view.to_s - view.from_s) * scale,
        dh=view.rows,
    )
    for layer in shown_layers(view):
        plot.quad(
            left=[],
            right=[],
            top=[],
            bottom=[],
            color=layer_colour(view, layer),
            legend_label=legend_text(view, layer),
        )
