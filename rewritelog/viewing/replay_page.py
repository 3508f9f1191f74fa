"""The pages of a replay, of several runs, and of a sweep; the figure of a sweep."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct

from rewritelog.commands.runs import SweepCommand
from rewritelog.errors import UsageError, spelled
from rewritelog.output.files import write_file
from rewritelog.replaying.network import QUANTITIES
from rewritelog.replaying.report import ReplayComparison, ReplayedRuns, ReplayReport
from rewritelog.replaying.run import Replayed
from rewritelog.replaying.sweep import DILATION, MACHINE, Sweep, sweep
from rewritelog.text import LABEL_WIDTH, NO_NAME, printable, shorten, shorten_all
from rewritelog.viewing.draw import timeline_sections
from rewritelog.viewing.extra import drawing, require
from rewritelog.viewing.page import Section, page_text
from rewritelog.viewing.plots import COLOURS, MARKERS, OUTSIDE, add_marks, new_plot
from rewritelog.viewing.timeline import Run, TimelineView, timeline_view

MOST_STEPS = 1_000
"""At most this many steps of the critical path are in the table, those that took most time."""

_KINDS = (".png", ".svg", ".pdf")
_MARKERS = "osD^vPX*"
_MOST_DRAWN = 5_000
_MOST_TICKS = 12
"""At most this many values of a sweep are labelled as they were given."""

_PATH_COLOUR = "#000000"
_MARGIN = 0.01
"""The share of the time axis left of the first step and right of the last, for their marks."""

PATH_HTML = """\
<p class="screen">Click a step to see it above,
or a mark of the path above to see its step here.</p>
<div class="scroll" id="path" tabindex="0" role="region" aria-label="critical path"></div>"""


def replay_page(replayed: Replayed) -> str:
    """Return the HTML page of a replay: summary, timeline with the critical path, and report.

    If it is compared with another replay, the summary is that of both.
    """
    report, shown = replayed.report, replayed.shown
    title = f"Replay of {printable(str(report.logs.path))}"
    sections = []
    if report.busy_s > 0:
        view = timeline_view([Run.replayed(report.logs, replayed.outcome)])
        sections = timeline_sections(view)
        _draw_path(sections[0].plot, replayed, view)
        steps = f"The {MOST_STEPS:,} longest of {report.path.length:,} steps are listed."
        notes = [steps] if report.path.length > MOST_STEPS else []
        sections.insert(1, Section("The critical path, step by step", notes, html=PATH_HTML))
    if isinstance(shown, ReplayComparison):
        title += f" against {printable(str(shown.before.logs.path))}"
        if shown.table.rows:
            sections.insert(0, Section("PE time before and after", table=shown.table))
    sections.append(Section("Where the time goes", text=shown.details()))
    return _report_page(title, shown, sections)


def sweep_page(sweep: Sweep) -> str:
    """Return the HTML page of a sweep: the run time at each point of the grid."""
    title = f"Sweep of {printable(str(sweep.logs.path))}"
    curves = Curves.of(sweep)
    sections = [
        Section("Run times", curves.notes, plot=_sweep_plot(curves) if curves.settings else None),
        Section("All points", table=sweep.table),
    ]
    return _report_page(title, sweep, sections)


def runs_page(runs: ReplayedRuns) -> str:
    """Return the HTML page of many runs: their run times, and a table."""
    rows = runs.rows()
    labels = [f"{number}: {shorten(row[0], 40)}" for number, row in enumerate(rows, 1)]
    plot = new_plot("predicted run time", "run", seconds="x", rows=labels)
    times = [run.predicted_s for run in runs.runs]
    busy = [run.utilisation * run.predicted_s for run in runs.runs]
    y = np.arange(len(rows)) + 0.5
    plot.hbar(y, right=times, height=0.8, color=OUTSIDE, legend_label="run time")
    plot.hbar(y, right=busy, height=0.8, color=COLOURS[0], legend_label="mean busy time")
    plot.x_range.start = 0
    sections = [
        Section("Run times", plot=plot),
        Section("All runs", table=runs.table),
    ]
    return _report_page(f"{len(rows)} runs, replayed", runs, sections)


Report = ReplayReport | ReplayComparison | ReplayedRuns | Sweep


def _report_page(title: str, report: Report, sections: list[Section]) -> str:
    """Return a page that begins with the summary of the report, as sentences."""
    lines = (line.strip().rstrip(".") for line in report.top_lines())
    verdict = [f"{line[:1].upper()}{line[1:]}." for line in lines]
    return page_text(title, verdict, sections, report.warnings)


def sweep_and_draw(command: SweepCommand) -> Sweep:
    """Return a sweep, drawn to a file if one is given."""
    path = command.plot
    if path is not None:
        if path.suffix.lower() not in _KINDS:
            raise UsageError(f"{path}: a figure needs the ending {', '.join(_KINDS)}")
        require("matplotlib.figure", spelled("plot"))
    swept = sweep(command)
    if path is not None:
        _write_plot(swept, path)
    return swept


class Curves(Struct, frozen=True):
    """The run times of a sweep against the axis with the most values."""

    axis: str
    values: Mapping[str, float]
    """The number of each value of the axis, by its text as given; machines are numbered from 0."""
    settings: Mapping[str, tuple[Sequence[float], Sequence[float]]]
    """The values and run times at each setting of the other axes, in the order of the values."""
    notes: tuple[str, ...]
    """What is not drawn, in sentences."""

    @classmethod
    def of(cls, sweep: Sweep) -> Curves:
        """Return the curves of the settings that a figure has room for."""
        axis = max(sweep.axes, key=lambda name: (name != MACHINE, len(sweep.axes[name])))
        by_text = sweep.axes[axis]
        numbers = (
            enumerate(by_text) if axis == MACHINE else zip(by_text.values(), by_text, strict=True)
        )
        values = {text: float(value) for value, text in numbers if math.isfinite(value)}
        settings: dict[str, list[tuple[float, float]]] = {}
        for point in sweep.points:
            setting = dict(zip(sweep.axes, point.values, strict=True))
            at = values.get(setting.pop(axis))
            if at is not None:
                label = ", ".join(f"{name} {text}" for name, text in setting.items())
                settings.setdefault(label, []).append((at, point.predicted_s))
        shown = list(settings.items())[: len(MARKERS)]
        left_out = len(settings) - len(shown)
        notes = [f"{len(shown)} of {len(settings):,} settings are drawn."] if left_out else []
        notes += [
            f"Points with {axis} {text} are not drawn." for text in by_text if text not in values
        ]
        return cls(
            axis,
            values,
            {label: tuple(zip(*sorted(points), strict=True)) for label, points in shown},  # type: ignore[misc]
            tuple(notes),
        )

    @property
    def is_logarithmic(self) -> bool:
        """Whether the axis has a logarithmic scale."""
        return self.axis != MACHINE and len(self.values) > 2 and min(self.values.values()) > 0

    @property
    def is_labelled(self) -> bool:
        """Whether each value has a label, as it was given."""
        return self.axis == MACHINE or len(self.values) <= _MOST_TICKS


def _sweep_plot(curves: Curves) -> Any:
    from bokeh.models import FixedTicker  # noqa: PLC0415 - an extra

    unit = "" if curves.is_labelled or curves.axis == DILATION else QUANTITIES[curves.axis].base
    plot = new_plot(
        f"{curves.axis} in {unit}" if unit not in ("", "s") else curves.axis,
        "predicted run time",
        height=310,
        seconds="xy" if unit == "s" else "y",
        x_axis_type="log" if curves.is_logarithmic else "linear",
    )
    for number, (label, (x, y)) in enumerate(curves.settings.items()):
        style = MARKERS[number], COLOURS[number]
        add_marks(plot, {"x": x, "y": y}, "x", "y", *style, label)
        if curves.axis != MACHINE:
            plot.line(x, y, color=COLOURS[number])
    if curves.is_labelled:
        labels = {value: text for text, value in curves.values.items()}
        plot.xaxis.ticker = FixedTicker(ticks=list(labels))
        plot.xaxis.major_label_overrides = labels
    plot.y_range.start = 0
    return plot


def _write_plot(sweep: Sweep, path: Path) -> None:
    """Draw run time against the axis with the most values, a line per setting of the others."""
    from matplotlib.ticker import EngFormatter  # noqa: PLC0415 - an extra

    curves = Curves.of(sweep)
    with drawing((7, 4.5)) as (figure, saved):
        axes = figure.subplots()
        for marker, (label, points) in zip(_MARKERS, curves.settings.items(), strict=False):
            line = "none" if curves.axis == MACHINE else "-"
            axes.plot(*points, linestyle=line, marker=marker, label=label)
        axes.set_title(" ".join(curves.notes))
        if curves.is_logarithmic:
            axes.set_xscale("log")
        if curves.is_labelled:
            axes.set_xticks([*curves.values.values()], [*curves.values], minor=False)
            axes.minorticks_off()
        else:
            name = curves.axis
            unit = "{x:g}" if name == DILATION else EngFormatter(QUANTITIES[name].base)
            axes.xaxis.set_major_formatter(unit)
        axes.yaxis.set_major_formatter(EngFormatter("s"))
        axes.set_xlabel(curves.axis)
        axes.set_ylabel("predicted run time")
        axes.set_ylim(0, 1.05 * max(point.predicted_s for point in sweep.points) or None)
        axes.grid(visible=True, alpha=0.3)
        if len(curves.settings) > 1:
            axes.legend()
        write_file(path, saved(path.suffix[1:].lower()))


def _path_steps(replayed: Replayed, view: TimelineView) -> dict[str, list[Any]]:
    """Return the longest steps of the critical path as columns, in order of time."""
    workload, path = replayed.outcome.workload, replayed.report.path
    longest = np.argsort(-(path.ran_s + path.transit_s), kind="stable")[:MOST_STEPS]
    chosen = np.sort(longest)[::-1]
    seb = path.seb[chosen]
    pe, names = workload.sebs.pe[seb], view.panels[0].run.lane_names
    sizes = np.append(workload.messages.size_bytes, -1)  # for message −1, none
    return {
        "step": (path.length - chosen).tolist(),
        "pe": [names[row] for row in pe.tolist()] if names else pe.tolist(),
        "y": ((pe + 0.5) / view.group).tolist(),
        "seb": workload.places_of(seb)[1].tolist(),
        "name": shorten_all(
            [workload.name_of(row) or NO_NAME for row in seb.tolist()], LABEL_WIDTH
        ),
        "start": replayed.outcome.times.start_s[seb].tolist(),
        "ran": path.ran_s[chosen].tolist(),
        "transit": path.transit_s[chosen].tolist(),
        "bytes": sizes[path.message[chosen]].tolist(),
    }


def _draw_path(plot: Any, replayed: Replayed, view: TimelineView) -> None:
    """Draw the critical path along SEBs and messages, and marks of its steps to click on."""
    from bokeh.models import ColumnDataSource, TapTool  # noqa: PLC0415 - an extra

    path, outcome = replayed.report.path, replayed.outcome
    start = outcome.times.start_s[path.seb]
    x = np.column_stack([start + path.ran_s, start]).ravel()[::-1]
    y = (np.repeat(outcome.workload.sebs.pe[path.seb], 2)[::-1] + 0.5) / view.group
    stride = -(-len(x) // (2 * _MOST_DRAWN)) or 1
    label = "critical path" if stride == 1 else f"critical path, every {stride:,}th step"
    plot.line(x[::stride], y[::stride], color=_PATH_COLOUR, line_width=2, legend_label=label)
    steps = ColumnDataSource(_path_steps(replayed, view), name="path-steps")
    chosen = ColumnDataSource({"y": [], "left": [], "right": []}, name="path-chosen")
    marks = plot.scatter(
        "start", "y", source=steps, size=7, color=_PATH_COLOUR, fill_alpha=0.3, nonselection_alpha=1
    )
    plot.hbar(
        "y", left="left", right="right", height=0.94 / view.group, source=chosen, fill_alpha=0,
        line_color=_PATH_COLOUR, line_width=3,
    )  # fmt: skip
    plot.add_tools(TapTool(renderers=[marks]))
    margin_s = _MARGIN * (view.to_s - view.from_s)
    from_s, to_s = view.from_s - margin_s, view.to_s + margin_s
    plot.x_range.update(start=from_s, end=to_s, bounds=(from_s, to_s))
