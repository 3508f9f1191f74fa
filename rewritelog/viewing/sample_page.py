"""The page of a sample: parameters of the run, and those timed, chosen, or extrapolated."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rewritelog.core import DistinctPoints
from rewritelog.sampling.sample import SampleReport
from rewritelog.sampling.selection import Choice
from rewritelog.text import count_text, parameter_names, percent_text
from rewritelog.viewing.page import Section, page_text
from rewritelog.viewing.plots import (
    COLOURS,
    OTHER,
    Option,
    add_marks,
    new_plot,
    new_source,
    swap_section,
)

_MARKS = {
    "run-data": ("circle", OTHER, "in the run", 4),
    "extrapolated-data": ("x", COLOURS[5], "extrapolated", 7),
    "timed-data": ("diamond", COLOURS[2], "timed already", 10),
    "chosen-data": ("square", COLOURS[0], "chosen", 8),
}
"""Marker, colour, label and size of each kind of points."""


def sample_page(report: SampleReport) -> str:
    """Return the HTML page of a sample."""
    views = [
        (choice, label, pair)
        for choice, label in zip(report.strata, report.labels, strict=True)
        for pair in _pairs(choice.stratum.parameters)
    ]
    sections = [Section("Events of the run", table=report.table)]
    if views:
        plot = new_plot("p1", "p2", height=450, name="sample")
        for name, style in _MARKS.items():
            add_marks(plot, new_source(name, "x", "y"), "x", "y", *style, line_width=1.5)
        plot.legend.click_policy = "hide"
        heading = "Points of the run, timed, chosen and extrapolated"
        options = [_option(*view).drawn(len(views)) for view in views]
        sections.append(swap_section(heading, "event and parameters", plot, options))
    share, outside = (part / report.records for part in (report.chosen, report.extrapolated))
    summary = (
        (
            f"{count_text(report.chosen, 'param record')} chosen of {report.records:,} "
            f"({percent_text(share)}), by {report.options.method}, seed {report.options.seed}."
        ),
        (
            f"{percent_text(outside)} of the records would be extrapolated from what is timed and "
            "chosen."
        ),
    )
    return page_text(f"Sample of {report.logs.folder}", summary, sections, report.warnings)


def _pairs(parameters: int) -> Iterator[tuple[int, int]]:
    """Yield the pairs of parameters drawn against each other; 0 means the number of records."""
    if parameters == 1:
        yield 1, 0
    for first in range(1, parameters):
        yield first, first + 1


def _option(choice: Choice, label: str, pair: tuple[int, int]) -> Option:
    """Return the option of a stratum: its distinct points."""
    stratum, run = choice.stratum, choice.stratum.params
    names = ["records at the point", *parameter_names(stratum.parameters, stratum.names)]
    tables = (run, run[choice.extrapolated_rows], stratum.timed, run[choice.rows])
    sources = {}
    for name, table in zip(_MARKS, tables, strict=True):
        points = DistinctPoints.of_rows(table)
        columns = np.column_stack([points.counts, points.params])[:, pair]
        sources[name] = dict(zip("xy", columns.T, strict=True))
    labels = [names[number] for number in pair]
    return Option(
        label=f"{label}: {' and '.join(labels)}",
        sources=sources,
        heads=labels,
        names={name: kind for name, (_, _, kind, _) in _MARKS.items()},
        axes={"below": labels[0], "left": labels[1]},
    )
