"""Stepwise selection of terms among many candidates, as long as BIC falls.

`regression` says what BIC is.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from rewritelog.arrays import Floats, Ints
from rewritelog.core import core
from rewritelog.models.fitting import tuning
from rewritelog.models.fitting.regression import Loss, least_squares, row_weights, unit_columns
from rewritelog.models.fitting.samples import Samples

MOST_TERMS: int = core.MOST_TERMS
"""A formula of more terms is not readable."""

MANY_SAMPLES = 1 << 9
"""With fewer samples the whole Gram matrix is computed at once."""

ROWS_AT_ONCE = 8
"""So many rows of the Gram matrix of more columns are computed when one is needed."""


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
    gram = _GramMatrix(unit_columns(columns))
    along, square, samples = target @ gram.units, float(target @ target), len(target)
    # apart from the constant one term for every four samples, and one in all for every three
    most = max(1, min(most, 1 + samples // 4, samples // 3))
    starts = [-1] if constant is None or most < 2 else [constant, -1]
    if not gram.complete:
        gram.compute(np.append(np.argsort(-np.abs(along))[: ROWS_AT_ONCE - 1], starts[0]))
    problem = (gram.products, gram.squares, gram.known, along, square, samples, non_negative)
    rows, places = np.empty((most + 2, len(along))), np.empty(most, dtype=np.int64)
    missing_rows, criterion = np.empty(ROWS_AT_ONCE, dtype=np.int64), np.empty(1)
    room = (most, rows, places, criterion, missing_rows)
    best, taken = np.inf, np.empty(0, dtype=np.int64)
    for start in starts:
        while (count := core.forward_select(*problem, start, *room)) < 0:
            gram.compute(missing_rows)
        if criterion[0] < best:
            best, taken = criterion[0], places[:count].copy()
    if growth is not None and len(taken):
        how = (growth, len(growth) if plain is None else plain, tuning.PRICE_OF_GROWTH)
        places = taken.copy()
        while (missing := core.exchange_for_slower(*problem, *how, places)) >= 0:
            gram.compute(np.array([missing]))
            places = taken.copy()
        taken = places
    return [int(place) for place in taken]


class _GramMatrix:
    """The inner products of columns with one another: of many samples, only those asked for."""

    def __init__(self, units: Floats) -> None:
        self.units = units
        width = units.shape[1]
        self.complete = len(units) < MANY_SAMPLES or width < ROWS_AT_ONCE
        """Whether all rows of `products` are computed."""
        if self.complete:
            self.products = units.T @ units
            self.squares = self.products.diagonal().copy()
            self.known = np.ones(width, dtype=np.bool_)
        else:
            self.products = np.empty((width, width))
            self.squares = _squares(units)
            self.known = np.zeros(width, dtype=np.bool_)

    def compute(self, indices: Ints) -> None:
        """Compute rows of `products`, at least one; −1 among the indices stands for none."""
        rows = np.full(ROWS_AT_ONCE, indices.max())  # always as many, so that all round alike
        rows[: len(indices)] = np.where(indices < 0, rows[0], indices)
        self.products[rows] = self.units[:, rows].T @ self.units
        self.known[rows] = True


def _squares(units: Floats) -> Floats:
    """Return the diagonal of the Gram matrix, rounded as its other elements are."""
    squares = np.empty(units.shape[1])
    whole = len(squares) // ROWS_AT_ONCE * ROWS_AT_ONCE
    blocks = units.T[:whole].reshape(-1, ROWS_AT_ONCE, len(units))
    products = blocks @ blocks.transpose(0, 2, 1)
    squares[:whole] = products.diagonal(axis1=1, axis2=2).ravel()
    last = units[:, -ROWS_AT_ONCE:]
    squares[-ROWS_AT_ONCE:] = (last.T @ last).diagonal()
    return squares
