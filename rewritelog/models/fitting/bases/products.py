"""The family of products: a power of each parameter, with or without its logarithm.

The work is often one product of all parameters (three loop bounds; a repeat count times n·log n).
Its exponents, of those that loops lead to, are found by steepest descent, one parameter at a time;
with enough samples the search starts from a power law. The set of factors follows the
performance model normal form of Extra-P (Calotoiu et al., "Using automated performance modeling to
find scalability bugs in complex codes", SC 2013), with negative exponents for parameters that
divide the work.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import combinations
from typing import TypeAlias

import numpy as np

from rewritelog.arrays import Floats, median
from rewritelog.models.expressions import Expression, parse
from rewritelog.models.fitting import tuning
from rewritelog.models.fitting.bases.power_laws import power_of
from rewritelog.models.fitting.design import (
    ONE,
    Parameters,
    SelectionSamples,
    logarithm,
    product_of,
)
from rewritelog.models.fitting.regression import least_squares
from rewritelog.models.fitting.samples import Samples

POWERS = (-1, -0.5, 0, 0.25, 1 / 3, 0.5, 2 / 3, 0.75, 1, 1.25, 4 / 3, 1.5, 5 / 3, 2, 2.5, 3)

LARGEST_LOG = 300.0
"""The square of the exponential of a larger number overflows."""

_STEPS = 4
"""The descent has at most so many steps for each parameter."""

_Errors: TypeAlias = Callable[[Floats, Floats], Floats]
"""A function that returns the error of each factor, given the logarithm of the rest of the product,
shape (samples,), and those of the factors, shape (samples, factors)."""


FACTORS = tuple(
    (exponent, logs) for exponent in POWERS for logs in (0, 1, 2) if exponent >= 0 or not logs
)
"""Powers of a parameter, each with so many of its logarithms as further factors."""

_NO_FACTOR = FACTORS.index((0, 0))
_EXPONENTS = np.array([exponent for exponent, _ in FACTORS])
_LOGS = np.array([logs for _, logs in FACTORS])
_COMPLEXITY = (_EXPONENTS != 0).astype(int) + (_EXPONENTS % 1 != 0) + _LOGS**2
"""How many of three things each factor has: a power, a fractional exponent, a logarithm; its square
counts as four of them."""
_PENALTY = 1 + tuning.SIMPLER * _COMPLEXITY


def product_terms(selection: SelectionSamples) -> tuple[Expression, ...]:
    """Choose partial products of the factors of the best product of all parameters."""
    factors = product_factors(selection.samples, selection.parameters)
    count = len(factors)
    sizes = range(1, count + 1) if count <= tuning.MOST_FACTORS else (1, 2, count)
    partial = [product_of(subset) for size in sizes for subset in combinations(factors, size)]
    return selection.select_from((ONE, *partial))


def product_factors(samples: Samples, parameters: Parameters) -> tuple[Expression, ...]:
    """Return the factors of the product that explains the times best, at most one per parameter.

    Only positive parameters can be factors; the result is empty if none lowers the error.
    """
    usable = parameters.positive()
    if not usable:
        return ()
    logs = [_logs(samples.params[:, number - 1], parameters, number) for number in usable]
    most, chosen = most_factors(len(samples)), [_NO_FACTOR] * len(usable)
    if len(usable) <= most:
        chosen = _power_law_factors(samples, np.log(samples.params[:, [n - 1 for n in usable]]))
    _descend(chosen, _errors_of(samples), logs, most)
    return tuple(
        _expression(number, *FACTORS[which], parameters)
        for number, which in zip(usable, chosen, strict=True)
        if which != _NO_FACTOR
    )


def most_factors(samples: int) -> int:
    """Return how many factors the samples support: two samples for each factor and the constant."""
    return max(1, samples // 2 - 1)


def _descend(chosen: list[int], errors_of: _Errors, logs: list[Floats], most: int) -> None:
    """Exchange in `chosen` the factor that lowers the error most, again and again while one does.

    No exchange gives a factor to more than `most` parameters.
    """
    for _ in range(_STEPS * len(logs)):
        taken = sum(which != _NO_FACTOR for which in chosen)
        least, best = math.inf, (0, _NO_FACTOR)
        for index, log in enumerate(logs):
            if chosen[index] == _NO_FACTOR and taken >= most:
                continue
            others = np.zeros(len(log))
            for other, which in enumerate(chosen):
                others += 0.0 if other == index else logs[other][:, which]
            errors = errors_of(others, log)
            which = int(np.argmin(errors))
            lower = errors[which] < errors[chosen[index]] * (1 - 1e-3) - 1e-12
            if lower and errors[which] < least:
                least, best = float(errors[which]), (index, which)
        if least == math.inf:
            break
        chosen[best[0]] = best[1]


def _power_law_factors(samples: Samples, logs: Floats) -> list[int]:
    """Return the factors nearest to the exponents of a power law in all parameters."""
    columns = np.column_stack((np.ones(len(logs)), logs))
    exponents = least_squares(columns, np.log(samples.times_s), collinear=1e-3)[1:]
    plain = np.flatnonzero(_LOGS == 0)
    distances = np.abs(_EXPONENTS[plain] - exponents[:, None])
    return [int(which) for which in plain[distances.argmin(axis=1)]]


def _logs(column: Floats, parameters: Parameters, number: int) -> Floats:
    """Return the logarithm of each factor's values, shape (samples, factors)."""
    low = float(parameters.lowest[number - 1])
    with np.errstate(divide="ignore"):
        of_log = np.log(np.log(np.maximum(column, 1)) if low >= 1 else np.log1p(column))
    return _EXPONENTS * np.log(column)[:, None] + np.where(_LOGS > 0, _LOGS * of_log[:, None], 0.0)


