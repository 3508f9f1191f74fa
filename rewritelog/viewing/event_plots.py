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

EVENT_HTML = """
<div id="event">
<h3 id="event-name" tabindex="-1"></h3>
<p class="screen"><label>parameter of the graphs <select id="parameter"></select></label>
<label class="screen"><input type="checkbox" id="logarithms" checked> logarithmic axes for wide
ranges</label></p>
<pre id="event-summary"></pre>
<div id="event-warnings"></div>
<div class="columns">
<div><div id="coefficients"></div><div id="outliers"></div></div>
<div id="single-terms"></div>
</div>
</div>
"""


def event_sections(*, choosing: bool = False) -> list[Section]:
    """Return the sections of the plots, empty, with the names by which the script finds them.

    With `choosing`, lines can be selected one by one or by a box.
    """
    from bokeh.models import ColumnDataSource  # noqa: PLC0415 - an extra

    columns = ("measured", "predicted", "low", "high", "x", "residual", "order", "number")
    plain, outliers, left_out, before = (
        ColumnDataSource({column: [1.0] for column in columns}, name=name)
        for name in ("points-data", "outliers-data", "left-data", "before-data")
    )
    points = Points(plain, outliers, left_out, before, choosing)
    lines = {
        name: ColumnDataSource(_NO_LINES, name=f"{name}-data") for name in ("diagonal", "curves")
    }
    replicates = ColumnDataSource({"x": [1.0], "ratio": [1.0]}, name="replicates-data")
    return [
        Section(
            "Measured against predicted",
            plot=_predicted(points, lines["diagonal"]),
            in_grid=True,
            table_name="predicted-table",
        ),
        Section(
            "Time against one parameter, and the terms tried",
            plot=_fit(points, lines["curves"]),
            in_grid=True,
            table_name="fit-table",
        ),
        Section(
            "Relative residuals against the parameter",
            plot=_residuals("residual", "x", "parameter", "against the parameter", points),
            in_grid=True,
            table_name="residual-table",
        ),
        Section(
            "Relative residuals in the order of the calls",
            plot=_residuals("order", "order", ORDER_LABEL, "in the order of the calls", points),
            in_grid=True,
            table_name="order-table",
        ),
        Section(
            "Replicates: lines with the same parameters",
            plot=_replicates(replicates),
            in_grid=True,
            table_name="replicates-table",
        ),
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
    """Draw timing lines as circles, outliers as crosses, and those left out as stars."""
    plot.scatter(
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
    plot.scatter(
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


def _predicted(points: Points, diagonal: Any) -> Any:
    plot = new_plot(
        "Measured against predicted time",
        "predicted time, s",
        "measured time, s",
        height=HEIGHT,
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
    title = "Time against the parameter"
    plot = new_plot(title, "parameter", "time, s", height=TALL, tools=points.tools, name="fit")
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


def _residuals(name: str, x: str, x_label: str, against: str, points: Points) -> Any:
    from bokeh.models.annotations import Span  # noqa: PLC0415 - an extra

    plot = new_plot(
        f"Relative residuals {against}",
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
        "Variation of replicates",
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
