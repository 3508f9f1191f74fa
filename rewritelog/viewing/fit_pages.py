"""Pages of fits: a new fit with its timing lines, and a model file verified on other lines."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rewritelog.evaluation.fit import FitReport
from rewritelog.evaluation.verify import VerifyReport
from rewritelog.models.base import EventTimings, ModelFit
from rewritelog.text import count_text, percent_text, some_text
from rewritelog.timings.read import TimingsRead
from rewritelog.timings.samples import files_of
from rewritelog.viewing.event_data import events_json
from rewritelog.viewing.event_plots import CURVE_STYLES, event_sections
from rewritelog.viewing.events import EventView, events_shown, views_of
from rewritelog.viewing.overview import FAIR, GOOD, overview_html, worst_first
from rewritelog.viewing.page import Page, Section, page_text
from rewritelog.viewing.sampled import SEED

OWN_LINES = "The column of the fit shows its R² on held-out lines."
NEW_LINES = "The column of the fit shows the R² of its predictions of these lines."


def fit_page(report: FitReport) -> str:
    """Return the HTML page of a fit."""
    views = worst_first(views_of(report.read, report.fitted))
    lines = count_text(report.read.lines, "timing line")
    verdict = [
        f"Model {report.request.model_name}, fitted to {lines}.",
        *quality_lines(views, report.read.timings),
    ]
    title = f"Fit of {some_text([path.name for path in files_of(report.request.timings)], 3)}"
    return page_text(events_page(title, verdict, report.warnings, views, OWN_LINES))


def verify_page(report: VerifyReport, fitted: ModelFit, read: TimingsRead) -> str:
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
