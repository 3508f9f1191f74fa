"""The search for the terms of a sum, compiled: forward steps, each followed by backward ones.

It works on inner products alone: G of weighted columns of length 1, and c of each with the target.
Solutions, what a column would add, and BIC all follow from them, whatever the number of samples.
"""

from __future__ import annotations

import math

import numpy as np

from rewritelog.arrays import Flags, Floats, Ints
from tracebigsim.compiled import inner, kernel

NEW_SHARE = 1e-5
"""A column of which less than this share (by length) is new adds nothing to those taken."""

LEAST_CHI2 = 1e-14
"""Below this mean squared error a fit is exact, and what is left is rounding."""

_LEAST_GAIN = 1e-9
"""BIC must fall by more than this, or rounding would decide."""


@inner
def _cholesky(products: Floats, places: Ints, count: int, root: Floats) -> None:
    """Fill `root` with L of G = L·Lᵀ, G being the products of the columns at `places`."""
    for i in range(count):
        for j in range(i + 1):
            total = products[places[i], places[j]]
            for m in range(j):
                total -= root[i, m] * root[j, m]
            if i == j:
                root[i, i] = math.sqrt(max(total, 1e-24))
            else:
                root[i, j] = total / root[j, j]


@inner
def _substitute(root: Floats, count: int, solution: Floats) -> None:
    """Turn the right-hand side in `solution` into x of L·Lᵀ·x = b."""
    for i in range(count):
        total = solution[i]
        for m in range(i):
            total -= root[i, m] * solution[m]
        solution[i] = total / root[i, i]
    for i in range(count - 1, -1, -1):
        total = solution[i]
        for m in range(i + 1, count):
            total -= root[m, i] * solution[m]
        solution[i] = total / root[i, i]


@kernel
def _solve(
    products: Floats, along: Floats, places: Ints, count: int, root: Floats, solution: Floats
) -> bool:
    """Solve the normal equations of the columns at `places`; return whether none is negative."""
    _cholesky(products, places, count, root)
    for i in range(count):
        solution[i] = along[places[i]]
    _substitute(root, count, solution)
    positive = True
    for i in range(count):
        positive = positive and solution[i] >= 0
    return positive


@inner
def _steepest_outside(
    products: Floats, along: Floats, places: Ints, found: Floats, inside: Flags
) -> int:
    """Return the column outside along which χ² falls fastest, −1 where it falls along none."""
    steepest, place = 1e-12, -1
    for i in range(len(found)):
        if not inside[i]:
            slope = along[places[i]]
            for j in range(len(found)):
                slope -= products[places[i], places[j]] * found[j]
            if slope > steepest:
                steepest, place = slope, i
    return place


@inner
def _step_back(found: Floats, solution: Floats, inside: Flags) -> None:
    """Go towards the solution until a coefficient is 0, and take that column out."""
    step, k = 1.0, 0
    for i in range(len(found)):
        if inside[i]:
            if solution[k] < 0:
                step = min(step, found[i] / (found[i] - solution[k]))
            k += 1
    k = 0
    for i in range(len(found)):
        if inside[i]:
            found[i] += step * (solution[k] - found[i])
            if solution[k] < 0 and found[i] <= 1e-15:
                inside[i], found[i] = False, 0.0
            k += 1


@inner
def _gather(places: Ints, inside: Flags, passive: Ints) -> int:
    """Fill `passive` with the places of the columns inside; return how many there are."""
    size = 0
    for i in range(len(inside)):
        if inside[i]:
            passive[size] = places[i]
            size += 1
    return size


@kernel
def solve_non_negative(products: Floats, along: Floats, places: Ints, count: int) -> Floats:
    """Return the non-negative solution: Lawson and Hanson's NNLS (1974, chapter 23) on products.

    Columns come in one at a time, the one that lowers χ² fastest first; those that the solution
    would make negative leave again where it crosses 0.
    """
    found, solution, root = np.zeros(count), np.zeros(count), np.zeros((count, count))
    passive, inside = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.bool_)
    if _solve(products, along, places, count, root, solution):
        return solution
    for _ in range(3 * count + 3):
        place = _steepest_outside(products, along, places, found, inside)
        if place < 0:
            break
        inside[place] = True
        size = _gather(places, inside, passive)
        while size > 0 and not _solve(products, along, passive, size, root, solution):
            _step_back(found, solution, inside)
            size = _gather(places, inside, passive)
        k = 0
        for i in range(count):
            found[i] = 0.0
            if inside[i]:
                found[i] = solution[k]
                k += 1
    return found


@kernel
def _coefficients(
    products: Floats, along: Floats, places: Ints, count: int, non_negative: bool
) -> Floats:
    if non_negative:
        return solve_non_negative(products, along, places, count)
    solution, root = np.zeros(count), np.zeros((count, count))
    _solve(products, along, places, count, root, solution)
    return solution


