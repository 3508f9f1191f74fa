"""`rewritelog sample`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from rewritelog.commands.command import (
    PAGE,
    REPORT,
    WARNINGS,
    Command,
    function,
    same_fields,
)
from rewritelog.commands.shared import MODEL, OUTPUT, ClockHz, Jobs, Logs, Params, Seed, Strict
from rewritelog.options import declared, option

if TYPE_CHECKING:
    from rewritelog.api.arguments import InputPath, OutputPath, PathsLike
    from rewritelog.sampling.report import SampleReport


@declared
class Sample(Strict, Jobs, Seed, ClockHz, Params, Logs, Command["SampleReport"]):
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

    output: OutputPath | None = option(
        "The list to write [default: none, only report]; - is standard output.",
        default=None, names=("--output", "-o"), metavar="FILE", group=OUTPUT, kw_only=False,
    )  # fmt: skip
    timings: PathsLike | None = option(
        "Files of timing lines that exist already; - is standard input.",
        default=None, metavar="FILE...", group=MODEL,
    )  # fmt: skip
    fraction: float = option(
        "Share of all SEBs with a param record, in (0, 1].", default=0.02, metavar="SHARE"
    )
    method: Literal["design", "coverage", "random"] = option(
        "design: half where a fit is least certain, half spread over the parameters; coverage: "
        "spread over the parameters; random: at random.",
        default="design",
    )  # fmt: skip
    floor: int = option(
        "Choose at least N SEBs of each event and category, if there are as many.", default=5
    )
    formulas: InputPath | None = option(
        "A formulas file: SEBs are chosen from each category, to span its terms.",
        default=None, metavar="FILE",
    )  # fmt: skip
    replicates: int = option(
        "Choose some parameters of each event N times, if they recur.", default=1
    )

    def run(self) -> SampleReport:
        """Return the choice; `listing()` of it is the list."""
        from rewritelog.sampling.choose import sample
        from rewritelog.sampling.options import SampleOptions

        given = self.given
        options = same_fields(SampleOptions, given, timings=given.timings or ())
        return sample(given.logs, options, given.output)

    def page(self, result: SampleReport) -> str:
        """Return the page of the choice."""
        from rewritelog.viewing.sample_page import sample_page

        return sample_page(result)


sample = function(Sample)
