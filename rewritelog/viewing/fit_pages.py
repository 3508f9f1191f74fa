"""The pages of fits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from rewritelog.evaluation.fit import FitReport
from rewritelog.evaluation.verify import VerifyReport
from rewritelog.models import fit_report
from rewritelog.models.base import EventTimings, ModelFit
from rewritelog.models.fitted_events import FittedEvents
from rewritelog.models.fitting.event_fit import EventFit
from rewritelog.text import (
    NO_VALUE,
    count_text,
    event_label,
    parameter_names,
    percent_text,
    some_text,
)
from rewritelog.timings.samples import Timings, files_of
from rewritelog.viewing.event_plots import CURVE_STYLES, event_sections
from rewritelog.viewing.events import EventView, events_json, events_shown, views_of
from rewritelog.viewing.page import Page, Section, page_text, rendered
from rewritelog.viewing.plots import SEED

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
    return sorted(views, key=lambda view: _rank(view.r2))


def event_table(note: str, legend: Sequence[str], heads: Sequence[str], rows: Rows) -> str:
    """Return a table of events as HTML, which a script sorts by column and filters by name.

    `legend` says what good, fair and poor cells are.
    """
    values = {"note": note, "legend": legend, "heads": heads, "rows": rows}
    return rendered("overview.html", grades=_GRADES, **values)


def overview_html(views: Sequence[EventView], seen: str) -> str:
    """Return the table as HTML, a row per event; `seen` tells which lines the fit's R² is of."""
    most = max((view.parameters for view in views), default=0)
    parameters = [f"p{number}" for number in range(1, most + 1)]
    return event_table(
        "A parameter's column shows the R² on held-out lines of the best function of that "
        f"parameter alone. {seen} Choose a cell to see its event below.",
        _LEGEND,
        (*_HEADS, *parameters),
        ((number, list(_cells(view, most))) for number, view in enumerate(views)),
    )


def row_html(view: EventView, number: int, most: int) -> str:
    """Return an event's row as HTML; `most` is the table's number of parameter columns."""
    return rendered("overview.html", grades=_GRADES, rows=[(number, list(_cells(view, most)))])


def fits_html(fitted: FittedEvents) -> str:
    """Return a table of fits without their timing lines, the worst first, as HTML."""
    fits = sorted(fitted.fits.values(), key=lambda fit: _rank(fit.whole.quality.held_out_r2))
    return event_table(
        "R² and mean error of the fit on held-out lines; the lines are not on this page.",
        _LEGEND,
        _HEADS,
        ((None, _fit_cells(fit)) for fit in fits),
    )


def _rank(r2: float | None) -> tuple[bool, float]:
    return r2 is None, r2 or 0.0


def _fit_cells(fit: EventFit) -> list[Cell]:
    quality, warnings = fit.whole.quality, fit_report.warn(fit)
    label = event_label(fit.event, fit.parameters, names=fit.names)
    return [
        Cell(label, label, title="; ".join(fit_report.summarise(fit)[1:])),
        Cell(f"{fit.samples:,}", fit.samples),
        _r2_cell(quality.held_out_r2),
        _error_cell(quality.held_out_error),
        Cell(f"{len(warnings) or ''}", len(warnings), title="; ".join(warnings)),
    ]


def _cells(view: EventView, most: int) -> Iterator[Cell]:
    lines, warnings = len(view.timings.seconds), len(view.warnings)
    yield Cell(view.label, view.label)
    yield Cell(f"{lines:,}", lines)
    yield _r2_cell(view.r2, "the fit in all parameters")
    yield _error_cell(view.error)
    yield Cell(f"{warnings or ''}", warnings)
    reasons = {ignored.parameter: ignored.reason for ignored in view.single_terms.ignored}
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
    return page_text(events_page(title, verdict, report.warnings, views, OWN_LINES))


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
    return page_text(events_page(title, verdict, report.warnings, views, NEW_LINES))


def quality_lines(views: Sequence[EventView], timings: Sequence[EventTimings]) -> list[str]:
    """Return sentences on how many of the events shown have reliable fits."""
    some = events_shown(timings)
    known = [view.r2 for view in views if view.r2 is not None]
    unknown = len(views) - len(known)
    good = sum(r2 >= GOOD for r2 in known)
    poor = [view for view in views if view.r2 is not None and view.r2 < FAIR]
    sentences = [some] if some else []
    sentences += [
        f"{good} of {count_text(len(views), 'event')} have a fit with an R² of {GOOD:g} or more"
        + (f", {unknown} {'has' if unknown == 1 else 'have'} no R²." if unknown else ".")
    ]
    if poor:
        names = some_text([view.label for view in poor], 3)
        sentences.append(f"Little of the time is explained (R² below {FAIR:g}) for {names}.")
    errors = [view.error for view in views if view.error is not None]
    if errors:
        sentences.append(
            f"The median event has a mean error of {percent_text(float(np.median(errors)))}."
        )
    return sentences


def events_page(
    title: str,
    verdict: Sequence[str],
    warnings: Sequence[str],
    views: Sequence[EventView],
    seen: str,
    more: Sequence[Section] = (),
    *,
    editor: str = "",
) -> Page:
    """Return a page of the sections `more`, then the overview and the views of the events.

    `editor` is HTML with which fits are changed, in a page that gets its data from a server.
    """
    events = [] if editor else events_json(views)
    shown, lines = sum(event["shown"] for event in events), sum(event["lines"] for event in events)
    note = (
        f"{shown:,} of {lines:,} lines are drawn, chosen at random (seed {SEED}). Fits, R² and "
        "errors are of all lines."
    )
    overview = overview_html(views, seen)
    sections = [
        *more,
        Section("Events and parameters", [note] if shown < lines else (), html=overview),
        *event_sections(editor=editor),
    ]
    data = {"events-data": {"events": events, "styles": CURVE_STYLES}}
    return Page(title, verdict, sections, warnings, ("overview.js", "events.js"), data)
