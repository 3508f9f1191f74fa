"""The search for the terms of a sum, compiled: forward steps, each followed by backward ones.

It works on inner products alone: G of weighted columns of length 1, and c of each with the target.
Solutions, what a column would add, and BIC all follow from them, whatever the number of samples.
"""

from __future__ import annotations

import math

import numpy as np

from rewritelog.arrays import Floats, Ints
from tracebigsim.compiled import inner, kernel

NEW_SHARE = 1e-5
"""A column of which less than this share (by length) is new adds nothing to those taken."""

LEAST_CHI2 = 1e-14
"""Below this mean squared error a fit is exact, and what is left is rounding."""

PLAIN_NS_PER_BYTE = 150
"""What a search takes uncompiled for each byte of its inner products."""

LEAST_SHARE = 1e-8
"""The same by the square of the length, where columns are compared that are nearly alike."""

LEAST_GROWTH = 0.05
"""Terms whose growth differs by less grow alike."""

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


@inner
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
    products: Floats, along: Floats, places: Ints, count: int, found: Floats
) -> int:
    """Return the column outside along which χ² falls fastest, −1 where it falls along none."""
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
    """Fill `passive` with the places of the columns inside; return how many there are."""
    size = 0
    for i in range(count):
        if found[i] >= 0:
            passive[size] = places[i]
            size += 1
    return size


@inner
def _step_back(count: int, found: Floats, solution: Floats) -> None:
    """Go towards the solution until a coefficient is 0, and take that column out."""
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

    Columns come in one at a time, the one that lowers χ² fastest first; those that the solution
    would make negative leave again where it crosses 0. A column is inside where `found` ≥ 0.
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
    """Fill `size` with the columns' coefficients; return BIC with its penalty stretched.

    n log(χ²/n) + k log n · n/(n − k − 1).
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
    """Return which of the columns but the last can be done without at least cost.

    Without column i, χ² grows by its coefficient squared over (G⁻¹)ᵢᵢ.
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
    """Take out of the first row of `tried` what the newest column has made superfluous.

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
    """Take a column: what is along it is no longer new.

    `rows` is a Cholesky decomposition that grows by a row at a time; its last row is the square of
    the length of each column's new part.
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
) -> int:
    """Return the column that lowers χ² most, −1 where none does: orthogonal least squares."""
    best, place = math.sqrt(LEAST_CHI2), -1
    for j in range(len(along)):
        if share[j] > NEW_SHARE**2:
            left = along[j]
            for i in range(count):
                left -= products[j, places[i]] * size[i]
            gain = (abs(left) if signed else left) / math.sqrt(share[j])
            if gain > best:
                best, place = gain, j
    return place


@kernel(ns_per_byte=PLAIN_NS_PER_BYTE)
def forward_select(
    products: Floats,
    along: Floats,
    square: float,
    samples: int,
    start: int,
    non_negative: bool,
    tried: Ints,
    work: Floats,
    rows: Floats,
) -> tuple[int, float]:
    """Fill the last row of `tried` with the columns taken; return their number and their BIC.

    From the column `start` (−1: from nothing) the column that lowers χ² most is taken, then those
    that it makes superfluous are left out again, as long as BIC falls (Efroymson's stepwise
    regression, 1960). At most m are taken, given by the room for work: `tried` of shape
    (3, 2m + 2), `work` (m + 4, m + 1), `rows` (m + 2, columns).
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
                rows[most + 1, j] = products[j, j]
        count = kept
        while taken < count:
            _take(products, rows, taken, places[taken])
            taken += 1
        if count == most:
            break
        _fit(products, along, square, samples, places, count, non_negative, size, work)
        share = rows[most + 1]
        place = _steepest(products, along, places, count, size, share, not non_negative)
        if place < 0:
            break
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
    """Return which of the columns that are not done yet grows fastest."""
    found = -1
    for i in range(count):
        if not done[i] and (found < 0 or growth[places[i]] > growth[places[found]]):
            found = i
    return found


@inner
def _project(
    products: Floats, places: Ints, count: int, root: Floats, of: int, row: Floats
) -> None:
    """Fill `row` with x of L·x = g, g being the products of a column with those at `places`."""
    for m in range(count):
        total = products[places[m], of]
        for n in range(m):
            total -= root[m, n] * row[n]
        row[m] = total / root[m, m]


@inner
def _slower(
    products: Floats,
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
    """Return the column that is to stand beside the others in place of `own`, maybe itself."""
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
        share, gain = products[column, column], along[column]
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
    along: Floats,
    square: float,
    samples: int,
    places: Ints,
    growth: Floats,
    candidates: int,
    price: float,
    non_negative: bool,
    work: Floats,
) -> None:
    """Exchange the columns at `places` for slower ones that explain as much, the fastest first.

    A column is exchanged for that of the first `candidates` of less growth for which
    n log(χ²/n) + price · growth is least. `work` has the shape (m + 3, m), m being the number of
    columns.
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
            positive = _solve(products, along, others, count, work[3:], work[2])
            if positive or not non_negative:
                places[i] = others[count - 1]
