"""`rewritelog sample`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rewritelog.commands.command import PAGE, REPORT, WARNINGS, Command, function
from rewritelog.commands.shared import Logs
from rewritelog.options import OUTPUT, OptionalOutput, declared, option
from rewritelog.sampling.options import SampleOptions

if TYPE_CHECKING:
    from rewritelog.sampling.report import SampleReport


@declared
class Sample(SampleOptions, Logs, Command["SampleReport"]):
    """Choose the SEBs to time, for a fit that predicts all others best.

    The list has the PE, SEB, event and parameters of each; a program that is instrumented with
    tracebigsim, or a cycle-accurate simulator, then times only these. Calls that are already timed
    (--timings) count as known.

    >>> report = rewritelog.sample("sample_logs/cells", fraction=0.2)
    >>> report.chosen
    16
    """

    shell = REPORT | WARNINGS | PAGE
    rare = frozenset({"formulas", "replicates"})

    output: OptionalOutput = option(
        "The list to write [default: none, only report]; - is standard output.",
        default=None, names=("--output", "-o"), metavar="FILE", group=OUTPUT, kw_only=False,
    )  # fmt: skip

    def run(self) -> SampleReport:
        """Return the choice; `listing()` of it is the list."""
        from rewritelog.sampling.choose import sample

        opened = self.opened
        return sample(opened.logs, opened, opened.output)

    def page(self, result: SampleReport) -> str:
        """Return the page of the choice."""
        from rewritelog.viewing.sample_page import sample_page

        return sample_page(result)


sample = function(Sample)
