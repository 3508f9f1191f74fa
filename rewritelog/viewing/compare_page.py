"""The page of a comparison of models: the errors of each, over all lines and by event."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rewritelog.evaluation.compare import CompareReport
from rewritelog.text import count_text, percent_text, shorten
from rewritelog.viewing.fit_pages import Cell, event_table
from rewritelog.viewing.page import PageTable, Section, page_text
from rewritelog.viewing.plots import (
    COLOURS,
    MOST_POINTS,
    MOST_POINTS_A_PAGE,
    Option,
    add_marks,
    drawn_text,
    is_wide,
    legend_below,
    new_plot,
    new_source,
    some_rows,
    swap_section,
)

MARKERS = ("circle", "square", "triangle", "diamond", "inverted_triangle", "plus", "x", "star")
MOST_EVENTS = 60
"""The plot has at most this many events, those with the largest least error; the table has all."""

GOOD_ERROR, FAIR_ERROR = 0.1, 0.3

_HEADS = (
    "model", "mean error", "median error", "error of the sum", "without first lines", "no answer",
    "below 0", "seconds",
)  # fmt: skip

Errors = dict[str, dict[str, float | None]]
"""The mean relative error by model, then by event; None if unknown."""


def compare_page(report: CompareReport) -> str:
    """Return the HTML page of a comparison of models."""
    errors: Errors = {
        trial.model: {event: score.mean_relative_error for event, score in trial.events}
        for trial in report.tried
    }

    def least(event: str) -> float:
        known = (of_event.get(event) for of_event in errors.values())
        return min((error for error in known if error is not None), default=-1.0)

    every = dict.fromkeys(event for of_event in errors.values() for event in of_event)
    events = sorted(every, key=least, reverse=True)
    most = min(MOST_POINTS, MOST_POINTS_A_PAGE // max(1, len(events) * len(report.tried)))
    rows = [(trial.model, *trial.cells()) for trial in report.tried]
    sections = [
        Section("All lines", table=PageTable("Models, on held-out lines", _HEADS, rows)),
        Section("Events and models", html=_overview(errors, events), script="overview.js"),
        swap_section(
            "One event: measured against predicted time of held-out lines",
            "event",
            _event_plot(list(errors)),
            [_option(report, event, most) for event in events],
            of_overview=True,
        ),
        _events_section(errors, events),
    ]
    return page_text("Comparison of models", _summary(report), sections, report.warnings)


def _summary(report: CompareReport) -> list[str]:
    lines = count_text(report.lines, "timing line")
    sentences = [f"{lines}; {report.request.method_text()}; all errors are on held-out lines."]
    known = {trial.model: trial.overall.mean_relative_error for trial in report.tried}
    ranked = sorted((error, model) for model, error in known.items() if error is not None)
    if ranked:
        (least, best), *others = ranked
        sentences.append(
            f"{best} is best: its mean relative error is {percent_text(least)}"
            + "".join(f", {model}'s {percent_text(error)}" for error, model in others)
            + "."
        )
    sentences += [
        f"{trial.model}: {trial.failed_fits} of {trial.fits} fits failed."
        for trial in report.tried
        if trial.failed_fits
    ]
    return sentences


def _overview(errors: Errors, events: Sequence[str]) -> str:
    """Return the sortable and filterable table of events by models, as HTML."""

    def cell(error: float | None) -> Cell:
        if error is None:
            return Cell()
        grade = (error > GOOD_ERROR) + (error > FAIR_ERROR)
        return Cell(percent_text(error), float(f"{error:.5g}"), grade)

    labels = [shorten(event, 60) for event in events]
    return event_table(
        "Mean relative error on held-out lines. Choose a cell to see its event below.",
        (f"up to {percent_text(GOOD_ERROR, 0)}", f"up to {percent_text(FAIR_ERROR, 0)}", "above"),
        ("event", *errors),
        (
            (number, [Cell(label, label), *(cell(by.get(event)) for by in errors.values())])
            for number, (label, event) in enumerate(zip(labels, events, strict=True))
        ),
    )


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
        logarithmic="xy" if len(ends) and is_wide(*ends) else "",
        text=drawn_text(sentences),
    )


def _event_plot(models: Sequence[str]) -> Any:
    plot = new_plot("predicted time", "measured time", height=480, seconds="xy", name="event")
    for number, model in enumerate(models):
        source = new_source(f"model-{number}", "x", "y")
        add_marks(plot, source, "x", "y", *_style(number), model)
    same, label = new_source("same", "x", "y"), "measured = predicted"
    plot.line("x", "y", source=same, color="#000000", line_dash="dashed", legend_label=label)
    plot.legend.click_policy = "hide"
    legend_below(plot)
    return plot


def _style(number: int) -> tuple[str, str]:
    """Return shape and colour of the marks of a model."""
    return MARKERS[number % len(MARKERS)], COLOURS[number % len(COLOURS)]


def _events_section(errors: Errors, events: Sequence[str]) -> Section:
    """Return the section of the errors of all models, event by event."""
    shown = events[:MOST_EVENTS]
    names = [shorten(event, 40) for event in shown]
    labels = list(dict.fromkeys(names))
    plot = new_plot(
        "mean relative error on held-out lines, %",
        "event",
        height=min(1600, 140 + 24 * len(labels)),
        y_range=labels[::-1],
    )
    for number, (model, by) in enumerate(errors.items()):
        known = [(error, name) for event, name in zip(shown, names, strict=True)
                 if (error := by.get(event)) is not None]  # fmt: skip
        data = {"x": [100 * error for error, _ in known], "y": [name for _, name in known]}
        add_marks(plot, data, "x", "y", *_style(number), model, size=10)
    plot.x_range.start = 0
    legend_below(plot)
    rows = [
        (shorten(event, 60), *(percent_text(by.get(event)) for by in errors.values()))
        for event in shown
    ]
    text = f"The {MOST_EVENTS} of {len(events)} events whose smallest error is largest."
    return Section(
        "Errors event by event",
        [text] if len(events) > MOST_EVENTS else (),
        plot,
        PageTable("Mean relative error", ("event", *errors), rows),
    )
