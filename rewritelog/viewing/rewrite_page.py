"""The page of a rewrite: what was predicted, from what, and how the times changed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch
from html import escape
from typing import Any

import numpy as np

from rewritelog.arrays import Floats, Ints
from rewritelog.diffing.durations import BINS, BINS_AN_OCTAVE, OCTAVES, Row, Rows
from rewritelog.diffing.run import compare_logs
from rewritelog.diffing.totals import Totals
from rewritelog.formats.bgtrace.logset import open_logs
from rewritelog.models.fitted_events import FittedEvents
from rewritelog.rewriting.counts import DurationSum
from rewritelog.rewriting.event_lines import speedup
from rewritelog.rewriting.report import RewriteReport, summary_sentences
from rewritelog.rewriting.statistics import total_of
from rewritelog.rewriting.trace_report import TraceReport
from rewritelog.text import NO_VALUE, percent_text, ratio_text, shorten
from rewritelog.viewing.dry_run import compare_dry_run
from rewritelog.viewing.events import views_of
from rewritelog.viewing.fit_pages import OWN_LINES, events_page, quality_lines
from rewritelog.viewing.overview import fits_html, worst_first
from rewritelog.viewing.page import Page, PageTable, Section, page_text
from rewritelog.viewing.palette import COLOURS, OTHER
from rewritelog.viewing.plots import is_wide, legend_below, new_plot
from rewritelog.viewing.swaps import Option, select_html, swap_json

MOST_ROWS = 40
"""Rows of a table and of a plot; the last one has the time of all others."""

MOST_HISTOGRAMS = 100
MOST_PES = 512
"""If there are more PEs, neighbours are grouped."""

COARSER = 8
"""How many bins of a comparison are merged into a bar of a histogram."""

DETERMINED = ("the fit", "exact match", "dilation", "untouched")


def rewrite_page(report: RewriteReport) -> str:
    """Return the HTML page of a rewrite, reading the logs once more."""
    totals = _compared(report)
    histogram, swap = _histograms(totals)
    sections = [_shares_section(report), _names_section("SEB names", totals.by_name)]
    if totals.by_event:
        sections.append(_names_section("events", totals.by_event))
    sections += [histogram, _busy_section(report)]
    verdict = [*summary_sentences(report)]
    if report.out is None:
        verdict.append("Nothing was written (dry run).")
    title = f"Rewrite of {report.logs.folder}"
    page = Page(title, verdict, sections, report.warnings)
    if report.timings is not None:
        views = worst_first(views_of(report.timings, report.fitted))
        verdict += quality_lines(views, report.timings.timings)
        page = events_page(title, verdict, report.warnings, views, OWN_LINES, sections)
    elif isinstance(report.fitted, FittedEvents):
        fits = Section("Fits of the model file", html=fits_html(report.fitted))
        page = Page(title, verdict, [*sections, fits], report.warnings, ("tables.js",))
    data = {**page.data, "swap-data": [swap]}
    scripts = ("swap.js", *page.scripts)
    return page_text(Page(title, verdict, page.sections, report.warnings, scripts, data))


def _compared(report: RewriteReport) -> Totals:
    """Return the durations of the old and new logs by SEB name and by event."""
    if report.out is None:
        return compare_dry_run(report)
    params = None if report.params is None else report.params.folder
    return compare_logs(report.logs, open_logs(report.out), params).totals


def _shares_section(report: RewriteReport) -> Section:
    """Return the section of shares of time by what determined it, before and after."""
    names, old_s, new_s = _determined(report)
    rows = [
        (name, f"{old:.6g}", f"{new:.6g}", _percent(old, old_s.sum()), _percent(new, new_s.sum()))
        for name, old, new in zip(names, old_s, new_s, strict=True)
    ]
    heads = ("determined by", "old, s", "new, s", "share of old", "share of new")
    return Section(
        "What determined the time",
        plot=_stacked(names, old_s, new_s),
        table=PageTable("Time of all SEBs by what determined it", heads, rows),
    )


def _determined(report: RewriteReport) -> tuple[list[str], Floats, Floats]:
    """Return labels, and seconds before and after, by what determined the new time."""
    statistics = report.statistics
    all_s = [statistics.seconds(which) for which in (DurationSum.OLD, DurationSum.NEW)]
    events = [event.total for event in statistics.events.values()]
    exact = float(total_of(event.exact_new_s for event in events))
    exact_old = float(total_of(event.exact_old_s for event in events))
    covered_old = float(total_of(event.old_s for event in events)) - float(
        total_of(event.dilated_old_s for event in events)
    )
    covered = float(total_of(event.new_s for event in events)) - float(
        total_of(event.dilated_new_s for event in events)
    )
    rest = all_s[0] - covered_old, all_s[1] - covered
    options = report.options
    untouched = options.general_dilation == 1 and not options.dilation_for
    last = (0.0, 0.0), rest
    dilated, kept = last if untouched else last[::-1]
    old_s = (covered_old - exact_old, exact_old, dilated[0], kept[0])
    new_s = (covered - exact, exact, dilated[1], kept[1])
    return list(DETERMINED), np.maximum(old_s, 0.0), np.maximum(new_s, 0.0)


def _percent(seconds: float, all_s: float) -> str:
    return percent_text(seconds / all_s, 1) if all_s > 0 else NO_VALUE


def _stacked(names: Sequence[str], old_s: Floats, new_s: Floats) -> Any:
    from bokeh.models import ColumnDataSource, FactorRange  # noqa: PLC0415 - an extra

    plot = new_plot(
        "time of all SEBs",
        "logs",
        height=220,
        seconds="x",
        tools="save",
        y_range=FactorRange(factors=["new", "old"]),
    )
    data = {"y": ["old", "new"]} | {
        name: [old, new] for name, old, new in zip(names, old_s, new_s, strict=True)
    }
    plot.hbar_stack(
        list(names),
        y="y",
        height=0.6,
        source=ColumnDataSource(data),
        line_color="#000000",
        fill_color=[COLOURS[0], COLOURS[4], COLOURS[1], OTHER],
        legend_label=list(names),
        hatch_pattern=[" ", "/", "x", "."],
        hatch_alpha=0.4,
        hatch_color="#000000",
    )
    plot.x_range.start = 0  # type: ignore[attr-defined]
    legend_below(plot)
    return plot


def _names_section(what: str, rows: Rows) -> Section:
    """Return the section of old and new time by name, the longest new time first."""
    ranked = sorted(rows.items(), key=lambda item: -float(item[1].b_s))
    shown, rest = ranked[:MOST_ROWS], ranked[MOST_ROWS:]
    named = [(_name(name), row) for name, row in shown]
    if rest:
        others = Row()
        for _, row in rest:
            others.add(row)
        named.append((f"{len(rest):,} others", others))
    heads = (what, "number", "old, s", "new, s", "speedup", "new / old: median", "from", "to")
    return Section(
        f"Old and new time by {what}",
        plot=_dumbbells(what, named),
        table=PageTable(
            f"Old and new time by {what}; from and to: 90 % of the ratios",
            heads,
            [(name, *_cells(row)) for name, row in named],
        ),
    )


def _name(name: str | None) -> str:
    return "(others)" if name is None else shorten(name, 60) or "(no name)"


def _cells(row: Row) -> tuple[str, ...]:
    old, new = float(row.a_s), float(row.b_s)
    ratios = (row.quantile(share) for share in (0.5, 0.05, 0.95))
    return (
        f"{row.sides[1]:,}",
        f"{old:.6g}",
        f"{new:.6g}",
        ratio_text(speedup(old, new)),
        *map(ratio_text, ratios),
    )


def _dumbbells(what: str, named: Sequence[tuple[str, Row]]) -> Any:
    """Return a dumbbell plot of old and new time of each name, as marks of different shape."""
    from bokeh.models import ColumnDataSource, FactorRange  # noqa: PLC0415 - an extra

    unique = dict(named)
    labels = list(unique)
    old, new = ([float(getattr(row, side)) for row in unique.values()] for side in ("a_s", "b_s"))
    data = {"y": labels, "old": old, "new": new}
    ends = (min(old + new, default=0.0), max(old + new, default=0.0))
    wide = is_wide(*ends)
    plot = new_plot(
        "total time",
        what,
        height=130 + 24 * len(labels),
        seconds="x",
        y_range=FactorRange(factors=labels[::-1]),
        x_axis_type="log" if wide else "linear",
    )
    if not wide:
        plot.x_range.start = 0
    source = ColumnDataSource(data)
    plot.segment("old", "y", "new", "y", source=source, line_color=OTHER, line_width=2)
    for name, marker, colour in (("old", "circle", COLOURS[5]), ("new", "square", COLOURS[0])):
        plot.scatter(
            name,
            "y",
            source=source,
            marker=marker,
            size=10,
            fill_color=colour,
            line_color=colour,
            fill_alpha=0.7,
            legend_label=name,
        )
    legend_below(plot)
    return plot


def _histograms(totals: Totals) -> tuple[Section, dict[str, Any]]:
    """Return the section of histograms of new over old duration, and its script data."""
    everything = Row()
    for row in totals.by_name.values():
        everything.add(row)
    ranked = sorted(totals.by_name.items(), key=lambda item: -float(item[1].b_s))
    choices = [("all SEBs", everything)]
    choices += [(f"SEBs named {_name(name)}", row) for name, row in ranked[:MOST_HISTOGRAMS]]
    choices += [
        (f"brackets of {_name(name)}", row)
        for name, row in list(totals.by_event.items())[:MOST_HISTOGRAMS]
    ]
    options = [_histogram(label, row) for label, row in choices]
    section = Section(
        "Ratios of new to old duration",
        html=select_html("ratios", "histogram of"),
        plot=_histogram_plot(),
        table_name="ratios-table",
    )
    return section, swap_json("ratios", options)


def _histogram(label: str, row: Row) -> Option:
    bins = np.zeros(BINS, dtype=np.int64) if row.bins is None else row.bins
    edges, counts = coarse_bins(bins)
    data = {"left": edges[:-1], "right": edges[1:], "count": counts.astype(np.float64)}
    names = {"ratios-data": label}
    return Option(label, {"ratios-data": data}, ("from", "to", "number"), names, logarithmic=["x"])


def coarse_bins(bins: Ints) -> tuple[Floats, Ints]:
    """Return the edges of merged bins, as ratios, and their counts, without empty ends."""
    inner = bins[1:-1]
    used = np.flatnonzero(inner)
    if not len(used):
        return np.array([1.0, 1.0]), np.array([0])
    first = (int(used[0]) // COARSER) * COARSER
    last = (int(used[-1]) // COARSER + 1) * COARSER
    padded = np.zeros(last, dtype=np.int64)
    padded[: min(last, len(inner))] = inner[:last]
    counts = padded[first:].reshape(-1, COARSER).sum(axis=1)
    places = np.arange(first, last + 1, COARSER) - 0.5
    return 2.0 ** (places / BINS_AN_OCTAVE - OCTAVES), counts


def _histogram_plot() -> Any:
    from bokeh.models import ColumnDataSource  # noqa: PLC0415 - an extra

    source = ColumnDataSource({"left": [1.0], "right": [1.0], "count": [0.0]}, name="ratios-data")
    plot = new_plot(
        "new duration / old duration",
        "number",
        height=340,
        name="ratios",
        x_axis_type="log",
    )
    plot.quad(
        left="left",
        right="right",
        bottom=0,
        top="count",
        source=source,
        fill_color=COLOURS[0],
        fill_alpha=0.7,
        line_color="#FFFFFF",
    )
    return plot


def _busy_section(report: RewriteReport) -> Section:
    """Return the section of the PEs' busy time before and after."""
    first, old_s, new_s, width = busy_groups(report)
    old, new = report.busy_times
    rows = [("old", *old.cells()), ("new", *new.cells())]
    rows += [
        (
            f"PE {pe}" if width == 1 else f"PEs {pe} to {pe + width - 1}, mean",
            f"{old:.6g} → {new:.6g}",
            "",
            "",
            "",
        )
        for pe, old, new in list(zip(first.tolist(), old_s, new_s, strict=True))[:MOST_ROWS]
    ]
    sentences = [
        (
            f"Imbalance, the largest over the mean: {ratio_text(old.imbalance)} before, "
            f"{ratio_text(new.imbalance)} after."
        )
    ]
    if width > 1:
        sentences.append(f"Each mark is the mean of {width} neighbouring PEs.")
    heads = ("", "largest, s", "of PE", "mean, s", "imbalance")
    return Section(
        "Busy time of the PEs",
        sentences,
        _busy_plot(first, old_s, new_s),
        PageTable("Busy time of the PEs", heads, rows),
    )


