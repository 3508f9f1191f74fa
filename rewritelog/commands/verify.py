"""`rewritelog verify`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rewritelog.commands.command import PAGE, REPORT, WARNINGS, Command, function
from rewritelog.commands.shared import Fitted
from rewritelog.options import TIMINGS_HELP, ParamNames, Reading, argument, declared, option

if TYPE_CHECKING:
    from rewritelog.evaluation.verify import VerifyReport
    from rewritelog.timings.samples import TimingsArgument


@declared
class Verify(Reading, ParamNames, Fitted, Command["VerifyReport"]):
    """Compare the predictions of a model file with measured times.

    The exit code is 1 if the model has no prediction for any line.

    >>> fitted = rewritelog.fit("sample_logs/cells/timings.txt")
    >>> report = rewritelog.verify(fitted, "sample_logs/cells/timings.txt")
    >>> round(report.overall.score.r2, 2)
    0.99
    """

    shell = REPORT | WARNINGS | PAGE
    read_twice = "timings"

    timings: TimingsArgument = argument(TIMINGS_HELP, metavar="TIMINGS...", kw_only=False)
    worst: int = option("How many of the worst lines to show.", default=10)

    def run(self) -> VerifyReport:
        """Return the errors, by event and overall."""
        from rewritelog.evaluation.verify import verify_lines, verify_samples
        from rewritelog.timings.samples import samples_of

        opened = self.opened
        model, timings = opened.model.named(opened.param_names), opened.timings
        if isinstance(timings, tuple):
            return verify_lines(model, timings, self.clock_hz, strict=self.strict, worst=self.worst)
        samples = samples_of(timings, columns=model.columns).timings
        return verify_samples(model, samples, worst=self.worst)

    def page(self, result: VerifyReport) -> str:
        """Return the page of the comparison."""
        from rewritelog.timings.samples import samples_of
        from rewritelog.viewing.fit_pages import verify_page

        opened = self.opened
        model = opened.model.named(opened.param_names)
        read = samples_of(opened.timings, self.clock_hz, columns=model.columns)
        return verify_page(result, model.fitted, read)

    def exit_code(self, result: VerifyReport) -> int:
        """Return 1 if no line was predicted."""
        return int(not result.overall.score.predicted)


verify = function(Verify)
