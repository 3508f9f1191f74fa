"""The page of a sample: parameters of the run, and those timed, chosen, or extrapolated."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rewritelog.arrays import Floats, Ints
from rewritelog.models.distinct_points import DistinctPoints
from rewritelog.sampling.report import ChosenStratum, SampleReport
from rewritelog.text import NO_VALUE, count_text, percent_text
from rewritelog.viewing.event_data import MOST_POINTS, MOST_POINTS_A_PAGE, some_rows
from rewritelog.viewing.page import Page, PageTable, Section, page_text
from rewritelog.viewing.palette import COLOURS, OTHER
from rewritelog.viewing.plots import legend_below, new_plot
from rewritelog.viewing.swaps import Option, drawn_text, select_html, swap_json

NAMES = {
    "run-data": "in the run",
    "extrapolated-data": "extrapolated",
    "timed-data": "timed already",
    "chosen-data": "chosen",
}


def sample_page(report: SampleReport) -> str:
    """Return the HTML page of a sample."""
    views = [
        (stratum, pair) for stratum in report.strata for pair in _pairs(stratum.of_run.parameters)
    ]
    most = min(MOST_POINTS, MOST_POINTS_A_PAGE // max(1, len(views)))
    options = [_option(report, stratum, pair, most) for stratum, pair in views]
    sections = [Section("Events of the run", table=_table(report))]
    data = {}
    if options:
        plot = Section(
            "Points of the run, timed, chosen and extrapolated",
            html=select_html("sample", "event and parameters"),
            plot=_plot(),
            table_name="sample-table",
        )
        sections.append(plot)
        data = {"swap-data": [swap_json("sample", options)]}
    title = f"Sample of {report.logs.folder}"
    scripts = ("swap.js",) if options else ()
    return page_text(Page(title, _summary(report), sections, report.warnings, scripts, data))


def _summary(report: SampleReport) -> list[str]:
    share = report.chosen / report.records
    sentences = [
        (
            f"{count_text(report.chosen, 'SEB')} chosen of {report.records:,} with a param record "
            f"({percent_text(share)}), by {report.options.method}, seed {report.options.seed}."
        )
    ]
    outside = percent_text(report.extrapolated / report.records)
    sentences.append(
        f"{outside} of the records would be extrapolated from what is timed and chosen."
    )
    return sentences


def _table(report: SampleReport) -> PageTable:
    heads = ("event", "records", "points", "lines timed", "chosen", "extrapolated", "share")
    rows = [
        (
            stratum.name,
            f"{stratum.records:,}",
            f"{stratum.choice.points:,}",
            f"{stratum.timed:,}",
            f"{len(stratum.choice.rows):,}",
            f"{stratum.choice.extrapolated:,}",
            percent_text(stratum.choice.extrapolated / stratum.records, 1)
            if stratum.records
            else NO_VALUE,
        )
        for stratum in sorted(report.strata, key=lambda stratum: -stratum.choice.extrapolated)
    ]
    return PageTable("Chosen SEBs, the most extrapolated records first", heads, rows)


def _pairs(parameters: int) -> Iterator[tuple[int, int]]:
    """Yield the pairs of parameters drawn against each other; 0 means the number of records."""
    if parameters == 1:
        yield 1, 0
    for first in range(1, parameters):
        yield first, first + 1


@dataclass(frozen=True)
class _Points:
    """Distinct points to be drawn, with the number of records at each."""

    params: Floats
    counts: Ints
    distinct: int
    """The number of distinct points, drawn or not."""

    @classmethod
    def of(cls, params: Floats, most: int, label: str) -> _Points:
        """Return the distinct points, a sample of at most `most` of them."""
        points = DistinctPoints.of_rows(params)
        rows = some_rows(label, len(points), most)
        return cls(points.params[rows], points.counts[rows], len(points))

    def columns(self, pair: tuple[int, int]) -> dict[str, Floats]:
        """Return the values along both axes."""
        values = [
            self.counts.astype(np.float64) if number == 0 else self.params[:, number - 1]
            for number in pair
        ]
        return {"x": values[0], "y": values[1]}


def _option(
    report: SampleReport, stratum: ChosenStratum, pair: tuple[int, int], most: int
) -> Option:
    """Return the option of a stratum, with at most `most` / 4 points of each kind."""
    run = report.run.table(stratum.of_run.records, stratum.of_run.parameters)
    share = max(1, most // len(NAMES))
    tables = {
        "run-data": run,
        "extrapolated-data": run[stratum.choice.extrapolated_rows],
        "timed-data": stratum.of_run.stratum.timed,
        "chosen-data": run[stratum.choice.rows],
    }
    shown = {
        name: _Points.of(table, share, f"{name} {stratum.name}") for name, table in tables.items()
    }
    labels = ["records at the point" if number == 0 else f"p{number}" for number in pair]
    sentences = [
        f"{len(points.counts):,} of {points.distinct:,} points {NAMES[name]}"
        for name, points in shown.items()
        if len(points.counts) < points.distinct
    ]
    return Option(
        label=f"{stratum.name}: {' and '.join(labels)}",
        sources={name: points.columns(pair) for name, points in shown.items()},
        heads=labels,
        names=NAMES,
        axes={"below": labels[0], "left": labels[1]},
        text=drawn_text(sentences),
    )


def _plot() -> Any:
    from bokeh.models import ColumnDataSource  # noqa: PLC0415 - an extra

    plot = new_plot("p1", "p2", height=560, name="sample")
    for name, marker, colour, size in _marks():
        source = ColumnDataSource({"x": [1.0], "y": [1.0]}, name=name)
        plot.scatter(
            "x",
            "y",
            source=source,
            marker=marker,
            size=size,
            line_color=colour,
            fill_color=colour,
            fill_alpha=0.4,
            line_width=1.5,
            legend_label=NAMES[name],
        )
    plot.legend.click_policy = "hide"
    legend_below(plot)
    return plot


def _marks() -> Sequence[tuple[str, str, str, int]]:
    return (
        ("run-data", "circle", OTHER, 4),
        ("extrapolated-data", "x", COLOURS[5], 7),
        ("timed-data", "diamond", COLOURS[2], 10),
        ("chosen-data", "square", COLOURS[0], 8),
    )
