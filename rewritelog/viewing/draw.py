"""A picture of the timelines of one log set or two, as the bytes of a file."""

from __future__ import annotations

from collections.abc import Sequence

from rewritelog.logs.logset import LogSet
from rewritelog.viewing.extra import require
from rewritelog.viewing.messages import message_lines
from rewritelog.viewing.timeline import TimelineOptions, timeline_view

KINDS = ("png", "svg", "pdf", "html")
"""The kinds of pictures."""


def draw_timeline(
    sets: Sequence[LogSet],
    kind: str,
    options: TimelineOptions | None = None,
    *,
    messages: bool = False,
    seed: int = 1,
) -> bytes:
    """Return the picture of one log set, or of two under each other.

    `kind` is `png`, `svg`, `pdf` or `html`. Of more messages than can be told apart some are drawn,
    chosen by `seed`. Raise `UsageError` where the extra `[view]` is not installed, and what
    `timeline_view` raises.
    """
    require("bokeh" if kind == "html" else "matplotlib", "the picture")
    view = timeline_view(sets, options)
    lines = tuple(message_lines(logs, view, seed) for logs in sets) if messages else ()
    if kind == "html":
        from rewritelog.viewing.timeline_page import timeline_page  # noqa: PLC0415 - an extra

        return timeline_page(view, lines).encode()
    from rewritelog.viewing.timeline_figure import figure_bytes  # noqa: PLC0415 - an extra

    return figure_bytes(view, kind, lines)
