"""`rewritelog info`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rewritelog.commands.command import ENGINE, PAGE, REPORT, WARNINGS, Command, function
from rewritelog.commands.shared import AnyTraces
from rewritelog.options import Jobs, declared

if TYPE_CHECKING:
    from rewritelog.inspection.info import LogInfo


@declared
class Info(Jobs, AnyTraces, Command["LogInfo"]):
    """Describe logs or traces: machine, sizes, where the time goes.

    >>> rewritelog.info("sample_logs/cells").brackets > 0
    True
    """

    shell = REPORT | WARNINGS | PAGE | ENGINE

    def run(self) -> LogInfo:
        """Return the summary; that of traces is a `TraceInfo`."""
        from rewritelog.inspection.info import survey_opened

        survey: LogInfo = survey_opened(self.opened.logs, jobs=self.jobs)
        return survey

    def page(self, result: LogInfo) -> str:
        """Return the page of communication matrices and message sizes."""
        from rewritelog.errors import UsageError
        from rewritelog.inspection.info import LogInfo
        from rewritelog.viewing.info_page import info_page

        if not isinstance(result, LogInfo):
            raise UsageError("the page of info is for BigSim logs only")
        return info_page(result)


info = function(Info)
