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
from rewritelog.commands.shared import (
    ADVANCED,
    OUTPUT,
    AnyTraces,
    CopyParams,
    Force,
    Jobs,
    NodeChoice,
    pairs,
)
from rewritelog.options import declared, option

if TYPE_CHECKING:
    from rewritelog.api.arguments import OutputPath, TracesLike
    from rewritelog.replaying.report import ReplayReport
    from rewritelog.replaying.run import Replayed


@declared
class LostAs:
    """The categories that lost time is counted in."""

    lost_as: Mapping[str, str] | None = option(
        "Count SEBs of that name, or middle regions of that event, in a category; repeatable, the "
        "last match wins.",
        default=None, metavar="PATTERN=CATEGORY", read=pairs, complete=complete_event,
    )  # fmt: skip


@declared
class Replay(
    Force,
    CopyParams,
    Jobs,
    LostAs,
    NodeChoice,
    Durations,
    NetworkOptions,
    AnyTraces,
    Command["ReplayReport"],
):
    """Predict how long the whole program takes, and what bounds it.

    SEBs run on their PEs in the order that messages and dependencies allow, with their recorded
    durations or those of a dilation or a model. The network is simple: see docs/replay.md.

    >>> report = rewritelog.replay("sample_logs/cells", latency="1us", gains=0)
    >>> report.pes
    16
    """

    shell = REPORT | WARNINGS | PAGE | ENGINE | DETAILS
    rare = frozenset({"lost_as", "force", "speedup", "dilation_for"})

    against: TracesLike | None = option(
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
        """Return the run time and what it is spent on; with `against`, a comparison of both.

        The report on traces is a `TraceReplay`.
        """
        from rewritelog.output import check_outputs, write_text_file
        from rewritelog.viewing.extra import require

        given = self.given
        if given.html is not None:
            require("bokeh", "the page")
            check_outputs([given.html], [], [given.logs.folder])
        result = self.job()
        if given.html is not None:
            write_text_file(given.html, self.page(result))
        return cast("ReplayReport", self.report(result))

    def job(self) -> tuple[ReplayReport | None, Replayed]:
        """Return the replay before, if there is one to compare with, and the replay."""
        from rewritelog.replaying.options import ReplayOptions
        from rewritelog.replaying.run import replay_opened

        network, given, before = self.read_network(), self.given, None
        rules = tuple((self.lost_as or {}).items())
        options = ReplayOptions(
            self.rewrite_options(given, types=self.chosen_types), rules, self.gains, given.write
        )
        if given.against is not None:
            plain = replace(options, gains=0, write=None)
            before = replay_opened(given.against, network, plain).report
        return before, replay_opened(given.logs, network, options)

    def report(self, result: tuple[ReplayReport | None, Replayed]) -> Report:
        """Return the report of the replay, or the comparison."""
        before, after = result
        compared: Report = after.report if before is None else after.report.compared_with(before)
        return compared

    def page(self, result: tuple[ReplayReport | None, Replayed]) -> str:
        """Return the page of the replay."""
        from rewritelog.viewing.replay_page import replay_page

        return replay_page(result[1])


replay = function(Replay)
