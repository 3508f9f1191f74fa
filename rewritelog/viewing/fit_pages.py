"""The pages of fits: a table of all events, and plots of one, which a script fills."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from rewritelog.evaluation.fit import FitReport
from rewritelog.evaluation.verify import VerifyReport
from rewritelog.models import fit_report
from rewritelog.models.base import EventTimings
from rewritelog.models.fitted import Fitted
from rewritelog.text import (
    NO_VALUE,
    count_text,
    parameter_names,
    percent_text,
    some_text,
)
from rewritelog.timings.samples import Timings, files_of
from rewritelog.viewing.events import EventView, events_json, short, views_of
from rewritelog.viewing.page import Section, asset, page_text, rendered
from rewritelog.viewing.plots import (
    COLOURS,
    OTHER,
    SEED,
    TOOLS,
    add_marks,
    add_same,
    new_plot,
    new_source,
)

GOOD, FAIR = 0.9, 0.5
"""R² from which on a fit is graded good, or fair; below it is poor."""

_LEGEND = (f"from {GOOD:g}", f"from {FAIR:g}", "below")
_HEADS = ("event", "lines", "fit: R²", "fit: error", "warnings")
_GRADES = (("good", "●"), ("fair", "◐"), ("poor", "○"))
"""CSS classes and marks of cells, by grade."""


class Cell(Struct, frozen=True):
    """A cell of an overview."""

    text: str = NO_VALUE
    value: float | str | None = None
    """What its column is sorted by; None for a cell without a number."""
    grade: int | None = None
    """0 for good, 1 for fair, 2 for poor."""
    title: str = ""
    parameter: int = 0
    """The parameter that a click on the cell selects, 0 for none."""


Rows = Iterable[tuple[int, Iterable[Cell]]]
"""Rows of cells, each with the number of the event that a click on it selects."""


def event_table(note: str, legend: Sequence[str], heads: Sequence[str], rows: Rows) -> str:
    """Return a table of events as HTML, which a script sorts by column and filters by name.

    `legend` says what good, fair and poor cells are.
    """
    return rendered(
        "overview.html", grades=_GRADES, note=note, legend=legend, heads=heads, rows=rows
    )


def row_html(view: EventView, number: int, most: int) -> str:
    """Return an event's row as HTML; `most` is the table's number of parameter columns."""
    return rendered("overview.html", grades=_GRADES, rows=[(number, _cells(view, most))])


def _cells(view: EventView, most: int) -> Iterator[Cell]:
    """Yield the cells of an event, and of each of `most` parameters."""
    r2, error = view.quality
    lines, warnings = len(view.timings.seconds), view.warnings
    yield Cell(view.label, view.label)
    yield Cell(f"{lines:,}", lines)
    yield _r2_cell(r2, "the fit in all parameters")
    yield Cell() if error is None else Cell(percent_text(error, 1), short(error))
    yield Cell(f"{len(warnings) or ''}", len(warnings), title="; ".join(warnings))
    names = parameter_names(view.parameters, view.names)
    for parameter in range(1, most + 1):
        best = next(iter(view.single_terms.of(parameter)), None)
        if best is None:
            reason = view.single_terms.ignored.get(parameter, "")
            word = "constant" if "constant" in reason else "copy" if "follows" in reason else ""
            yield Cell(word, title=reason)
        else:
            title = f"{names[parameter - 1]}: {fit_report.renaming(names)(str(best.term))}"
            yield _r2_cell(best.held_out_r2, title, parameter)


def _r2_cell(r2: float | None, title: str, parameter: int = 0) -> Cell:
    if r2 is None:
        return Cell(title=title, parameter=parameter)
    text = f"{r2:.3f}" if r2 >= 0 else "< 0"
    return Cell(text, short(r2), (r2 < GOOD) + (r2 < FAIR), title, parameter)


OWN_LINES = "The column of the fit shows its R² on held-out lines."
FITTED_LINES = "The column of the fit shows its R² on the lines that it was fitted to."
NEW_LINES = "The column of the fit shows the R² of its predictions of these lines."


def fit_page(report: FitReport) -> str:
    """Return the HTML page of a fit."""
    quality, sections = shown_events(report.timings, report.fitted)
    fitted_to = report.fitted.fitted_to(len(report.timings))
    verdict = [f"Model {report.fitted.name}, {fitted_to}.", *quality]
    title = f"Fit of {some_text([path.name for path in files_of(report.request.timings)], 3)}"
    return page_text(title, verdict, sections, report.warnings)


def verify_page(report: VerifyReport) -> str:
    """Return the HTML page of a model verified on timing lines that it was not fitted to."""
    quality, sections = shown_events(report.timings, report.fitted, unseen=True)
    score = report.overall
    error = percent_text(score.mean_relative_error)
    verdict = [
        (
            f"{report.model} predicts {score.predicted:,} of {score.lines:,} timing lines "
            f"with a mean relative error of {error}; the sum is off by "
            f"{percent_text(score.sum_error, sign='+')}."
        ),
        *quality,
    ]
    if report.overall.coverage is not None:
        share = percent_text(report.overall.coverage, 1)
        verdict.append(f"{share} of the times lie within their 90 % interval.")
    title = f"{report.model} against measured times"
    return page_text(title, verdict, sections, report.warnings)


def shown_events(
    timings: Timings, fitted: Fitted, *, unseen: bool = False
) -> tuple[list[str], list[Section]]:
    """Return the sentences and the sections about all events, the largest mean error first.

    Events without a mean error come last. `unseen`: the fit was not made from these lines.
    """
    views = views_of(timings, fitted, unseen=unseen)
    views.sort(key=lambda view: -(view.quality[1] or 0.0))
    seen = NEW_LINES if unseen else OWN_LINES if fitted.fits else FITTED_LINES
    if seen == OWN_LINES and any(fit.classes[1:] for fit in fitted.fits.values()):
        seen += " Of an event with classes it is that of the class from which most errors come."
    return quality_lines(views, timings.timings), events_sections(views, seen)


def quality_lines(views: Sequence[EventView], timings: Sequence[EventTimings]) -> list[str]:
    """Return sentences on how far the predictions of the events shown are off."""
    errors = [(error, view.label) for view in views if (error := view.quality[1]) is not None]
    large = [label for error, label in errors if error > fit_report.LARGE_ERROR]
    sentences = []
    if len(views) < len(timings):
        sentences.append(
            f"Of {len(timings):,} events, the {len(views):,} whose lines took the most time are "
            "shown."
        )
    if errors:
        median = percent_text(float(np.median([error for error, _ in errors])))
        sentences.append(f"The median event has a mean error of {median}.")
    if large:
        limit = percent_text(fit_report.LARGE_ERROR, 0)
        sentences.append(
            f"The mean error is over {limit} for {len(large):,} of "
            f"{count_text(len(views), 'event')}: {some_text(large, 3)}."
        )
    if unknown := len(views) - len(errors):
        sentences.append(f"{count_text(unknown, 'event')} without a known error.")
    return sentences


def events_sections(views: Sequence[EventView], seen: str, *, editor: str = "") -> list[Section]:
    """Return the sections of the overview, a row per event, and of the chosen event.

    `seen` says which lines the fit's R² is of. `editor` is HTML beside the first graph to change
    fits with, on a live page: it gets its data from a server, and lines can be selected one by one
    or by a box.
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
        f"parameter alone. {seen}",
        _LEGEND,
        (*_HEADS, *(f"p{number}" for number in range(1, most + 1))),
        ((number, _cells(view, most)) for number, view in enumerate(views)),
    )
    graphs = _graphs(editable=bool(editor))
    return [
        Section(
            "Events and parameters",
            [note] if shown < lines else (),
            html=overview,
            script="overview.js",
        ),
        Section(
            "One event",
            plot=graphs["fit"],
            html=asset("event_choice.html"),
            beside=f'<pre id="event-summary"></pre>{editor}<div id="event-warnings"></div>',
            name="event",
            table_name="lines",
            script="events.js",
            data={"events-data": {"events": events, "styles": CURVE_STYLES}},
        ),
        *(
            Section(heading, plot=graphs[name], in_grid=True, name=name)
            for name, heading in _IN_GRID.items()
        ),
        Section("Terms and outliers", html=asset("event_details.html")),
    ]


