"""`rewritelog rewrite`."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

from rewritelog.commands.command import (
    DETAILS,
    ENGINE,
    PAGE,
    REPORT,
    WARNINGS,
    Command,
    function,
)
from rewritelog.commands.network import NetworkOptions
from rewritelog.commands.shared import OUT_HELP, AnyTraces
from rewritelog.errors import UsageError
from rewritelog.options import OUTPUT, OptionalOutput, argument, declared, option
from rewritelog.rewriting.options import RewriteOptions

if TYPE_CHECKING:
    from rewritelog.progress import Listener
    from rewritelog.rewriting.report import RewriteReport


@declared
class Rewrite(RewriteOptions, NetworkOptions, AnyTraces, Command["RewriteReport"]):
    """Rewrite logs or traces with new durations, and predict the run time.

    A model predicts the bracketed parts of SEBs, or nodes; the rest is dilated. The run time is
    that of a replay, in the network as recorded or as given; over a million SEBs only as given.

    >>> timings = "sample_logs/cells/timings.txt"
    >>> report = rewritelog.rewrite("sample_logs/cells", timings=timings, dilation=0.5)
    >>> report.events[0].by_model
    24
    """

    shell = REPORT | WARNINGS | PAGE | ENGINE | DETAILS
    rare = frozenset({"latency", "bandwidth"})

    out: OptionalOutput = argument(OUT_HELP, metavar="OUT", default=None, kw_only=False)
    dry_run: bool = option(
        "Print the report without writing OUT; takes no OUT.", default=False, group=OUTPUT
    )
    progress: Listener | None = option(
        "Called with the stage, and how much of it is done.", default=None, shell=False
    )

    def run(self) -> RewriteReport:
        """Write the folder, or only report; `out` is not changed if an error is raised.

        The report on traces is a `TraceReport`.
        """
        from rewritelog.progress import listening
        from rewritelog.replaying.run_time import with_run_time
        from rewritelog.rewriting.run import rewrite

        opened, network = self.opened, self.read_network()
        with nullcontext() if self.progress is None else listening(self.progress):
            report = rewrite(opened.logs, opened.out, opened)
            timed: RewriteReport = with_run_time(report, network, asked=self.describes_network)
            return timed

    def job(self) -> RewriteReport:
        """Do what the command line asks for: `--dry-run` instead of OUT."""
        if (self.out is None) != self.dry_run:
            raise UsageError(
                "missing argument 'OUT' (--dry-run needs none)"
                if self.out is None
                else "--dry-run takes no OUT"
            )
        return self.run()

    def page(self, result: RewriteReport) -> str:
        """Return the page of the rewrite."""
        from rewritelog.viewing.rewrite_page import page_of

        return page_of(result)


rewrite = function(Rewrite)
