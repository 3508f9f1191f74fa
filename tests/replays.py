"""What most tests of replays want: the report alone."""

from __future__ import annotations

from pathlib import Path

from rewritelog.commands.runs import ReplayOptions
from rewritelog.formats.traces import AnyTraces
from rewritelog.replaying.network import Network
from rewritelog.replaying.report import ReplayReport
from rewritelog.replaying.run import replay_whole


def replay(
    source: AnyTraces | str | Path,
    network: Network | None = None,
    options: ReplayOptions | None = None,
) -> ReplayReport:
    """The report of a replay."""
    return replay_whole(source, network or Network(), options or ReplayOptions()).report
