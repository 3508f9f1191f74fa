"""`rewritelog info`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rewritelog.commands.command import ENGINE, REPORT, WARNINGS, Command, function
from rewritelog.commands.shared import Jobs, Logs
from rewritelog.options import declared

if TYPE_CHECKING:
    from rewritelog.inspection.info import LogInfo


@declared
class Info(Jobs, Logs, Command["LogInfo"]):
    """Describe a log set: machine, sizes, brackets, where the time goes.

    >>> rewritelog.info("sample_logs/cells").brackets > 0
    True
    """

    shell = REPORT | WARNINGS | ENGINE

    def run(self) -> LogInfo:
        """Return the summary."""
        from rewritelog.inspection.info import survey

        return survey(self.given.logs, jobs=self.jobs)


info = function(Info)
