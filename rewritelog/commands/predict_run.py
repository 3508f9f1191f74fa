"""`rewritelog predict-run`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rewritelog.commands.command import REPORT, WARNINGS, Command, function
from rewritelog.commands.shared import Fitted
from rewritelog.options import argument, declared

if TYPE_CHECKING:
    from rewritelog.evaluation.totals import RunPrediction


def _point(texts: list[str], _: str) -> dict[str, float]:
    from rewritelog.evaluation.totals import parse_point

    return parse_point(",".join(texts))


@declared
class PredictRun(Fitted, Command["RunPrediction"]):
    """Predict the run time of a program from a model of its lost cycles.

    The categories of `lost-cycles`, each fitted to several runs, are added up for a number of PEs
    and a problem size that were never run.

    >>> rewritelog.predict_run("study.json", {"P": 4096, "D": 512})  # doctest: +SKIP
    """

    shell = REPORT | WARNINGS

    at: Mapping[str, float] = argument(
        "The number of PEs, P, and the variables of the study.",
        metavar="P=N,NAME=VALUE,...", positional=False, kw_only=False, read=_point,
    )  # fmt: skip

    def run(self) -> RunPrediction:
        """Return the run time and its categories."""
        from rewritelog.evaluation.totals import predict_run

        return predict_run(self.opened.model, self.at)


predict_run = function(PredictRun)
