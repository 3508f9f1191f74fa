"""The page of a comparison of models: the errors of each, over all lines and by event."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rewritelog.evaluation.compare import CompareReport
from rewritelog.text import count_text, percent_text, shorten
from rewritelog.viewing.event_data import MOST_POINTS, MOST_POINTS_A_PAGE, some_rows
from rewritelog.viewing.overview import event_table, graded_cell, name_cell, unknown_cell
from rewritelog.viewing.page import Page, PageTable, Section, page_text
from rewritelog.viewing.palette import COLOURS
from rewritelog.viewing.plots import is_wide, legend_below, new_plot
from rewritelog.viewing.swaps import Option, drawn_text, select_html, swap_json

MARKERS = ("circle", "square", "triangle", "diamond", "inverted_triangle", "plus", "x", "star")
MOST_EVENTS = 60
"""The plot has at most this many events, those with the largest least error; the table has all."""

GOOD_ERROR, FAIR_ERROR = 0.1, 0.3


def compare_page(report: CompareReport) -> str:
    """Return the HTML page of a comparison of models."""
    events = _worst_first(report)
    section, swap = _event_section(report, events)
    sections = [
        Section("All lines", table=_models_table(report)),
        Section("Events and models", html=_overview(report, events)),
        section,
        Section(
            "Errors event by event",
            paragraphs=_events_shown_text(events),
            plot=_plot(report, events[:MOST_EVENTS]),
            table=_events_table(report, events[:MOST_EVENTS]),
        ),
    ]
    return page_text(
        Page(
            "Comparison of models",
            _summary(report),
            sections,
            report.warnings,
            ("tables.js", "swap.js"),
            {"swap-data": [swap]},
        )
    )


def _errors(report: CompareReport) -> dict[str, dict[str, float | None]]:
    """Return the mean relative error by event, then by model; None if unknown."""
    return {
        trial.model: {event: score.mean_relative_error for event, score in trial.events}
        for trial in report.tried
    }


def _worst_first(report: CompareReport) -> list[str]:
    """Return the events by the best model's error, the largest first."""
    errors = _errors(report)
    events = dict.fromkeys(event for trial in report.tried for event, _ in trial.events)

    def least(event: str) -> float:
        known = [error for by in errors.values() if (error := by.get(event)) is not None]
        return min(known, default=-1.0)

    return sorted(events, key=least, reverse=True)


def _summary(report: CompareReport) -> list[str]:
    lines = count_text(report.lines, "timing line")
    sentences = [f"{lines}; {report.request.method_text()}; all errors are on held-out lines."]
    ranked = [trial for trial in report.tried if trial.overall.mean_relative_error is not None]
    ranked.sort(key=lambda trial: trial.overall.mean_relative_error or 0.0)
    if ranked:
        best = ranked[0]
        sentences.append(
            f"{best.model} is best: its mean relative error is "
            f"{percent_text(best.overall.mean_relative_error)}"
            + "".join(
                f", {trial.model}'s {percent_text(trial.overall.mean_relative_error)}"
                for trial in ranked[1:]
            )
            + "."
        )
    sentences += [
        f"{trial.model}: {trial.failed_fits} of {trial.fits} fits failed."
        for trial in report.tried
        if trial.failed_fits
    ]
    return sentences


def _events_shown_text(events: Sequence[str]) -> list[str]:
    if len(events) <= MOST_EVENTS:
        return []
    return [f"The {MOST_EVENTS} of {len(events)} events whose smallest error is largest."]


def _models_table(report: CompareReport) -> PageTable:
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
    rows = [(trial.model, *trial.cells()) for trial in report.tried]
    return PageTable("Models, on held-out lines", heads, rows)


def _events_table(report: CompareReport, events: Sequence[str]) -> PageTable:
    errors = _errors(report)
    rows = [
        (
            shorten(event, 60),
            *(percent_text(errors[trial.model].get(event)) for trial in report.tried),
        )
        for event in events
    ]
    return PageTable("Mean relative error", ("event", *errors), rows)


def _overview(report: CompareReport, events: Sequence[str]) -> str:
    """Return the sortable and filterable table of events by models, as HTML."""
    errors = _errors(report)
    rows = []
    for number, event in enumerate(events):
        cells = "".join(_cell(by.get(event)) for by in errors.values())
        rows.append(f'<tr data-e="{number}">{name_cell(shorten(event, 60))}{cells}</tr>')
    return event_table(
        "Mean relative error on held-out lines. Choose a cell to see its event below.",
        (f"up to {percent_text(GOOD_ERROR, 0)}", f"up to {percent_text(FAIR_ERROR, 0)}", "above"),
        ("event", *errors),
        rows,
    )


