"""`rewritelog timings`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rewritelog.commands.command import ENGINE, REPORT, WARNINGS, Command
from rewritelog.commands.shared import TracesArgument
from rewritelog.errors import UsageError
from rewritelog.options import OUTPUT, Jobs, NodeChoice, OptionalOutput, argument, declared

if TYPE_CHECKING:
    from rewritelog.timings.from_traces import WrittenTimings


@declared
class Timings(Jobs, NodeChoice, Command["WrittenTimings"]):
    """Write a timing line for each node of Chakra traces, to fit models to them."""

    shell = REPORT | WARNINGS | ENGINE

    traces: TracesArgument = argument(
        "Chakra traces: a folder, a file, or FOLDER/NAME.", metavar="TRACES", kw_only=False
    )
    output: OptionalOutput = argument(
        "The file of timing lines.",
        metavar="FILE", positional=False, default=None, names=("--output", "-o"), group=OUTPUT,
        kw_only=False, needed=True,
    )  # fmt: skip

    def run(self) -> WrittenTimings:
        """Write the lines, if there is an output; return what they are."""
        from rewritelog.formats.traces import Traces
        from rewritelog.rewriting.traces import chosen_types
        from rewritelog.timings.from_traces import write_timings

        opened = self.opened
        if not isinstance(opened.traces, Traces):
            raise UsageError(
                f"{opened.traces.folder}: has bgTrace logs, which hold no timing lines"
            )
        types = chosen_types(opened.traces, self.chosen_types)
        return write_timings(
            opened.traces, opened.output, types, opened.event_params, jobs=self.jobs
        )
