"""The pages of fits: a table of all events, and plots of one, which a script fills."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rewritelog.evaluation.fit import FitReport
from rewritelog.evaluation.verify import VerifyReport
from rewritelog.models import fit_report
from rewritelog.models.base import EventTimings, ModelFit
from rewritelog.models.fitted_events import FittedEvents
from rewritelog.text import (
    NO_VALUE,
    count_text,
    event_label,
    parameter_names,
    percent_text,
    some_text,
)
from rewritelog.timings.samples import Timings, files_of
from rewritelog.viewing.events import EventView, events_json, views_of
from rewritelog.viewing.page import Section, asset, page_text, rendered
from rewritelog.viewing.plots import (
    COLOURS,
    OTHER,
    SEED,
    TOOLS,
    add_marks,
    legend_below,
    new_plot,
    new_source,
)

GOOD, FAIR = 0.9, 0.5
"""R² from which on a fit is graded good, or fair; below it is poor."""

_LEGEND = (f"from {GOOD:g}", f"from {FAIR:g}", "below")
_HEADS = ("event", "lines", "fit: R²", "fit: error", "warnings")
_GRADES = (("good", "●"), ("fair", "◐"), ("poor", "○"))
"""CSS classes and marks of cells, by grade."""


@dataclass(frozen=True)
class Cell:
    """A cell of an overview."""

    text: str = NO_VALUE
    value: float | str | None = None
    """What its column is sorted by; None for a cell without a number."""
    grade: int | None = None
    """0 for good, 1 for fair, 2 for poor."""
    title: str = ""
    parameter: int = 0
    """The parameter that choosing the cell chooses, 0 for none."""


Rows = Iterable[tuple[int | None, Sequence[Cell]]]
"""Rows of cells, each with the number of the event that choosing it chooses."""


def worst_first(views: Sequence[EventView]) -> list[EventView]:
    """Return the events in ascending order of R², those without one last."""
    return sorted(views, key=lambda view: _rank(view.quality[0]))


def event_table(note: str, legend: Sequence[str], heads: Sequence[str], rows: Rows) -> str:
    """Return a table of events as HTML, which a script sorts by column and filters by name.

    `legend` says what good, fair and poor cells are.
    """
    values = {"note": note, "legend": legend, "heads": heads, "rows": rows}
    return rendered("overview.html", grades=_GRADES, **values)


def row_html(view: EventView, number: int, most: int) -> str:
    """Return an event's row as HTML; `most` is the table's number of parameter columns."""
    return rendered("overview.html", grades=_GRADES, rows=[(number, list(_cells(view, most)))])


def fits_html(fitted: FittedEvents) -> str:
    """Return a table of fits without their timing lines, the worst first, as HTML."""
    rows = []
    for fit in sorted(fitted.fits.values(), key=lambda fit: _rank(fit.whole.quality.held_out_r2)):
        quality, warnings = fit.whole.quality, [mark.text for mark in fit_report.warn(fit)]
        label = event_label(fit.event, fit.parameters, names=fit.names)
        cells = [
            Cell(label, label, title="; ".join(fit_report.summarise(fit)[1:])),
            Cell(f"{fit.samples:,}", fit.samples),
            _r2_cell(quality.held_out_r2),
            _error_cell(quality.held_out_error),
            Cell(
                f"{len(warnings) or ''}",
                len(warnings),
                title="; ".join(warnings),
            ),
        ]
        rows.append((None, cells))
    return event_table(
        "R² and mean error of the fit on held-out lines; the lines are not on this page.",
        _LEGEND,
        _HEADS,
        rows,
    )


def _rank(r2: float | None) -> tuple[bool, float]:
    return r2 is None, r2 or 0.0


def _cells(view: EventView, most: int) -> Iterator[Cell]:
    lines, warnings = len(view.timings.seconds), len(view.warnings)
    yield Cell(view.label, view.label)
    yield Cell(f"{lines:,}", lines)
    yield _r2_cell(view.quality[0], "the fit in all parameters")
    yield _error_cell(view.quality[1])
    yield Cell(f"{warnings or ''}", warnings)
    reasons = view.single_terms.ignored
    names = parameter_names(view.parameters, view.names)
    for parameter in range(1, most + 1):
        best = next(iter(view.single_terms.of(parameter)), None)
        if best is None:
            reason = reasons.get(parameter, "")
            word = "constant" if "constant" in reason else "copy" if "follows" in reason else ""
            yield Cell(word, title=reason)
        else:
            title = f"{names[parameter - 1]}: {best.term}"
            yield _r2_cell(best.held_out_r2, title, parameter)


def _r2_cell(r2: float | None, title: str = "", parameter: int = 0) -> Cell:
    if r2 is None:
        return Cell(title=title, parameter=parameter)
    text = f"{r2:.3f}" if r2 >= 0 else "< 0"
    return Cell(text, float(f"{r2:.5g}"), (r2 < GOOD) + (r2 < FAIR), title, parameter)


def _error_cell(error: float | None) -> Cell:
    return Cell() if error is None else Cell(percent_text(error, 1), float(f"{error:.5g}"))


OWN_LINES = "The column of the fit shows its R² on held-out lines."
NEW_LINES = "The column of the fit shows the R² of its predictions of these lines."


def fit_page(report: FitReport) -> str:
    """Return the HTML page of a fit."""
    views = worst_first(views_of(report.read, report.fitted))
    lines = count_text(len(report.read), "timing line")
    verdict = [
        f"Model {report.request.model_name}, fitted to {lines}.",
        *quality_lines(views, report.read.timings),
    ]
    title = f"Fit of {some_text([path.name for path in files_of(report.request.timings)], 3)}"
    return page_text(title, verdict, events_sections(views, OWN_LINES), report.warnings)


def verify_page(report: VerifyReport, fitted: ModelFit, read: Timings) -> str:
    """Return the HTML page of a model verified on timing lines that it was not fitted to."""
    views = worst_first(views_of(read, fitted, unseen=True))
    score = report.overall.score
    error = percent_text(score.mean_relative_error)
    verdict = [
        (
            f"{report.model} predicts {score.predicted:,} of {score.lines:,} timing lines "
            f"with a mean relative error of {error}; the sum is off by "
            f"{percent_text(score.sum_error, sign='+')}."
        ),
        *quality_lines(views, read.timings),
    ]
    if report.overall.coverage is not None:
        share = percent_text(report.overall.coverage, 1)
        verdict.append(f"{share} of the times lie within their 90 % interval.")
    title = f"{report.model} against measured times"
    return page_text(title, verdict, events_sections(views, NEW_LINES), report.warnings)


def quality_lines(views: Sequence[EventView], timings: Sequence[EventTimings]) -> list[str]:
    """Return sentences on how many of the events shown have reliable fits."""
    known = [(r2, view.label) for view in views if (r2 := view.quality[0]) is not None]
    unknown = len(views) - len(known)
    good = sum(r2 >= GOOD for r2, _ in known)
    poor = [label for r2, label in known if r2 < FAIR]
    sentences = []
    if len(views) < len(timings):
        sentences.append(
            f"Of {len(timings):,} events, the {len(views):,} whose lines took the most time are "
            "shown."
        )
    sentences += [
        f"{good} of {count_text(len(views), 'event')} have a fit with an R² of {GOOD:g} or more"
        + (f", {unknown} {'has' if unknown == 1 else 'have'} no R²." if unknown else ".")
    ]
    if poor:
        names = some_text(poor, 3)
        sentences.append(f"Little of the time is explained (R² below {FAIR:g}) for {names}.")
    errors = [error for view in views if (error := view.quality[1]) is not None]
    if errors:
        sentences.append(
            f"The median event has a mean error of {percent_text(float(np.median(errors)))}."
        )
    return sentences


def events_sections(views: Sequence[EventView], seen: str, *, editor: str = "") -> list[Section]:
    """Return the sections of the overview, a row per event, and of the chosen event.

    `seen` tells which lines the fit's R² is of.
    `editor` is HTML with which fits are changed, in a page that gets its data from a server.
    """
    events = [] if editor else events_json(views)
    shown, lines = sum(event["shown"] for event in events), sum(event["lines"] for event in events)
    note = (
        f"{shown:,} of {lines:,} lines are drawn, chosen at random (seed {SEED}). Fits, R² and "
        "errors are of all lines."
    )
    most = max((view.parameters for view in views), default=0)
    overview = event_table(
        "A parameter's column shows the R² on held-out lines of the best function of that "
        f"parameter alone. {seen} Choose a cell to see its event below.",
        _LEGEND,
        (*_HEADS, *(f"p{number}" for number in range(1, most + 1))),
        ((number, list(_cells(view, most))) for number, view in enumerate(views)),
    )
    notes = [note] if shown < lines else ()
    return [
        Section("Events and parameters", notes, html=overview, script="overview.js"),
        *event_sections(events, editor),
    ]


BLUE, ORANGE, GREEN, PURPLE = COLOURS[0], COLOURS[5], COLOURS[2], COLOURS[10]
HEIGHT, TALL = 400, 470

CURVE_STYLES = [
    [COLOURS[k], dash] for k, dash in ((1, "dashed"), (2, "dotted"), (3, "dotdash"), (7, "dashdot"))
]
"""Colours and dash patterns of the functions of one term, the best one first."""

_COLUMNS = ("measured", "predicted", "low", "high", "x", "residual", "order", "number")


def event_sections(events: Sequence[Mapping[str, Any]], editor: str = "") -> list[Section]:
    """Return the sections of the chosen one of some events, which a script fills.

    `editor` is HTML beside the first graph, with which fits are changed: lines can then be selected
    one by one or by a box.
    """
    names = ("points-data", "outliers-data", "left-data")
    graphs = _Graphs(bool(editor), *(new_source(name, *_COLUMNS) for name in names))
    replicates = new_plot(
        "point, by ascending mean time", "time / mean time of its point", height=HEIGHT
    )
    source = new_source("replicates-data", "x", "ratio")
    add_marks(replicates, source, "x", "ratio", "diamond", GREEN, "")
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
        "replicates": ("Replicates: lines with the same parameters", replicates),
    }
    return [
        Section(
            "One event",
            plot=graphs.fit(),
            html=asset("event_choice.html"),
            beside=f'<pre id="event-summary"></pre>{editor}<div id="event-warnings"></div>',
            name="event",
            table_name="fit-table",
            script="events.js",
            data={"events-data": {"events": events, "styles": CURVE_STYLES}},
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
