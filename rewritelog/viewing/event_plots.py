"""The plots of one event, which a script fills with the data of the chosen event."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rewritelog.viewing.page import Section, asset
from rewritelog.viewing.plots import (
    COLOURS,
    OTHER,
    TOOLS,
    add_marks,
    legend_below,
    new_plot,
    new_source,
)

BLUE, ORANGE, GREEN, PURPLE = COLOURS[0], COLOURS[5], COLOURS[2], COLOURS[10]
HEIGHT, TALL = 400, 470

CURVE_STYLES = [
    [COLOURS[k], dash] for k, dash in ((1, "dashed"), (2, "dotted"), (3, "dotdash"), (7, "dashdot"))
]
"""Colours and dash patterns of the functions of one term, the best one first."""

_COLUMNS = ("measured", "predicted", "low", "high", "x", "residual", "order", "number")


def event_sections(*, editor: str = "") -> list[Section]:
    """Return the sections of the chosen event, empty, with the names by which a script finds them.

    `editor` is HTML beside the first graph, with which fits are changed: lines can then be selected
    one by one or by a box.
    """
    names = ("points-data", "outliers-data", "left-data")
    graphs = _Graphs(bool(editor), *(new_source(name, *_COLUMNS) for name in names))
    in_grid = {
        "predicted": ("Measured against predicted time", graphs.predicted()),
        "residual": (
            "Relative residuals against the parameter",
            graphs.residuals("residual", "x", "parameter"),
        ),
        "order": (
            "Relative residuals in the order of the calls",
            graphs.residuals("order", "order", "number of the event's line in the files"),
        ),
        "replicates": ("Replicates: lines with the same parameters", _replicates()),
    }
    return [
        Section(
            "One event",
            plot=graphs.fit(),
            html=asset("event_choice.html"),
            beside=f'<pre id="event-summary"></pre>{editor}<div id="event-warnings"></div>',
            name="event",
            table_name="fit-table",
        ),
        *(
            Section(heading, plot=plot, in_grid=True, table_name=f"{name}-table", name=name)
            for name, (heading, plot) in in_grid.items()
        ),
        Section("Terms and outliers", html=asset("event_details.html")),
    ]


@dataclass(frozen=True)
class _Graphs:
    """The graphs of an event's lines, with the Bokeh data sources that they share."""

    editable: bool
    plain: Any
    outliers: Any
    left_out: Any

    def _new(self, x_label: str, y_label: str, name: str, height: int, seconds: str = "") -> Any:
        tools = f"{TOOLS},tap,box_select,lasso_select" if self.editable else TOOLS
        return new_plot(x_label, y_label, height=height, seconds=seconds, tools=tools, name=name)

    def _add_lines(self, plot: Any, x: str, y: str) -> None:
        """Draw timing lines as circles, outliers as crosses, and those left out as stars.

        The former alone decide what the axes show: a wide interval or a curve would flatten them.
        """
        more = {"fill_alpha": 0.35, "line_alpha": 0.7}
        label = "off by more than a factor of 2"
        plot.x_range.renderers = plot.y_range.renderers = [
            add_marks(plot, self.plain, x, y, "circle", BLUE, "timing line", 6, **more),
            add_marks(plot, self.outliers, x, y, "x", ORANGE, label, 10, line_width=2),
        ]
        if self.editable:
            label = "left out of the fit"
            add_marks(plot, self.left_out, x, y, "asterisk", PURPLE, label, 10, line_width=1.5)

    def predicted(self) -> Any:
        """Return the graph of measured against predicted times, with intervals."""
        plot = self._new("predicted time", "measured time", "predicted", HEIGHT, "xy")
        if self.editable:
            before, label = (
                new_source("before-data", "predicted", "measured"),
                "by the previous fit",
            )
            columns = ("predicted", "measured")
            add_marks(plot, before, *columns, "square", OTHER, label, 6, fill_color=None)
        for source in (self.plain, self.outliers):
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
        self._add_lines(plot, "predicted", "measured")
        same, label = new_source("diagonal-data", "x", "y"), "measured = predicted"
        plot.line("x", "y", source=same, color="#000000", line_dash="dashed", legend_label=label)
        legend_below(plot, 2)
        return plot

    def fit(self) -> Any:
        """Return the graph of times against a parameter, with the fit and others as curves."""
        from bokeh.models import ColumnDataSource  # noqa: PLC0415 - an extra

        plot = self._new("parameter", "time", "fit", TALL, "y")
        self._add_lines(plot, "x", "measured")
        # Bokeh computes ranges before an event's data is there.
        line = {"xs": [[1.0]], "ys": [[1.0]], "colour": ["black"], "dash": ["solid"], "width": [1]}
        plot.multi_line(
            "xs",
            "ys",
            source=ColumnDataSource({**line, "label": [""]}, name="curves-data"),
            line_color="colour",
            line_dash="dash",
            line_width="width",
            legend_field="label",
        )
        legend_below(plot, 2)
        return plot

    def residuals(self, name: str, x: str, x_label: str) -> Any:
        """Return the graph of relative residuals against a column."""
        from bokeh.models.annotations import Span  # noqa: PLC0415 - an extra

        plot = self._new(x_label, "(measured − predicted) / predicted, %", name, HEIGHT)
        zero = Span(location=0, dimension="width", line_color="#000000", line_dash="dashed")
        plot.add_layout(zero)
        self._add_lines(plot, x, "residual")
        legend_below(plot, 3)
        return plot


def _replicates() -> Any:
    plot = new_plot("point, by ascending mean time", "time / mean time of its point", height=HEIGHT)
    source = new_source("replicates-data", "x", "ratio")
    add_marks(plot, source, "x", "ratio", "diamond", GREEN, "")
    return plot
