"""The pages of a replay, with its timeline and critical path, and of a sweep; its figure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from rewritelog import units
from rewritelog.errors import UsageError
from rewritelog.output.files import write_file
from rewritelog.replaying.network import QUANTITIES
from rewritelog.replaying.report import ReplayedRuns, ReplayReport
from rewritelog.replaying.run import Replayed
from rewritelog.replaying.simulate import ReplayedRun
from rewritelog.replaying.sweep import DILATION, Sweep
from rewritelog.text import Readable, printable, shorten, time_text
from rewritelog.viewing.extra import drawing, require
from rewritelog.viewing.page import PageTable, Section, page_text
from rewritelog.viewing.plots import COLOURS, OUTSIDE, legend_below, new_plot
from rewritelog.viewing.timeline import Run, TimelineView, timeline_view
from rewritelog.viewing.timeline_pictures import timeline_sections

MOST_STEPS = 1_000
"""At most this many steps of the critical path are in the table, those that took most time."""

_KINDS = (".png", ".svg", ".pdf")
_MOST_LINES = 8
_MARKERS = "osD^vPX*"
_MOST_DRAWN = 5_000
_PATH_COLOUR = COLOURS[5]

PATH_HTML = (
    '<p id="path-note"></p><div class="scroll" id="path" tabindex="0" role="region" '
    'aria-label="critical path"></div>'
)


def replay_page(replayed: Replayed) -> str:
    """Return the HTML page of a replay: summary, timeline with the critical path, and report."""
    report, outcome = replayed.report, replayed.outcome
    sections = []
    if report.predicted_s > 0:
        view = timeline_view([Run(report.logs, outcome, lanes=replayed.lanes)])
        sections = timeline_sections(view)
        _draw_path(sections[0].plot, report, outcome, view)
        steps = {"path-data": _path_steps(report, outcome, view)}
        path = Section("The critical path, step by step", html=PATH_HTML, data=steps)
        sections.insert(1, path)
    sections.append(Section("Where the time goes", text=report.details()))
    title = f"Replay of {printable(str(report.logs.path))}"
    return page_text(title, _summary_lines(report), sections, report.warnings)


def sweep_page(sweep: Sweep) -> str:
    """Return the HTML page of a sweep: the run time at each point of the grid."""
    heads = (*sweep.axes, "predicted run time")
    rows = [(*point.values, time_text(point.predicted_s, 5)) for point in sweep.points]
    table = PageTable("Predicted run time by setting", heads, rows)
    title = f"Sweep of {printable(str(sweep.logs.folder))}"
    return page_text(
        title, _summary_lines(sweep), [Section("Run times", table=table)], sweep.warnings
    )


def check_plot(path: Path) -> None:
    """Raise a `RewriteLogError` if no figure can be drawn to a path."""
    if path.suffix not in _KINDS:
        raise UsageError(f"{path}: a figure needs the ending {', '.join(_KINDS)}")
    require("matplotlib.figure", "--plot")


def write_plot(sweep: Sweep, path: Path) -> None:
    """Draw run time against the axis with the most values, a line per setting of the others."""
    name = max(sweep.axes, key=lambda name: len(sweep.axes[name]))
    longest = list(sweep.axes).index(name)
    read = units.number if name == DILATION else QUANTITIES[name].read
    lines: dict[tuple[str, ...], list[tuple[float, float]]] = {}
    for point in sweep.points:
        others = (*point.values[:longest], *point.values[longest + 1 :])
        at = read(point.values[longest], name)
        lines.setdefault(others, []).append((at, point.predicted_s))
    others_names = [other for other in sweep.axes if other != name]
    with drawing((7, 4.5)) as (figure, saved):
        axes = figure.subplots()
        for k, (others, points) in enumerate(list(lines.items())[:_MOST_LINES]):
            label = ", ".join(f"{n} {v}" for n, v in zip(others_names, others, strict=True))
            points.sort()
            axes.plot(*zip(*points, strict=True), marker=_MARKERS[k], label=label or None)
        if len(lines) > _MOST_LINES:
            axes.set_title(f"{_MOST_LINES} of {len(lines)} settings")
        if (
            all(at > 0 for points in lines.values() for at, _ in points)
            and len(sweep.axes[name]) > 2
        ):
            axes.set_xscale("log")
        unit = "" if name == DILATION else f" ({QUANTITIES[name].base})"
        axes.set_xlabel(f"{name}{unit}")
        axes.set_ylabel("predicted run time (s)")
        axes.set_ylim(bottom=0)
        axes.grid(visible=True, alpha=0.3)
        if others_names:
            axes.legend()
        write_file(path, saved(path.suffix[1:]))


def runs_page(runs: ReplayedRuns) -> str:
    """Return the HTML page of many runs: their run times, and a table."""
    rows = runs.rows()
    labels = [f"{number}: {shorten(row[0], 40)}" for number, row in enumerate(rows, 1)]
    height = min(1600, 120 + 28 * len(rows))
    plot = new_plot("predicted run time", "run", height=height, seconds="x", y_range=labels[::-1])
    times = [run.predicted_s for run in runs.runs]
    busy = [run.utilisation * run.predicted_s for run in runs.runs]
    plot.hbar(labels, right=times, height=0.8, color=OUTSIDE, legend_label="run time")
    plot.hbar(labels, right=busy, height=0.8, color=COLOURS[0], legend_label="mean busy time")
    plot.x_range.start = 0
    legend_below(plot)
    sections = [
        Section("Run times", plot=plot),
        Section("All runs", table=PageTable("Speedups are over the first run", runs.heads, rows)),
    ]
    return page_text(f"{len(rows)} runs, replayed", _summary_lines(runs), sections, runs.warnings)


def _summary_lines(report: Readable) -> list[str]:
    """Return the lines of a report's first paragraph as the sentences that a page begins with."""
    summary = report.text().split("\n\n")[0]
    lines = (line.strip().rstrip(".") for line in summary.splitlines())
    return [f"{line[:1].upper()}{line[1:]}." for line in lines]


