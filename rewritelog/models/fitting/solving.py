"""Solving for the coefficients of given terms: weighted, optionally robust, any number of samples.

All models that fit sums of terms use `solve`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rewritelog.arrays import Floats
from rewritelog.models.expressions import Expression
from rewritelog.models.fitting.candidates import ONE
from rewritelog.models.fitting.columns import columns_of, lengths_of
from rewritelog.models.fitting.regression import (
    HUBER,
    Loss,
    least_squares,
    robust_spread,
    row_weights,
)
from rewritelog.models.fitting.samples import Samples
from rewritelog.models.parallel import map_in_threads

ROUNDS = 6
"""At most this many least-squares solutions in a robust fit."""

ROUNDS_IN_BLOCKS = 3
"""The same with more samples than `LARGE`."""

SETTLED = 1e-4
"""A fit has converged if coefficients change by at most this share."""

BLOCK_ROWS = 1 << 14
"""Rows that are reduced at a time, if there are more than `LARGE`."""

LARGE = 1 << 16
"""With more samples, columns are computed anew in each pass in place of being kept in memory."""

COLLINEAR = 1e-11
"""Singular values of columns of length 1 below this share of the largest count as 0."""

FEW = 1 << 10
"""At most this many samples are solved directly, without a reduction block by block."""


@dataclass(frozen=True)
class Solution:
    """Coefficients, and how far the samples lie from the function with them."""

    coefficients: Floats
    spread: float
    """Robust standard deviation of the residuals, each in units of its sample's scale."""


def solve(
    terms: Sequence[Expression],
    samples: Samples,
    loss: Loss,
    *,
    non_negative: bool,
    columns: Floats | None = None,
) -> Solution:
    """Fit the sum of the terms to the times, with each residual divided by its sample's scale.

    Huber's loss is minimized by iteratively reweighted least squares (Holland and Welsch 1977),
    a sign constraint imposed by NNLS (Lawson and Hanson 1974). Coefficients have the shape (terms,)
    and are in seconds per unit of the term. Rows that are not finite have no weight. `columns` are
    the values of the terms, shape (samples, terms), where they are known. Memory does not grow with
    the samples without them: each pass reduces blocks of them, in threads, to the triangles of QR
    decompositions (Golub and Van Loan, Matrix Computations, 5.3), and these to one triangle (J.
    Demmel et al., "Communication-optimal parallel and sequential QR and LU factorizations", 2012).
    """
    level_s = _level(terms, samples, non_negative=non_negative)
    robust = loss == "huber" and len(samples) > len(terms) + 2
    rounds = (ROUNDS if len(samples) <= LARGE else ROUNDS_IN_BLOCKS) if robust else 1
    if len(samples) <= FEW:
        columns = columns_of(terms, samples.params) if columns is None else columns
        coefficients, spread = _solve_few(columns, samples, level_s, rounds, non_negative)
    else:
        blocks = _Blocks(terms, samples, level_s, columns)
        coefficients, spread = _solve_in_blocks(blocks, rounds, non_negative)
    if level_s:
        coefficients[terms.index(ONE)] += level_s
    return Solution(coefficients, spread)


def _solve_few(
    columns: Floats, samples: Samples, level_s: float, rounds: int, non_negative: bool
) -> tuple[Floats, float]:
    """Return coefficients and spread of few samples, solved directly."""
    rows = columns / samples.sigma_s[:, None]
    target = (samples.seconds - level_s) / samples.sigma_s
    usable = np.isfinite(rows)
    if not usable.all():
        rows[~usable.all(axis=1)] = 0.0
    coefficients = _least_squares(rows, target, non_negative=non_negative)
    for _ in range(rounds - 1):
        weights = row_weights(rows @ coefficients - target)
        before = coefficients
        coefficients = _least_squares(
            rows * weights[:, None], target * weights, non_negative=non_negative
        )
        if _settled(coefficients, before):
            break
    return coefficients, robust_spread(rows @ coefficients - target)