@kernel
def _criterion(
    products: Floats, along: Floats, square: float, samples: int, places: Ints, size: Floats
) -> float:
    """Return BIC, its penalty stretched for few samples: n log(χ²/n) + k log n · n/(n − k − 1)."""
    count = len(size)
    room = samples - count - 1
    if room <= 0:
        return 1e9 * count
    chi2 = square
    for i in range(count):
        chi2 -= 2 * size[i] * along[places[i]]
        for j in range(count):
            chi2 += size[i] * products[places[i], places[j]] * size[j]
    fit = samples * math.log(max(chi2 / samples, LEAST_CHI2))
    return fit + count * math.log(samples) * samples / room


@kernel
def _weakest(products: Floats, along: Floats, places: Ints, count: int, non_negative: bool) -> int:
    """Return which of the columns but the last can be done without at least cost.

    Without column i, χ² grows by its coefficient squared over (G⁻¹)ᵢᵢ.
    """
    size = _coefficients(products, along, places, count, non_negative)
    root, unit = np.zeros((count, count)), np.zeros(count)
    _cholesky(products, places, count, root)
    least, weakest = np.inf, 0
    for i in range(count - 1):
        unit[:] = 0.0
        unit[i] = 1.0
        _substitute(root, count, unit)
        cost = size[i] ** 2 / unit[i]
        if cost < least:
            least, weakest = cost, i
    return weakest


@kernel
def _prune(
    products: Floats,
    along: Floats,
    square: float,
    samples: int,
    places: Ints,
    count: int,
    non_negative: bool,
) -> tuple[int, float]:
    """Take out of `places` what the newest column has made superfluous.

    Return how many are left and their BIC.
    """
    size = _coefficients(products, along, places, count, non_negative)
    if non_negative:
        used = 0
        for i in range(count):
            if size[i] > 0:
                places[used], size[used] = places[i], size[i]
                used += 1
        count = max(used, 1)
    best = _criterion(products, along, square, samples, places, size[:count])
    fewer = places.copy()
    while count > 1:
        weakest = _weakest(products, along, places, count, non_negative)
        fewer[:count] = places[:count]
        for i in range(weakest, count - 1):
            fewer[i] = places[i + 1]
        size = _coefficients(products, along, fewer, count - 1, non_negative)
        criterion = _criterion(products, along, square, samples, fewer, size)
        if criterion > best:
            break
        count -= 1
        places[:count] = fewer[:count]
        best = criterion
    return count, best


@kernel
def _take(
    products: Floats, rows: Floats, count: int, place: int, share: Floats, useful: float
) -> None:
    """Take a column: what is along it is not new any more.

    `rows` is a Cholesky decomposition that grows by a row at a time, `share` the square of the
    length of each column's new part.
    """
    length = math.sqrt(max(share[place], useful))
    for j in range(products.shape[0]):
        value = products[place, j]
        for m in range(count):
            value -= rows[m, place] * rows[m, j]
        value /= length
        rows[count, j] = value
        share[j] = max(share[j] - value * value, 0.0)
    share[place] = 0.0


@kernel
def _steepest(
    products: Floats, along: Floats, places: Ints, size: Floats, share: Floats, signed: bool
) -> int:
    """Return the column that lowers χ² most, −1 where none does: orthogonal least squares."""
    best, place = math.sqrt(LEAST_CHI2), -1
    for j in range(len(along)):
        if share[j] > NEW_SHARE**2:
            left = along[j]
            for i in range(len(size)):
                left -= products[j, places[i]] * size[i]
            gain = (abs(left) if signed else left) / math.sqrt(share[j])
            if gain > best:
                best, place = gain, j
    return place


@kernel
def forward_select(
    products: Floats,
    along: Floats,
    square: float,
    samples: int,
    most: int,
    start: int,
    non_negative: bool,
) -> tuple[Ints, float]:
    """Return the places of the columns taken, in the order of their taking, and their BIC.

    From the column `start` (−1: from nothing) the column that lowers χ² most is taken, then those
    that it makes superfluous are left out again, as long as BIC falls (Efroymson's stepwise
    regression, 1960). At most `most` are taken.
    """
    columns = len(along)
    places = np.zeros(most + 1, dtype=np.int64)
    tried = places.copy()
    rows, share = np.zeros((most + 1, columns)), np.ones(columns)
    for j in range(columns):
        share[j] = products[j, j]
    count, best = 0, np.inf
    if start >= 0:
        places[0], count = start, 1
        size = _coefficients(products, along, places, count, non_negative)
        best = _criterion(products, along, square, samples, places, size)
        _take(products, rows, 0, start, share, NEW_SHARE**2)
    while count < most:
        size = _coefficients(products, along, places, count, non_negative)
        place = _steepest(products, along, places, size, share, not non_negative)
        if place < 0:
            break
        tried[:count] = places[:count]
        tried[count] = place
        kept, criterion = _prune(products, along, square, samples, tried, count + 1, non_negative)
        if criterion >= best - _LEAST_GAIN:
            break
        if kept == count + 1:
            _take(products, rows, count, place, share, NEW_SHARE**2)
        else:
            for j in range(columns):
                share[j] = products[j, j]
            for i in range(kept):
                _take(products, rows, i, tried[i], share, NEW_SHARE**2)
        count, best = kept, criterion
        places[:count] = tried[:count]
    return places[:count], best
