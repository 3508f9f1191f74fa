"""Sums of power laws, Σ c·Π pᵢ^aᵢ, whose exponents are fitted together.

What a kernel does once, for each row and for each pair of rows is such a sum. In logarithms it is
a smooth maximum of linear functions, log Σₖ exp(bₖ + aₖ·log p), also called a posynomial:
W. Hoburg, P. Kirschen and P. Abbeel, "Data fitting with geometric-programming-compatible softmax
functions", Optimization and Engineering 17 (2016). It is fitted by the method of Levenberg and
Marquardt, here for several starting points at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rewritelog.arrays import Floats
from rewritelog.core import core
from rewritelog.models.expressions import Expression
from rewritelog.models.fitting import tuning
from rewritelog.models.fitting.bases.power_laws import (
    posterior_mean,
    power_law,
    power_of,
    product_of_powers,
)
from rewritelog.models.fitting.design import SelectionSamples
from rewritelog.models.fitting.regression import (
    HUBER,
    huber_loss,
    huber_weights,
    robust_spreads,
)

MOST_SAMPLES = 512
"""Exponents are fitted to at most this many samples."""

MOST_TRIED_WITH = 128
"""Starting points are compared with at most this many samples."""

DEVIATION, LEVEL_DEVIATION = 0.7, 10.0
"""Prior standard deviations of an exponent, about that of a single power law, and of log c."""

SPLIT = 0.4
"""A power law is split into two whose exponents of one parameter differ by twice this."""

LEAST_SPREAD = 1e-3
"""The least standard deviation of errors of log t."""

TRYING, FINISHING = 6, 10
"""Steps of the method from each starting point, and further ones from the best."""

SETTLED = 1e-4
"""The method ends when no step lowers the cost by more than this share."""


def sum_of_power_laws(selection: SelectionSamples) -> tuple[Expression, ...]:
    """Choose up to three power laws, as many as lower BIC; one is the power law."""
    most = most_power_laws(selection)
    if most == 1:
        return selection.chosen(power_law)
    part = selection.random_part(MOST_SAMPLES)
    terms = [power_of(number, selection.parameters) for number in selection.parameters.used]
    columns, logs = part.values([term.column for term in terms]), np.log(part.samples.sigma_s)
    exponents = posterior_mean(columns, logs)
    regression = _Regression.about(exponents, columns, logs)
    laws = regression.prior[None]
    for _ in range(most - 1):
        tried = regression.first(MOST_TRIED_WITH).improved(_splits(laws), TRYING)
        extended = regression.improved(tried[:1], FINISHING)[0]
        if not regression.prefers(extended, laws):
            break
        laws = extended
    if len(laws) == 1:
        return selection.chosen(power_law)
    least = tuning.LEAST_EFFECT / np.ptp(columns, axis=0)
    products = [product_of_powers(terms, law[1:], least) for law in laws]
    return tuple(dict.fromkeys(products))


def most_power_laws(selection: SelectionSamples) -> int:
    """Return how many power laws the samples can determine together, at least 1."""
    parameters = len(selection.parameters.used)
    if not 0 < parameters <= tuning.MOST_PARAMETERS_OF_LAWS:
        return 1
    enough_for = len(selection.samples) // (tuning.FEWEST_PER_NUMBER * (1 + parameters))
    return max(1, min(tuning.MOST_POWER_LAWS, enough_for))


def _splits(laws: Floats) -> Floats:
    """Return the laws with one of them split in two, for each law, exponent and direction.

    The shape is (splits, laws + 1, 1 + exponents). The sum of the two is equal to the law where the
    parameter has its mean.
    """
    splits = []
    for split in range(len(laws)):
        for column in range(1, laws.shape[1]):
            for step in (SPLIT, -SPLIT):
                divided = np.vstack((laws, laws[split]))
                divided[[split, -1], 0] -= np.log(2)
                divided[[split, -1], column] += (step, -step)
                splits.append(divided)
    return np.array(splits)


@dataclass(frozen=True)
class _Regression:
    """The regression of log t on the logarithms of sums of power laws.

    The levels log c and exponents of K laws are an array of the shape (K, 1 + exponents), and those
    of several tries one of the shape (tries, K, 1 + exponents). Errors have Huber's loss, and the
    exponents normal priors.
    """

    design: Floats
    """1 and the centred logarithms, shape (samples, 1 + exponents)."""
    logs: Floats
    """log t."""
    prior: Floats
    """The prior means of levels and exponents, those of a single power law."""

    @classmethod
    def about(cls, exponents: Floats, columns: Floats, logs: Floats) -> _Regression:
        """Return the regression on columns, with the exponents of a single power law."""
        centred = columns - columns.mean(axis=0)
        level = np.median(logs - centred @ exponents)
        design = np.column_stack((np.ones(len(logs)), centred))
        return cls(design, logs, np.concatenate(([level], exponents)))

    def first(self, count: int) -> _Regression:
        """Return the regression with the first samples only."""
        return _Regression(self.design[:count], self.logs[:count], self.prior)

    def prefers(self, laws: Floats, fewer: Floats) -> bool:
        """Return whether BIC of the laws is lower than that of fewer ones.

        The logarithms of the likelihoods are Huber's loss, in units of the spread of the errors of
        the larger sum.
        """
        errors, _ = self._errors(laws[None])
        errors_of_fewer, _ = self._errors(fewer[None])
        spreads = robust_spreads(errors, LEAST_SPREAD)
        gain = _losses(errors_of_fewer, spreads) - _losses(errors, spreads)
        count = len(self.logs)
        return bool(
            gain[0] > core.bic_penalty(laws.size, count) - core.bic_penalty(fewer.size, count)
        )

    def improved(self, laws: Floats, steps: int) -> Floats:
        """Return the laws of each try after some steps of the method, the best try first."""
        width = laws.shape[2]
        precision = np.full(width, DEVIATION**-2)
        precision[0] = LEVEL_DEVIATION**-2
        precision = np.tile(precision, laws.shape[1])
        damping = np.full(len(laws), 1e-2)
        errors, shares = self._errors(laws)
        spreads = robust_spreads(errors, LEAST_SPREAD)
        costs = self._costs(laws, errors, spreads, precision)
        for _ in range(steps):
            step = self._step(laws, errors, shares, spreads, precision, damping)
            tried = laws + step
            tried_errors, tried_shares = self._errors(tried)
            tried_costs = self._costs(tried, tried_errors, spreads, precision)
            better = tried_costs < costs
            settled = bool((better & (costs - tried_costs <= SETTLED * costs)).all())
            laws = np.where(better[:, None, None], tried, laws)
            errors = np.where(better[:, None], tried_errors, errors)
            shares = np.where(better[:, None, None], tried_shares, shares)
            costs = np.where(better, tried_costs, costs)
            damping = np.where(better, damping / 5, damping * 5)
            if settled:
                break
        return laws[np.argsort(costs, kind="stable")]

    def _errors(self, laws: Floats) -> tuple[Floats, Floats]:
        """Return the errors of log t, shape (tries, samples), and the share of each law in t."""
        lines = self.design @ np.swapaxes(laws, 1, 2)
        largest = lines.max(axis=2, keepdims=True)
        shares = np.exp(lines - largest)
        sums = shares.sum(axis=2, keepdims=True)
        return (largest + np.log(sums))[:, :, 0] - self.logs, shares / sums

    def _costs(self, laws: Floats, errors: Floats, spreads: Floats, precision: Floats) -> Floats:
        """Return Huber's loss of the errors less the logarithm of the prior, for each try."""
        away = (laws - self.prior).reshape(len(laws), -1)
        return np.asarray((_losses(errors, spreads) + (away**2) @ precision) / 2)

    def _step(
        self,
        laws: Floats,
        errors: Floats,
        shares: Floats,
        spreads: Floats,
        precision: Floats,
        damping: Floats,
    ) -> Floats:
        """Return the step of each try: a Gauss-Newton step, shortened by the damping."""
        spread = spreads[:, None]
        weights = huber_weights(errors / spread, HUBER) / spread**2
        slopes = shares[:, :, :, None] * self.design[:, None, :]
        slopes = slopes.reshape(*errors.shape, -1)
        weighted = np.swapaxes(slopes * weights[:, :, None], 1, 2)
        gradient = (weighted @ errors[:, :, None])[:, :, 0]
        gradient += precision * (laws - self.prior).reshape(len(laws), -1)
        curvature = weighted @ slopes
        diagonal = np.einsum("bii->bi", curvature)
        diagonal += precision
        diagonal *= 1 + damping[:, None]
        steps = np.linalg.solve(curvature, -gradient[:, :, None])
        return np.asarray(steps.reshape(laws.shape))


def _losses(errors: Floats, spreads: Floats) -> Floats:
    """Return the sum of Huber's loss for each row."""
    return np.asarray(huber_loss(errors / spreads[:, None]).sum(axis=1))
