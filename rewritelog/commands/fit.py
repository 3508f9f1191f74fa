"""`rewritelog fit`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rewritelog.commands.command import PAGE, REPORT, WARNINGS, Command, function
from rewritelog.commands.completers import complete_model
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
    from rewritelog.api.arguments import PathLike
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

    shell = REPORT | WARNINGS | PAGE

    timings: TimingsLike = argument(TIMINGS_HELP, metavar="TIMINGS...", kw_only=False)
    model: ModelLike = option(
        f"{MODEL_HELP}.", default="auto", metavar="NAME", group=MODEL, complete=complete_model,
        kw_only=False,
    )  # fmt: skip
    output: PathLike | None = option(
        "The model file to write [default: none, only report]; - is standard output.",
        default=None, names=("--output", "-o"), metavar="FILE", group=OUTPUT,
    )  # fmt: skip

    def run(self) -> FittedModel:
        """Return the fitted model."""
        from rewritelog.api.fitted import FittedModel

        return FittedModel.of(self.job())

    def job(self) -> FitReport:
        """Fit the model; return the report."""
        from rewritelog.api.arguments import are_paths, optional_input, to_inputs, to_output
        from rewritelog.api.fitted import made_model
        from rewritelog.api.timings import to_timings
        from rewritelog.evaluation.fit import FitRequest, fit

        request = FitRequest(
            timings=to_inputs(self.timings, "the timings") if are_paths(self.timings) else (),
            model=made_model(self.model),
            model_options=self.model_options or {},
            formulas=optional_input(self.formulas, "formulas"),
            coefficients=optional_input(self.coefficients, "coefficients"),
            param_names=optional_input(self.param_names, "the file of parameter names"),
            clock_hz=self.clock_hz,
            strict=self.strict,
            jobs=self.jobs,
        )
        in_memory = None if request.timings else to_timings(self.timings).read
        return fit(request, to_output(self.output, "the model file"), in_memory)

    def page(self, result: FitReport) -> str:
        """Return the page of the fit."""
        from rewritelog.viewing.fit_pages import fit_page

        return fit_page(result)

    @property
    def main_output(self) -> PathLike | None:
        """The model file."""
        return self.output


fit = function(Fit)
