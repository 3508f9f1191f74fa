"""`rewritelog verify`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rewritelog.commands.command import PAGE, REPORT, WARNINGS, Command, function
from rewritelog.commands.shared import TIMINGS_HELP, ClockHz, Fitted, Strict
from rewritelog.options import argument, declared, option

if TYPE_CHECKING:
    from rewritelog.api.timings import TimingsLike
    from rewritelog.evaluation.verify import VerifyReport


@declared
class Verify(Strict, ClockHz, Fitted, Command["VerifyReport"]):
    """Compare the predictions of a model file with measured times.

    The exit code is 1 if the model has no prediction for any line.

    >>> fitted = rewritelog.fit("sample_logs/cells/timings.txt")
    >>> report = rewritelog.verify(fitted, "sample_logs/cells/timings.txt")
    >>> round(report.overall.score.r2, 2)
    0.99
    """

    shell = REPORT | WARNINGS | PAGE
    read_twice = "timings"

    timings: TimingsLike = argument(TIMINGS_HELP, metavar="TIMINGS...", kw_only=False)
    worst: int = option("How many of the worst lines to show.", default=10)

    def run(self) -> VerifyReport:
        """Return the errors, by event and overall."""
        from rewritelog.api.fitted import to_predictor
        from rewritelog.api.timings import Timings, to_timings
        from rewritelog.evaluation.verify import verify_lines, verify_samples

        predictor, lines = to_predictor(self.model), self.given.timings
        if isinstance(lines, Timings):
            samples = tuple(to_timings(lines, predictor.columns))
            return verify_samples(predictor, samples, worst=self.worst)
        return verify_lines(predictor, lines, self.clock_hz, strict=self.strict, worst=self.worst)

    def page(self, result: VerifyReport) -> str:
        """Return the page of the comparison."""
        from rewritelog.api.fitted import to_predictor
        from rewritelog.api.timings import to_timings
        from rewritelog.viewing.fit_pages import verify_page

        predictor = to_predictor(self.model)
        read = to_timings(self.timings, predictor.columns, clock_hz=self.clock_hz).read
        return verify_page(result, predictor.fitted, read)

    def exit_code(self, result: VerifyReport) -> int:
        """Return 1 if no line was predicted."""
        return int(not result.overall.score.predicted)


verify = function(Verify)
