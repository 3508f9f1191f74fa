"""The page of a comparison of models: the errors of each, over all lines and by event."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rewritelog.evaluation.compare import CompareReport, columns_text
from rewritelog.models.base import EventKey, event_names
from rewritelog.text import LABEL_WIDTH, count_text, percent_text, shorten_all
from rewritelog.viewing.events import short
from rewritelog.viewing.fit_pages import Cell, event_table
from rewritelog.viewing.page import Section, page_text
from rewritelog.viewing.plots import (
    COLOURS,
    MARKERS,
    Option,
    add_marks,
    add_same,
    is_wide,
    new_plot,
    new_source,
    swap_section,
)

GOOD_ERROR, FAIR_ERROR = 0.1, 0.3

Errors = dict[str, dict[EventKey, float | None]]
"""The mean relative error by model, then by event and parameters; None if unknown."""


def compare_page(report: CompareReport) -> str:
    """Return the HTML page of a comparison of models; events that are hard for all come first."""
    errors: Errors = {
        trial.model: {key: score.mean_relative_error for key, score in trial.events}
        for trial in report.tried
    }

    def least(key: EventKey) -> float:
        known = (by_event.get(key) for by_event in errors.values())
        return min((error for error in known if error is not None), default=-1.0)

    known = dict.fromkeys(key for by_event in errors.values() for key in by_event)
    keys = sorted(known, key=least, reverse=True)
    labels = dict(zip(keys, shorten_all(event_names(keys), LABEL_WIDTH), strict=True))
    plot = new_plot("predicted time", "measured time", height=370, seconds="xy", name="event")
    for number, model in enumerate(errors):
        style = MARKERS[number % len(MARKERS)], COLOURS[number % len(COLOURS)]
        add_marks(plot, new_source(f"model-{number}", "x", "y"), "x", "y", *style, model)
    add_same(plot, "same")
    plot.legend.click_policy = "hide"
    part = " of the first repeat" if report.request.repeats > 1 else ""
    sections = [
        Section("All lines", [columns_text()], table=report.table),
        Section("Events and models", html=_overview(errors, labels), script="overview.js"),
        swap_section(
            f"One event: measured against predicted time of held-out lines{part}",
            "event",
            plot,
            [_option(report, *pair).drawn(len(keys)) for pair in labels.items()],
            of_overview=True,
        ),
    ]
    return page_text("Comparison of models", [*_summary(report)], sections, report.warnings)


def _summary(report: CompareReport) -> Iterator[str]:
    lines = count_text(report.lines, "timing line")
    yield f"{lines}; {report.method}; all errors are on held-out lines."
    known = {trial.model: trial.overall.mean_relative_error for trial in report.tried}
    ranked = sorted((error, model) for model, error in known.items() if error is not None)
    if ranked:
        (least, best), *others = ranked
        rest = "".join(f", {model}'s {percent_text(error)}" for error, model in others)
        yield f"{best} is best: its mean relative error is {percent_text(least)}{rest}."
    for trial in report.tried:
        if trial.failed_fits:
            yield f"{trial.model}: {trial.failed_fits} of {trial.fits} fits failed."


def _overview(errors: Errors, labels: dict[EventKey, str]) -> str:
    """Return the table of errors by event, under its label, and by model, as HTML."""

    def cell(error: float | None) -> Cell:
        if error is None:
            return Cell()
        grade = (error > GOOD_ERROR) + (error > FAIR_ERROR)
        return Cell(percent_text(error), short(error), grade)

    return event_table(
        "Mean relative error on held-out lines.",
        (f"up to {percent_text(GOOD_ERROR, 0)}", f"up to {percent_text(FAIR_ERROR, 0)}", "above"),
        ("event", *errors),
        (
            (number, [Cell(label, label), *(cell(by.get(key)) for by in errors.values())])
            for number, (key, label) in enumerate(labels.items())
        ),
    )


def _option(report: CompareReport, key: EventKey, label: str) -> Option:
    """Return an event to choose: its predicted and measured times of held-out lines, by model."""
    sources = {}
    for number, trial in enumerate(report.tried):
        lines = trial.held_out[key]
        predicted_s, measured_s = lines["predicted_s"], lines["measured_s"]
        known = np.isfinite(predicted_s) & np.isfinite(measured_s)
        sources[f"model-{number}"] = {"x": predicted_s[known], "y": measured_s[known]}
    times = np.concatenate([column for by in sources.values() for column in by.values()])
    ends = np.array([times.min(), times.max()] if len(times) else [])
    return Option(
        label=label,
        sources=sources | {"same": {"x": ends, "y": ends}},
        heads=("predicted", "measured"),
        names=dict(zip(sources, (trial.model for trial in report.tried), strict=True)),
        logarithmic="xy" if len(ends) and is_wide(*ends) else "",
    )
