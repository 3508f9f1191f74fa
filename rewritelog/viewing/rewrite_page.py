"""The page of a rewrite: what was predicted, from what, and how the times changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np
from msgspec.structs import replace

from rewritelog.arrays import Floats, Ints
from rewritelog.commands.durations import NO_DILATION
from rewritelog.diffing.durations import (
    BINS,
    BINS_AN_OCTAVE,
    OCTAVES,
    NamedDurations,
    Row,
    Rows,
    add_rows,
    rows_of,
)
from rewritelog.diffing.records import Totals, compare_loaded
from rewritelog.formats.bgtrace.blocks import Block
from rewritelog.formats.bgtrace.params import ParamFolder, list_params
from rewritelog.formats.traces import Unit, UnitWriter
from rewritelog.rewriting.block import RewriteTask, rewrite_part
from rewritelog.rewriting.report import RewriteReport, Task
from rewritelog.rewriting.statistics import DurationSum, EventSums, remainder_s
from rewritelog.rewriting.traces import TraceTask
from rewritelog.running.engines import limited_to, map_blocks
from rewritelog.text import (
    LABEL_WIDTH,
    NO_NAME,
    TextTable,
    percent_text,
    ratio_text,
    shorten_all,
    speedup,
    time_text,
)
from rewritelog.viewing.fit_pages import shown_events
from rewritelog.viewing.page import Section, page_text
from rewritelog.viewing.plots import (
    COLOURS,
    OTHER,
    Option,
    add_marks,
    is_wide,
    new_plot,
    new_source,
    swap_section,
)

MOST_ROWS = 40
"""Rows of a table and of a plot; the last one has the time of all others."""

MOST_HISTOGRAMS = 100
MOST_PES = 512
"""If there are more PEs, neighbours are grouped."""

COARSER = 8
"""How many bins of a comparison are merged into a bar of a histogram."""

DETERMINED = ("the fit", "exact match", "dilation", "untouched")

_SIDES = {"before": ("circle", COLOURS[5]), "after": ("square", COLOURS[0])}
"""Marker and colour of the logs before and after."""


def rewrite_page(report: RewriteReport) -> str:
    """Return the HTML page of a rewrite, rewriting the logs once more in memory."""
    totals, item = compare_dry_run(report.task, report.options.jobs), report.terms.item
    names, events = _longest_first(totals.by_name), _longest_first(totals.by_event)
    sections = [_shares_section(report)]
    by_name = (f"{item} names", names), ("events", events)
    sections += [_names_section(what, ranked) for what, ranked in by_name if ranked]
    histograms = [
        (f"all {item}s", _sum(totals.by_name.values())),
        *((f"{item}s named {name}", row) for name, row in names[:MOST_HISTOGRAMS]),
        *((f"brackets of {event}", row) for event, row in events[:MOST_HISTOGRAMS]),
    ]
    sections += [_histograms(histograms), _busy_section(report)]
    verdict = report.top_lines()
    if report.out is None:
        verdict.append("Nothing was written (dry run).")
    if report.timings is not None:
        quality, of_events = shown_events(report.timings, report.fitted)
        verdict += quality
        sections += of_events
    elif report.fitted.fits:
        fit = report.fitted.raw
        text = "\n".join((*fit.overview(), "", *fit.summary()))
        sections.append(Section("Fits of the model file", text=text))
    return page_text(f"Rewrite of {report.logs.path}", verdict, sections, report.warnings)


def _shares_section(report: RewriteReport) -> Section:
    """Return the section of shares of time by what determined it, before and after."""
    old_s, new_s = _determined(report)
    items = f"{report.terms.item}s"
    parts = [part for part in range(len(DETERMINED)) if old_s[part] or new_s[part]] or [0]
    names = [DETERMINED[part] for part in parts]
    bars = dict(zip(names, np.transpose([old_s, new_s])[parts], strict=True))
    plot = new_plot(
        f"time of all {items}", "durations", height=110, seconds="x", tools="save", rows=[*_SIDES]
    )
    plot.hbar_stack(
        names,
        y="y",
        height=0.6,
        source={"y": [0.5, 1.5], **bars},
        line_color="#000000",
        fill_color=[(COLOURS[0], COLOURS[4], COLOURS[1], OTHER)[part] for part in parts],
        legend_label=names,
        hatch_pattern=[" /x."[part] for part in parts],
        hatch_alpha=0.4,
        hatch_color="#000000",
    )
    plot.x_range.start = 0

    def percent(seconds: float, all_s: float) -> str:
        return percent_text(seconds / all_s if all_s > 0 else None, 1)

    rows = [
        (name, *map(time_text, (old, new)), percent(old, old_s.sum()), percent(new, new_s.sum()))
        for name, old, new in zip(names, old_s[parts], new_s[parts], strict=True)
    ]
    heads = ("determined by", *_SIDES, "share before", "share after")
    table = TextTable(heads, rows, caption=f"Time of all {items} by what determined it")
    return Section("What determined the time", plot=plot, table=table)


def _determined(report: RewriteReport) -> tuple[Floats, Floats]:
    """Return the seconds before and after by what determined the new time."""
    total = sum((event.total for event in report.statistics.events.values()), EventSums())
    dilated, untouched = report.overheads.by_dilation, report.overheads.untouched
    sides = []
    for which, parts in (
        (DurationSum.OLD, (float(total.exact_old_s), dilated.old_s, untouched.old_s)),
        (DurationSum.NEW, (float(total.exact_new_s), dilated.new_s, untouched.new_s)),
    ):
        sides.append(np.array([remainder_s(report.statistics.seconds(which), parts), *parts]))
        if report.options.dilations == NO_DILATION:
            sides[-1][2:] = 0.0, sides[-1][2:].sum()
    return sides[0], sides[1]


Named = list[tuple[str, Row]]
"""Durations with the labels of names or events, those with the most new time first."""

_OTHERS = "(others)"
"""All names that have no row of their own, which are last."""


def _longest_first(rows: Rows) -> Named:
    ranked = sorted(rows.items(), key=lambda item: (item[0] is None, -float(item[1].b_s)))
    names = [_OTHERS if name is None else name or NO_NAME for name, _ in ranked]
    labels = shorten_all(names, LABEL_WIDTH)
    return [(label, row) for label, (_, row) in zip(labels, ranked, strict=True)]


def _sum(rows: Iterable[Row]) -> Row:
    total = Row()
    for row in rows:
        total.add(row)
    return total


def _names_section(what: str, ranked: Named) -> Section:
    """Return the section of time by name before and after, with a dumbbell plot."""
    named, rest = ranked[:MOST_ROWS], ranked[MOST_ROWS:]
    if rest:
        named.append((_OTHERS, _sum(row for _, row in rest)))
    times = {
        "before": [float(row.a_s) for _, row in named],
        "after": [float(row.b_s) for _, row in named],
    }
    both_s = [*times["before"], *times["after"]]
    wide = is_wide(min(both_s, default=0.0), max(both_s, default=0.0))
    scale = "log" if wide else "linear"
    labels, y = [name for name, _ in named], np.arange(len(named)) + 0.5
    plot = new_plot("total time", what, seconds="x", rows=labels, x_axis_type=scale)
    if not wide:
        plot.x_range.start = 0
    plot.segment(times["before"], y, times["after"], y, line_color=OTHER, line_width=2)
    for side, style in _SIDES.items():
        data = {"x": times[side], "y": y}
        add_marks(plot, data, "x", "y", *style, side, size=10, fill_alpha=0.7)
    rows = []
    for (name, row), old, new in zip(named, *times.values(), strict=True):
        ratios = (row.lowest, row.median, row.highest) if row.ratios else (None, None, None)
        cells = map(ratio_text, (speedup(old, new), *ratios))
        rows.append((name, f"{row.sides[1]:,}", time_text(old), time_text(new), *cells))
    of_ratios = ("after / before: lowest", "median", "highest")
    heads = (what, "number", *_SIDES, "speedup", *of_ratios)
    heading = f"Time by {what}, before and after"
    table = TextTable(heads, rows, caption=f"{heading}, with ratios of single ones")
    return Section(heading, plot=plot, table=table)


def _histograms(rows: Named) -> Section:
    """Return the section of histograms of ratios of durations."""
    plot = new_plot(
        "duration after / duration before", "number", height=260, name="ratios", x_axis_type="log"
    )
    plot.quad(
        left="left",
        right="right",
        bottom=0,
        top="count",
        source=new_source("ratios-data", "left", "right", "count"),
        fill_color=COLOURS[0],
        fill_alpha=0.7,
        line_color="#FFFFFF",
    )
    plot.y_range.start = 0
    options = []
    for label, row in rows:
        edges, counts = coarse_bins(np.zeros(BINS, np.int64) if row.bins is None else row.bins)
        data = {"left": edges[:-1], "right": edges[1:], "count": counts.astype(np.float64)}
        heads, of_source = ("from", "to", "number"), {"ratios-data": label}
        options.append(Option(label, {"ratios-data": data}, heads, of_source, logarithmic="x"))
    return swap_section("Ratios of durations, after to before", "histogram of", plot, options)


def coarse_bins(bins: Ints) -> tuple[Floats, Ints]:
    """Return the edges of merged bins, as ratios, and their counts, without empty ends."""
    counts = np.add.reduceat(bins[1:-1], np.arange(0, BINS - 2, COARSER))
    used = np.flatnonzero(counts)
    if not len(used):
        return np.array([1.0, 1.0]), np.array([0])
    first, last = int(used[0]), int(used[-1]) + 1
    edges = COARSER * np.arange(first, last + 1) - 0.5
    return 2.0 ** (edges / BINS_AN_OCTAVE - OCTAVES), counts[first:last]


def _busy_section(report: RewriteReport) -> Section:
    """Return the section of the PEs' busy time before and after."""
    first, old_s, new_s, width = busy_groups(report)
    lane = report.terms.lane
    plot = new_plot(lane, "busy time", height=230, seconds="y", whole="x")
    for (side, style), values, dash in zip(
        _SIDES.items(), (old_s, new_s), ("dashed", "dotdash"), strict=True
    ):
        add_marks(plot, {"x": first, "y": values}, "x", "y", *style, side)
        ends, mean = first[[0, -1]], [values.mean()] * 2
        line = {"line_color": style[1], "line_dash": dash, "line_width": 2}
        plot.line(ends, mean, legend_label=f"mean, {side}", **line)
    plot.y_range.start = 0
    old, new = report.busy_times
    sentences = [
        (
            f"Imbalance, the largest over the mean: {ratio_text(old.imbalance)} before, "
            f"{ratio_text(new.imbalance)} after."
        )
    ]
    if width > 1:
        sentences.append(f"Each mark is the mean of {width} neighbouring {lane}s.")
    rows = [
        ("largest", *map(time_text, (old.largest_s, new.largest_s))),
        ("mean", *map(time_text, (old.mean_s, new.mean_s))),
    ]
    for pe, *times in list(zip(first.tolist(), old_s, new_s, strict=True))[:MOST_ROWS]:
        last = min(pe + width - 1, report.logs.pes[-1])
        label = f"{lane} {pe}" if pe == last else f"{lane}s {pe} to {last}, mean"
        rows.append((label, *map(time_text, times)))
    heading = f"Busy time of the {lane}s"
    return Section(heading, sentences, plot, TextTable(("", *_SIDES), rows, caption=heading))


