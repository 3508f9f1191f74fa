"""Bokeh figures in the style of all pages."""

from __future__ import annotations

from typing import Any

TOOLS = "pan,wheel_zoom,box_zoom,reset,save"


def is_wide(low: float, high: float) -> bool:
    """Return whether a range calls for a logarithmic axis, by the rule of the pages' scripts."""
    return 0 < 100 * low < high


def new_plot(
    title: str, x_label: str, y_label: str, *, height: int, tools: str = TOOLS, **more: Any
) -> Any:
    """Return an empty figure as wide as the page; `more` is passed on to Bokeh."""
    from bokeh.models import BasicTickFormatter, PrintfTickFormatter  # noqa: PLC0415 - an extra
    from bokeh.plotting import figure  # noqa: PLC0415

    plot = figure(
        title=title,
        x_axis_label=x_label,
        y_axis_label=y_label,
        height=height,
        tools=tools,
        sizing_mode="stretch_width",
        **more,
    )
    for axis in plot.axis:
        if isinstance(axis.formatter, BasicTickFormatter):  # it writes 1.000e-3 for 0.001
            axis.formatter = PrintfTickFormatter(format="%.6g")
    plot.toolbar.logo = None
    plot.toolbar.stylesheets = ["@media print { :host { display: none !important; } }"]
    return plot


def legend_below(plot: Any, columns: int = 4) -> None:
    """Move the plot's legend, if it has one, below the plot."""
    if plot.legend:
        plot.add_layout(plot.legend[0], "below")
        plot.legend.orientation = "horizontal"
        plot.legend.ncols = columns
        plot.legend.border_line_alpha = 0.0
        plot.legend.label_text_font_size = "9pt"
