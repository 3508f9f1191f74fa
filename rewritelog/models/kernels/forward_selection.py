"""Stepwise selection of the terms of a sum, compiled: forward steps, then backward ones.

It works on inner products alone, so that its time does not depend on the number of samples. Of
hundreds of columns it tries a few, so that it can begin with a few rows of the Gram matrix, and ask
for further ones. The names are:

- `products`: the Gram matrix G = XᵀX of weighted columns of length 1, shape (columns, columns), of
  which the rows in `known` are valid; `squares` is its diagonal
- `along`: Xᵀy, the inner product of each column with the weighted times y, shape (columns,)
- `square`: yᵀy
- `places`: the indices of the columns taken, of which the first `count` are valid
- `root`: the Cholesky factor L of the part of G of these columns
"""

from __future__ import annotations

import math

import numpy as np

from rewritelog.arrays import Flags, Floats, Ints
from tracebigsim.compiled import inner, kernel

NEW_SHARE = 1e-5
"""A column is collinear if its part orthogonal to those taken has less than this length."""

LEAST_CHI2 = 1e-14
"""A fit with a smaller mean squared error is exact, and the rest is rounding."""

PLAIN_NS_PER_BYTE = 150
"""The time of an uncompiled selection per byte of the Gram matrix."""

LEAST_SHARE = 1e-8
"""The least squared length of the orthogonal part of a column that replaces a similar one."""

LEAST_GROWTH = 0.05
"""Terms whose growth differs by at most this are not exchanged."""

_LEAST_GAIN = 1e-9
"""BIC has to fall by more than this, or rounding would decide."""


@inner
def _cholesky(products: Floats, places: Ints, count: int, root: Floats) -> None:
    """Fill `root` with the Cholesky factor L of the Gram matrix of the columns at `places`."""
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
    """Solve L·Lᵀ·x = b by forward and back substitution; `solution` holds b, and then x."""
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


@inner
def _solve(
    products: Floats, along: Floats, places: Ints, count: int, root: Floats, solution: Floats
) -> bool:
    """Solve the normal equations of the columns at `places`; return whether no x is negative."""
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
    products: Floats, along: Floats, places: Ints, count: int, found: Floats
) -> int:
    """Return which inactive column lowers χ² fastest, by index in `places`; −1 if none does."""
    steepest, place = 1e-12, -1
    for i in range(count):
        if found[i] < 0:
            slope = along[places[i]]
            for j in range(count):
                slope -= products[places[i], places[j]] * max(found[j], 0.0)
            if slope > steepest:
                steepest, place = slope, i
    return place


@inner
def _gather(places: Ints, count: int, found: Floats, passive: Ints) -> int:
    """Fill `passive` with the active columns, Lawson and Hanson's set P; return their number."""
    size = 0
    for i in range(count):
        if found[i] >= 0:
            passive[size] = places[i]
            size += 1
    return size


@inner
def _step_back(count: int, found: Floats, solution: Floats) -> None:
    """Go from `found` towards the solution until a coefficient is 0; make that column inactive."""
    step, k = 1.0, 0
    for i in range(count):
        if found[i] >= 0:
            if solution[k] < 0:
                step = min(step, found[i] / (found[i] - solution[k]))
            k += 1
    k = 0
    for i in range(count):
        if found[i] >= 0:
            found[i] += step * (solution[k] - found[i])
            if solution[k] < 0 and found[i] <= 1e-15:
                found[i] = -1.0
            k += 1


@inner
def _non_negative(
    products: Floats,
    along: Floats,
    places: Ints,
    count: int,
    root: Floats,
    found: Floats,
    work: Floats,
    passive: Ints,
) -> None:
    """Fill `found` with the non-negative solution: NNLS of Lawson and Hanson (1974, chapter 23).

    Columns become active one at a time, that which lowers χ² fastest first; those whose coefficient
    would be negative become inactive again. A column is active if its `found` is not negative.
    """
    for i in range(count):
        found[i] = -1.0
    for _ in range(3 * count + 3):
        place = _steepest_outside(products, along, places, count, found)
        if place < 0:
            break
        found[place] = 0.0
        size = _gather(places, count, found, passive)
        while size > 0 and not _solve(products, along, passive, size, root, work):
            _step_back(count, found, work)
            size = _gather(places, count, found, passive)
        k = 0
        for i in range(count):
            if found[i] >= 0:
                found[i] = work[k]
                k += 1
    for i in range(count):
        found[i] = max(found[i], 0.0)


