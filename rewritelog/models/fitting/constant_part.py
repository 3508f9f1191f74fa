"""The constant part of a time, such as the overhead of a call, beside a product of powers.

In logarithms a constant cannot be a summand. So it is estimated first, and the regression is that
of the rest: a generalized linear model with a logarithmic link and a constant coefficient of
variation (P. McCullagh and J. Nelder, *Generalized Linear Models*, 1989, chapter 8), fitted by
iteratively reweighted least squares.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from rewritelog.arrays import Floats, quantiles
from rewritelog.models.fitting import tuning
from rewritelog.models.fitting.regression import least_squares, row_weights

LARGEST_LOG = 700.0
"""The exponential of a larger number overflows."""

_ROUNDS = 2


@dataclass(frozen=True)
class TimesBesideConstant:
    """The regressand in logarithms: the times less a constant part."""

    constant_s: float
    logs: Floats
    """Logarithms of the rest in seconds: at first its own, then those of the working response."""
    weights: Floats
    """What each residual is multiplied by: the share of the rest in the time, and Huber's weight.

    An error of a logarithm of the rest is then a relative error of the time.
    """

    def near(self, fitted: Floats, times_s: Floats) -> TimesBesideConstant:
        """Return the regressand for the next round, given the fitted logarithms of this one."""
        if not self.constant_s:
            return replace(self, weights=row_weights(fitted - self.logs))
        fitted_s = np.exp(np.minimum(fitted, LARGEST_LOG))
        ratios = (times_s - self.constant_s) / fitted_s
        # below the fit, where noise may leave less than nothing, the logarithm is linearized
        errors = np.where(ratios > 1, np.log(np.maximum(ratios, 1.0)), ratios - 1)
        shares = np.minimum(fitted_s * np.maximum(ratios, 1.0) / times_s, 1.0)
        weights = shares * row_weights(errors * shares)
        return TimesBesideConstant(self.constant_s, fitted + errors, weights)


def times_beside_constant(columns: Floats, times_s: Floats) -> TimesBesideConstant:
    """Return the times beside the constant part that leaves most nearly a power law.

    `columns` are 1 and the logarithms of the parameters, shape (samples, 1 + parameters). Their
    squares are regressors too, since exponents may change with the size.
    """
    best = np.inf
    chosen = plain = TimesBesideConstant(0.0, np.log(times_s), np.ones(len(times_s)))
    if len(times_s) < tuning.FEWEST_PER_REGRESSOR * (2 * columns.shape[1] - 1):
        return plain
    curved = np.hstack((columns, columns[:, 1:] ** 2))
    (shortest_s,) = quantiles(np.sort(times_s), (tuning.SHORTEST_QUANTILE,))
    for share in tuning.CONSTANT_SHARES:
        constant_s = share * shortest_s
        rest_s = np.maximum(times_s - constant_s, tuning.LEAST_REST * times_s)
        tried = TimesBesideConstant(constant_s, np.log(rest_s), rest_s / times_s)
        fitted = tried.logs
        for _ in range(_ROUNDS):
            rows, target = curved * tried.weights[:, None], tried.logs * tried.weights
            fitted = curved @ least_squares(rows, target)
            tried = tried.near(fitted, times_s)
        predicted_s = constant_s + np.exp(np.minimum(fitted, LARGEST_LOG))
        errors = np.minimum(np.abs(predicted_s / times_s - 1), tuning.LARGEST_ERROR)
        if errors.mean() < best * (1 - tuning.LEAST_GAIN_OF_CONSTANT):
            best, chosen = float(errors.mean()), tried if share else plain
    return chosen
