"""Draws the timelines of one or two log sets to a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rewritelog.errors import UsageError
from rewritelog.formats.bgtrace.logset import LogSet
from rewritelog.formats.bgtrace.params import list_params
from rewritelog.formats.traces import Traces, load_unit
from rewritelog.output.files import check_outputs, write_file
from rewritelog.replaying.network import Network
from rewritelog.replaying.prepare import prepare
from rewritelog.replaying.simulate import simulate
from rewritelog.replaying.traces import lanes_of, replay_traces
from rewritelog.rewriting.options import RewriteOptions
from rewritelog.viewing.extra import require
from rewritelog.viewing.pictures import Picture
from rewritelog.viewing.spans import Spans
from rewritelog.viewing.timeline import Run, TimelineOptions, timeline_view
from rewritelog.viewing.timeline_pictures import figure_bytes, timeline_page

KINDS = ("png", "svg", "pdf", "html")
"""The file formats of figures."""


def draw_timeline(
    sets: Sequence[LogSet | Traces],
    output: Path | None = None,
    kind: str | None = None,
    options: TimelineOptions | None = None,
    *,
    messages: bool = False,
    seed: int = 1,
    replayed: bool = False,
) -> Picture:
    """Return the figure of one log set, or of two one above the other, and write it to `output`.

    If `replayed`, times are those of a replay with each log's own network.

    `kind` is one of `KINDS`, by default the suffix of `output`, else svg. If there are too many
    messages to draw, a random sample of them, chosen by `seed`, is drawn. Raise `UsageError` for
    other kinds and if the extra `[view]` is not installed, `OutputError` if `output` cannot be
    written, and what `timeline_view` raises.
    """
    if kind is None:
        kind = "svg" if output is None else output.suffix.lower().removeprefix(".")
    if kind not in KINDS:
        raise UsageError(f"unknown kind of picture {kind!r}: use {', '.join(KINDS)}")
    check_outputs([output], [], [logs.folder for logs in sets])
    require("bokeh" if kind == "html" else "matplotlib", "the picture")
    runs = [_run(logs, sets[0].folder, replayed=replayed) for logs in sets]
    view = timeline_view(runs, options, seed=seed if messages else None)
    over_time = tuple(view.over_time_json(panel) for panel in view.panels)
    content = timeline_page(view).encode() if kind == "html" else figure_bytes(view, kind)
    picture = Picture(content, kind, over_time)
    if output is not None:
        write_file(output, picture)
    return picture


def _run(logs: LogSet | Traces, first: Path, *, replayed: bool) -> Run:
    """Return what is drawn of a log set, or of traces: threads, streams and network of each rank.

    A rewritten log set may have left its params behind in the first one.
    """
    if isinstance(logs, LogSet):
        params = logs.folder if list_params(logs.folder).pes else first
        if not replayed:
            return Run(logs, None, params)
        prepared = prepare(logs, RewriteOptions(params=params))
        return Run(logs, simulate(prepared.workload, prepared.case(Network())), params)
    if replayed:
        run = replay_traces(logs)
        return Run(logs, run.outcome, lanes=run.lanes)
    units = [load_unit(logs, unit) for unit in logs.units]
    lanes, lane = lanes_of(logs, units)
    spans = Spans.of_units(units, lane)
    if not spans.finite.any():
        raise UsageError(
            f"{logs.path}: no start times are recorded, so there is no time axis: "
            "--times replay draws those of a replay"
        )
    return Run(logs, lanes=lanes, recorded=spans)