def _errors_of(samples: Samples) -> _Errors:
    """Return the function that computes, for each factor, the mean error of c0 + c1 · shape.

    The shape is exp(fixed + logs), c0 and c1 are the non-negative weighted least-squares solution.
    An error counts as at most 1, so that outliers do not determine the shape; the errors of more
    complex factors are increased a little. Few samples do not tell a logarithm from its square.
    """
    count, points = tuning.ENOUGH_FOR_SQUARES
    are_enough = len(samples) >= count and len(samples.distinct) >= points
    possible = (_LOGS < 2) | are_enough
    unit = median(samples.sigma_s)
    weights, target = unit / samples.sigma_s, samples.seconds / samples.sigma_s
    ones, level = float(weights @ weights), float(weights @ target)

    def errors_of(fixed: Floats, logs: Floats) -> Floats:
        shapes = fixed[:, None] + logs
        shapes -= shapes.mean(axis=0)
        shapes = np.exp(np.minimum(shapes, LARGEST_LOG)) * weights[:, None]
        cross, along = weights @ shapes, target @ shapes
        square = np.einsum("ij,ij->j", shapes, shapes)
        determinant = ones * square - cross * cross
        constant = (square * level - cross * along) / determinant
        slope = (ones * along - cross * level) / determinant
        are_positive = (determinant > 0) & (constant > 0) & (slope > 0)
        only_constant = (determinant > 0) & (constant > 0) & ~are_positive
        constant = np.where(are_positive, constant, np.where(only_constant, level / ones, 0.0))
        slope = np.where(are_positive, slope, np.where(only_constant, 0.0, along / square))
        errors = np.abs(constant * weights[:, None] + slope * shapes - target[:, None])
        return np.where(possible, np.fmin(errors, 1.0).mean(axis=0) * _PENALTY, np.inf)

    return errors_of


def _expression(number: int, exponent: float, logs: int, parameters: Parameters) -> Expression:
    """Return a factor as a term."""
    factors = [power_of(number, parameters).factor(exponent)] if exponent else []
    if logs:
        log = logarithm(f"p{number}", float(parameters.lowest[number - 1]))
        factors.append(parse(f"{log}^2" if logs == 2 else log))
    return product_of(factors)
