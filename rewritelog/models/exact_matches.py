"""How far measured times of identical parameters stand in for the fit's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from rewritelog.arrays import Flags, Floats
from rewritelog.models.base import EventTimings
from rewritelog.models.exact_times import ExactTimes

ExactMatch: TypeAlias = Literal["auto", "always", "never"]

DETERMINED = 0.5
"""From this weight on a prediction counts as measured, below as the fit's."""


FEWEST_AGAIN = 8
"""With fewer samples that were measured again, nothing is known of their spread."""

SHARES = (0.0, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 100.0, np.inf)


@dataclass(frozen=True)
class HeldOutTimes:
    """Samples, with what a fit without them predicts."""

    params: Floats
    seconds: Floats
    predicted_s: Floats


@dataclass(frozen=True)
class ExactMatches:
    """The mean times of parameter sets that were measured, and what each is worth."""

    times: ExactTimes
    weights: Floats
    """Weight of each set's mean against the fit, in [0, 1]."""

    def blend(self, params: Floats, seconds: Floats) -> tuple[Floats, Flags]:
        """Return the fit's seconds drawn to the measured means, and which rows these determine."""
        place = self.times.find(params)
        known = place >= 0
        weight = np.where(known, self.weights[place], 0.0)
        means = np.where(known, self.times.seconds[place], 0.0)
        blended = np.where(weight == 1, means, seconds + weight * (means - seconds))
        unknown = np.isnan(seconds) & known & (weight > 0)
        return np.where(unknown, means, blended), known & (weight >= DETERMINED)


def exact_matches_of(
    usable: EventTimings, mode: ExactMatch, held_out: HeldOutTimes
) -> ExactMatches | None:
    """Return the measured times with their weights; None where they count for nothing.

    `always` gives them all the weight. `auto` weighs them by what is known of samples that were
    measured more than once: the mean of the others, and what a fit without them says. A
    mean of k measurements errs by σ²/k and the fit by τ², so that the best mixture has the weight
    λk / (1 + λk) on the mean, λ being τ²/σ². The λ is taken with which mixtures come nearest to
    those samples, and 0 unless another is clearly better.
    """
    if mode == "never":
        return None
    if mode == "auto" and len(held_out.seconds) < FEWEST_AGAIN:
        return None
    times = ExactTimes.from_timings(usable)
    if mode == "always":
        return ExactMatches(times, np.ones(len(times.seconds)))
    share = _fit_share(times, held_out)
    return None if share == 0 else ExactMatches(times, _weight(share, times.counts))


def _weight(share: float, counts: Floats) -> Floats:
    if np.isinf(share):
        return np.ones(len(counts))
    weight: Floats = share * counts / (1 + share * counts)
    return weight


def _fit_share(times: ExactTimes, held_out: HeldOutTimes) -> float:
    """Return λ, how many times larger the fit's error is than a measurement's (as variances)."""
    place = times.find(held_out.params)
    again = (place >= 0) & (times.counts[place] > 1) & (held_out.seconds > 0)
    if np.count_nonzero(again) < FEWEST_AGAIN:
        return 0.0
    place, measured = place[again], held_out.seconds[again]
    predicted, others = held_out.predicted_s[again], times.counts[place] - 1
    mean = (times.seconds[place] * times.counts[place] - measured) / others
    best, least = 0.0, _errors(predicted, measured)
    for share in SHARES[1:]:
        errors = _errors(predicted + _weight(share, others) * (mean - predicted), measured)
        gain = least - errors
        if gain.mean() > gain.std() / np.sqrt(len(gain)):
            best, least = share, errors
    return best


def _errors(predicted: Floats, measured: Floats) -> Floats:
    """Return the relative errors, each of them at most 1."""
    errors: Floats = np.minimum(np.abs(predicted - measured) / measured, 1.0)
    return np.where(np.isfinite(errors), errors, 1.0)
