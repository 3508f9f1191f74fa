"""The options that determine the new durations of SEBs, for all commands that need them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

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

    def rewrite_options(self, **others: Any) -> RewriteOptions:
        """Return the options of a rewrite; `others` are those that not all commands have."""
        from rewritelog.api.arguments import are_paths, optional_input, to_inputs
        from rewritelog.api.fitted import FittedModel, Given
        from rewritelog.commands.fit import fit
        from rewritelog.rewriting.options import RewriteOptions

        model, fitted = self.model, self.fitted
        if isinstance(model, FittedModel):
            if fitted is not None:
                raise UsageError("give one fitted model, as model or as fitted")
            model, fitted = None, model
        inputs: dict[str, Any] = {
            "formulas": optional_input(self.formulas, "formulas"),
            "coefficients": optional_input(self.coefficients, "coefficients"),
            "clock_hz": self.clock_hz,
        }
        options = {
            "params": optional_input(self.params, "params"),
            "strict": self.strict,
            "dilation": self._dilation(),
            "dilation_for": tuple((self.dilation_for or {}).items()),
            **others,
        }
        model_options = dict(self.model_options or {})
        in_memory = self.timings is not None and not are_paths(self.timings)
        if in_memory or not (model is None or isinstance(model, str)):
            if self.timings is None:
                raise UsageError("the model is fitted to timings: give some")
            made = fit(
                self.timings, model or "auto", model_options=model_options,
                jobs=options.get("jobs", 0), strict=self.strict, **inputs,
            )  # fmt: skip
            return RewriteOptions(fitted=Given(made), **options)
        if self.timings is not None:
            options["timings"] = to_inputs(self.timings, "the timings")
        return RewriteOptions(
            model=model,
            model_options=model_options,
            fitted=self._fitted(fitted),
            **inputs,
            **options,
        )

    def _fitted(self, fitted: FittedLike | None) -> Any:
        """Return a fitted model as a rewrite takes it."""
        from rewritelog.api.arguments import optional_path
        from rewritelog.api.fitted import FittedModel, Given

        if isinstance(fitted, FittedModel):
            return Given(fitted)
        return optional_path(fitted, "the model file")

    def _dilation(self) -> float | None:
        """Return the factor, or the inverse of the speedup; None without either."""
        from rewritelog.rewriting.options import check_factor

        if self.speedup is None:
            return self.dilation
        if self.dilation is not None:
            raise UsageError("give --dilation or --speedup, not both")
        check_factor("the speedup", self.speedup)
        return 1 / self.speedup
