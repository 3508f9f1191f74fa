"""`rewritelog fit`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rewritelog.commands.command import DETAILS, PAGE, REPORT, WARNINGS, Command, function
from rewritelog.evaluation.options import FitRequest
from rewritelog.options import OUTPUT, OptionalOutput, declared, option

if TYPE_CHECKING:
    from rewritelog.api.fitted import FittedModel
    from rewritelog.evaluation.fit import FitReport


@declared
class Fit(FitRequest, Command["FittedModel"]):
    """Fit a model to timing lines, and write it to a model file.

    `rewrite --fitted`, `predict` and `verify` use the file without the timings.

    >>> fitted = rewritelog.fit("sample_logs/cells/timings.txt", model_options={"loss": "squares"})
    >>> fitted.events
    ('Cell::pairForces', 'Cell::bonded')
    """

    shell = REPORT | WARNINGS | PAGE | DETAILS

    output: OptionalOutput = option(
        "The model file to write [default: none, only report]; - is standard output.",
        default=None, names=("--output", "-o"), metavar="FILE", group=OUTPUT,
    )  # fmt: skip

    def run(self) -> FittedModel:
        """Return the fitted model."""
        from rewritelog.api.fitted import FittedModel

        return FittedModel.of(self.job())

    def job(self) -> FitReport:
        """Fit the model; return the report."""
        from rewritelog.evaluation.fit import fit

        opened = self.opened
        return fit(opened, opened.output)

    def page(self, result: FitReport) -> str:
        """Return the page of the fit."""
        from rewritelog.viewing.fit_pages import fit_page

        return fit_page(result)


fit = function(Fit)
