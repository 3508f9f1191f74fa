"""Bokeh figures in the style of all pages: colours, marks, legends, plots that a script fills."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np

from rewritelog.arrays import Floats, Ints
from rewritelog.hashing import draw_numbers
from rewritelog.viewing.page import Section

COLOURS = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#CC79A7",
    "#56B4E9",
    "#D55E00",
    "#F0E442",
    "#882255",
    "#332288",
    "#999933",
    "#AA4499",
    "#117733",
)

OTHER = "#9A9A9A"
"""The colour of everything that has no colour of its own."""

OUTSIDE = "#C9C9C9"
"""The colour of SEBs where their brackets have colours."""

BRACKET = "#000000"
MESSAGE = "#444444"
IDLE = "#FFFFFF"


def rgb(colour: str) -> tuple[float, float, float]:
    """Return red, green and blue, each in [0, 1], of a colour such as `#0072B2`."""
    red, green, blue = (int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5))
    return red, green, blue


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


MOST_POINTS = 5_000
"""At most this many lines of an event are drawn."""

MOST_POINTS_A_PAGE = 60_000

SEED = 1
"""Seed of the sample of lines that is drawn if there are more."""


def some_rows(label: str, count: int, most: int) -> Ints:
    """Return at most `most` of `count` rows, in ascending order, sampled by `label` and `SEED`."""
    if count <= most:
        return np.arange(count)
    return np.sort(np.argsort(draw_numbers(label, count, SEED), kind="stable")[:most])


@dataclass(frozen=True)
class Option:
    """The data of one entry of the list."""

    label: str
    sources: Mapping[str, Mapping[str, Floats]]
    """Columns of numbers, by the name of the data source that they replace."""
    heads: Sequence[str]
    """Heads of the plot's table, one for each column of a source."""
    names: Mapping[str, str]
    """The labels of sources in the table, which has the rows of the sources named here."""
    axes: Mapping[str, str] = field(default_factory=dict)
    """Labels of the axes `below` and `left`."""
    logarithmic: str = ""
    """The axes with a logarithmic scale: `x`, `y` or `xy`."""
    text: str = ""
    """The text above the plot."""


def swap_section(
    heading: str, what: str, plot: Any, options: Sequence[Option], *, of_overview: bool = False
) -> Section:
    """Return the section of a plot, which has a name, with a list of `what`.

    `of_overview`: choosing a row of the overview, whose rows are numbered as the options are,
    chooses the option in the list.
    """
    html = (
        f'<p class="screen"><label>{escape(what)} <select id="{plot.name}-of"></select></label></p>'
        f'<p id="{plot.name}-of-text"></p>'
    )
    swap = {"plot": plot.name, "of_overview": of_overview, "options": options}
    return Section(
        heading,
        html=html,
        plot=plot,
        table_name=f"{plot.name}-table",
        script="swap.js",
        data={"swap-data": swap},
    )


def drawn_text(parts: Sequence[str]) -> str:
    """Return the text above a plot in which only a part is drawn, as in `3 of 9 lines`."""
    return f"Drawn, chosen at random (seed {SEED}): {', '.join(parts)}." if parts else ""
