"""Fitted functions: sums of terms of an event's parameters, corrected ones, and mixtures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, TypeAlias

import numpy as np
from msgspec import Meta

from rewritelog.arrays import Floats, Ints
from rewritelog.core import DistinctPoints
from rewritelog.models.expressions import Expression
from rewritelog.models.fitting.process import MOST_POINTS, Correction
from rewritelog.models.form import Form, ParameterRows, Share, defect, require_shape
from rewritelog.running.locks import cached_property

MOST_CACHED = 1 << 14
"""Seconds of so many rows of a corrected function are kept, some 4 MB: a block of a log has
fewer."""


class Function(Form, frozen=True, tag_field="kind"):
    """Seconds as a function of an event's parameters."""

    def unbounded(self, params: Floats, columns: Floats | None = None) -> Floats:
        """Return each row's seconds, possibly negative; NaN where they are not finite.

        Bit for bit they do not depend on the other rows. `columns` are the values of the terms,
        shape (rows, terms), where they are known.
        """
        raise NotImplementedError

    def bounded(self, unbounded_s: Floats) -> Floats:
        """Return the seconds that `unbounded` returned, at least 0 unless they may be negative."""
        return np.maximum(unbounded_s, 0.0)

    def predict(self, params: Floats, columns: Floats | None = None) -> Floats:
        """Return each row's seconds, at least 0 unless they may be negative; see `unbounded`."""
        return self.bounded(self.unbounded(params, columns))


class FittedFunction(Function, frozen=True, tag="sum"):
    """seconds = calibration · Σ coefficient · term, at least 0 unless they may be negative."""

    terms: tuple[Expression, ...]
    coefficients: Floats
    """Seconds per unit of the term, shape (terms,)."""
    calibration: float = 1.0
    """The factor that makes predicted and measured sums over the samples equal."""
    may_be_negative: bool = False

    def __post_init__(self) -> None:
        require_shape(".coefficients", self.coefficients, len(self.terms))

    def unbounded(self, params: Floats, columns: Floats | None = None) -> Floats:
        """Return each row's seconds, possibly negative."""
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

    def bounded(self, unbounded_s: Floats) -> Floats:
        """Return the seconds that `unbounded` returned, at least 0 unless they may be negative."""
        return unbounded_s if self.may_be_negative else np.maximum(unbounded_s, 0.0)


class CorrectedFormula(Form, frozen=True):
    """A formula, and the correction that interpolates between its residuals."""

    formula: FittedFunction
    correction: Correction

    def points(self, params: Floats) -> Floats:
        """Return the inputs of samples with these parameters, shape (samples, inputs)."""
        table = with_seconds(params, self.formula.unbounded(params))
        return self.correction.process.inputs.columns(table)

    def unbounded(self, params: Floats, points: Floats) -> Floats:
        """Return each row's seconds, possibly negative; `points` are those of the samples."""
        formula_s = self.formula.unbounded(params)
        return formula_s * self.correction.factors(with_seconds(params, formula_s), points)


