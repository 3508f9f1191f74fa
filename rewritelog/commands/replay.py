"""`rewritelog replay`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from rewritelog.commands.command import (
    DETAILS,
    ENGINE,
    PAGE,
    REPORT,
    WARNINGS,
    Command,
    Report,
    function,
)
from rewritelog.commands.completers import complete_event
from rewritelog.commands.durations import Durations
from rewritelog.commands.network import NetworkOptions
from rewritelog.commands.shared import ADVANCED, OUTPUT, CopyParams, Force, Jobs, pairs
from rewritelog.errors import UsageError
from rewritelog.options import argument, declared, option

if TYPE_CHECKING:
    from rewritelog.api.arguments import LogsLike, ManyLogsLike, OutputPath
    from rewritelog.replaying.report import ReplayReport
    from rewritelog.replaying.run import Replayed
    from rewritelog.replaying.runs import ReplayedRuns


@declared
class LostAs:
    """The categories that lost time is counted in."""

    lost_as: Mapping[str, str] | None = option(
        "Count SEBs of that name, or middle regions of that event, in a category; repeatable, the "
        "last match wins.",
        default=None, metavar="PATTERN=CATEGORY", read=pairs, complete=complete_event,
    )  # fmt: skip


@declared
class Replay(Force, CopyParams, Jobs, LostAs, Durations, NetworkOptions, Command["ReplayReport"]):
    """Predict how long the whole program takes, and what bounds it.

    SEBs run on their PEs in the order that messages and dependencies allow, with their recorded
    durations or those of a dilation or a model. The network is simple: see docs/replay.md.

    >>> report = rewritelog.replay("sample_logs/cells", latency="1us", gains=0)
    >>> report.pes
    16
    """

    shell = REPORT | WARNINGS | PAGE | ENGINE | DETAILS
    rare = frozenset({"lost_as", "force", "speedup", "dilation_for"})

    logs: ManyLogsLike = argument(
        "The log folder, or its bgTrace file; of several, a table compares the runs.",
        metavar="LOGS...", kw_only=False,
    )  # fmt: skip
    against: LogsLike | None = option(
        "Compare with the replay of another log set, as the state before.",
        default=None, metavar="OTHER",
    )  # fmt: skip
    write: OutputPath | None = option(
        "Write the logs with their replayed times to this folder.",
        default=None, metavar="OUT", group=OUTPUT,
    )  # fmt: skip
    gains: int | None = option(
        "Replay with each of the N largest SEB names and events taking no time [default: 10; "
        "fewer for more than 500,000 SEBs].",
        default=None, metavar="N", group=ADVANCED, rare=True, least=0,
    )  # fmt: skip

    html: OutputPath | None = option(
        "Write a page with the timeline and the critical path to this file.",
        default=None, shell=False,
    )  # fmt: skip

    def run(self) -> ReplayReport:
        """Return the run time and what it is spent on; with `against`, a comparison of both."""
        from rewritelog.output import check_outputs, write_text_file
        from rewritelog.viewing.extra import require

        given = self.given
        if given.html is not None:
            require("bokeh", "the page")
            check_outputs([given.html], [], [logs.folder for logs in given.logs])
        result = self.job()
        if given.html is not None:
            write_text_file(given.html, self.page(result))
        return cast("ReplayReport", self.report(result))

    def job(self) -> list[Replayed | ReplayReport]:
        """Return the replays: of one log set with its times, after the one to compare with."""
        from rewritelog.replaying.options import ReplayOptions
        from rewritelog.replaying.run import replay, replay_whole

        network, given = self.read_network(), self.given
        if len(given.logs) > 1 and (given.against is not None or given.write is not None):
            raise UsageError("--against and --write take one log set; of several, all are compared")
        rules = tuple((self.lost_as or {}).items())
        options = ReplayOptions(self.rewrite_options(given), rules, self.gains, given.write)
        plain = replace(options, gains=0, write=None)
        if len(given.logs) > 1:
            return [replay(logs, network, plain) for logs in given.logs]
        before = [] if given.against is None else [replay(given.against, network, plain)]
        return [*before, replay_whole(given.logs[0], network, options)]

    def report(self, result: list[Replayed | ReplayReport]) -> Report:
        """Return the report of the replay, the comparison, or the table of many runs."""
        from rewritelog.replaying.report import ReplayComparison
        from rewritelog.replaying.run import Replayed
        from rewritelog.replaying.runs import ReplayedRuns

        reports = [one.report if isinstance(one, Replayed) else one for one in result]
        if len(self.given.logs) > 1:
            return ReplayedRuns(tuple(reports))
        return reports[0] if len(reports) == 1 else ReplayComparison(*reports)

    def page(self, result: list[Replayed | ReplayReport]) -> str:
        """Return the page of the replay, or of many runs."""
        from rewritelog.replaying.run import Replayed
        from rewritelog.viewing.replay_page import replay_page, runs_page

        last = result[-1]
        if isinstance(last, Replayed):
            return replay_page(last)
        return runs_page(cast("ReplayedRuns", self.report(result)))


replay = function(Replay)
