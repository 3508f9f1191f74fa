"""The page of a comparison of models: how far off each is, over all lines and event by event."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from rewritelog.evaluation.compare import CompareReport, ModelResult
from rewritelog.text import NO_VALUE, count_text, percent_text, shorten
from rewritelog.viewing.page import Page, Section, TextTable, page_text
from rewritelog.viewing.palette import COLOURS

MARKERS = ("circle", "square", "triangle", "diamond", "inverted_triangle", "plus", "x", "star")
MOST_EVENTS = 60
"""Events in the plot, those first where the models differ most; the table has all."""

GOOD_ERROR, FAIR_ERROR = 0.1, 0.3


def compare_page(report: CompareReport) -> str:
    """Return the page of a comparison."""
    events = _worst_first(report)
    sections = [
        Section("All lines", table=_models_table(report)),
        Section(
            "Errors event by event",
            paragraphs=_shown_text(events),
            plot=_plot(report, events[:MOST_EVENTS]),
            table=_events_table(report, events[:MOST_EVENTS]),
        ),
        Section("Events and models", html=_overview(report, events)),
    ]
    page = Page("Comparison of models", _verdict(report), sections, report.warnings, ("tables.js",))
    return page_text(page)


def _errors(report: CompareReport) -> dict[str, dict[str, float | None]]:
    """Return the mean relative error of each event by model."""
    return {
        one.model: {event: score.mean_relative_error for event, score in one.events}
        for one in report.tried
    }


def _worst_first(report: CompareReport) -> list[str]:
    """Return the events in falling order of the best model's error."""
    errors = _errors(report)
    events = dict.fromkeys(event for one in report.tried for event, _ in one.events)

    def least(event: str) -> float:
        known = [error for by in errors.values() if (error := by.get(event)) is not None]
        return min(known, default=-1.0)

    return sorted(events, key=least, reverse=True)


def _verdict(report: CompareReport) -> list[str]:
    lines = count_text(report.lines, "timing line")
    said = [f"{lines}; {report.request.spelled()}; all errors are of lines left out of the fits."]
    ranked = [one for one in report.tried if one.overall.mean_relative_error is not None]
    ranked.sort(key=lambda one: one.overall.mean_relative_error or 0.0)
    if ranked:
        best = ranked[0]
        said.append(
            f"{best.model} is best: its mean relative error is "
            f"{percent_text(best.overall.mean_relative_error)}"
            + "".join(
                f", {one.model}'s {percent_text(one.overall.mean_relative_error)}"
                for one in ranked[1:]
            )
            + "."
        )
    said += [
        f"{one.model}: {one.failed_fits} of {one.fits} fits failed."
        for one in report.tried
        if one.failed_fits
    ]
    return said


def _shown_text(events: Sequence[str]) -> list[str]:
    if len(events) <= MOST_EVENTS:
        return []
    return [f"The {MOST_EVENTS} events of {len(events)} whose least error is largest."]


def _models_table(report: CompareReport) -> TextTable:
    heads = (
        "model",
        "mean error",
        "median error",
        "error of the sum",
        "without first lines",
        "no answer",
        "below 0",
        "seconds",
    )
    return TextTable("Models, on lines left out", heads, [_row(one) for one in report.tried])


def _row(one: ModelResult) -> tuple[str, ...]:
    score = one.overall
    missing = 1 - score.predicted / score.lines if score.lines else None
    return (
        one.model,
        percent_text(score.mean_relative_error),
        percent_text(score.median_relative_error),
        percent_text(score.sum_error, sign="+"),
        percent_text(score.later_sum_error, sign="+"),
        percent_text(missing),
        str(score.negative),
        f"{one.seconds:.2f}",
    )


def _events_table(report: CompareReport, events: Sequence[str]) -> TextTable:
    errors = _errors(report)
    rows = [
        (shorten(event, 60), *(percent_text(errors[one.model].get(event)) for one in report.tried))
        for event in events
    ]
    return TextTable("Mean relative error", ("event", *errors), rows)


def _overview(report: CompareReport, events: Sequence[str]) -> str:
    """Return the table of all events by models, which can be sorted and filtered."""
    errors = _errors(report)
    heads = "".join(
        f'<th scope="col"><button type="button">{escape(head)}</button></th>'
        for head in ("event", *errors)
    )
    rows = []
    for event in events:
        cells = "".join(_cell(by.get(event)) for by in errors.values())
        name = escape(shorten(event, 60), quote=True)
        rows.append(f'<tr><td data-v="{name}">{name}</td>{cells}</tr>')
    return (
        '<p class="note">Mean relative error on lines left out of the fits.</p>'
        f'<p class="legend note"><span class="good">● up to {GOOD_ERROR:.0%}</span>'
        f'<span class="fair">◐ up to {FAIR_ERROR:.0%}</span><span class="poor">○ above</span></p>'
        '<p class="screen"><label>events whose name contains '
        '<input id="filter" type="search" autocomplete="off" maxlength="200"></label>'
        '<span id="filtered" role="status"></span></p>'
        '<div class="scroll" tabindex="0" role="region" aria-label="events and models">'
        f'<table class="overview" id="overview"><thead><tr>{heads}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _cell(error: float | None) -> str:
    if error is None:
        return f'<td class="unknown">{NO_VALUE}</td>'
    kind, mark = (
        ("good", "●")
        if error <= GOOD_ERROR
        else (("fair", "◐") if error <= FAIR_ERROR else ("poor", "○"))
    )
    return f'<td class="{kind}" data-v="{error:.6g}">{mark} {percent_text(error)}</td>'


def _plot(report: CompareReport, events: Sequence[str]) -> Any:
    from bokeh.models import ColumnDataSource, FactorRange  # noqa: PLC0415 - an extra
    from bokeh.plotting import figure  # noqa: PLC0415

    names = [shorten(event, 40) for event in events]
    labels = list(dict.fromkeys(names))
    plot = figure(
        y_range=FactorRange(factors=labels[::-1]),
        x_axis_label="mean relative error on lines left out, %",
        y_axis_label="event",
        height=min(1600, 140 + 24 * len(labels)),
        title="Errors by event",
        sizing_mode="stretch_width",
        tools="pan,wheel_zoom,box_zoom,reset,save",
        output_backend="canvas",
    )
    plot.toolbar.logo = None
    for number, (model, by) in enumerate(_errors(report).items()):
        known = [
            (100 * error, name)
            for event, name in zip(events, names, strict=True)
            if (error := by.get(event)) is not None
        ]
        data = {"x": [x for x, _ in known], "y": [y for _, y in known]}
        colour = COLOURS[number % len(COLOURS)]
        plot.scatter(
            "x",
            "y",
            source=ColumnDataSource(data),
            marker=MARKERS[number % len(MARKERS)],
            size=10,
            fill_color=colour,
            fill_alpha=0.6,
            line_color=colour,
            legend_label=model,
        )
    if plot.legend:
        plot.add_layout(plot.legend[0], "below")
        plot.legend.orientation = "horizontal"
    return plot
