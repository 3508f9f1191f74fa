"""The fit of one event: its function, or one for each class of it, with their diagnostics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from rewritelog.arrays import Flags, Floats
from rewritelog.models.base import EventTimings, Prediction
from rewritelog.models.exact_matches import ExactMatches
from rewritelog.models.expressions import Expression
from rewritelog.models.fitting.diagnosis import Coefficient, Dropped, Quality
from rewritelog.models.fitting.extrapolation import Growth, distance
from rewritelog.models.fitting.function import AnyFunction
from rewritelog.models.fitting.intervals import ENDS, quantiles
from rewritelog.models.fitting.leverage import leverages

UNKNOWN_RATE = 1.0
"""How fast intervals widen beyond the range where no trial has measured it: as the distance."""


@dataclass(frozen=True)
class ClassFit:
    """The function of one class of an event's calls, or of all of them."""

    value: float | None
    """The value of the category expression; None for the function of all samples."""
    samples: int
    family: str
    function: AnyFunction
    growth: Growth | None
    """How it is continued beyond the range of the samples; None where it goes on by itself."""
    total_ratio: float
    """What predictions are multiplied by for their sum to be the measured one's, rare long calls
    included; 1 where nothing says otherwise."""
    coefficients: tuple[Coefficient, ...]
    """Empty for a mixture."""
    dropped: tuple[Dropped, ...]
    quality: Quality
    leverage_root: Floats
    """Leverage of a row with terms t is |L·t|², shape (terms, terms)."""
    ratios: Floats
    """Measured over predicted seconds of held-out samples, rising."""


@dataclass(frozen=True)
class EventFit:
    """The fit of one event with one number of parameters."""

    event: str
    samples: int
    unusable: int
    """Samples left aside because a number in them is not finite."""
    lowest: Floats
    highest: Floats
    """The range of each parameter over the samples, shape (parameters,)."""
    classes: tuple[ClassFit, ...]
    """The function of all samples first, and then one for each class that has samples enough."""
    category: Expression | None
    """What tells the classes; None where there is one function for all."""
    family_errors: Mapping[str, float]
    """Mean error of each family on held-out samples, by name."""
    exact_matches: ExactMatches | None
    """Measured times that count beside the fit's."""
    names: tuple[str, ...] = ()
    """What reports call the parameters, `_` for one without a name; empty for p1, p2, …"""

    @property
    def parameters(self) -> int:
        """Return the number of parameters."""
        return len(self.lowest)

    @property
    def whole(self) -> ClassFit:
        """Return the function of all samples."""
        return self.classes[0]

    def predict(self, params: Floats) -> Floats:
        """Return the fit's seconds for each row, maybe below zero; NaN where not finite."""
        seconds = np.empty(len(params))
        outside = self.outside(params)
        for which, rows in self._by_class(params):
            seconds[rows] = which.function.predict(params[rows])
            beyond = rows & outside
            if which.growth is not None and beyond.any():
                seconds[beyond] = which.growth.predict(
                    which.function, params[beyond], self.lowest, self.highest
                )
        return seconds

    def predict_detailed(self, params: Floats) -> Prediction:
        """Return each row's seconds with what determined them."""
        seconds = self.predict(params)
        negative = self._negative(params, seconds)
        exact = np.zeros(len(params), dtype=np.bool_)
        if self.exact_matches is not None:
            seconds, exact = self.exact_matches.blend(params, seconds)
        outside, remote = self.outside(params), self.remote(params)
        return Prediction(seconds, exact, outside, remote, negative & ~exact)

    def outside(self, params: Floats) -> Flags:
        """Return which rows have a parameter outside its range over the samples."""
        inside = (params >= self.lowest) & (params <= self.highest)
        return np.asarray(~inside.all(axis=1))

    def remote(self, params: Floats) -> Flags:
        """Return which rows the terms reach further for than for any sample (by leverage)."""
        flags = np.zeros(len(params), dtype=np.bool_)
        for which, rows in self._by_class(params):
            size = leverages(which.function, which.leverage_root, params[rows])
            flags[rows] = ~(size <= which.quality.largest_leverage * (1 + 1e-9))
        return flags

    def interval(self, params: Floats) -> tuple[Floats, Floats]:
        """Return the bounds in seconds of the 90 % interval of measured times.

        From the quantiles of measured over predicted times of held-out samples,
        at the places that make the coverage hold for any distribution (split conformal prediction,
        Lei et al., JASA 2018). NaN where there were too few samples.
        """
        seconds = self.predict(params)
        factors = self.factors(params, ENDS)
        wider = self._widening(params)
        return seconds * factors[:, 0] / wider, seconds * factors[:, 1] * wider

    def _widening(self, params: Floats) -> Floats:
        """Return the factor by which each row's interval is wider than within the range."""
        wider = np.ones(len(params))
        far = distance(params, self.lowest, self.highest)
        for which, rows in self._by_class(params):
            if which.growth is not None:
                rate = UNKNOWN_RATE if which.growth.error is None else which.growth.error
                wider[rows] = np.exp(np.minimum(rate * far[rows], 50.0))
        return wider

    def factors(self, params: Floats, levels: Floats) -> Floats:
        """Return quantiles of measured over predicted time for each row, shape (rows, levels)."""
        factors = np.full((len(params), len(levels)), np.nan)
        for which, rows in self._by_class(params):
            if len(which.ratios):
                factors[rows] = quantiles(which.ratios, levels)
        return factors

    def total_factors(self, params: Floats) -> Floats:
        """Return what each row's prediction is multiplied by so that sums come out as measured."""
        factors = np.ones(len(params))
        for which, rows in self._by_class(params):
            factors[rows] = which.total_ratio
        return factors

    def drawn_factors(self, params: Floats, numbers: Floats) -> Floats:
        """Return a factor for each row: the held-out ratio at its number in [0, 1)."""
        factors = np.ones(len(params))
        for which, rows in self._by_class(params):
            if len(which.ratios):
                place = (numbers[rows] * len(which.ratios)).astype(np.int64)
                factors[rows] = which.ratios[np.minimum(place, len(which.ratios) - 1)]
        return factors

    def _negative(self, params: Floats, seconds: Floats) -> Flags:
        """Return which rows their function gives less than zero, but for its bounds."""
        flags = np.zeros(len(params), dtype=np.bool_)
        for which, rows in self._by_class(params):
            doubtful = rows & (
                (seconds <= 0) | (getattr(which.function, "bounds", None) is not None)
            )
            flags[doubtful] = which.function.raw(params[doubtful]) < 0
        return flags

    def _by_class(self, params: Floats) -> list[tuple[ClassFit, Flags]]:
        """Return each function with the rows that it is for."""
        rest = np.ones(len(params), dtype=np.bool_)
        if self.category is None or len(self.classes) == 1:
            return [(self.whole, rest)]
        values = self.category.evaluate(params)
        found = []
        for which in self.classes[1:]:
            rows = np.asarray(values == which.value)
            rest = np.asarray(rest & ~rows)
            found.append((which, rows))
        return [(self.whole, rest), *found]


def usable_part(timings: EventTimings) -> EventTimings:
    """Return the samples in which all numbers are finite."""
    finite = np.isfinite(timings.seconds) & np.isfinite(timings.params).all(axis=1)
    if finite.all():
        return timings
    return EventTimings(timings.event, timings.params[finite], timings.seconds[finite])
