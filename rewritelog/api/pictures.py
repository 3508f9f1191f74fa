"""Pictures of logs."""

from __future__ import annotations

from collections.abc import Sequence

from rewritelog.api.arguments import PathLike, to_path
from rewritelog.api.jobs import LogsLike, open_logs
from rewritelog.errors import UsageError
from rewritelog.output import check_outputs, write_file
from rewritelog.viewing.draw import KINDS, draw_timeline
from rewritelog.viewing.timeline import TimelineOptions


def timeline(
    logs: LogsLike,
    output: PathLike | None = None,
    *,
    kind: str | None = None,
    against: LogsLike | None = None,
    pes: Sequence[int] | None = None,
    from_s: float | None = None,
    to_s: float | None = None,
    messages: bool = False,
    seed: int = 1,
) -> bytes:
    """Draw the SEBs of each PE over time; return the picture, and write it to `output`.

    `kind` is png, svg, pdf or html, by default what the name of `output` ends in, else svg. A
    second log set (`against`) is drawn below on the same axis. Of many messages some are drawn,
    chosen by `seed`. The extra `rewritelog[view]` must be installed.

    >>> picture = rewritelog.timeline("sample_logs/cells", pes=range(4))  # doctest: +SKIP
    """
    path = None if output is None else to_path(output, "the picture")
    if kind is None:
        kind = "svg" if path is None else path.suffix.lower().removeprefix(".")
    if kind not in KINDS:
        raise UsageError(f"unknown kind of picture {kind!r}: use {', '.join(KINDS)}")
    sets = [open_logs(one) for one in (logs, against) if one is not None]
    check_outputs([path], [], [one.folder for one in sets])
    options = TimelineOptions(None if pes is None else tuple(pes), from_s, to_s)
    drawn = draw_timeline(sets, kind, options, messages=messages, seed=seed)
    if path is not None:
        write_file(path, drawn)
    return drawn