_IN_GRID = {
    "predicted": "Measured against predicted time",
    "residual": "Relative residuals against the parameter",
    "order": "Relative residuals in the order of the calls",
}
"""The headings of the graphs below the first one."""

_RESIDUAL = "(measured − predicted) / predicted, %"
_AXES = {
    "fit": ("x", "measured", "parameter", "time", "y"),
    "predicted": ("predicted", "measured", "predicted time", "measured time", "xy"),
    "residual": ("x", "residual", "parameter", _RESIDUAL, ""),
    "order": ("order", "residual", "number of the event's line in the files", _RESIDUAL, ""),
}
"""For each graph of lines, the columns on its axes, their labels, and which are in seconds."""

CURVE_STYLES = [
    [COLOURS[k], dash] for k, dash in ((1, "dashed"), (2, "dotted"), (3, "dotdash"), (7, "dashdot"))
]
"""Colours and dash patterns of the functions of one term, the best one first."""

_COLUMNS = ("measured", "predicted", "low", "high", "x", "residual", "order", "number")


def _graphs(*, editable: bool) -> dict[str, Any]:
    """Return the graphs of the chosen event by name, which a script fills.

    Timing lines are circles, outliers crosses, those left out of the fit stars. The first two alone
    decide what the axes show: a wide interval or a curve would flatten them.
    """
    from bokeh.models import ColumnDataSource  # noqa: PLC0415 - an extra
    from bokeh.models.annotations import Span  # noqa: PLC0415

    tools = f"{TOOLS},tap,box_select,lasso_select" if editable else TOOLS
    plain, outliers, left_out = (
        new_source(name, *_COLUMNS) for name in ("points-data", "outliers-data", "left-data")
    )
    graphs: dict[str, Any] = {}
    for name, (x, y, x_label, y_label, seconds) in _AXES.items():
        height = 360 if name == "fit" else 290
        plot = new_plot(x_label, y_label, height=height, seconds=seconds, tools=tools, name=name)
        graphs[name] = plot
        if name == "predicted":
            _add_before_and_intervals(plot, plain, outliers, editable=editable)
        elif y == "residual":
            zero = Span(location=0, dimension="width", line_color="#000000", line_dash="dashed")
            plot.add_layout(zero)
        faint, label = {"fill_alpha": 0.35, "line_alpha": 0.7}, "off by more than a factor of 2"
        plot.x_range.renderers = plot.y_range.renderers = [
            add_marks(plot, plain, x, y, "circle", COLOURS[0], "timing line", 6, **faint),
            add_marks(plot, outliers, x, y, "x", COLOURS[5], label, 10, line_width=2),
        ]
        if editable:
            label = "left out of the fit"
            add_marks(plot, left_out, x, y, "asterisk", COLOURS[10], label, 10, line_width=1.5)
    add_same(graphs["predicted"], "diagonal-data")
    # Bokeh computes ranges before an event's data is there.
    curve = {"xs": [[1.0]], "ys": [[1.0]], "colour": ["black"], "dash": ["solid"], "width": [1]}
    graphs["fit"].multi_line(
        "xs",
        "ys",
        source=ColumnDataSource({**curve, "label": [""]}, name="curves-data"),
        line_color="colour",
        line_dash="dash",
        line_width="width",
        legend_field="label",
    )
    return graphs


def _add_before_and_intervals(plot: Any, *sources: Any, editable: bool) -> None:
    """Draw what lies under the marks: predictions by the previous fit, and 90 % intervals."""
    x, y = "predicted", "measured"
    if editable:
        label, before = "by the previous fit", new_source("before-data", x, y)
        add_marks(plot, before, x, y, "square", OTHER, label, 6, fill_color=None)
    for source in sources:
        line = {"line_color": OTHER, "line_alpha": 0.35, "line_width": 3}
        plot.segment(x, "low", x, "high", source=source, legend_label="90 % interval", **line)
