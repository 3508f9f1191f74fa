"""`rewritelog info`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rewritelog.commands.command import ENGINE, REPORT, WARNINGS, Command, function
from rewritelog.commands.shared import AnyTraces, Jobs
from rewritelog.options import declared

if TYPE_CHECKING:
    from rewritelog.inspection.info import LogInfo


@declared
class Info(Jobs, AnyTraces, Command["LogInfo"]):
    """Describe logs or traces: machine, sizes, where the time goes.

    >>> rewritelog.info("sample_logs/cells").brackets > 0
    True
    """

    shell = REPORT | WARNINGS | ENGINE

    def run(self) -> LogInfo:
        """Return the summary; that of traces is a `TraceInfo`."""
        from rewritelog.inspection.info import survey_opened

        found: LogInfo = survey_opened(self.given.logs, jobs=self.jobs)
        return found


info = function(Info)
