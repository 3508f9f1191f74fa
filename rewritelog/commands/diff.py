"""`rewritelog diff`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rewritelog.commands.command import ENGINE, REPORT, Command, function
from rewritelog.commands.shared import TracesArgument
from rewritelog.errors import NotComparableError, RewriteLogError
from rewritelog.options import Jobs, OptionalInput, argument, declared, option

if TYPE_CHECKING:
    from rewritelog.diffing.report import Comparison


@declared
class Diff(Jobs, Command["Comparison"]):
    """Compare two sets of logs or traces: fields, durations, messages.

    SEBs are compared in the order of each PE's timeline, whatever the log version and byte order.
    The exit code is 0 if they are the same, 1 if they differ, and 2 if they cannot be compared.

    >>> rewritelog.diff("sample_logs/cells", "sample_logs/cells-big-endian").verdict
    'different: only the representation; the content is the same'
    """

    shell = REPORT | ENGINE
    failure = 2

    a: TracesArgument = argument("A log folder, or Chakra traces.", metavar="A", kw_only=False)
    b: TracesArgument = argument(
        "The logs or traces to compare with A.", metavar="B", kw_only=False
    )
    params: OptionalInput = option(
        "The folder of the param.P files that name events [default: A or B].",
        default=None, metavar="DIR", kw_only=False,
    )  # fmt: skip

    def run(self) -> Comparison:
        """Return the differences; raise `NotComparableError` if the sets cannot be compared."""
        from rewritelog.diffing.run import compare_opened

        try:
            opened = self.opened
            comparison: Comparison = compare_opened(
                opened.a, opened.b, opened.params, jobs=self.jobs
            )
        except RewriteLogError as error:
            raise NotComparableError(f"cannot be compared: {error}") from error
        return comparison

    def exit_code(self, result: Comparison) -> int:
        """Return 1 if the sets differ."""
        return int(not result.same)


diff = function(Diff)
