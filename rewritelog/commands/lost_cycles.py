"""`rewritelog lost-cycles`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rewritelog.commands.command import ENGINE, REPORT, WARNINGS, Command, function
from rewritelog.commands.network import NetworkOptions
from rewritelog.commands.shared import Logs
from rewritelog.options import OUTPUT, OptionalOutput, declared, option, unique_pairs
from rewritelog.replaying.options import LostTimeOptions

if TYPE_CHECKING:
    from rewritelog.replaying.study import StudyRun


@declared
class LostCycles(LostTimeOptions, NetworkOptions, Logs, Command["StudyRun"]):
    """Split all PE time of a replay into useful work and lost cycles.

    Several runs make a study: their timing lines, in one file, are fitted and verified like any
    others, and `predict-run` adds the categories up at sizes that were never run.

    >>> run = rewritelog.lost_cycles("sample_logs/cells", latency="1us")
    >>> sorted(run.lost.totals_s)[:2]
    ['communication', 'end']
    """

    shell = REPORT | WARNINGS | ENGINE
    rare = frozenset({"speedup", "dilation_for"})

    variables: Mapping[str, float] | None = option(
        "A variable of the run, as in D=128, for --timings-out; repeatable.",
        default=None, names=("--var",), metavar="NAME=VALUE", read=unique_pairs,
    )  # fmt: skip
    timings_out: OptionalOutput = option(
        "Append a timing line for each category to this file.",
        default=None, metavar="FILE", group=OUTPUT,
    )  # fmt: skip

    def run(self) -> StudyRun:
        """Return the categories; the parameters of their lines are P, and variables by name."""
        from rewritelog.replaying.study import Study, variables_of

        opened, network = self.opened, self.read_network()
        variables = [(name, str(value)) for name, value in (self.variables or {}).items()]
        study = Study(variables_of(variables), opened.timings_out)
        return study.add(opened.logs, network, opened)


lost_cycles = function(LostCycles)