@kernel
def _fit(
    products: Floats,
    along: Floats,
    square: float,
    samples: int,
    places: Ints,
    count: int,
    non_negative: bool,
    size: Floats,
    work: Floats,
) -> float:
    """Fill `size` with the coefficients of the columns; return BIC with a small-sample correction.

    It is n log(χ²/n) + k log n · n/(n − k − 1), where χ² = yᵀy − 2 xᵀXᵀy + xᵀGx.
    """
    root = work[2:]
    solved = _solve(products, along, places, count, root, size)
    if non_negative and not solved:
        passive = places[len(places) // 2 :]
        _non_negative(products, along, places, count, root, size, work[0], passive)
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
def _weakest(products: Floats, places: Ints, count: int, size: Floats, work: Floats) -> int:
    """Return which column, but for the last one, raises χ² least when it is removed.

    Without column i, χ² grows by xᵢ² / (G⁻¹)ᵢᵢ.
    """
    root, unit = work[2:], work[1]
    _cholesky(products, places, count, root)
    least, weakest = np.inf, 0
    for i in range(count - 1):
        for j in range(count):
            unit[j] = 1.0 if i == j else 0.0
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
    tried: Ints,
    count: int,
    non_negative: bool,
    size: Floats,
    work: Floats,
) -> tuple[int, float]:
    """Remove from the first row of `tried` the columns that the newest one has made superfluous.

    Return how many are left and their BIC.
    """
    places, fewer = tried[0], tried[1]
    best = _fit(products, along, square, samples, places, count, non_negative, size, work)
    if non_negative:
        used = 0
        for i in range(count):
            if size[i] > 0:
                places[used] = places[i]
                used += 1
        if 0 < used < count:
            count = used
            best = _fit(products, along, square, samples, places, count, non_negative, size, work)
    while count > 1:
        weakest = _weakest(products, places, count, size, work)
        for i in range(count - 1):
            fewer[i] = places[i] if i < weakest else places[i + 1]
        criterion = _fit(
            products, along, square, samples, fewer, count - 1, non_negative, size, work
        )
        if criterion > best:
            break
        count -= 1
        for i in range(count):
            places[i] = fewer[i]
        best = criterion
    return count, best


@inner
def _take(products: Floats, rows: Floats, count: int, place: int) -> None:
    """Add a column to the orthogonal basis, and update the other columns' orthogonal parts.

    `rows` is a Cholesky decomposition that grows by one row at a time; its last row holds the
    squared length of the part of each column that is orthogonal to those taken.
    """
    share = rows[len(rows) - 1]
    length = math.sqrt(max(share[place], NEW_SHARE**2))
    for j in range(products.shape[0]):
        value = products[place, j]
        for m in range(count):
            value -= rows[m, place] * rows[m, j]
        value /= length
        rows[count, j] = value
        share[j] = max(share[j] - value * value, 0.0)
    share[place] = 0.0


@inner
def _steepest(
    products: Floats,
    along: Floats,
    places: Ints,
    count: int,
    size: Floats,
    share: Floats,
    signed: bool,
    gains: Floats,
) -> int:
    """Return the column that lowers χ² most beside those taken, −1 if none does.

    That is orthogonal least squares (Chen, Billings and Luo, 1989): the residual along the part
    of a column that is orthogonal to those taken. `gains` is filled with it.
    """
    best, place = math.sqrt(LEAST_CHI2), -1
    for j in range(len(along)):
        gains[j] = 0.0
        if share[j] > NEW_SHARE**2:
            left = along[j]
            for i in range(count):
                left -= products[places[i], j] * size[i]
            gains[j] = (abs(left) if signed else left) / math.sqrt(share[j])
            if gains[j] > best:
                best, place = gains[j], j
    return place


@inner
def _want(gains: Floats, known: Flags, wanted: Ints) -> None:
    """Fill `wanted` with the columns with the largest gains whose products are not known."""
    for i in range(len(wanted)):
        best, wanted[i] = 0.0, -1
        for j in range(len(gains)):
            if gains[j] > best and not known[j]:
                best, wanted[i] = gains[j], j
        if wanted[i] >= 0:
            gains[wanted[i]] = 0.0


