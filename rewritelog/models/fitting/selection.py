"""Which of many candidate terms are taken: one after the other, as long as BIC improves.

BIC is Schwarz's criterion ("Estimating the dimension of a model", 1978), n log(χ²/n) + k log n, its
second part stretched by n/(n − k − 1) as in the small-sample criterion of Hurvich and Tsai (1989).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rewritelog.arrays import Floats
from rewritelog.models.fitting.candidates import lengths_of

MOST_TERMS = 16
"""More terms than these nobody reads."""

NEW_SHARE = 1e-5
"""A candidate of which less than this share (by length) is new adds nothing to those taken."""

LEAST_CHI2 = 1e-14
"""Below this mean squared error a fit is exact, and what is left is rounding."""


def most_terms(samples: int) -> int:
    """Return how many terms so many samples can carry.

    A quarter of their number beside the constant, with at least three samples for each term.
    """
    return max(1, min(MOST_TERMS, 1 + samples // 4, samples // 3))


@dataclass(frozen=True)
class _System:
    """What a search needs of weighted columns of length 1 and their target: inner products."""

    products: Floats
    """Of each column with each, shape (columns, columns)."""
    along: Floats
    """Of each column with the target."""
    square: float
    """Of the target with itself."""
    samples: int
    non_negative: bool

    @classmethod
    def of_columns(cls, columns: Floats, target: Floats, *, non_negative: bool) -> _System:
        """Return the system; a column without length or with what is no number becomes nothing."""
        lengths = lengths_of(columns)
        good = np.isfinite(lengths) & (lengths > 0)
        units = np.where(good, columns, 0.0) / np.where(good, lengths, 1.0)
        return cls(
            units.T @ units, target @ units, float(target @ target), len(target), non_negative
        )

    def solve(self, taken: Sequence[int]) -> Floats:
        """Return the coefficients of the columns taken, which are independent."""
        inner, along = self.products[np.ix_(taken, taken)], self.along[taken]
        found: Floats = np.asarray(np.linalg.solve(inner, along), dtype=np.float64)
        if self.non_negative and (found < 0).any():
            from scipy.optimize import nnls  # noqa: PLC0415 - heavy, and needed by fits only

            factor = np.linalg.cholesky(inner)
            found = nnls(factor.T, np.linalg.solve(factor, along))[0]
        return found

    def weakest(self, taken: Sequence[int]) -> int:
        """Return which of the columns taken before the last can be done without at least cost.

        Without column i, χ² grows by its coefficient squared over (G⁻¹)ᵢᵢ, G being the products.
        """
        inverse = np.linalg.inv(self.products[np.ix_(taken, taken)])
        cost = self.solve(taken)[:-1] ** 2 / np.diag(inverse)[:-1]
        return taken[int(np.argmin(cost))]

    def criterion(self, taken: Sequence[int]) -> float:
        """Return BIC, with its correction for few samples."""
        size = self.solve(taken)
        many, room = len(taken), self.samples - len(taken) - 1
        if room <= 0:
            return 1e9 * many
        inner = self.products[np.ix_(taken, taken)]
        chi2 = self.square - 2 * size @ self.along[taken] + size @ inner @ size
        fit = self.samples * math.log(max(float(chi2) / self.samples, LEAST_CHI2))
        return fit + many * math.log(self.samples) * self.samples / room

    def left(self, taken: Sequence[int]) -> Floats:
        """Return each column's inner product with what the columns taken leave of the target."""
        if not taken:
            return self.along
        rest: Floats = self.along - self.products[:, taken] @ self.solve(taken)
        return rest


def select(
    columns: Floats,
    target: Floats,
    most: int,
    *,
    non_negative: bool,
    constant: int | None,
    by_criterion: bool = True,
) -> list[int]:
    """Return the places of the columns that are taken for a least-squares fit to the target.

    `columns` and `target` are weighted already; `constant` is the place of the column that stands
    for what each call costs at least, from which one of two searches begins. The other begins with
    nothing, and the better end is taken. Not `by_criterion`, every column is taken that says
    something new.
    """
    system = _System.of_columns(columns, target, non_negative=non_negative)
    if not by_criterion:
        return _independent(system, most)
    starts = [[]] if constant is None or most < 2 else [[constant], []]
    ends = [_searched(system, start, most) for start in starts]
    return min(ends, key=lambda end: end[1])[0]


def _independent(system: _System, most: int) -> list[int]:
    """Return the columns that say something which those before them do not."""
    new = _New(system.products)
    while len(new.taken) < min(most, system.samples):
        place = new.first()
        if place is None:
            break
        new.take(place)
    return sorted(new.taken)


def _searched(system: _System, start: list[int], most: int) -> tuple[list[int], float]:
    """Return the terms that a search from some terms ends with, and their criterion."""
    taken, best = start, system.criterion(start) if start else np.inf
    new = _New(system.products, taken)
    while len(taken) < most:
        place = new.best(system.left(taken), signed=not system.non_negative)
        if place is None:
            break
        more, criterion = _pruned(system, [*taken, place])
        if criterion >= best - 1e-9:
            break
        if more == [*taken, place]:
            new.take(place)
        else:
            new = _New(system.products, more)
        taken, best = more, criterion
    return taken, float(best)


def _pruned(system: _System, taken: list[int]) -> tuple[list[int], float]:
    """Return the terms without those that the newest has made superfluous."""
    if system.non_negative:
        used = [place for place, size in zip(taken, system.solve(taken), strict=True) if size > 0]
        taken = used or taken
    best = system.criterion(taken)
    while len(taken) > 1:
        weakest = system.weakest(taken)
        fewer = [place for place in taken if place != weakest]
        criterion = system.criterion(fewer)
        if criterion > best:
            break
        taken, best = fewer, criterion
    return taken, best


class _New:
    """How much of each column is not a combination of the columns taken.

    A Cholesky decomposition that grows by a column at a time.
    """

    def __init__(self, products: Floats, taken: Sequence[int] = ()) -> None:
        self._products = products
        self._rows = np.zeros((0, len(products)))
        self._share = np.diag(products).copy()
        """Square of the length of each column's new part."""
        self.taken: list[int] = []
        for place in taken:
            self.take(place)

    def take(self, place: int) -> None:
        """Take a column: what is along it is not new any more."""
        rest = self._products[place] - self._rows[:, place] @ self._rows
        row = rest / np.sqrt(max(self._share[place], NEW_SHARE**2))
        self._rows = np.vstack((self._rows, row))
        self._share = np.maximum(self._share - row**2, 0.0)
        self._share[place] = 0.0
        self.taken.append(place)

    def best(self, left: Floats, *, signed: bool) -> int | None:
        """Return the column that explains most of what is left, None where none does."""
        usable = self._share > NEW_SHARE**2
        gain = np.abs(left) if signed else left
        gain = np.where(usable, gain / np.sqrt(np.where(usable, self._share, 1.0)), -1.0)
        place = int(np.argmax(gain))
        return place if gain[place] > np.sqrt(LEAST_CHI2) else None

    def first(self) -> int | None:
        """Return the first column that has something new, None where none has."""
        usable = np.flatnonzero(self._share > NEW_SHARE**2)
        return int(usable[0]) if len(usable) else None