def busy_groups(report: RewriteReport) -> tuple[Ints, Floats, Floats, int]:
    """Return each group's first PE, mean busy seconds before and after, and the size of a group."""
    pes, old_s, new_s = report.statistics.busy_of_pes()
    if not len(pes):
        return pes, old_s, new_s, 1
    order = np.argsort(pes, kind="stable")
    width = -(-len(pes) // MOST_PES)
    starts = np.arange(0, len(pes), width)
    sizes = np.diff(np.append(starts, len(pes)))
    means = [np.add.reduceat(column[order], starts) / sizes for column in (old_s, new_s)]
    return pes[order][starts], means[0], means[1], width


def _busy_plot(first: Ints, old_s: Floats, new_s: Floats) -> Any:
    plot = new_plot("PE", "busy time", height=340, seconds="y")
    places = first.astype(np.float64)
    for name, marker, colour, values in (
        ("old", "circle", COLOURS[5], old_s),
        ("new", "square", COLOURS[0], new_s),
    ):
        plot.scatter(
            places,
            values,
            marker=marker,
            size=7,
            fill_color=colour,
            line_color=colour,
            fill_alpha=0.6,
            legend_label=name,
        )
        if len(values):
            plot.line(
                places[[0, -1]],
                [values.mean()] * 2,
                line_color=colour,
                line_dash="dashed" if name == "old" else "dotdash",
                line_width=2,
                legend_label=f"mean, {name}",
            )
    plot.y_range.start = 0  # type: ignore[attr-defined]
    legend_below(plot)
    return plot


@singledispatch
def page_of(report: RewriteReport | TraceReport) -> str:
    """Return the page of a rewrite."""
    raise NotImplementedError


@page_of.register
def _trace_page(report: TraceReport) -> str:
    text = report.text()
    section = Section("Report", html=f"<pre>{escape(text)}</pre>")
    title = f"Rewrite of {report.logs.path.name}"
    return page_text(Page(title, [text.partition("\n")[0]], [section], report.warnings))


page_of.register(RewriteReport, rewrite_page)
