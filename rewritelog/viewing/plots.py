"""Bokeh figures in the style of all pages."""

from __future__ import annotations

from typing import Any

TOOLS = "pan,wheel_zoom,box_zoom,reset,save"

SECONDS = "seconds"
"""The tag of axes with times in seconds, which a script labels with SI units."""

_TOOLBAR_STYLE = (
    ":host { position: absolute; right: 0; width: 280px !important; justify-content: flex-end; } "
    "@media print { :host { visibility: hidden !important; } }"
)
"""Without a width, some of the tools are in a menu."""


def is_wide(low: float, high: float) -> bool:
    """Return whether a range calls for a logarithmic axis, by the rule of the pages' scripts."""
    return 0 < 100 * low < high


def new_plot(
    x_label: str, y_label: str, *, height: int, seconds: str = "", tools: str = TOOLS, **more: Any
) -> Any:
    """Return an empty figure as wide as its section, whose heading is its title.

    `seconds` names the axes with times in seconds: `x`, `y` or `xy`; `more` is passed on to Bokeh.
    """
    from bokeh.models import BasicTickFormatter, PrintfTickFormatter  # noqa: PLC0415 - an extra
    from bokeh.plotting import figure  # noqa: PLC0415

    plot = figure(
        x_axis_label=x_label,
        y_axis_label=y_label,
        height=height,
        tools=tools,
        toolbar_location="above",
        sizing_mode="stretch_width",
        **more,
    )
    for axis in plot.axis:
        if isinstance(axis.formatter, BasicTickFormatter):  # it writes 1.000e-3 for 0.001
            axis.formatter = PrintfTickFormatter(format="%.6g")
    for name in seconds:
        getattr(plot, f"{name}axis").tags = [SECONDS]
    plot.toolbar.logo = None
    plot.toolbar.stylesheets = [_TOOLBAR_STYLE]
    return plot


def legend_below(plot: Any, columns: int = 4) -> None:
    """Move the plot's legend, if it has one, below the plot."""
    if plot.legend:
        plot.add_layout(plot.legend[0], "below")
        plot.legend.orientation = "horizontal"
        plot.legend.location = "left"
        plot.legend.ncols = columns
        plot.legend.margin = plot.legend.padding = 2
        plot.legend.border_line_alpha = 0.0
        plot.legend.label_text_font_size = "9pt"
