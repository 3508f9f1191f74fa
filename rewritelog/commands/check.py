"""`rewritelog check`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rewritelog.commands.command import ENGINE, REPORT, Command, function
from rewritelog.commands.shared import Jobs, Logs
from rewritelog.options import declared, option

if TYPE_CHECKING:
    from rewritelog.api.arguments import PathLike
    from rewritelog.checking.report import CheckReport


@declared
class Check(Jobs, Logs, Command["CheckReport"]):
    """Find damage and oddities in a log set and its params.

    Run it first on logs that you do not trust: it takes little memory, and no damage makes it fail.
    The exit code is 1 if any finding is more than an oddity.

    >>> rewritelog.check("sample_logs/cells").sound
    True
    """

    shell = REPORT | ENGINE

    params: PathLike | None = option(
        "The folder of the param.P files [default: LOGS].", default=None, metavar="DIR",
        kw_only=False,
    )  # fmt: skip

    def run(self) -> CheckReport:
        """Return the findings; damage is one, and not raised."""
        from rewritelog.api.arguments import optional_input
        from rewritelog.api.logs import logs_folder
        from rewritelog.checking.run import check_logs

        params = optional_input(self.params, "params")
        return check_logs(logs_folder(self.logs), params, jobs=self.jobs)

    def exit_code(self, result: CheckReport) -> int:
        """Return 1 if a simulation would stop or mislead."""
        return int(not result.sound)


check = function(Check)
