"""The automatic model on a random sample of the timing lines, checked on those left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from rewritelog.arrays import Flags
from rewritelog.errors import UsageError
from rewritelog.models.auto import Auto
from rewritelog.models.base import EventTimings, Model, ModelText, Timings
from rewritelog.models.fitted_events import FittedEvents, Key
from rewritelog.models.metrics import mean_relative_error, sum_error
from rewritelog.models.options import AutoOptions, SampledOptions
from rewritelog.models.splits import random_ranks
from rewritelog.text import event_label, json_number, percent_text

FEWEST_LINES = 8
"""The least number of lines that each event keeps, as far as it has them."""

LARGE_ERROR = 0.1
"""An error of the sum of the times left out beyond this share is warned of."""


@dataclass(frozen=True)
class HeldOutError:
    """The error of one event's fit on the timing lines left out."""

    lines: int
    """All timing lines of the event."""
    drawn: int
    left_out: int
    """Lines left out that have a prediction."""
    mean_relative_error: float | None
    sum_error: float | None


@dataclass(frozen=True)
class FittedSampled(FittedEvents):
    """The fits to the lines drawn, with their errors on the others."""

    left_out: Mapping[Key, HeldOutError] = field(default_factory=dict)

    def describe(self) -> dict[str, Any]:
        """Return the fits in full, each with its error on the lines left out."""
        described = super().describe()
        for event, key in zip(described["events"], self.fits, strict=True):
            error = self.left_out[key]
            event["check"] = {
                "lines": error.lines,
                "drawn": error.drawn,
                "left_out": error.left_out,
                "mean_relative_error": json_number(error.mean_relative_error),
                "sum_error": json_number(error.sum_error),
            }
        return described

    def summary(self) -> tuple[str, ...]:
        """Return each fit in a few lines, then the errors on the lines left out."""
        head = f"lines drawn: fraction {self.options['fraction']:g}, seed {self.options['seed']}"
        errors = (
            _spell(self._label(event, count), error)
            for (event, count), error in self.left_out.items()
        )
        return (head, *super().summary(), *errors)

    def warnings(self) -> tuple[str, ...]:
        """Return the fits' weak points, and which errors on the lines left out are large."""
        large = (
            f"{self._label(event, count)}: on the {error.left_out} timing lines left out the sum "
            f"of the predictions is off by {percent_text(error.sum_error, 1, '+')}; draw a larger "
            "fraction or fit to all lines"
            for (event, count), error in self.left_out.items()
            if error.sum_error is not None and abs(error.sum_error) > LARGE_ERROR
        )
        return (*super().warnings(), *large)

    def _label(self, event: str, count: int) -> str:
        fit = self.fits.get((event, count))
        return event_label(event, count, names=() if fit is None else fit.names)


class Sampled(Model[SampledOptions]):
    """Fit to a random share of each event's timing lines; the rest measures the error."""

    Options = SampledOptions
    takes_text = "formulas"

    def __init__(self, options: SampledOptions, text: ModelText | None = None) -> None:
        if not 0 < options.fraction <= 1:
            raise UsageError(f"fraction must lie in (0, 1], not {options.fraction!r}")
        super().__init__(options, text)
        self._auto = Auto(AutoOptions(options.weights, options.loss, options.exact_match), text)

    def fit(self, timings: Timings) -> FittedSampled:
        """Return the fit to the lines drawn, checked on the lines left out."""
        masks = [self._drawn(samples) for samples in timings]
        pairs = list(zip(timings, masks, strict=True))
        fitted = self._auto.fit([samples.part(mask) for samples, mask in pairs])
        left_out = {
            (samples.event, samples.params.shape[1]): _check(fitted, samples, mask)
            for samples, mask in pairs
        }
        return FittedSampled(
            model="sampled",
            options=asdict(self.options),
            fits=fitted.fits,
            unfitted=fitted.unfitted,
            notes=fitted.notes,
            extra=fitted.extra,
            left_out=left_out,
        )

    def _drawn(self, samples: EventTimings) -> Flags:
        """Draw the event's lines: the share asked for, or what a fit needs at least."""
        rows, parameters = samples.params.shape
        count = max(FEWEST_LINES, round(self.options.fraction * rows))
        ranks = random_ranks(f"{parameters} {samples.event}", rows, self.options.seed)
        return np.asarray(ranks < count)


def _check(fitted: FittedEvents, samples: EventTimings, mask: Flags) -> HeldOutError:
    """Measure the error on the lines left out; predictions below zero count as zero."""
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


def _spell(label: str, error: HeldOutError) -> str:
    """Return the error of one event in a line."""
    head = f"{label}: {error.drawn} of {error.lines} lines drawn"
    if error.mean_relative_error is None or error.sum_error is None:
        return f"{head}; none is left out to measure the error with"
    return (
        f"{head}; on the {error.left_out} left out: mean relative error "
        f"{percent_text(error.mean_relative_error, 1)}, error of the sum "
        f"{percent_text(error.sum_error, 2, '+')}"
    )