class CorrectedFunction(Function, frozen=True, tag="corrected", dict=True):
    """seconds = Π (formula · factor of its correction)^weight, at least 0.

    It is the weighted geometric mean of corrected formulas. Its growth beyond the samples is that
    of the first formula.
    """

    members: Annotated[tuple[CorrectedFormula, ...], Meta(min_length=1)]
    """The one with the formula to be read comes first."""
    weights: tuple[Share, ...]
    """The weights of the members, whose sum is 1."""
    params: ParameterRows
    """The parameters of the samples that corrections interpolate between, shape (samples,
    parameters)."""

    def __post_init__(self) -> None:
        rows, parameters = self.params.shape
        if rows > MOST_POINTS:
            raise defect(f"has {rows} rows; at most {MOST_POINTS}", ".params")
        require_shape(".weights", self.weights, len(self.members))
        for index, member in enumerate(self.members):
            path, process = f".members[{index}].correction.process", member.correction.process
            require_shape(f"{path}.weights", process.weights, rows)
            inputs = process.inputs
            _check_numbers(f"{path}.inputs.parameters", inputs.parameters, parameters, 1)
            if waves := inputs.waves:
                _check_numbers(f"{path}.inputs.waves.parameters", waves.parameters, parameters)
                multiplier = np.array([waves.multiplier or 1])
                _check_numbers(f"{path}.inputs.waves.multiplier", multiplier, parameters)

    @property
    def formula(self) -> FittedFunction:
        """The formula to be read."""
        return self.members[0].formula

    @property
    def terms(self) -> tuple[Expression, ...]:
        """The terms of the formula."""
        return self.formula.terms

    @cached_property
    def _points(self) -> list[Floats]:
        """The points of the samples for each member."""
        return [member.points(self.params) for member in self.members]

    @cached_property
    def _cache(self) -> dict[bytes, float]:
        """The seconds of rows, by their bytes; blocks of a log have many in common."""
        return {}

    def unbounded(self, params: Floats, columns: Floats | None = None) -> Floats:  # noqa: ARG002 - they are of all rows
        """Return each row's seconds, possibly negative; equal rows are predicted once.

        Threads may call this at the same time: a prediction depends on its row alone.
        """
        distinct = DistinctPoints.of_rows(params)
        rows = np.ascontiguousarray(distinct.params)
        keys = rows.view(f"V{rows.itemsize * rows.shape[1]}")[:, 0].tolist()
        seconds = np.array([self._cache.get(key, np.nan) for key in keys])
        new = np.flatnonzero(np.isnan(seconds))
        if len(new):
            members = zip(self.members, self._points, strict=True)
            members_s = [member.unbounded(rows[new], points) for member, points in members]
            seconds[new] = mean_of_corrected(members_s, self.weights)
        if len(self._cache) + len(new) > MOST_CACHED:
            self._cache.clear()
        self._cache.update((keys[row], float(seconds[row])) for row in new[:MOST_CACHED].tolist())
        return seconds[distinct.point_of_row]


def _check_numbers(path: str, numbers: Ints, parameters: int, more: int = 0) -> None:
    """Raise `ValueError` for anything but numbers of parameters, or of so many columns more."""
    beyond = numbers[(numbers < 1) | (numbers > parameters + more)]
    if len(beyond):
        raise defect(f"has {beyond[0]}; the event has {parameters} parameters", path)


def with_seconds(params: Floats, seconds: Floats) -> Floats:
    """Return rows of parameters, each with a formula's seconds: what a correction depends on."""
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

    def unbounded(self, params: Floats, columns: Floats | None = None) -> Floats:  # noqa: ARG002 - none has them
        """Return each row's seconds, between those of the members, which are not negative."""
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


def mean_of_corrected(seconds: Sequence[Floats], weights: Sequence[float]) -> Floats:
    """Return each row's geometric mean, or what the first function predicts if none is positive."""
    if len(seconds) == 1:
        return seconds[0]
    means = geometric_mean(seconds, weights)
    return np.where(np.isnan(means), seconds[0], means)


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


def sum_of_terms(
    function: AnyFunction, params: Floats, columns: Floats, predicted_s: Floats
) -> Floats:
    """Return the sum of a function's terms, `columns`, in seconds, before any correction.

    Of a mixture it is that of its leading member. `predicted_s`, the seconds of the function, stand
    in for a sum of 0.
    """
    formula = formula_of(function)
    leading = formula.members[0] if isinstance(formula, FittedMixture) else formula
    if leading is function:
        return predicted_s
    sum_s = leading.predict(params, columns)
    return np.where(sum_s, sum_s, predicted_s)


def mixture_of(functions: Sequence[FittedFunction], weights: Sequence[float]) -> Formula:
    """Return the geometric mean of functions, or the function itself if there is only one."""
    return functions[0] if len(functions) == 1 else FittedMixture(tuple(functions), tuple(weights))
