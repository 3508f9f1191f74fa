"""`rewritelog compare`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rewritelog.commands.command import (
    PAGE,
    REPORT,
    WARNINGS,
    Command,
    function,
    same_fields,
)
from rewritelog.commands.completers import complete_models
from rewritelog.commands.shared import MODEL, TIMINGS_HELP, Jobs, ModelInputs, Seed, listed
from rewritelog.options import argument, declared, option

if TYPE_CHECKING:
    from rewritelog.api.timings import TimingsLike
    from rewritelog.evaluation.compare import CompareReport


@declared
class Compare(Jobs, Seed, ModelInputs, Command["CompareReport"]):
    """Compare models on held-out timing lines.

    Lines are held out event by event. Options of models go to all models that have them.

    >>> report = rewritelog.compare("sample_logs/cells/timings.txt", ["least-squares"], folds=5)
    >>> report.tried[0].overall.predicted
    600
    """

    shell = REPORT | WARNINGS | PAGE

    timings: TimingsLike = argument(TIMINGS_HELP, metavar="TIMINGS...", kw_only=False)
    models: str | Sequence[str] | None = option(
        "The models to compare [default: auto, least-squares].",
        default=None, metavar="NAME,NAME,...", group=MODEL, read=listed, complete=complete_models,
        kw_only=False,
    )  # fmt: skip
    folds: int = option("Divide the lines into N parts, and hold out each in turn.", default=10)
    fraction: float | None = option(
        "Fit to this share of each event's lines instead, drawn at random, and predict the rest.",
        default=None, metavar="SHARE",
    )  # fmt: skip
    repeats: int = option("Repeat the comparison N times, each time with a new seed.", default=1)

    def run(self) -> CompareReport:
        """Return the errors of each model."""
        from rewritelog.api.timings import Timings
        from rewritelog.evaluation.compare import DEFAULT_MODELS, CompareRequest, compare

        given, models = self.given, DEFAULT_MODELS if self.models is None else self.models
        in_memory = given.timings.read if isinstance(given.timings, Timings) else None
        request = same_fields(
            CompareRequest,
            given,
            timings=() if in_memory else given.timings,
            models=(models,) if isinstance(models, str) else tuple(models),
            model_options=self.model_options or {},
        )
        return compare(request, in_memory)

    def page(self, result: CompareReport) -> str:
        """Return the page of the comparison."""
        from rewritelog.viewing.compare_page import compare_page

        return compare_page(result)


compare = function(Compare)
