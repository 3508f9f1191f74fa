"""Bokeh figures in the style of all pages: colours, marks, legends, plots that a script fills."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from rewritelog.arrays import Floats, Ints, random_keys
from rewritelog.viewing.page import Section

COLOURS = (
    "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00",
    "#F0E442", "#882255", "#332288", "#999933", "#AA4499", "#117733",
)  # fmt: skip

MARKERS = ("circle", "square", "triangle", "diamond", "inverted_triangle", "plus", "x", "star")

OTHER = "#9A9A9A"
"""The colour of everything that has no colour of its own."""

OUTSIDE = "#C9C9C9"
"""The colour of SEBs where their brackets have colours."""

BRACKET = "#000000"
MESSAGE = "#444444"
IDLE = "#FFFFFF"

TOOLS = "pan,wheel_zoom,box_zoom,reset,save"

SECONDS = "seconds"
"""The tag of axes with times in seconds, which a script labels with SI units."""

MOST_LABELS = 64
"""If there are more rows, only some are labelled."""

_TOOLBAR_STYLE = (
    ":host { position: absolute; right: 0; width: 280px !important; justify-content: flex-end; } "
    "@media print { :host { visibility: hidden !important; } }"
)
"""Without a fixed width, Bokeh moves some tools into a menu."""

_LEGEND_STYLE = (
    ":host { width: 0; min-width: 100%; grid-template-columns: 100%; } "
    ".bk-grid { display: flex; flex-wrap: wrap; width: auto; gap: 0 8px; } "
    ".bk-item { max-width: 100%; } .bk-label { white-space: normal; }"
)
"""Items are beside each other as far as there is room in the width of the plot."""


def is_wide(low: float, high: float) -> bool:
    """Return whether a range calls for a logarithmic axis, as the pages' scripts decide it."""
    return 0 < 100 * low < high


def new_plot(
    x_label: str,
    y_label: str,
    *,
    height: int = 0,
    seconds: str = "",
    whole: str = "",
    rows: Sequence[str] = (),
    tools: str = TOOLS,
    **more: Any,
) -> Any:
    """Return an empty figure as wide as its section, whose heading is its title.

    `height` is that of its frame in pixels; axes, toolbar and the legend below it are added to it.
    `seconds` names the axes with times in seconds, `whole` those of whole numbers: `x`, `y` or
    `xy`. `rows` are labels of rows of height 1 from the top, which decide the figure's height if
    none is given: the middle of the first is at 0.5. `more` is passed on to Bokeh.
    """
    from bokeh.models import (  # noqa: PLC0415 - an extra
        BasicTicker,
        BasicTickFormatter,
        FixedTicker,
        PrintfTickFormatter,
    )
    from bokeh.models.annotations import Legend  # noqa: PLC0415 - an extra
    from bokeh.plotting import figure  # noqa: PLC0415 - an extra

    plot = figure(
        x_axis_label=x_label,
        y_axis_label=y_label,
        frame_height=height or min(1500, 30 + 24 * len(rows)),
        tools=tools,
        toolbar_location="above",
        sizing_mode="stretch_width",
        **more | ({"y_range": (len(rows), 0)} if rows else {}),
    )
    legend = Legend(
        location="left",
        margin=2,
        border_line_color=None,
        label_text_font_size="9pt",
        stylesheets=[_LEGEND_STYLE],
    )
    plot.add_layout(legend, "below")
    for axis in plot.axis:
        if isinstance(axis.formatter, BasicTickFormatter):  # it writes 1.000e-3 for 0.001
            axis.formatter = PrintfTickFormatter(format="%.6g")
    for name in seconds:
        getattr(plot, f"{name}axis").tags = [SECONDS]
    for name in whole:
        getattr(plot, f"{name}axis").ticker = BasicTicker(min_interval=1, num_minor_ticks=0)
    if rows:
        labelled = range(0, len(rows), -(-len(rows) // MOST_LABELS))
        plot.yaxis.ticker = FixedTicker(ticks=[row + 0.5 for row in labelled])
        plot.yaxis.major_label_overrides = {row + 0.5: rows[row] for row in labelled}
    plot.toolbar.logo = None
    plot.toolbar.stylesheets = [_TOOLBAR_STYLE]
    return plot


def new_source(name: str, *columns: str) -> Any:
    """Return a data source that a script finds by its name and fills.

    It has a row, because Bokeh computes ranges before it is filled.
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


def add_same(plot: Any, source_name: str) -> None:
    """Draw the line on which measured and predicted times, columns y and x, are the same."""
    plot.line(
        "x", "y", source=new_source(source_name, "x", "y"), color="#000000", line_dash="dashed",
        legend_label="measured = predicted",
    )  # fmt: skip


MOST_POINTS = 5_000
"""At most this many lines of an event are drawn."""

MOST_POINTS_A_PAGE = 60_000

SEED = 1
"""Seed of the sample of lines that is drawn if there are more."""


def some_rows(label: str, count: int, most: int) -> Ints:
    """Return at most `most` of `count` rows, in ascending order, sampled by `label` and `SEED`."""
    if count <= most:
        return np.arange(count)
    return np.sort(np.argsort(random_keys(label, count, SEED), kind="stable")[:most])


class Option(Struct, frozen=True):
    """The data of a plot for one entry of the list above it."""

    label: str
    sources: Mapping[str, Mapping[str, Floats]]
    """Columns of numbers, by the name of the data source that they replace."""
    heads: Sequence[str]
    """Heads of the plot's table, one for each column of a source."""
    names: Mapping[str, str]
    """The labels of sources in the table, which has the rows of the sources named here."""
    axes: Mapping[str, str] = {}
    """Labels of the axes `below` and `left`."""
    logarithmic: str = ""
    """The axes with a logarithmic scale: `x`, `y` or `xy`."""
    text: str = ""
    """The text above the plot."""

    def drawn(self, options: int) -> Option:
        """Return the option with some of its points, at random, if a page has no room for all.

        The columns of points are x and y; the text says how many of them there are.
        """
        sources, parts = dict(self.sources), []
        counts = {name: len(sources[name]["x"]) for name in self.names}
        kinds = sum(map(bool, counts.values())) or 1
        most = max(1, min(MOST_POINTS, MOST_POINTS_A_PAGE // (options * kinds)))
        for name, count in counts.items():
            rows = some_rows(self.label, count, most)
            sources[name] = {axis: column[rows] for axis, column in sources[name].items()}
            if len(rows) < count:
                parts.append(f"{self.names[name]} {len(rows):,} of {count:,}")
        text = f"Drawn, chosen at random (seed {SEED}): {', '.join(parts)}." if parts else ""
        return replace(self, sources=sources, text=text)


def swap_section(
    heading: str, what: str, plot: Any, options: Sequence[Option], *, of_overview: bool = False
) -> Section:
    """Return the section of a plot, which has a name, with a list of `what`.

    `of_overview`: a click on a row of the overview, whose rows are numbered as the options are,
    selects the option in the list.
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
