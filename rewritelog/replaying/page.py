"""A page with the timeline of a replay and its critical path, drawn by Bokeh of the extra `view`.

However many SEBs there are, the page has the same size: PEs are folded into rows and time into
columns, of which each cell shows how much of it is busy. Small runs have their SEBs as bars.
"""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from rewritelog.arrays import Floats
from rewritelog.errors import RewriteLogError, UsageError
from rewritelog.output import write_text_file
from rewritelog.replaying.report import ReplayReport
from rewritelog.replaying.simulate import Outcome
from rewritelog.text import printable

_MOST_BARS = 5000
_ROWS, _COLUMNS = 256, 800
_MOST_PATH = 5000
_PATH_COLOUR = "#d55e00"
_COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#f0e442", "#999999")
"""Okabe and Ito's, which most people can tell; the last is for all further names."""


def check_page(path: Path) -> None:
    """Raise a `RewriteLogError` where no page can be drawn to a path."""
    if path.suffix not in (".html", ".htm"):
        raise UsageError(f"{path}: a page is a file with the ending .html")
    if path.is_dir():
        raise UsageError(f"{path}: is a folder")
    _bokeh()


def _bokeh() -> Any:
    try:
        import bokeh.plotting  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise RewriteLogError("--html needs Bokeh: pip install 'rewritelog[view]'") from error
    return bokeh


def write_page(report: ReplayReport, outcome: Outcome, path: Path) -> None:
    """Write the page: the report, the timeline, and the critical path over it."""
    _bokeh()
    from bokeh.embed import components  # noqa: PLC0415
    from bokeh.models import Range1d  # noqa: PLC0415
    from bokeh.plotting import figure  # noqa: PLC0415
    from bokeh.resources import INLINE  # noqa: PLC0415

    plot = figure(
        width=1100, height=520, x_axis_label="time (s)", y_axis_label="PE",
        x_range=Range1d(start=0.0, end=report.predicted_s or 1.0),
        y_range=Range1d(start=-0.5, end=report.pes - 0.5),
        title="SEBs by PE, and the critical path", tools="pan,wheel_zoom,box_zoom,reset,save",
        active_drag="box_zoom", sizing_mode="stretch_width",
    )  # fmt: skip
    note = _draw_bars(plot, outcome) if report.sebs <= _MOST_BARS else _draw_cells(plot, outcome)
    note += _draw_path(plot, report, outcome)
    plot.add_layout(plot.legend[0], "right")
    script, block = components(plot)
    title = f"Replay of {escape(printable(str(report.logs.folder)))}"
    write_text_file(
        path,
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{title}</title>'
        f"\n{INLINE.render()}\n{script}\n<style>body {{ font-family: sans-serif; margin: 2em; }} "
        "pre { font-size: 13px; }</style>\n</head>\n<body>\n"
        f"<h1>{title}</h1>\n{block}\n<p>{escape(note)}</p>\n<pre>{escape(report.text())}</pre>\n"
        "</body>\n</html>\n",
    )


def _draw_bars(plot: Any, outcome: Outcome) -> str:
    """Draw each SEB that took time as a bar, coloured by name."""
    workload, times = outcome.workload, outcome.times
    sebs = workload.program.sebs
    ran = np.flatnonzero(times.end_s > times.start_s)
    codes = sebs.name[ran]
    busy = np.bincount(codes, times.end_s[ran] - times.start_s[ran], len(workload.names))
    largest = [int(k) for k in np.argsort(-busy) if busy[k] > 0]
    for rank, code in enumerate([*largest[: len(_COLOURS) - 1], None]):
        known = np.isin(codes, largest[: len(_COLOURS) - 1])
        rows = ran[~known] if code is None else ran[codes == code]
        if len(rows):
            plot.hbar(
                y=sebs.pe[rows].astype(float), height=0.8, left=times.start_s[rows],
                right=times.end_s[rows], color=_COLOURS[rank], line_color="white",
                line_width=0.3,
                legend_label="other names" if code is None else printable(workload.names[code]),
            )  # fmt: skip
    return "Bars are SEBs, coloured by name. "


def _draw_cells(plot: Any, outcome: Outcome) -> str:
    """Draw which share of each cell of PEs and time is busy."""
    shares = busy_shares(outcome, min(outcome.workload.pes, _ROWS), _COLUMNS)
    plot.image(
        [np.round(shares, 3).astype(np.float32)], x=0, y=-0.5, dw=outcome.predicted_s,
        dh=outcome.workload.pes, palette=_greys(),
    )  # fmt: skip
    return "The darker a cell, the more of its PEs' time is in SEBs. "


def busy_shares(outcome: Outcome, rows: int, columns: int) -> Floats:
    """Return which share of the time of each range of PEs is busy, by range of time.

    The busy time before a moment x is a sum of ramps, max(0, x − start) − max(0, x − end). At the
    bounds of columns a ramp is the double sum of two numbers, those beside its foot.
    """
    workload, times = outcome.workload, outcome.times
    ran = times.order[times.end_s[times.order] > times.start_s[times.order]]
    pe = workload.program.sebs.pe[ran].astype(np.int64)
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


def _draw_path(plot: Any, report: ReplayReport, outcome: Outcome) -> str:
    """Draw the critical path: along SEBs, and from the sender to the receiver of messages."""
    path, sebs = report.path.path, outcome.workload.program.sebs
    start = outcome.times.start_s[path.seb]
    x = np.column_stack([start + path.ran_s, start]).ravel()[::-1]
    y = np.repeat(sebs.pe[path.seb], 2).astype(float)[::-1]
    step = -(-len(x) // (2 * _MOST_PATH)) or 1
    plot.line(x[::step], y[::step], color=_PATH_COLOUR, line_width=2, legend_label="critical path")
    if step > 1:
        return f"Of the critical path's {report.path.length:,} SEBs every {step:,}th is drawn."
    return "The line is the critical path."
