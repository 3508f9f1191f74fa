"""Stepwise selection of terms among many candidates, as long as BIC falls.

BIC is Schwarz's criterion ("Estimating the dimension of a model", 1978), n log(χ²/n) + k log n for
k terms and n samples. Its penalty k log n is multiplied by n/(n − k − 1), which is the correction
for small samples that Hurvich and Tsai (1989) give for the AIC.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rewritelog.arrays import Floats
from rewritelog.models.fitting.columns import unit_columns
from rewritelog.models.fitting.samples import Samples
from rewritelog.models.fitting.solving import Loss, huber_weights, least_squares
from tracebigsim.compiled import expect_s

MOST_TERMS = 16
"""A formula of more terms is not readable."""

PRICE_OF_GROWTH = 2.0
"""Penalty per unit of growth, added to n log(χ²/n): −2 log of a prior probability that falls by the
factor e with each unit."""

_SEARCHES = 60
"""Roughly how often the fit of an event searches its largest set of candidates."""


def most_terms(samples: int) -> int:
    """Return how many terms this number of samples supports.

    Apart from the constant there is one term for every four samples, and never more than one in
    all for every three.
    """
    return max(1, min(MOST_TERMS, 1 + samples // 4, samples // 3))


@dataclass(frozen=True)
class Slopes:
    """How fast candidate terms grow beyond the samples, and which ones may replace others."""

    growth: Floats
    """How much faster than linearly they grow (`families.excess_growth`), shape (terms,)."""
    plain: int
    """The first so many candidates may replace one that grows faster."""


def select_terms(
    columns: Floats,
    samples: Samples,
    loss: Loss,
    *,
    non_negative: bool,
    constant: int | None,
    slopes: Slopes,
) -> list[int]:
    """Return the indices of the columns that are selected for a fit to the samples' times.

    `constant` is the index of the constant column, the cost of a call that does nothing. With
    Huber's loss terms are selected twice, the second time with the Huber weights of a fit of the
    first selection. Of terms that fit the samples about equally well the one that grows less is
    taken, since no sample contradicts the growth of the other one.
    """
    rows = columns / samples.scale_s[:, None]
    target = samples.seconds / samples.scale_s
    taken = select(rows, target, non_negative=non_negative, constant=constant, slopes=slopes)
    if loss == "huber" and taken and len(samples) > len(taken) + 2:
        weights = np.ones(len(target))
        some = unit_columns(rows[:, taken])
        for _ in range(3):
            weighted, times = some * weights[:, None], target * weights
            size = least_squares(weighted, times, non_negative=non_negative)
            weights = huber_weights(some @ size - target)
        rows, target = rows * weights[:, None], target * weights
        taken = select(rows, target, non_negative=non_negative, constant=constant, slopes=slopes)
    return taken


def select(
    columns: Floats,
    target: Floats,
    *,
    non_negative: bool,
    constant: int | None,
    slopes: Slopes | None = None,
) -> list[int]:
    """Return the indices of the columns that are selected for a least-squares fit to the target.

    Columns and target are already weighted. One search starts from the constant and one from
    nothing; the result is that with the lower BIC.
    """
    from rewritelog.models.kernels.forward_selection import (  # noqa: PLC0415 - fits only
        PLAIN_NS_PER_BYTE,
        exchange_for_slower,
        forward_select,
    )

    units = unit_columns(columns)
    products, along, square = units.T @ units, target @ units, float(target @ target)
    expect_s(1e-9 * PLAIN_NS_PER_BYTE * products.nbytes * _SEARCHES)
    most = most_terms(len(target))
    starts = [-1] if constant is None or most < 2 else [constant, -1]
    best, taken = np.inf, []
    tried = np.zeros((3, 2 * most + 2), dtype=np.int64)
    work, rows = np.zeros((most + 4, most + 1)), np.zeros((most + 2, len(along)))
    for start in starts:
        count, criterion = forward_select(
            products, along, square, len(target), start, non_negative, tried, work, rows
        )
        if criterion < best:
            best, taken = criterion, tried[2, :count].tolist()
    if slopes is not None and taken:
        places, work = np.array(taken), np.zeros((len(taken) + 3, len(taken)))
        size = (products, along, square, len(target), places)
        how = (slopes.growth, slopes.plain, PRICE_OF_GROWTH, non_negative)
        exchange_for_slower(*size, *how, work)
        taken = places.tolist()
    return taken
