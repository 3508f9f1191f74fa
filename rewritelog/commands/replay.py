"""`rewritelog replay`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

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
from rewritelog.commands.network import NetworkOptions
from rewritelog.commands.shared import ManyTraces, OptionalTraces
from rewritelog.errors import UsageError
from rewritelog.options import OptionalOutput, argument, declared, option
from rewritelog.replaying.options import ReplayOptions

if TYPE_CHECKING:
    from rewritelog.replaying.report import ReplayReport
    from rewritelog.replaying.runs import ReplayedRuns


@declared
class Replay(ReplayOptions, NetworkOptions, Command["ReplayReport"]):
    """Predict how long the whole program takes, and what bounds it.

    SEBs run on their PEs in the order that messages and dependencies allow, with their recorded
    durations or those of a dilation or a model. The network is simple: see docs/replay.md.

    >>> report = rewritelog.replay("sample_logs/cells", latency="1us", gains=0)
    >>> report.pes
    16
    """

    shell = REPORT | WARNINGS | PAGE | ENGINE | DETAILS
    rare = frozenset({"lost_as", "force", "speedup", "dilation_for"})

    logs: ManyTraces = argument(
        "The log folder, or Chakra traces; of several log folders, a table compares the runs.",
        metavar="LOGS...", kw_only=False,
    )  # fmt: skip
    against: OptionalTraces = option(
        "Compare with the replay of another log set, as the state before.",
        default=None, metavar="OTHER",
    )  # fmt: skip
    html: OptionalOutput = option(
        "Write a page with the timeline and the critical path to this file.",
        default=None, shell=False,
    )  # fmt: skip

    def run(self) -> ReplayReport:
        """Return the run time and what it is spent on; with `against`, a comparison of both.

        The report on traces is a `TraceReplay`.
        """
        from rewritelog.output import check_outputs, write_text_file
        from rewritelog.viewing.extra import require

        opened = self.opened
        if opened.html is not None:
            require("bokeh", "the page")
            check_outputs([opened.html], [], [logs.folder for logs in opened.logs])
        result = self.job()
        if opened.html is not None:
            write_text_file(opened.html, self.page(result))
        return cast("ReplayReport", self.report(result))

    def job(self) -> list[Any]:
        """Return the replays: of one set with its times, after the one to compare with."""
        from rewritelog.replaying.run import replay_opened

        opened, network = self.opened, self.read_network()
        if len(opened.logs) > 1 and (opened.against is not None or opened.write is not None):
            raise UsageError("--against and --write take one log set; of several, all are compared")
        plain = replace(opened, gains=0, write=None)
        if len(opened.logs) > 1:
            return [replay_opened(logs, network, plain).report for logs in opened.logs]
        before = [opened.against] if opened.against is not None else []
        return [
            *(replay_opened(logs, network, plain).report for logs in before),
            replay_opened(opened.logs[0], network, opened),
        ]

    def report(self, result: list[Any]) -> Report:
        """Return the report of the replay, the comparison, or the table of many runs."""
        from rewritelog.replaying.runs import ReplayedRuns

        if not self._has_times(result):
            return ReplayedRuns(tuple(result))
        *before, after = result
        compared: Report = after.report.compared_with(*before) if before else after.report
        return compared

    def page(self, result: list[Any]) -> str:
        """Return the page of the replay, or of many runs."""
        from rewritelog.viewing.replay_page import replay_page, runs_page

        if self._has_times(result):
            return replay_page(result[-1])
        return runs_page(cast("ReplayedRuns", self.report(result)))

    @staticmethod
    def _has_times(result: list[Any]) -> bool:
        """Return whether there is one run, of which there is more than its report."""
        from rewritelog.replaying.report import ReplayReport

        return not isinstance(result[-1], ReplayReport)


replay = function(Replay)
