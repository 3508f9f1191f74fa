"""The model `sampled`: `auto` on a random part of the timing lines, validated on the rest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from rewritelog.arrays import Flags
from rewritelog.hashing import random_ranks
from rewritelog.models.auto import Auto, AutoOptions
from rewritelog.models.base import EventKey, EventTimings, Model, ModelText, Timings, option
from rewritelog.models.fitted_events import FitOptions, FittedEvents
from rewritelog.models.metrics import mean_relative_error, sum_error
from rewritelog.text import event_label, percent_text

FEWEST_LINES = 8
"""At least this many lines of each event are drawn, or all that it has."""

LARGE_ERROR = 0.1
"""A larger relative error of the sum of the times left out gets a warning."""


@dataclass(frozen=True)
class HeldOutError:
    """The errors of one event's fit on the timing lines left out."""

    lines: int
    """The number of all timing lines of the event."""
    drawn: int
    left_out: int
    """The number of lines left out that have a prediction."""
    mean_relative_error: float | None
    sum_error: float | None

    def text(self) -> str:
        """Return the errors as the end of a line."""
        head = f"{self.drawn} of {self.lines} lines drawn"
        if self.mean_relative_error is None or self.sum_error is None:
            return f"{head}; none is left to measure the error with"
        return (
            f"{head}; on the {self.left_out} left out: mean relative error "
            f"{percent_text(self.mean_relative_error, 1)}, error of the sum "
            f"{percent_text(self.sum_error, 2, '+')}"
        )


@dataclass(frozen=True)
class FittedSampled(FittedEvents):
    """The fits to the lines drawn, with their errors on the lines left out."""

    left_out: Mapping[EventKey, HeldOutError] = field(default_factory=dict)

    def describe(self) -> dict[str, Any]:
        """Return all fits as a JSON object, each with its errors on the lines left out."""
        described = super().describe()
        for event, key in zip(described["events"], self.fits, strict=True):
            event["check"] = asdict(self.left_out[key])
        return described

    def summary(self) -> tuple[str, ...]:
        """Return each fit in a few lines, then the errors on the lines left out."""
        head = f"lines drawn: fraction {self.options['fraction']:g}, seed {self.options['seed']}"
        errors = (f"{self._label(key)}: {error.text()}" for key, error in self.left_out.items())
        return (head, *super().summary(), *errors)

    def warnings(self) -> tuple[str, ...]:
        """Return the weak points of the fits, and large errors on the lines left out."""
        large = (
            f"{self._label(key)}: on the {error.left_out} timing lines left out, the sum "
            f"of the predictions is off by {percent_text(error.sum_error, 1, '+')}; draw a larger "
            "fraction or fit to all lines"
            for key, error in self.left_out.items()
            if error.sum_error is not None and abs(error.sum_error) > LARGE_ERROR
        )
        return (*super().warnings(), *large)

    def _label(self, key: EventKey) -> str:
        return event_label(*key, names=self.fits[key].names if key in self.fits else ())


@dataclass(frozen=True)
class SampledOptions(FitOptions):
    """Options of the sampled model."""

    fraction: float = option(
        0.02, "Share of each event's timing lines to fit to, in (0, 1].", above=0, most=1
    )
    seed: int = option(1, "Seed of the draw; the same seed draws the same lines everywhere.")


class Sampled(Model[SampledOptions]):
    """Fit to a random share of each event's timing lines; the rest measures the error.

    Choose it to see how few timing lines would have been enough.
    """

    Options = SampledOptions
    takes_text = "formulas"

    def __init__(self, options: SampledOptions, text: ModelText | None = None) -> None:
        super().__init__(options, text)
        self._auto = Auto(AutoOptions(options.weights, options.loss, options.exact_match), text)

    def fit(self, timings: Timings) -> FittedSampled:
        """Return the fit to the lines drawn, validated on the lines left out."""
        masks: list[Flags] = []
        for samples in timings:
            rows, parameters = samples.params.shape
            count = max(FEWEST_LINES, round(self.options.fraction * rows))
            ranks = random_ranks(f"{parameters} {samples.event}", rows, self.options.seed)
            masks.append(np.asarray(ranks < count))
        pairs = list(zip(timings, masks, strict=True))
        fitted = self._auto.fit([samples.part(mask) for samples, mask in pairs])
        left_out = {samples.key: _held_out_error(fitted, samples, mask) for samples, mask in pairs}
        known = vars(fitted) | {"model": "sampled", "options": asdict(self.options)}
        return FittedSampled(**known, left_out=left_out)


def _held_out_error(fitted: FittedEvents, samples: EventTimings, mask: Flags) -> HeldOutError:
    """Return the errors on the lines left out; negative predictions count as 0."""
    others = samples.part(~mask)
    predicted = np.maximum(fitted.predict(others.event, others.params), 0)
    known = np.isfinite(predicted) & np.isfinite(others.seconds)
    predicted, measured = predicted[known], others.seconds[known]
    return HeldOutError(
        lines=len(mask),
        drawn=int(mask.sum()),
        left_out=len(measured),
        mean_relative_error=mean_relative_error(predicted, measured),
        sum_error=sum_error(predicted, measured),
    )
