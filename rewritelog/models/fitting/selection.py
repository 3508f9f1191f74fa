"""Stepwise selection of terms among many candidates, as long as BIC falls.

`regression` says what BIC is.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from rewritelog.arrays import Floats
from rewritelog.core import core
from rewritelog.models.fitting import tuning
from rewritelog.models.fitting.regression import Loss, least_squares, row_weights, unit_columns
from rewritelog.models.fitting.samples import Samples

MOST_TERMS: int = core.MOST_TERMS
"""A formula of more terms is not readable."""


def select_terms(
    columns: Floats,
    samples: Samples,
    loss: Loss,
    *,
    non_negative: bool,
    constant: int | None,
    growth: Floats,
    plain: int | None = None,
    most: int = MOST_TERMS,
) -> list[int]:
    """Return the indices of the columns, at most `most`, that are selected for the samples' times.

    `constant` is the index of the constant column, the cost of a call that does nothing. With
    Huber's loss terms are selected twice, the second time with the Huber weights of a fit of the
    first selection. Of terms that fit the samples about equally well the one that grows less is
    taken, since no sample contradicts the growth of the other one: see `select`.
    """
    rows = columns / samples.sigma_s[:, None]
    target = samples.seconds / samples.sigma_s
    search = partial(
        select,
        non_negative=non_negative,
        constant=constant,
        growth=growth,
        plain=plain,
        most=most,
    )
    taken = search(rows, target)
    if loss == "huber" and taken and len(samples) > len(taken) + 2:
        weights = np.ones(len(target))
        some = unit_columns(rows[:, taken])
        for _ in range(3):
            weighted, times = some * weights[:, None], target * weights
            size = least_squares(weighted, times, non_negative=non_negative)
            weights = row_weights(some @ size - target)
        rows, target = rows * weights[:, None], target * weights
        taken = search(rows, target)
    return taken


def select(
    columns: Floats,
    target: Floats,
    *,
    non_negative: bool,
    constant: int | None,
    growth: Floats | None = None,
    plain: int | None = None,
    most: int = MOST_TERMS,
) -> list[int]:
    """Return the indices of at most `most` columns that are selected for a fit to the target.

    Columns and target are already weighted, and coefficients are those of least squares. One
    search starts from the constant and one from nothing; the result is that with the lower BIC.
    `growth` is how much faster than linearly each column grows (`design.excess_growth`); the
    first `plain` columns, by default all, may replace one that grows faster.
    """
    units, samples, width = unit_columns(columns), len(target), columns.shape[1]
    # apart from the constant one term for every four samples, and one in all for every three
    most = max(1, min(most, 1 + samples // 4, samples // 3))
    places = np.empty(most, dtype=np.int64)
    candidates = 0 if growth is None else width if plain is None else plain
    count = core.select_columns(
        units.T @ units,
        target @ units,
        float(target @ target),
        samples,
        non_negative,
        -1 if constant is None else constant,
        most,
        np.zeros(0) if growth is None else growth,
        candidates,
        tuning.PRICE_OF_GROWTH,
        np.empty((most + 2, width)),
        places,
    )
    taken: list[int] = places[:count].tolist()
    return taken
