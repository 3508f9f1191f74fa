"""Commands about timing lines themselves, which are `tracebigsim stats` and `merge` as well."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rewritelog.commands.command import REPORT, WARNINGS, Command
from rewritelog.options import InputPaths, Options, OutputPath, argument, option

if TYPE_CHECKING:
    from rewritelog.timings.merge import MergedLines
    from rewritelog.timings.stats import LineStats


class Outputs(Options):
    """Outputs of programs."""

    files: InputPaths = argument(
        "Outputs of a program, plain or compressed; - is standard input.",
        metavar="FILE...",
        kw_only=False,
    )


class StatsCommand(Outputs, Command["LineStats"]):
    """Summarise timing lines: events, counts, ranges, times."""

    shell = REPORT | WARNINGS

    def run(self) -> LineStats:
        """Return the statistics."""
        from rewritelog.timings.stats import line_stats

        return line_stats(self.files)


class MergeCommand(Outputs, Command["MergedLines"]):
    """Sort the timing lines of many outputs into one file."""

    shell = REPORT | WARNINGS

    output: OutputPath = option("The file to write [default: -, standard output].", default="-")
    force: bool = option("Replace FILE if it exists.", default=False)

    def run(self) -> MergedLines:
        """Write the file; return what it holds."""
        from rewritelog.timings.merge import merge

        return merge(self.files, self.output, force=self.force)
