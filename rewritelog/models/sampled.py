"""The model `sampled`: `auto` on a random part of the timing lines, validated on the rest."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from msgspec import structs

from rewritelog.arrays import Flags, random_ranks
from rewritelog.models.auto import Auto, AutoOptions
from rewritelog.models.base import EventTimings, Timings, option
from rewritelog.models.fitted_events import FittedEvents
from rewritelog.models.fitting.event_fit import EventFit, LeftOut
from rewritelog.models.metrics import mean_relative_error, sum_error

FEWEST_LINES = 8
"""At least this many lines of each event are drawn, or all that it has."""


@dataclass(frozen=True)
class SampledOptions(AutoOptions):
    """Options of the model `sampled`."""

    fraction: float = option(
        0.02, "Share of each event's timing lines to fit to, in (0, 1].", above=0, most=1
    )
    seed: int = option(1, "Seed of the draw; the same seed draws the same lines everywhere.")


class Sampled(Auto):
    """Fit to a random share of each event's timing lines; the rest measures the error.

    Choose it to see how few timing lines would have been enough.
    """

    name = "sampled"
    Options = SampledOptions
    options: SampledOptions

    def fit(self, timings: Timings) -> FittedEvents:
        """Return the fit to the lines drawn, with its errors on the lines left out."""
        drawn = [self._drawn(samples) for samples in timings]
        parts = zip(timings, drawn, strict=True)
        fitted = super().fit([samples.part(rows) for samples, rows in parts])
        fits = dict(fitted.fits)
        for samples, rows in zip(timings, drawn, strict=True):
            if samples.key in fits:
                left_out = _left_out(fits[samples.key], samples, rows)
                fits[samples.key] = structs.replace(fits[samples.key], left_out=left_out)
        return replace(fitted, fits=fits)

    def _drawn(self, samples: EventTimings) -> Flags:
        rows, parameters = samples.params.shape
        count = max(FEWEST_LINES, round(self.options.fraction * rows))
        ranks = random_ranks(f"{parameters} {samples.event}", rows, self.options.seed)
        return np.asarray(ranks < count)


def _left_out(fit: EventFit, samples: EventTimings, drawn: Flags) -> LeftOut:
    """Return the errors on the lines that are not drawn; negative predictions count as 0."""
    others = samples.part(~drawn)
    predicted = np.maximum(fit.predict_detailed(others.params).seconds, 0)
    known = np.isfinite(predicted) & np.isfinite(others.seconds)
    predicted, measured = predicted[known], others.seconds[known]
    totals = predicted * fit.retransformation(others.params[known])
    return LeftOut(
        lines=len(drawn),
        drawn=int(drawn.sum()),
        left_out=len(measured),
        mean_relative_error=mean_relative_error(predicted, measured),
        sum_error=sum_error(totals, measured),
    )