def busy_groups(report: RewriteReport) -> tuple[Ints, Floats, Floats, int]:
    """Return each group's first PE, mean busy seconds before and after, and the size of a group."""
    pes, old_s, new_s = report.statistics.busy_of_pes()
    order, width = np.argsort(pes, kind="stable"), -(-len(pes) // MOST_PES)
    starts = np.arange(0, len(pes), width)
    sizes = np.diff(np.append(starts, len(pes)))
    old_s, new_s = (np.add.reduceat(column[order], starts) / sizes for column in (old_s, new_s))
    return pes[order][starts], old_s, new_s, width


def compare_dry_run(task: Task, jobs: int = 0) -> Totals:
    """Rewrite the logs of a task again without writing, and compare each block with the original.

    Takes memory for two blocks per thread. Raise what reading the logs raises.
    """
    totals = Totals()
    work: Callable[[Any], Totals]
    if isinstance(task, TraceTask):
        work = partial(_unit_compared, task)
    else:
        params = list_params(task.logs.folder) if task.params is None else task.params
        work = partial(_block_compared, task, params)
    with limited_to(jobs):
        units = task.logs.units(in_turn=True)
        for _, of_block in map_blocks(work, units, "comparing", task.logs.units_bytes):
            totals.add(of_block)
    return totals


def _unit_compared(task: TraceTask, unit: Unit) -> Totals:
    totals, writer = Totals(), UnitWriter()
    for part in task.logs.read(unit):
        task.predict(part)
        names, old_s, new_s = part["name"], part["duration_s"], part["new_s"]
        _, new_us = writer.written(part, new_s, new_s != old_s)
        sides = [NamedDurations(names.number, seconds) for seconds in (old_s, new_us / 1e6)]
        add_rows(totals.by_name, rows_of(names.distinct, sides, sides))
    return totals


def _block_compared(task: RewriteTask, params: ParamFolder, block: Block) -> Totals:
    totals = Totals()
    for loaded in task.logs.read(block):
        old = replace(loaded, buffer=loaded.buffer.copy())
        rewrite_part(task, loaded)
        totals.add(compare_loaded((old, loaded), (params, params)))
    return totals
