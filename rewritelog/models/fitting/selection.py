"""Stepwise selection of terms among many candidates, as long as BIC falls.

`regression` defines BIC.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rewritelog.arrays import Floats
from rewritelog.core import core
from rewritelog.models.fitting import tuning
from rewritelog.models.fitting.regression import Loss, least_squares, row_weights, unit_columns
from rewritelog.models.fitting.samples import Samples

MOST_TERMS: int = core.MOST_TERMS
"""A formula of more terms is not readable."""


class Stepwise(NamedTuple):
    """How terms are selected among the columns of candidates."""

    constant: int = 0
    """The index of the constant column, the cost of a call that does nothing."""
    non_negative: bool = True
    growth: Floats = np.zeros(0)
    """How much faster than linearly each column grows (`design.excess_growth`)."""
    plain: int = 0
    """The number of columns, the first ones, that may replace one that grows faster."""
    most: int = MOST_TERMS
    """The most columns that are selected."""


def select_terms(columns: Floats, samples: Samples, loss: Loss, stepwise: Stepwise) -> list[int]:
    """Return the indices of the columns that are selected for the samples' times.

    With Huber's loss terms are selected twice, the second time with the Huber weights of a fit of
    the first selection. Of terms that fit the samples about equally well the one that grows less is
    taken, since no sample contradicts the growth of the other one (`select_columns` in `core.h`).
    """
    rows = columns / samples.sigma_s[:, None]
    target = samples.seconds / samples.sigma_s
    taken = select_columns(rows, target, stepwise)
    if loss == "huber" and taken and len(samples) > len(taken) + 2:
        weights = np.ones(len(target))
        units = unit_columns(rows[:, taken])
        for _ in range(3):
            weighted, times = units * weights[:, None], target * weights
            coefficients = least_squares(weighted, times, non_negative=stepwise.non_negative)
            weights = row_weights(units @ coefficients - target)
        taken = select_columns(rows * weights[:, None], target * weights, stepwise)
    return taken


def select_columns(columns: Floats, target: Floats, stepwise: Stepwise) -> list[int]:
    """Return the indices of the columns that are selected for a fit to the target.

    Columns and target are already weighted, and coefficients are those of least squares. One
    search starts from the constant and one from nothing; the result is that with the lower BIC.
    """
    units, samples = unit_columns(columns), len(target)
    # one term for every four samples besides the constant, but at most one for every three in all
    most = max(1, min(stepwise.most, 1 + samples // 4, samples // 3))
    places = np.empty(most, dtype=np.int64)
    count = core.select_columns(
        units.T @ units,
        target @ units,
        float(target @ target),
        samples,
        stepwise.non_negative,
        stepwise.constant,
        most,
        stepwise.growth,
        stepwise.plain,
        tuning.PRICE_OF_GROWTH,
        np.empty((most + 2, columns.shape[1])),
        places,
    )
    taken: list[int] = places[:count].tolist()
    return taken
