"""`rewritelog compare`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rewritelog.commands.command import PAGE, REPORT, WARNINGS, Command, function
from rewritelog.evaluation.options import CompareRequest
from rewritelog.options import declared

if TYPE_CHECKING:
    from rewritelog.evaluation.compare import CompareReport


@declared
class Compare(CompareRequest, Command["CompareReport"]):
    """Compare models on held-out timing lines.

    Lines are held out event by event. Options of models go to all models that have them.

    >>> report = rewritelog.compare("sample_logs/cells/timings.txt", ["least-squares"], folds=5)
    >>> report.tried[0].overall.predicted
    600
    """

    shell = REPORT | WARNINGS | PAGE

    def run(self) -> CompareReport:
        """Return the errors of each model."""
        from rewritelog.evaluation.compare import compare

        return compare(self.opened)

    def page(self, result: CompareReport) -> str:
        """Return the page of the comparison."""
        from rewritelog.viewing.compare_page import compare_page

        return compare_page(result)


compare = function(Compare)
