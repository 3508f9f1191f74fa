"""Fitted functions: sums of terms of an event's parameters, corrected ones, and mixtures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, TypeAlias

import numpy as np
from msgspec import Meta

from rewritelog.arrays import Floats
from rewritelog.models.expressions import Expression
from rewritelog.models.fitting.process import Correction
from rewritelog.models.fitting.samples import Samples
from rewritelog.models.form import Form, PerParameter, Share, require_shape


class PredictionBounds(Form, frozen=True):
    """Bounds on the predictions of a function, whose terms may cancel beyond the samples.

    Without negative coefficients the only bound is 0, which negative parameters need. With them, a
    time within the range of the samples lies between half the least and three times the largest
    measured time. Beyond it the bounds widen: the upper one with the cube of p/highest for each
    parameter p above its largest value, the lower one with p/lowest for one below its least.
    """

    lowest: PerParameter
    highest: PerParameter
    """The range of each parameter."""
    least_s: float = 0.0
    most_s: float | None = None
    """None for no upper bound."""

    def limits(self, params: Floats) -> tuple[Floats, Floats]:
        """Return the lower and the upper bound in seconds of each row."""
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


class Function(Form, frozen=True, tag_field="kind"):
    """Seconds as a function of an event's parameters."""

    def raw(self, params: Floats, columns: Floats | None = None) -> Floats:
        """Return each row's seconds without bounds; NaN where they are not finite.

        Bit for bit they do not depend on the other rows. `columns` are the values of the terms,
        shape (rows, terms), where they are known.
        """
        raise NotImplementedError

    def bounded(self, raw: Floats, params: Floats) -> Floats:  # noqa: ARG002 - for those that have
        """Limit the seconds that `raw` returned for these rows to the bounds, if there are any."""
        return raw

    def predict(self, params: Floats, columns: Floats | None = None) -> Floats:
        """Return each row's seconds within the bounds; see `raw`."""
        return self.bounded(self.raw(params, columns), params)


class FittedFunction(Function, frozen=True, tag="sum"):
    """seconds = calibration · Σ coefficient · term, limited to the bounds."""

    terms: tuple[Expression, ...]
    coefficients: Floats
    """Seconds per unit of the term, shape (terms,)."""
    calibration: float = 1.0
    """The factor that makes predicted and measured sums over the samples equal."""
    bounds: PredictionBounds | None = None

    def __post_init__(self) -> None:
        require_shape(".coefficients", self.coefficients, len(self.terms))

    def raw(self, params: Floats, columns: Floats | None = None) -> Floats:
        """Return each row's seconds without bounds."""
        seconds = np.zeros(len(params))
        with np.errstate(all="ignore"):
            for index, coefficient in enumerate(self.coefficients.tolist()):
                if coefficient:
                    term = self.terms[index]
                    values = term.evaluate(params) if columns is None else columns[:, index]
                    seconds += coefficient * values
        seconds *= self.calibration
        seconds[~np.isfinite(seconds)] = np.nan
        return seconds

    def bounded(self, raw: Floats, params: Floats) -> Floats:
        """Limit the seconds that `raw` returned for these rows to the bounds."""
        if self.bounds is None:
            return raw
        if self.bounds.most_s is None and not self.bounds.least_s:
            return np.maximum(raw, 0.0)
        lower, upper = self.bounds.limits(params)
        bounded: Floats = np.minimum(np.maximum(raw, lower), upper)
        return bounded


class CorrectedFunction(Function, frozen=True, tag="corrected"):
    """seconds = formula · factor of the correction, limited to the bounds of the formula.

    Its growth beyond the samples is that of the formula.
    """

    formula: FittedFunction
    correction: Correction

    @property
    def terms(self) -> tuple[Expression, ...]:
        """The terms of the formula."""
        return self.formula.terms

    def raw(self, params: Floats, columns: Floats | None = None) -> Floats:
        """Return each row's seconds without bounds."""
        seconds = self.formula.raw(params, columns)
        return seconds * self.correction.factors(with_seconds(params, seconds))

    def bounded(self, raw: Floats, params: Floats) -> Floats:
        """Limit the seconds that `raw` returned for these rows to the bounds."""
        return self.formula.bounded(raw, params)


def with_seconds(params: Floats, seconds: Floats) -> Floats:
    """Return the parameters of rows with a formula's seconds: what a correction depends on."""
    return np.column_stack((params, seconds))


class FittedMixture(Function, frozen=True, tag="mixture"):
    """The weighted geometric mean of functions: seconds = Π function^weight.

    A member that predicts no positive time for a row, such as a power of a parameter that is 0
    there, is left out of the mean.
    """

    members: Annotated[tuple[FittedFunction, ...], Meta(min_length=1)]
    """Largest weight first."""
    weights: tuple[Share, ...]
    """The weights of the members, whose sum is 1."""

    def __post_init__(self) -> None:
        require_shape(".weights", self.weights, len(self.members))

    @property
    def terms(self) -> tuple[Expression, ...]:
        """The terms of the member with the largest weight."""
        return self.members[0].terms

    def raw(self, params: Floats, columns: Floats | None = None) -> Floats:  # noqa: ARG002 - none has them
        """Return each row's seconds, between those of the members, which have bounds."""
        seconds = [member.predict(params) for member in self.members]
        means: Floats = np.nan_to_num(geometric_mean(seconds, self.weights), nan=0.0)
        means[np.isnan(seconds).all(axis=0)] = np.nan
        return means


def geometric_mean(seconds: Sequence[Floats], weights: Sequence[float]) -> Floats:
    """Return each row's mean over the functions that are positive and finite; NaN without any."""
    logs, total = np.zeros((2, len(seconds[0])))
    with np.errstate(all="ignore"):
        for member_s, weight in zip(seconds, weights, strict=True):
            usable = np.isfinite(member_s) & (member_s > 0)
            logs += np.where(usable, weight * np.log(np.where(usable, member_s, 1.0)), 0.0)
            total += np.where(usable, weight, 0.0)
        return np.asarray(np.exp(logs / total))


def growth_between(function: AnyFunction, edge: Floats, params: Floats) -> Floats:
    """Return f(params) / f(edge) for each pair of rows; NaN where it is undefined."""
    formula = formula_of(function)
    if isinstance(formula, FittedFunction):
        with np.errstate(all="ignore"):
            return np.asarray(formula.predict(params) / formula.predict(edge))
    factors = [growth_between(member, edge, params) for member in formula.members]
    return geometric_mean(factors, formula.weights)


Formula: TypeAlias = FittedFunction | FittedMixture

AnyFunction: TypeAlias = Formula | CorrectedFunction


def formula_of(function: AnyFunction) -> Formula:
    """Return the function without its correction."""
    return function.formula if isinstance(function, CorrectedFunction) else function


def mixture_of(functions: Sequence[FittedFunction], weights: Sequence[float]) -> Formula:
    """Return the geometric mean of functions, or the function itself if there is only one."""
    return functions[0] if len(functions) == 1 else FittedMixture(tuple(functions), tuple(weights))


def prediction_bounds(samples: Samples, coefficients: Floats) -> PredictionBounds:
    """Return the bounds for the samples: only 0 if no coefficient is negative."""
    lowest, highest = samples.range
    if (coefficients >= 0).all():
        return PredictionBounds(lowest, highest, 0.0, None)
    positive = samples.seconds[samples.seconds > 0]
    least = float(positive.min()) if len(positive) else 0.0
    return PredictionBounds(lowest, highest, least, float(samples.seconds.max()))
