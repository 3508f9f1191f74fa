"""Bokeh figures in the style of all pages."""

from __future__ import annotations

from typing import Any

TOOLS = "pan,wheel_zoom,box_zoom,reset,save"

SECONDS = "seconds"
"""The tag of axes with times in seconds, which a script labels with SI units."""

_LEGEND_CHARACTERS = 84
"""The characters of a legend's row that fit on paper."""

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


def new_source(name: str, *columns: str) -> Any:
    """Return a data source that a script finds by its name and fills.

    It has a row, because Bokeh computes ranges before.
    """
    from bokeh.models import ColumnDataSource  # noqa: PLC0415 - an extra

    return ColumnDataSource({column: [1.0] for column in columns}, name=name)


def add_marks(
    plot: Any, source: Any, x: str, y: str, marker: str, colour: str, label: str, size: int = 7,
    **more: Any,
) -> Any:  # fmt: skip
    """Draw a mark for each row of a source, or of columns by name; return the renderer.

    `more` is passed on to Bokeh. Without a label they are not in the legend.
    """
    style = {"line_color": colour, "fill_color": colour, "fill_alpha": 0.5, **more}
    legend = {"legend_label": label} if label else {}
    return plot.scatter(x, y, source=source, marker=marker, size=size, **style, **legend)


def legend_below(plot: Any, columns: int = 4) -> None:
    """Move the plot's legend, if it has one, below the plot; long labels get fewer columns."""
    if plot.legend:
        longest = max(len(getattr(item.label, "value", "")) for item in plot.legend[0].items)
        columns = max(1, min(columns, _LEGEND_CHARACTERS // max(longest, 1)))
        plot.add_layout(plot.legend[0], "below")
        plot.legend.orientation = "horizontal"
        plot.legend.location = "left"
        plot.legend.ncols = columns
        plot.legend.margin = plot.legend.padding = 2
        plot.legend.border_line_alpha = 0.0
        plot.legend.label_text_font_size = "9pt"
