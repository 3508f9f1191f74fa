"""Which of many candidate terms are taken: one after the other, as long as BIC falls.

BIC is Schwarz's criterion ("Estimating the dimension of a model", 1978), n log(χ²/n) + k log n, its
second part stretched by n/(n − k − 1) as in the small-sample criterion of Hurvich and Tsai (1989).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rewritelog.arrays import Floats
from rewritelog.models.fitting.columns import unit_columns
from rewritelog.models.fitting.samples import Samples
from rewritelog.models.fitting.solving import Loss, huber_weights
from tracebigsim.compiled import expect_s

MOST_TERMS = 16
"""A formula of more terms is not readable."""

PRICE_OF_GROWTH = 2.0
"""What a unit of growth costs beside n log(χ²/n): twice the logarithm of how much less likely a
term is for it before anything is measured."""

_SEARCHES = 60
"""How often the fit of an event searches its largest set of candidates, about."""


def most_terms(samples: int) -> int:
    """Return how many terms a number of samples supports.

    A quarter of their number beside the constant, with at least three samples for each term.
    """
    return max(1, min(MOST_TERMS, 1 + samples // 4, samples // 3))


@dataclass(frozen=True)
class Slopes:
    """How fast candidate terms grow beyond the samples, and which may stand for another."""

    growth: Floats
    """By how much they grow faster than in proportion to parameters; shape (terms,)."""
    plain: int
    """How many candidates, the first ones, may be taken in place of one that grows faster."""


def select_terms(
    columns: Floats,
    samples: Samples,
    loss: Loss,
    *,
    non_negative: bool,
    constant: int | None,
    slopes: Slopes,
) -> list[int]:
    """Return the places of the columns that are taken for a fit to the samples' times.

    `constant` is the place of the column that stands for what each call costs at least. With
    Huber's loss terms are selected twice, the second time with less weight for the samples that
    the first selection misses by far. Of terms that the samples hardly tell apart the slower one
    is taken, since nothing contradicts the other's growth beyond the samples.
    """
    rows = columns / samples.scale_s[:, None]
    target = samples.seconds / samples.scale_s
    taken = select(rows, target, non_negative=non_negative, constant=constant, slopes=slopes)
    if loss == "huber" and taken and len(samples) > len(taken) + 2:
        from scipy.optimize import nnls  # noqa: PLC0415 - heavy, and needed by fits only

        weights = np.ones(len(target))
        some = unit_columns(rows[:, taken])
        for _ in range(3):
            if non_negative:
                size = nnls(some * weights[:, None], target * weights)[0]
            else:
                size = np.linalg.lstsq(some * weights[:, None], target * weights, rcond=1e-11)[0]
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
    """Return the places of the columns that are taken for a least-squares fit to the target.

    Columns and target are weighted already. One search begins with the constant and one with
    nothing; the one that ends with the lower BIC counts.
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
