"""What the models that fit terms have in common: their options, and how all events are fitted."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import ClassVar, TypeVar

from rewritelog.errors import ModelError
from rewritelog.models.base import EventKey, EventTimings, Model, Timings, option
from rewritelog.models.exact_matches import ExactMatch
from rewritelog.models.expressions import MAX_PARAMETERS
from rewritelog.models.fitted import errors_as_model_errors
from rewritelog.models.fitted_events import FittedEvents
from rewritelog.models.fitting.event_fit import EventFit
from rewritelog.models.fitting.pipeline import FitConfig, fit_event
from rewritelog.models.fitting.regression import Loss
from rewritelog.models.fitting.samples import Weighting
from rewritelog.models.parallel import map_in_processes, one_blas_thread
from rewritelog.progress import part_of, report_progress
from rewritelog.text import shorten


@dataclass(frozen=True)
class FitOptions:
    """Options of every model that fits terms."""

    weights: Weighting = option(
        "relative", "Whether errors count relative to the measured time, or in seconds."
    )
    loss: Loss = option(
        "huber",
        "Whether residuals count by Huber's loss, which limits outliers, or by their square.",
    )
    exact_match: ExactMatch = option(
        "auto",
        "Whether times measured with the same parameters replace the fit: their median, as far as "
        "it predicts better; their mean, always; or never.",
    )


OptionsT = TypeVar("OptionsT", bound=FitOptions)


class TermModel(Model[OptionsT]):
    """A model that fits each event on its own, as its options and `config` say."""

    name: ClassVar[str]

    def config(self, timings: EventTimings) -> FitConfig:  # noqa: ARG002 - for those that differ
        """Return how an event is fitted: as the options say."""
        options = self.options
        return FitConfig(options.weights, options.loss, options.exact_match)

    def fit(self, timings: Timings) -> FittedEvents:
        """Return the fit of each event, made in parallel processes if there are many.

        Raise `ModelError` if an event and parameter count is duplicated, or if a fit fails.
        """
        usable: dict[EventKey, EventTimings] = {}
        unfitted: list[EventKey] = []
        for samples in timings:
            key = samples.key
            if key in usable or key in unfitted:
                raise ModelError(f"samples of {key[0]} with {key[1]} parameters are duplicated")
            if samples.parameters > MAX_PARAMETERS:
                columns = "counters" if self.columns == "counters" else "parameters"
                problem = f"{samples.parameters} {columns}; at most {MAX_PARAMETERS} can be fitted"
                raise ModelError(f"{samples.event!r} has {problem}")
            if len(samples.usable().seconds):
                usable[key] = samples
            else:
                unfitted.append(key)

        def fit_one(samples: EventTimings) -> EventFit:
            with (
                part_of(f"fitting {shorten(samples.event, 24)}", len(fits), len(usable), "event"),
                errors_as_model_errors(f"model {self.name!r}, event {samples.event!r}"),
            ):
                return fit_event(samples, self.config(samples))

        fits: dict[EventKey, EventFit] = {}
        with one_blas_thread():
            for fit in map_in_processes(fit_one, list(usable.values())):
                fits[fit.event, fit.parameters] = fit
                report_progress("fitting, events done", len(fits), len(usable))
        return FittedEvents(self.name, asdict(self.options), fits, tuple(unfitted))