@kernel(ns_per_byte=PLAIN_NS_PER_BYTE)
def forward_select(
    products: Floats,
    squares: Floats,
    known: Flags,
    along: Floats,
    square: float,
    samples: int,
    start: int,
    non_negative: bool,
    tried: Ints,
    work: Floats,
    rows: Floats,
    wanted: Ints,
) -> tuple[int, float]:
    """Fill the last row of `tried` with the columns selected; return their number and their BIC.

    The search starts from the column `start`, or from nothing if that is −1. As long as BIC falls,
    the column that lowers χ² most is taken, and those that it makes superfluous are removed
    (Efroymson's stepwise regression, 1960). The work arrays determine m, the largest number of
    columns: `tried` has the shape (3, 2m + 2), `work` (m + 4, m + 1), `rows` (m + 2, columns).
    Return −1 as the number if rows of the Gram matrix are missing, after filling `wanted` with
    their indices, and with −1 beyond their number.
    """
    columns, most = len(along), len(rows) - 2
    places, size = tried[2], work[most + 3]
    count, best = 0, np.inf
    taken, kept = 0, 0
    if start >= 0:
        places[0], kept = start, 1
        best = _fit(products, along, square, samples, places, 1, non_negative, size, work)
    while True:
        if kept != count + 1 or count == 0:
            taken = 0
            for j in range(columns):
                rows[most + 1, j] = squares[j]
        count = kept
        while taken < count:
            _take(products, rows, taken, places[taken])
            taken += 1
        if count == most:
            break
        _fit(products, along, square, samples, places, count, non_negative, size, work)
        share, gains = rows[most + 1], rows[most]
        place = _steepest(products, along, places, count, size, share, not non_negative, gains)
        if place < 0:
            break
        if not known[place]:
            _want(gains, known, wanted)
            return -1, best
        for i in range(count):
            tried[0, i] = places[i]
        tried[0, count] = place
        kept, criterion = _prune(
            products, along, square, samples, tried, count + 1, non_negative, size, work
        )
        if criterion >= best - _LEAST_GAIN:
            break
        best = criterion
        for i in range(kept):
            places[i] = tried[0, i]
    return count, best


@inner
def _fastest(growth: Floats, places: Ints, count: int, done: Ints) -> int:
    """Return which column grows fastest among those not done, by index in `places`."""
    found = -1
    for i in range(count):
        if not done[i] and (found < 0 or growth[places[i]] > growth[places[found]]):
            found = i
    return found


@inner
def _project(
    products: Floats, places: Ints, count: int, root: Floats, of: int, row: Floats
) -> None:
    """Fill `row` with x of L·x = g, g being the products of column `of` with those at `places`."""
    for m in range(count):
        total = products[places[m], of]
        for n in range(m):
            total -= root[m, n] * row[n]
        row[m] = total / root[m, m]


@inner
def _slower(
    products: Floats,
    squares: Floats,
    along: Floats,
    square: float,
    samples: int,
    others: Ints,
    count: int,
    own: int,
    growth: Floats,
    candidates: int,
    price: float,
    non_negative: bool,
    work: Floats,
) -> int:
    """Return the column with the least cost beside the others: `own`, or one that grows less."""
    rest, row, root = work[0], work[1], work[3:]
    _cholesky(products, others, count, root)
    for m in range(count):
        total = along[others[m]]
        for j in range(m):
            total -= root[m, j] * rest[j]
        rest[m] = total / root[m, m]
        square -= rest[m] ** 2
    best, found = np.inf, own
    for j in range(-1, candidates):
        column = own if j < 0 else j
        if j >= 0 and growth[column] > growth[own] - LEAST_GROWTH:
            continue
        _project(products, others, count, root, column, row)
        share, gain = squares[column], along[column]
        for m in range(count):
            share -= row[m] ** 2
            gain -= row[m] * rest[m]
        if share > LEAST_SHARE and (gain > 0 or not non_negative):
            chi2 = max((square - gain * gain / share) / samples, LEAST_CHI2)
            cost = samples * math.log(chi2) + price * growth[column]
            if cost < best - _LEAST_GAIN:
                best, found = cost, column
        elif j < 0:
            break
    return found


@kernel(ns_per_byte=PLAIN_NS_PER_BYTE)
def exchange_for_slower(
    products: Floats,
    squares: Floats,
    known: Flags,
    along: Floats,
    square: float,
    samples: int,
    places: Ints,
    growth: Floats,
    candidates: int,
    price: float,
    non_negative: bool,
    work: Floats,
) -> int:
    """Exchange columns for ones that grow less and explain about as much, the fastest first.

    Each column at `places` is exchanged for the one with the least n log(χ²/n) + price · growth
    among the first `candidates` columns of less growth. `work` has the shape (m + 3, m) for m
    columns at `places`. Return the column whose row of the Gram matrix is missing, −1 if none is.
    """
    count = len(places)
    others, done = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    for _ in range(count):
        i = _fastest(growth, places, count, done)
        done[i] = 1
        for j in range(count - 1):
            others[j] = places[j] if j < i else places[j + 1]
        others[count - 1] = _slower(
            products,
            squares,
            along,
            square,
            samples,
            others,
            count - 1,
            places[i],
            growth,
            candidates,
            price,
            non_negative,
            work,
        )
        if others[count - 1] != places[i]:
            if not known[others[count - 1]]:
                return others[count - 1]
            positive = _solve(products, along, others, count, work[3:], work[2])
            if positive or not non_negative:
                places[i] = others[count - 1]
    return -1
