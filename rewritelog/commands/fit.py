"""`rewritelog fit`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rewritelog.commands.command import (
    DETAILS,
    PAGE,
    REPORT,
    WARNINGS,
    Command,
    function,
    same_fields,
)
from rewritelog.commands.completers import complete_event, complete_model
from rewritelog.commands.shared import (
    MODEL,
    MODEL_HELP,
    OUTPUT,
    TIMINGS_HELP,
    Jobs,
    ModelInputs,
    ParamNames,
)
from rewritelog.options import argument, declared, option

if TYPE_CHECKING:
    from rewritelog.api.arguments import OutputPath
    from rewritelog.api.fitted import FittedModel, ModelLike
    from rewritelog.api.timings import TimingsLike
    from rewritelog.evaluation.fit import FitReport


@declared
class Fit(Jobs, ParamNames, ModelInputs, Command["FittedModel"]):
    """Fit a model to timing lines, and write it to a model file.

    `rewrite --fitted`, `predict` and `verify` use the file without the timings.

    >>> fitted = rewritelog.fit("sample_logs/cells/timings.txt", model_options={"loss": "squares"})
    >>> fitted.events
    ('Cell::pairForces', 'Cell::bonded')
    """

    shell = REPORT | WARNINGS | PAGE | DETAILS

    timings: TimingsLike = argument(TIMINGS_HELP, metavar="TIMINGS...", kw_only=False)
    model: ModelLike = option(
        f"{MODEL_HELP}.", default="auto", metavar="NAME", group=MODEL, complete=complete_model,
        kw_only=False,
    )  # fmt: skip
    event: str | None = option(
        "Show the whole fit of this event, and its formula; * matches anything.",
        default=None, metavar="NAME", complete=complete_event,
    )  # fmt: skip
    output: OutputPath | None = option(
        "The model file to write [default: none, only report]; - is standard output.",
        default=None, names=("--output", "-o"), metavar="FILE", group=OUTPUT,
    )  # fmt: skip

    def run(self) -> FittedModel:
        """Return the fitted model."""
        from rewritelog.api.fitted import FittedModel

        return FittedModel.of(self.job())

    def job(self) -> FitReport:
        """Fit the model; return the report."""
        from rewritelog.api.fitted import made_model
        from rewritelog.api.timings import Timings
        from rewritelog.evaluation.fit import FitRequest, fit
        from rewritelog.models import param_names

        given = self.given
        in_memory = given.timings.read if isinstance(given.timings, Timings) else None
        request = same_fields(
            FitRequest,
            given,
            timings=() if in_memory else given.timings,
            model=made_model(self.model),
            model_options=self.model_options or {},
        )
        names = given.timings.names if isinstance(given.timings, Timings) else {}
        columns = param_names.ParamNames("the columns of the timings", names) if names else None
        return fit(request, given.output, in_memory, columns)

    def page(self, result: FitReport) -> str:
        """Return the page of the fit."""
        from rewritelog.viewing.fit_pages import fit_page

        return fit_page(result)


fit = function(Fit)
