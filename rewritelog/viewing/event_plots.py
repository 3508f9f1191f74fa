"""The plots of one event, which a script fills with the data of the chosen event."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rewritelog.viewing.page import Section
from rewritelog.viewing.palette import COLOURS, OTHER
from rewritelog.viewing.plots import TOOLS, legend_below, new_plot

BLUE, ORANGE, GREEN, PURPLE = COLOURS[0], COLOURS[5], COLOURS[2], COLOURS[10]
HEIGHT, TALL = 400, 470
ORDER_LABEL = "number of the event's line in the files"

_NO_LINES: dict[str, list[Any]] = {
    "xs": [[1.0]],
    "ys": [[1.0]],
    "label": [""],
    "colour": ["black"],
    "dash": ["solid"],
    "width": [1],
}
"""Placeholder data: Bokeh computes ranges before an event's data is there."""

CHOICE_HTML = """
<p class="screen"><label>parameter of the graphs <select id="parameter"></select></label>
<label><input type="checkbox" id="logarithms" checked> logarithmic axes for wide ranges</label></p>
"""

DETAILS_HTML = """
<div class="columns">
<div><div id="coefficients"></div><div id="outliers"></div></div>
<div id="single-terms"></div>
</div>
"""


def event_sections(*, editor: str = "") -> list[Section]:
    """Return the sections of the chosen event, empty, with the names by which a script finds them.

    `editor` is HTML beside the first graph, with which fits are changed: lines can then be selected
    one by one or by a box.
    """
    from bokeh.models import ColumnDataSource  # noqa: PLC0415 - an extra

    columns = ("measured", "predicted", "low", "high", "x", "residual", "order", "number")
    plain, outliers, left_out, before = (
        ColumnDataSource({column: [1.0] for column in columns}, name=name)
        for name in ("points-data", "outliers-data", "left-data", "before-data")
    )
    points = Points(plain, outliers, left_out, before, bool(editor))
    lines = {
        name: ColumnDataSource(_NO_LINES, name=f"{name}-data") for name in ("diagonal", "curves")
    }
    replicates = ColumnDataSource({"x": [1.0], "ratio": [1.0]}, name="replicates-data")
    graphs = {
        "predicted": ("Measured against predicted time", _predicted(points, lines["diagonal"])),
        "residual": (
            "Relative residuals against the parameter",
            _residuals("residual", "x", "parameter", points),
        ),
        "order": (
            "Relative residuals in the order of the calls",
            _residuals("order", "order", ORDER_LABEL, points),
        ),
        "replicates": ("Replicates: lines with the same parameters", _replicates(replicates)),
    }
    return [
        Section(
            "One event",
            plot=_fit(points, lines["curves"]),
            html=CHOICE_HTML,
            beside=f'<pre id="event-summary"></pre>{editor}<div id="event-warnings"></div>',
            name="event",
            table_name="fit-table",
        ),
        *(
            Section(heading, plot=plot, in_grid=True, table_name=f"{name}-table", name=name)
            for name, (heading, plot) in graphs.items()
        ),
        Section("Terms and outliers", html=DETAILS_HTML),
    ]


@dataclass(frozen=True)
class Points:
    """The Bokeh data sources of an event's lines: plain ones, outliers, and those left out."""

    plain: Any
    outliers: Any
    left_out: Any
    before: Any
    """The lines with the predictions of the fit before the last step."""
    choosing: bool

    @property
    def tools(self) -> str:
        """Return the names of Bokeh's tools for a plot of lines."""
        return f"{TOOLS},tap,box_select,lasso_select" if self.choosing else TOOLS


def _marks(plot: Any, x: str, y: str, points: Points) -> None:
    """Draw timing lines as circles, outliers as crosses, and those left out as stars.

    They alone decide what the axes show: a wide interval or a curve would flatten them.
    """
    circles = plot.scatter(
        x,
        y,
        source=points.plain,
        marker="circle",
        size=6,
        fill_color=BLUE,
        fill_alpha=0.35,
        line_color=BLUE,
        line_alpha=0.7,
        legend_label="timing line",
    )
    crosses = plot.scatter(
        x,
        y,
        source=points.outliers,
        marker="x",
        size=10,
        line_color=ORANGE,
        line_width=2,
        legend_label="off by more than a factor of 2",
    )
    if points.choosing:
        plot.scatter(
            x,
            y,
            source=points.left_out,
            marker="asterisk",
            size=10,
            line_color=PURPLE,
            line_width=1.5,
            legend_label="left out of the fit",
        )
    plot.x_range.renderers = plot.y_range.renderers = [circles, crosses]


def _predicted(points: Points, diagonal: Any) -> Any:
    plot = new_plot(
        "predicted time",
        "measured time",
        height=HEIGHT,
        seconds="xy",
        tools=points.tools,
        name="predicted",
    )
    if points.choosing:
        plot.scatter(
            "predicted",
            "measured",
            source=points.before,
            marker="square",
            size=6,
            fill_color=None,
            line_color=OTHER,
            legend_label="by the previous fit",
        )
    for source in (points.plain, points.outliers):
        plot.segment(
            "predicted",
            "low",
            "predicted",
            "high",
            source=source,
            line_color=OTHER,
            line_alpha=0.35,
            line_width=3,
            legend_label="90 % interval",
        )
    _marks(plot, "predicted", "measured", points)
    plot.multi_line(
        "xs",
        "ys",
        source=diagonal,
        line_color="#000000",
        line_dash="dashed",
        legend_label="measured = predicted",
    )
    legend_below(plot, 3)
    return plot


def _fit(points: Points, curves: Any) -> Any:
    plot = new_plot("parameter", "time", height=TALL, seconds="y", tools=points.tools, name="fit")
    _marks(plot, "x", "measured", points)
    plot.multi_line(
        "xs",
        "ys",
        source=curves,
        line_color="colour",
        line_dash="dash",
        line_width="width",
        legend_field="label",
    )
    legend_below(plot, 2)
    return plot


def _residuals(name: str, x: str, x_label: str, points: Points) -> Any:
    from bokeh.models.annotations import Span  # noqa: PLC0415 - an extra

    plot = new_plot(
        x_label,
        "(measured − predicted) / predicted, %",
        height=HEIGHT,
        tools=points.tools,
        name=name,
    )
    plot.add_layout(Span(location=0, dimension="width", line_color="#000000", line_dash="dashed"))
    _marks(plot, x, "residual", points)
    legend_below(plot, 3)
    return plot


def _replicates(source: Any) -> Any:
    plot = new_plot(
        "point, by ascending mean time",
        "time / mean time of its point",
        height=HEIGHT,
    )
    plot.scatter(
        "x",
        "ratio",
        source=source,
        marker="diamond",
        size=7,
        fill_color=GREEN,
        fill_alpha=0.5,
        line_color=GREEN,
    )
    return plot


CURVE_STYLES = [
    [COLOURS[k], dash] for k, dash in ((1, "dashed"), (2, "dotted"), (3, "dotdash"), (7, "dashdot"))
]
"""Colours and dash patterns of the functions of one term, the best one first."""