def _cell(error: float | None) -> str:
    if error is None:
        return unknown_cell()
    grade = 0 if error <= GOOD_ERROR else 1 if error <= FAIR_ERROR else 2
    return graded_cell(grade, error, percent_text(error))


def _event_section(report: CompareReport, events: Sequence[str]) -> tuple[Section, dict[str, Any]]:
    """Return the section of measured against predicted times of an event, and its script data."""
    most = min(MOST_POINTS, MOST_POINTS_A_PAGE // max(1, len(events) * len(report.tried)))
    options = [_option(report, event, most) for event in events]
    section = Section(
        "One event: measured against predicted time of held-out lines",
        html=select_html("event", "event"),
        plot=_event_plot([trial.model for trial in report.tried]),
        table_name="event-table",
    )
    return section, swap_json("event", options, of_overview=True)


def _option(report: CompareReport, event: str, most: int) -> Option:
    """Return the option of an event: its times by model, of at most `most` held-out lines."""
    sources, names, sentences = {}, {}, []
    for number, trial in enumerate(report.tried):
        pairs = trial.pairs[event]
        known = pairs.part(np.isfinite(pairs.predicted_s) & np.isfinite(pairs.measured_s))
        count = len(known.measured_s)
        rows = some_rows(event, count, most)
        if len(rows) < count:
            sentences.append(f"{len(rows):,} of {count:,} lines by {trial.model}")
        names[f"model-{number}"] = trial.model
        sources[f"model-{number}"] = {"x": known.predicted_s[rows], "y": known.measured_s[rows]}
    times = np.concatenate([column for by in sources.values() for column in by.values()])
    ends = np.array([times.min(), times.max()] if len(times) else [])
    return Option(
        label=shorten(event, 60),
        sources=sources | {"same": {"x": ends, "y": ends}},
        heads=("predicted", "measured"),
        names=names,
        logarithmic=("x", "y") if len(ends) and is_wide(*ends) else (),
        text=drawn_text(sentences),
    )


def _event_plot(models: Sequence[str]) -> Any:
    from bokeh.models import ColumnDataSource  # noqa: PLC0415 - an extra

    plot = new_plot("predicted time", "measured time", height=480, seconds="xy", name="event")
    for number, model in enumerate(models):
        source = ColumnDataSource({"x": [1.0], "y": [1.0]}, name=f"model-{number}")
        plot.scatter("x", "y", source=source, legend_label=model, size=7, **_mark(number))
    same = ColumnDataSource({"x": [1.0], "y": [1.0]}, name="same")
    label = "measured = predicted"
    plot.line("x", "y", source=same, color="#000000", line_dash="dashed", legend_label=label)
    plot.legend.click_policy = "hide"
    legend_below(plot)
    return plot


def _mark(number: int) -> dict[str, Any]:
    """Return shape and colour of the markers of a model."""
    colour = COLOURS[number % len(COLOURS)]
    marker = MARKERS[number % len(MARKERS)]
    return {"marker": marker, "fill_color": colour, "fill_alpha": 0.5, "line_color": colour}


def _plot(report: CompareReport, events: Sequence[str]) -> Any:
    from bokeh.models import ColumnDataSource, FactorRange  # noqa: PLC0415 - an extra

    names = [shorten(event, 40) for event in events]
    labels = list(dict.fromkeys(names))
    plot = new_plot(
        "mean relative error on held-out lines, %",
        "event",
        height=min(1600, 140 + 24 * len(labels)),
        y_range=FactorRange(factors=labels[::-1]),
    )
    for number, (model, by) in enumerate(_errors(report).items()):
        known = [
            (100 * error, name)
            for event, name in zip(events, names, strict=True)
            if (error := by.get(event)) is not None
        ]
        data = {"x": [x for x, _ in known], "y": [y for _, y in known]}
        source = ColumnDataSource(data)
        plot.scatter("x", "y", source=source, legend_label=model, size=10, **_mark(number))
    plot.x_range.start = 0  # type: ignore[attr-defined]
    legend_below(plot)
    return plot
