"""`rewritelog rewrite`."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
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
from rewritelog.commands.durations import Durations
from rewritelog.commands.network import NetworkOptions
from rewritelog.commands.shared import (
    ADVANCED,
    OUT_HELP,
    OUTPUT,
    AnyTraces,
    CopyParams,
    Flush,
    Force,
    Jobs,
    NodeChoice,
    ParamNames,
)
from rewritelog.errors import UsageError
from rewritelog.options import argument, declared, option
from rewritelog.rewriting.options import RecvPolicy, SpreadName, TotalName

if TYPE_CHECKING:
    from rewritelog.api.arguments import OutputPath
    from rewritelog.progress import Listener
    from rewritelog.rewriting.report import RewriteReport


@declared
class Rewrite(
    Flush,
    CopyParams,
    Force,
    Jobs,
    ParamNames,
    NodeChoice,
    Durations,
    NetworkOptions,
    AnyTraces,
    Command["RewriteReport"],
):
    """Rewrite logs or traces with new durations, and predict the run time before and after.

    A model predicts the bracketed parts of SEBs, or nodes; the rest is dilated. The run time is
    that of a replay, in the network as recorded or as given; over a million SEBs only as given.

    >>> timings = "sample_logs/cells/timings.txt"
    >>> report = rewritelog.rewrite("sample_logs/cells", timings=timings, dilation=0.5)
    >>> report.events[0].by_model
    24
    """

    shell = REPORT | WARNINGS | PAGE | ENGINE | DETAILS
    rare = frozenset({"latency", "bandwidth"})

    out: OutputPath | None = argument(OUT_HELP, metavar="OUT", default=None, kw_only=False)
    dry_run: bool = option(
        "Print the report without writing OUT; takes no OUT.", default=False, group=OUTPUT
    )
    recv: RecvPolicy = option(
        "A message's recvTime: shift it with sendTime, or keep it unless sendTime passes it.",
        default="shift", group=ADVANCED, rare=True,
    )  # fmt: skip
    total: TotalName = option(
        "measured: predicted durations add up to the measured machine's sum, rare long calls "
        "included; typical: each is the usual duration of one call.",
        default="measured", group=ADVANCED, rare=True,
    )  # fmt: skip
    spread: SpreadName = option(
        "none: each predicted duration is the fit's mean; residual: it varies around the mean as "
        "held-out timing lines do.",
        default="none", group=ADVANCED, rare=True,
    )  # fmt: skip
    seed: int | None = option(
        "Seed of --spread residual, and of the draw of --model sampled [default: 1].",
        default=None, metavar="N", group=ADVANCED, rare=True,
    )  # fmt: skip
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

        given, seed, network = self.given, self.seed, self.read_network()
        options = self.rewrite_options(
            given, spread_seed=1 if seed is None else seed, types=self.chosen_types
        )
        if seed is not None and options.model == "sampled":
            options = replace(options, model_options={"seed": seed, **options.model_options})
        with nullcontext() if self.progress is None else listening(self.progress):
            report = rewrite(given.logs, given.out, options)
            found: RewriteReport = with_run_time(report, network, asked=self.describes_network)
            return found

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
