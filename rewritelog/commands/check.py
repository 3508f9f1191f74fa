"""`rewritelog check`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rewritelog.commands.command import ENGINE, REPORT, Command, function
from rewritelog.commands.shared import TRACES_HELP, UncheckedArgument
from rewritelog.options import Jobs, OptionalInput, argument, declared, option

if TYPE_CHECKING:
    from rewritelog.checking.report import CheckReport


@declared
class Check(Jobs, Command["CheckReport"]):
    """Find damage and oddities in logs and their params, or in traces.

    Run it first on logs that you do not trust: it takes little memory, and no damage makes it fail.
    The exit code is 1 if any finding is more than an oddity.

    >>> rewritelog.check("sample_logs/cells").sound
    True
    """

    shell = REPORT | ENGINE

    logs: UncheckedArgument = argument(TRACES_HELP, metavar="LOGS", kw_only=False)
    params: OptionalInput = option(
        "The folder of the param.P files [default: LOGS].", default=None, metavar="DIR",
        kw_only=False,
    )  # fmt: skip

    def run(self) -> CheckReport:
        """Return the findings; damage is one, and not raised. For traces it is a `TraceCheck`."""
        from rewritelog.checking.run import check_opened

        opened = self.opened
        report: CheckReport = check_opened(opened.logs, opened.params, jobs=self.jobs)
        return report

    def exit_code(self, result: CheckReport) -> int:
        """Return 1 if a simulation would stop or mislead."""
        return int(not result.sound)


check = function(Check)
