"""The pages of a replay, with its timeline and critical path, and of a sweep.

The page's size does not depend on the number of SEBs: PEs are grouped into rows and time into
columns, and each cell shows its busy share. In small runs, SEBs are drawn as bars.
"""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from rewritelog.arrays import Floats
from rewritelog.replaying.report import ReplayReport
from rewritelog.replaying.run import Replayed
from rewritelog.replaying.simulate import ReplayedRun
from rewritelog.replaying.sweep import Sweep
from rewritelog.text import printable
from rewritelog.viewing.page import Page, PageTable, Section, page_text
from rewritelog.viewing.palette import COLOURS, OTHER
from rewritelog.viewing.plots import legend_below, new_plot

_MOST_BARS = 5000
_ROWS, _COLUMNS = 256, 800
_MOST_PATH = 5000
_PATH_COLOUR = COLOURS[5]
_NAME_COLOURS = (*COLOURS[:5], COLOURS[6], OTHER)
"""The colours of the names with the most time; the last is for all others."""


def replay_page(replayed: Replayed) -> str:
    """Return the HTML page of a replay: summary, timeline with the critical path, and report."""
    report = replayed.report
    plot, note = _timeline(report, replayed.outcome)
    verdict, *others = report.text().split("\n\n")
    details = f"<pre>{escape((chr(10) * 2).join([*others, report.details()]))}</pre>"
    sections = [
        Section("SEBs by PE, and the critical path", [note], plot),
        Section("Where the time goes", html=details),
    ]
    title = f"Replay of {printable(str(report.logs.folder))}"
    return page_text(Page(title, _summary_lines(verdict), sections, report.warnings))


def sweep_page(sweep: Sweep) -> str:
    """Return the HTML page of a sweep: the run time at each point of the grid."""
    heads = (*(axis.name for axis in sweep.axes), "predicted run time (s)")
    rows = [(*point.values, f"{point.predicted_s:.5g}") for point in sweep.points]
    table = PageTable("Predicted run time by setting", heads, rows)
    title = f"Sweep of {printable(str(sweep.logs.folder))}"
    verdict = sweep.text().split("\n\n")[0]
    sections = [Section("Run times", table=table)]
    return page_text(Page(title, _summary_lines(verdict), sections, sweep.warnings))


def _summary_lines(text: str) -> list[str]:
    """Return the lines of a summary as the sentences that a page begins with."""
    lines = (line.strip().rstrip(".") for line in text.splitlines())
    return [f"{line[:1].upper()}{line[1:]}." for line in lines]


def _timeline(report: ReplayReport, outcome: ReplayedRun) -> tuple[Any, str]:
    """Return the plot of SEBs and critical path, and a description of it."""
    from bokeh.models import Range1d  # noqa: PLC0415 - an extra

    plot = new_plot(
        "time",
        "PE",
        height=520,
        seconds="x",
        x_range=Range1d(start=0.0, end=report.predicted_s or 1.0),
        y_range=Range1d(start=-0.5, end=report.pes - 0.5),
        active_drag="box_zoom",
    )
    note = _draw_bars(plot, outcome) if report.sebs <= _MOST_BARS else _draw_cells(plot, outcome)
    note += _draw_path(plot, report, outcome)
    legend_below(plot)
    return plot, note


def _draw_bars(plot: Any, outcome: ReplayedRun) -> str:
    """Draw each SEB that took time as a bar, coloured by name; return a description."""
    workload, times = outcome.workload, outcome.times
    sebs = workload.sebs
    ran = np.flatnonzero(times.end_s > times.start_s)
    codes = sebs.name[ran]
    busy = np.bincount(codes, times.end_s[ran] - times.start_s[ran], len(workload.names))
    largest = [int(k) for k in np.argsort(-busy) if busy[k] > 0]
    for rank, code in enumerate([*largest[: len(_NAME_COLOURS) - 1], None]):
        known = np.isin(codes, largest[: len(_NAME_COLOURS) - 1])
        rows = ran[~known] if code is None else ran[codes == code]
        if len(rows):
            plot.hbar(
                y=sebs.pe[rows].astype(float),
                height=0.8,
                left=times.start_s[rows],
                right=times.end_s[rows],
                color=_NAME_COLOURS[rank],
                line_color="white",
                line_width=0.3,
                legend_label="other names" if code is None else printable(workload.names[code]),
            )
    return "Bars are SEBs, coloured by name. "


def _draw_cells(plot: Any, outcome: ReplayedRun) -> str:
    """Draw the busy share of each cell of PEs and time; return a description."""
    shares = busy_shares(outcome, min(outcome.workload.pes, _ROWS), _COLUMNS)
    plot.image(
        [np.round(shares, 3).astype(np.float32)],
        x=0,
        y=-0.5,
        dw=outcome.predicted_s,
        dh=outcome.workload.pes,
        palette=_greys(),
    )
    return "The darker a cell, the more of its PEs' time is in SEBs. "


def busy_shares(outcome: ReplayedRun, rows: int, columns: int) -> Floats:
    """Return the busy share of each group of PEs and interval of time, shape (rows, columns).

    The busy time up to a time x is a sum of ramps, max(0, x − start) − max(0, x − end). Sampled
    at the bounds of columns, a ramp is the double cumulative sum of two numbers, placed at the two
    bounds next to its foot.
    """
    workload, times = outcome.workload, outcome.times
    ran = times.order[times.end_s[times.order] > times.start_s[times.order]]
    pe = workload.sebs.pe[ran].astype(np.int64)
    width = columns + 3
    row = pe * rows // workload.pes * width
    bends = np.zeros(rows * width)
    for moments, sign in ((times.start_s[ran], 1.0), (times.end_s[ran], -1.0)):
        at = np.clip(moments / outcome.predicted_s * columns, 0.0, columns)
        whole = np.minimum(at.astype(np.int64), columns)
        bends += sign * np.bincount(row + whole + 1, whole + 1 - at, len(bends))
        bends += sign * np.bincount(row + whole + 2, at - whole, len(bends))
    before = np.cumsum(np.cumsum(bends.reshape(rows, width), axis=1), axis=1)[:, : columns + 1]
    pes = np.bincount(np.arange(workload.pes, dtype=np.int64) * rows // workload.pes)
    shares: Floats = np.clip(np.diff(before, axis=1) / pes[:, None], 0.0, 1.0)
    return shares


def _greys() -> list[str]:
    return [f"#{level:02x}{level:02x}{level:02x}" for level in range(255, 63, -1)]


def _draw_path(plot: Any, report: ReplayReport, outcome: ReplayedRun) -> str:
    """Draw the critical path: along SEBs, and along messages from sender to receiver."""
    path, sebs = report.path.path, outcome.workload.sebs
    start = outcome.times.start_s[path.seb]
    x = np.column_stack([start + path.ran_s, start]).ravel()[::-1]
    y = np.repeat(sebs.pe[path.seb], 2).astype(float)[::-1]
    step = -(-len(x) // (2 * _MOST_PATH)) or 1
    plot.line(x[::step], y[::step], color=_PATH_COLOUR, line_width=2, legend_label="critical path")
    if step > 1:
        return f"Of the critical path's {report.path.length:,} SEBs, every {step:,}th is drawn."
    return "The line is the critical path."
