"""The shape of a product: which power of which parameter, with or without its logarithm.

Work is often one product of every parameter (three loop bounds; a repeat count times n·log n). Its
powers are searched one parameter at a time among those that loops give rise to, from the power law
that the logarithms suggest. The set of powers is that of Extra-P's performance model normal form
(Calotoiu et al., "Using automated performance modeling to find scalability bugs in complex codes",
SC 2013), with negative ones for parameters that divide the work.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from rewritelog.arrays import Floats, median
from rewritelog.models.expressions import Expression, parse
from rewritelog.models.fitting.candidates import Parameters, logarithm, power
from rewritelog.models.fitting.samples import Samples

POWERS = (-1, -0.5, 0, 0.25, 1 / 3, 0.5, 2 / 3, 0.75, 1, 1.25, 4 / 3, 1.5, 5 / 3, 2, 2.5, 3)

SIMPLER = 0.003
"""A factor more, a broken power or a logarithm must lower the error by this share."""

_SPELLED_WITHIN = 5e-4
"""Exponents are printed with four digits."""

_SWEEPS = 6

_Errors: TypeAlias = Callable[[Floats, Floats], Floats]
"""From what is fixed and the logarithms of factors to the error of each factor."""


@dataclass(frozen=True)
class Factor:
    """A power of a parameter, times its logarithm or not."""

    exponent: float
    log: bool

    @property
    def complexity(self) -> int:
        """Return how many things there are to say about it."""
        return int(self.exponent != 0) + int(self.exponent % 1 != 0) + int(self.log)


FACTORS = tuple(
    Factor(exponent, log)
    for exponent in POWERS
    for log in (False, True)
    if exponent >= 0 or not log
)
_PENALTY = np.array([1 + SIMPLER * factor.complexity for factor in FACTORS])
_EXPONENTS = np.array([factor.exponent for factor in FACTORS])
_HAS_LOG = np.array([factor.log for factor in FACTORS])
_NOTHING = FACTORS.index(Factor(0, False))


def product_factors(samples: Samples, parameters: Parameters) -> tuple[Expression, ...]:
    """Return the factors of the product that explains most of the times, one for each parameter.

    Only parameters above 0 can be factors; there are none where nothing is gained by any.
    """
    usable = parameters.positive()
    if not usable:
        return ()
    logs = [_logs(samples.params[:, number - 1], parameters, number) for number in usable]
    most, errors_of = most_factors(len(samples)), _errors_of(samples)
    if len(usable) <= most:
        chosen = _started(samples, np.log(samples.params[:, [n - 1 for n in usable]]))
    else:
        chosen = _strongest(errors_of, logs, most)
    _improve(chosen, errors_of, logs, most)
    return tuple(
        _expression(number, FACTORS[which], float(parameters.lowest[number - 1]))
        for number, which in zip(usable, chosen, strict=True)
        if which != _NOTHING
    )


def may_be_met(samples: Samples, parameters: Parameters, error: float) -> bool:
    """Return whether a multiple of one factor may meet all times within a relative error.

    Where not, no product of so few samples that it has one factor does: c·f is then within `error`
    of all times, so that f/t varies by (1 + error)/(1 − error) at most, and by what the exponents
    are rounded by as they are spelled.
    """
    if not (samples.seconds == samples.scale_s).all():
        return True  # errors are relative to something else
    times = np.log(samples.seconds)[:, None]
    most = np.log((1 + error) / (1 - error))
    if np.ptp(times) <= most:
        return True
    for number in parameters.positive():
        column = samples.params[:, number - 1]
        rest = _logs(column, parameters, number) - times
        rounded = _SPELLED_WITHIN * np.log(column.max() / column.min())
        if (np.ptp(rest, axis=0) <= most + rounded).any():
            return True
    return False


def most_factors(samples: int) -> int:
    """Return how many factors the samples can tell: two samples for each, and for the level."""
    return max(1, samples // 2 - 1)


def _strongest(errors_of: _Errors, logs: list[Floats], most: int) -> list[int]:
    """Return at most `most` factors, each the one that explains most beside those before it."""
    chosen = [_NOTHING] * len(logs)
    shape = np.zeros(len(logs[0]))
    for _ in range(most):
        free = [place for place, which in enumerate(chosen) if which == _NOTHING]
        errors = [errors_of(shape, logs[place]) for place in free]
        best = int(np.argmin([tried.min() for tried in errors]))
        place, which = free[best], int(np.argmin(errors[best]))
        if which == _NOTHING:
            break
        chosen[place] = which
        shape += logs[place][:, which]
    return chosen


def _improve(chosen: list[int], errors_of: _Errors, logs: list[Floats], most: int) -> None:
    """Exchange each factor for a better one, in turn, as long as that lowers the error."""
    for _ in range(_SWEEPS):
        before = list(chosen)
        for place, log in enumerate(logs):
            others = np.zeros(len(log))
            for other, which in enumerate(chosen):
                others += 0.0 if other == place else logs[other][:, which]
            taken = sum(which != _NOTHING for which in chosen)
            if chosen[place] == _NOTHING and taken >= most:
                continue
            errors = errors_of(others, log)
            best = int(np.argmin(errors))
            if errors[best] < errors[chosen[place]] * (1 - 1e-3) - 1e-12:
                chosen[place] = best
        if chosen == before:
            break


def _logs(column: Floats, parameters: Parameters, number: int) -> Floats:
    """Return the logarithm of each factor's values, shape (samples, factors)."""
    low = float(parameters.lowest[number - 1])
    with np.errstate(divide="ignore"):
        of_log = np.log(np.log(np.maximum(column, 1)) if low >= 1 else np.log1p(column))
    return _EXPONENTS * np.log(column)[:, None] + np.where(_HAS_LOG, of_log[:, None], 0.0)


def _started(samples: Samples, logs: Floats) -> list[int]:
    """Return the factors nearest to the exponents of a power law over all parameters."""
    columns = np.column_stack((np.ones(len(logs)), logs))
    exponents = np.linalg.lstsq(columns, np.log(samples.scale_s), rcond=1e-3)[0][1:]
    plain = [place for place, factor in enumerate(FACTORS) if not factor.log]
    return [
        min(plain, key=lambda place: abs(FACTORS[place].exponent - exponent))
        for exponent in exponents
    ]


def _errors_of(samples: Samples) -> _Errors:
    """Return a function that gives, for each factor, the mean error of c0 + c1 · shape.

    The shape is exp(fixed + logs). Factors of more complexity must explain more.
    """
    from rewritelog.models.kernels.shape_errors import shape_errors  # noqa: PLC0415 - numba

    unit = median(samples.scale_s)
    weights = unit / samples.scale_s
    target = samples.seconds / unit * weights

    def errors_of(fixed: Floats, logs: Floats) -> Floats:
        return np.asarray(shape_errors(logs, fixed, weights, target) * _PENALTY)

    return errors_of


def _expression(number: int, factor: Factor, lowest: float) -> Expression:
    """Return a factor as a term."""
    texts = [power(number, factor.exponent, lowest)] if factor.exponent else []
    texts += [logarithm(f"p{number}", lowest)] if factor.log else []
    return parse("*".join(texts))
