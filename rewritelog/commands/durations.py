"""The options that determine the new durations of SEBs, for all commands that need them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rewritelog.api.arguments import to_path
from rewritelog.commands.command import same_fields
from rewritelog.commands.completers import complete_model
from rewritelog.commands.shared import (
    MODEL,
    MODEL_HELP,
    ModelInputs,
    Params,
    factors,
)
from rewritelog.errors import UsageError
from rewritelog.options import declared, option

if TYPE_CHECKING:
    from rewritelog.api.fitted import FittedLike, ModelLike
    from rewritelog.api.timings import TimingsLike
    from rewritelog.rewriting.options import RewriteOptions


@declared
class TimingsOption:
    """Timing lines that are an option."""

    timings: TimingsLike | None = option(
        "Files of timing lines; - is standard input.",
        default=None, metavar="FILE...", group=MODEL,
    )  # fmt: skip


@declared
class ModelAndDilation(TimingsOption):
    """A model, and the factor for what it does not cover."""

    model: ModelLike | None = option(
        f"{MODEL_HELP} [default: auto with timings, else constant].",
        default=None, metavar="NAME", group=MODEL, complete=complete_model,
    )  # fmt: skip
    fitted: FittedLike | None = option(
        "A model file, instead of a model and timings.",
        default=None, metavar="FILE", group=MODEL,
    )  # fmt: skip
    dilation: float | None = option(
        "Factor on durations that no model covers [default: 1].",
        default=None, metavar="FACTOR", group=MODEL,
    )  # fmt: skip
    speedup: float | None = option(
        "The inverse of --dilation: 2 is --dilation 0.5.",
        default=None, metavar="FACTOR", group=MODEL,
    )  # fmt: skip
    dilation_for: Mapping[str, float] | None = option(
        "The dilation of SEBs of that name (* matches anything); repeatable, the last match wins.",
        default=None, metavar="NAME=FACTOR", group=MODEL, read=factors,
    )  # fmt: skip


@declared
class Durations(Params, ModelInputs, ModelAndDilation):
    """The options that determine the new durations of SEBs."""

    def rewrite_options(self, given: Any, **others: Any) -> RewriteOptions:
        """Return the options of a rewrite, from the values given and `others`."""
        from rewritelog.api.fitted import FittedModel, Given
        from rewritelog.api.timings import Timings
        from rewritelog.commands.fit import fit
        from rewritelog.rewriting.options import RewriteOptions

        model, timings = self.model, given.timings
        fitted: Any = self.fitted
        others |= {
            "dilation": self._dilation(),
            "dilation_for": tuple((self.dilation_for or {}).items()),
            "flush": not getattr(self, "no_flush", False),
        }
        if isinstance(model, FittedModel):
            if fitted is not None:
                raise UsageError("give one fitted model, as model or as fitted")
            model, fitted = None, model
        if isinstance(timings, Timings) or not (model is None or isinstance(model, str)):
            if timings is None:
                raise UsageError("the model is fitted to timings: give some")
            names = ("formulas", "coefficients", "clock_hz", "param_names", "model_options")
            inputs = {name: getattr(given, name) for name in names if hasattr(given, name)}
            fitted = fit(timings, model or "auto", strict=self.strict, jobs=given.jobs, **inputs)
            others |= {**dict.fromkeys(names[:-1]), "model_options": {}}
            model, timings = None, ()
        if isinstance(fitted, FittedModel):
            fitted = Given(fitted)
        elif fitted is not None:
            fitted = to_path(fitted, "the model file")
        others = {"model_options": self.model_options or {}, **others}
        return same_fields(
            RewriteOptions, given, model=model, fitted=fitted, timings=timings or (), **others
        )

    def _dilation(self) -> float | None:
        """Return the factor, or the inverse of the speedup; None without either."""
        from rewritelog.rewriting.options import check_factor

        if self.speedup is None:
            return self.dilation
        if self.dilation is not None:
            raise UsageError("give --dilation or --speedup, not both")
        check_factor("the speedup", self.speedup)
        return 1 / self.speedup
