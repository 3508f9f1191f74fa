"""Draws the timelines of one or two log sets to a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rewritelog.errors import UsageError
from rewritelog.formats.bgtrace.logset import LogSet
from rewritelog.output import check_outputs, write_file
from rewritelog.viewing.extra import require
from rewritelog.viewing.messages import message_lines
from rewritelog.viewing.picture import Picture
from rewritelog.viewing.timeline import TimelineOptions, timeline_view

KINDS = ("png", "svg", "pdf", "html")
"""The file formats of figures."""


def draw_timeline(
    sets: Sequence[LogSet],
    output: Path | None = None,
    kind: str | None = None,
    options: TimelineOptions | None = None,
    *,
    messages: bool = False,
    seed: int = 1,
) -> Picture:
    """Return the figure of one log set, or of two one above the other, and write it to `output`.

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
    drawn = Picture(_drawn(sets, kind, options, messages=messages, seed=seed), kind)
    if output is not None:
        write_file(output, drawn)
    return drawn


def _drawn(
    sets: Sequence[LogSet], kind: str, options: TimelineOptions | None, *, messages: bool, seed: int
) -> bytes:
    require("bokeh" if kind == "html" else "matplotlib", "the picture")
    view = timeline_view(sets, options)
    lines = tuple(message_lines(logs, view, seed) for logs in sets) if messages else ()
    if kind == "html":
        from rewritelog.viewing.timeline_page import timeline_page  # noqa: PLC0415 - an extra

        return timeline_page(view, lines).encode()
    from rewritelog.viewing.timeline_figure import figure_bytes  # noqa: PLC0415 - an extra

    return figure_bytes(view, kind, lines)
