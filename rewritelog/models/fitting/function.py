"""Functions: seconds as a sum of terms over an event's parameters, and mixtures of such sums."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from rewritelog.arrays import Floats
from rewritelog.models.expressions import Expression
from rewritelog.models.fitting.samples import Samples


@dataclass(frozen=True)
class PredictionBounds:
    """Bounds for a function, which needs them beyond its samples where coefficients are negative.

    Without negative coefficients it cannot fall below 0 but for parameters below 0, and 0 is all
    the bound that it has. With them, within the samples' range a time lies between half the least
    and three times the largest that was measured. Outside of it the bounds widen: the upper one
    with the cube of how many times a parameter exceeds its largest value, the lower one as a
    parameter falls short of its least.
    """

    lowest: Floats
    highest: Floats
    """The range of each parameter, shape (parameters,)."""
    least_s: float
    most_s: float | None
    """None for no upper bound."""

    def limits(self, params: Floats) -> tuple[Floats, Floats]:
        """Return the least and the most seconds that each row may have."""
        if self.most_s is None and not self.least_s:
            return np.zeros(len(params)), np.full(len(params), np.inf)
        with np.errstate(all="ignore"):
            above = np.where(
                (self.highest > 0) & (params > self.highest), params / self.highest, 1.0
            )
            below = np.where(
                (self.lowest > 0) & (params < self.lowest),
                np.maximum(params, 0.0) / self.lowest,
                1.0,
            )
            upper = (
                3 * (np.inf if self.most_s is None else self.most_s) * np.prod(above, axis=1) ** 3
            )
        lower = 0.5 * self.least_s * np.min(below, axis=1, initial=1.0)
        return lower, upper


@dataclass(frozen=True)
class FittedFunction:
    """seconds = calibration · Σ coefficient · term, within its bounds."""

    terms: tuple[Expression, ...]
    coefficients: Floats
    """Seconds for each unit of its term."""
    calibration: float = 1.0
    """What the sum of the predictions is multiplied by to be that of the samples' times."""
    bounds: PredictionBounds | None = None

    def raw(self, params: Floats) -> Floats:
        """Return each row's seconds without bounds; row by row the same in any company."""
        seconds = np.zeros(len(params))
        with np.errstate(all="ignore"):
            for term, coefficient in zip(self.terms, self.coefficients, strict=True):
                if coefficient:
                    seconds += coefficient * term.evaluate(params)
        seconds *= self.calibration
        seconds[~np.isfinite(seconds)] = np.nan
        return seconds

    def predict(self, params: Floats) -> Floats:
        """Return each row's seconds, shape (rows,); NaN where they are not finite."""
        return self.bounded(self.raw(params), params)

    def bounded(self, raw: Floats, params: Floats) -> Floats:
        """Return what `raw` gave for these rows within the bounds."""
        if self.bounds is None:
            return raw
        if self.bounds.most_s is None and not self.bounds.least_s:
            return np.maximum(raw, 0.0)
        lower, upper = self.bounds.limits(params)
        bounded: Floats = np.minimum(np.maximum(raw, lower), upper)
        return bounded

    def to_json(self) -> dict[str, Any]:
        """Return the function in types that JSON has."""
        terms = [
            {"term": str(term), "coefficient": float(coefficient)}
            for term, coefficient in zip(self.terms, self.coefficients, strict=True)
        ]
        function: dict[str, Any] = {"terms": terms, "calibration": self.calibration}
        if self.bounds is not None:
            function["bounds"] = {
                "least_s": self.bounds.least_s,
                "most_s": self.bounds.most_s,
                "lowest": self.bounds.lowest.tolist(),
                "highest": self.bounds.highest.tolist(),
            }
        return function


@dataclass(frozen=True)
class FittedMixture:
    """The geometric mean of functions: seconds = Π function^share.

    A member that predicts no time above zero for a row, as a power of a parameter that is 0 there,
    has no share in it.
    """

    members: tuple[FittedFunction, ...]
    """The one with the largest share first."""
    shares: tuple[float, ...]
    """Adding up to 1."""

    @property
    def terms(self) -> tuple[Expression, ...]:
        """Return the terms of the member with the largest share."""
        return self.members[0].terms

    def raw(self, params: Floats) -> Floats:
        """Return each row's seconds, which are never below zero; 0 where all members say so."""
        seconds = [member.predict(params) for member in self.members]
        means: Floats = np.nan_to_num(geometric_mean(seconds, self.shares), nan=0.0)
        means[np.isnan(seconds).all(axis=0)] = np.nan
        return means

    def predict(self, params: Floats) -> Floats:
        """Return each row's seconds, shape (rows,); NaN where they are not finite."""
        return self.raw(params)

    def bounded(self, raw: Floats, params: Floats) -> Floats:  # noqa: ARG002 - as a function's
        """Return what `raw` gave, which lies within the members' bounds."""
        return raw


def geometric_mean(seconds: Sequence[Floats], shares: Sequence[float]) -> Floats:
    """Return the mean over those that are above zero and finite in a row, NaN without any."""
    logs, total = np.zeros((2, len(seconds[0])))
    with np.errstate(all="ignore"):
        for one, share in zip(seconds, shares, strict=True):
            usable = np.isfinite(one) & (one > 0)
            logs += np.where(usable, share * np.log(np.where(usable, one, 1.0)), 0.0)
            total += np.where(usable, share, 0.0)
        return np.asarray(np.exp(logs / total))


def growth_between(function: AnyFunction, edge: Floats, params: Floats) -> Floats:
    """Return by which factor a function grows from each row to another, NaN where it is unknown."""
    if isinstance(function, FittedFunction):
        with np.errstate(all="ignore"):
            return np.asarray(function.predict(params) / function.predict(edge))
    factors = [growth_between(member, edge, params) for member in function.members]
    return geometric_mean(factors, function.shares)


AnyFunction: TypeAlias = FittedFunction | FittedMixture


def mixture_of(functions: Sequence[FittedFunction], shares: Sequence[float]) -> AnyFunction:
    """Return the geometric mean of functions, or the only one."""
    return functions[0] if len(functions) == 1 else FittedMixture(tuple(functions), tuple(shares))


def prediction_bounds(samples: Samples, coefficients: Floats) -> PredictionBounds:
    """Return the bounds that the samples suggest: 0 alone where no coefficient is negative."""
    lowest, highest = samples.params.min(axis=0), samples.params.max(axis=0)
    if (coefficients >= 0).all():
        return PredictionBounds(lowest, highest, 0.0, None)
    positive = samples.seconds[samples.seconds > 0]
    least = float(positive.min()) if len(positive) else 0.0
    return PredictionBounds(lowest, highest, least, float(samples.seconds.max()))