def _solve_in_blocks(blocks: _Blocks, rounds: int, non_negative: bool) -> tuple[Floats, float]:
    """Return coefficients and spread of many samples, reduced block by block."""
    coefficients, spread = np.zeros(blocks.width - 1), np.inf
    for _ in range(rounds):
        before = coefficients
        rows = _triangle(blocks, coefficients, HUBER * spread)
        coefficients = _least_squares(rows[:, :-1], rows[:, -1], non_negative=non_negative)
        if _settled(coefficients, before):
            break
        spread = blocks.spread(coefficients)
    return coefficients, spread


def _settled(coefficients: Floats, before: Floats) -> bool:
    """Return whether no coefficient changed by more than the share `SETTLED`."""
    pairs = zip(coefficients.tolist(), before.tolist(), strict=True)
    return all(
        abs(coefficient - previous) <= SETTLED * abs(previous) for coefficient, previous in pairs
    )


def _level(terms: Sequence[Expression], samples: Samples, *, non_negative: bool) -> float:
    """Return what is subtracted from the times during a fit with a constant of any sign.

    It is the middle of their range, so that equal times are fitted without a rounding error.
    """
    if non_negative or ONE not in terms:
        return 0.0
    return float(samples.seconds.min() / 2 + samples.seconds.max() / 2)


class _Blocks:
    """The samples block by block with the columns of their terms, kept in memory up to `LARGE`."""

    def __init__(
        self,
        terms: Sequence[Expression],
        samples: Samples,
        level_s: float,
        columns: Floats | None = None,
    ) -> None:
        self.level_s = level_s
        self.width = len(terms) + 1
        self._terms = terms
        self._samples = samples
        self._kept: tuple[Floats, Floats, Floats] | None = None
        if columns is not None:
            self._kept = columns, samples.seconds - level_s, samples.sigma_s
        elif len(samples) <= LARGE:
            self._kept = self._made(samples)

    def map(self, function: Callable[[Floats, Floats, Floats], Floats]) -> Iterable[Floats]:
        """Return a function of columns, times less the level, and scales for each block."""
        if self._kept is not None:
            return [function(*self._kept)]
        blocks = list(self._samples.blocks(BLOCK_ROWS))
        return map_in_threads(lambda block: function(*self._made(block)), blocks)

    def _made(self, samples: Samples) -> tuple[Floats, Floats, Floats]:
        columns = columns_of(self._terms, samples.params)
        return columns, samples.seconds - self.level_s, samples.sigma_s

    @cached_property
    def _few(self) -> tuple[Floats, Floats, Floats]:
        """At most `LARGE` samples."""
        return self._made(self._samples.random_part(LARGE)) if self._kept is None else self._kept

    def spread(self, coefficients: Floats) -> float:
        """Return the robust standard deviation of the residuals of at most `LARGE` samples."""
        columns, times, sigma_s = self._few
        return robust_spread((columns @ coefficients - times) / sigma_s)


def _triangle(blocks: _Blocks, coefficients: Floats, corner: float) -> Floats:
    """Return R of the QR decomposition of [weighted columns | weighted times].

    Samples whose residual with `coefficients` exceeds `corner`, in units of their scale, have
    Huber's weight.
    """

    def weighted(columns: Floats, times: Floats, sigma_s: Floats) -> Floats:
        weights = 1 / sigma_s
        if np.isfinite(corner):
            weights *= row_weights((columns @ coefficients - times) / sigma_s, corner)
        rows = np.column_stack((columns, times))
        rows *= weights[:, None]
        if not np.isfinite(rows).all():
            rows[~np.isfinite(rows).all(axis=1)] = 0.0
        return rows

    def triangle(columns: Floats, times: Floats, sigma_s: Floats) -> Floats:
        return np.asarray(np.linalg.qr(weighted(columns, times, sigma_s), mode="r"))

    triangles = list(blocks.map(triangle))
    if len(triangles) == 1:
        return triangles[0]
    return np.asarray(np.linalg.qr(np.vstack(triangles), mode="r"))


def _least_squares(columns: Floats, target: Floats, *, non_negative: bool) -> Floats:
    """Return the least-squares coefficients; the columns are scaled to length 1 while solving."""
    lengths = lengths_of(columns)
    lengths[lengths == 0] = 1.0
    coefficients = least_squares(
        columns / lengths, target, non_negative=non_negative, collinear=COLLINEAR
    )
    return np.asarray(coefficients / lengths)