def _path_steps(report: ReplayReport, outcome: ReplayedRun, view: TimelineView) -> dict[str, Any]:
    """Return the steps of the critical path in the order of time, for the script of the page."""
    path, workload = report.path.path, outcome.workload
    length = report.path.length
    longest = np.argsort(-(path.ran_s + path.transit_s), kind="stable")[:MOST_STEPS]
    chosen = np.sort(longest)[::-1]
    seb = path.seb[chosen]
    pe = workload.sebs.pe[seb]
    size = np.where(
        path.message[chosen] >= 0,
        workload.messages.size_bytes[np.maximum(path.message[chosen], 0)]
        if len(workload.messages)
        else 0,
        -1,
    )
    return {
        "length": length,
        "step": (length - chosen).tolist(),
        "pe": list(map(view.panels[0].run.lane_label, pe.tolist())),
        "row": (pe // view.group).tolist(),
        "seb": (seb - workload.sebs.first_of_pe[pe]).tolist(),
        "name": [printable(workload.name_of(number)) for number in seb.tolist()],
        "start": outcome.times.start_s[seb].tolist(),
        "ran": path.ran_s[chosen].tolist(),
        "transit": path.transit_s[chosen].tolist(),
        "bytes": size.tolist(),
    }


def _draw_path(plot: Any, report: ReplayReport, outcome: ReplayedRun, view: TimelineView) -> None:
    """Draw the critical path along SEBs and messages, and marks of its steps to click on."""
    from bokeh.models import ColumnDataSource, TapTool  # noqa: PLC0415 - an extra

    path, sebs = report.path.path, outcome.workload.sebs
    start = outcome.times.start_s[path.seb]
    x = np.column_stack([start + path.ran_s, start]).ravel()[::-1]
    y = np.repeat(sebs.pe[path.seb] // view.group, 2)[::-1] + 0.5
    stride = -(-len(x) // (2 * _MOST_DRAWN)) or 1
    label = "critical path" if stride == 1 else f"critical path, every {stride:,}th step"
    plot.line(x[::stride], y[::stride], color=_PATH_COLOUR, line_width=2, legend_label=label)
    empty: dict[str, list[float]] = {"x": [], "y": [], "left": [], "right": []}
    steps, chosen = (ColumnDataSource(empty, name=name) for name in ("path-steps", "path-chosen"))
    marks = plot.scatter(
        "x", "y", source=steps, size=7, color=_PATH_COLOUR, fill_alpha=0.3, nonselection_alpha=1
    )
    plot.hbar(
        "y", left="left", right="right", height=0.94, source=chosen, fill_alpha=0,
        line_color=_PATH_COLOUR, line_width=3,
    )  # fmt: skip
    plot.add_tools(TapTool(renderers=[marks]))
