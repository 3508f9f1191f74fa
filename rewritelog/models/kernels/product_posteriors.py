"""The posterior probabilities of many products of factors, alone or in a sum of two, compiled.

A product is a set of factors that use different parameters. A time is c·F, c·F + d or c·F + d·G, F
being a product and G a single factor. Larger products are made from the most probable smaller ones
(a beam search), each one once.

The names are:

- `logs`: the logarithms of the factors' values, −∞ for 0, shape (factors, samples)
- `prior`: the log prior probability of each factor, relative to none of its parameters
- `uses`: the parameters of each factor as a bit mask
- `marks`: a pseudo-random number for each factor; that of a product is the exclusive or of its own
"""

from __future__ import annotations

import math

import numpy as np

from rewritelog.arrays import Floats, Ints
from tracebigsim.compiled import inner, kernel

NOISES = (0.04, 0.1, 0.25, 0.6)
"""Standard deviations of log t about the product, each as probable as the others."""

HEAVY_TAIL = 4.0
"""Degrees of freedom of Student's t distribution of the errors of log t."""

LARGEST_ERROR = 5.0
"""A larger error of log t counts as this."""

LARGEST_LOG = 700.0
"""The exponential of a larger number overflows."""

HUBER = 1.345
"""The corner of Huber's loss in standard deviations, as in `fitting.solving`."""

MOST_WITH_SECOND = 8
"""How many products are tried in sums of two terms that both depend on parameters."""

LEAST_SHARE = 1e-9
"""Two terms are collinear if their determinant is less than this share of its largest value."""

PLAIN_NS_PER_BYTE = 16_000
"""Approximate uncompiled time for each byte of `logs` and each factor of a product."""

_LEAST_SPREAD = 1e-3
_CHUNK = 32
"""The product of so many densities does not overflow."""


@inner
def _median(values: Floats, count: int) -> float:
    """Return the upper median of the first `count` values, which it reorders (C. Hoare 1961)."""
    low, high, middle = 0, count - 1, count // 2
    while low < high:
        pivot, i, j = values[middle], low, high
        while i <= j:
            while values[i] < pivot:
                i += 1
            while pivot < values[j]:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if j < middle:
            low = i
        if middle < i:
            high = j
    return values[middle]


@inner
def _line(
    shape: Floats, second: Floats, times: Floats, weights: Floats, of_two: bool
) -> tuple[float, float]:
    """Return c and d of the weighted fit of c·shape + d·second to relative errors.

    NaN if one is not positive; d is 0 unless the sum is one of two.
    """
    ones = cross = square = level = along = 0.0
    for i in range(len(times)):
        unit = weights[i] / times[i]
        one, other = shape[i] * unit, second[i] * unit
        ones += other * other
        cross += one * other
        square += one * one
        level += other * weights[i]
        along += one * weights[i]
    if not of_two:
        return along / square, 0.0
    determinant = ones * square - cross * cross
    if determinant > LEAST_SHARE * ones * square:
        main = (ones * along - cross * level) / determinant
        added = (square * level - cross * along) / determinant
        if main > 0 and added > 0:
            return main, added
    return np.nan, np.nan


@inner
def _evidence(
    shape: Floats, second: Floats, times: Floats, work: Floats, of_two: bool
) -> tuple[float, float]:
    """Return the log marginal likelihood of c·shape or c·shape + d·second, and d/c.

    c and d are those of a robust fit; each one costs log(noise/√n), the width of its posterior
    relative to that of its prior (Laplace's approximation).
    """
    count = len(times)
    weights, errors = work[0], work[1]
    for i in range(count):
        weights[i] = 1.0
    main, added = _line(shape, second, times, weights, of_two)
    if not math.isfinite(main):
        return -np.inf, 0.0
    for i in range(count):
        errors[i] = abs((main * shape[i] + added * second[i]) / times[i] - 1)
        weights[i] = errors[i]
    corner = HUBER * (1.4826 * _median(weights, count) + _LEAST_SPREAD)
    for i in range(count):
        weights[i] = math.sqrt(min(1.0, corner / max(errors[i], 1e-12)))
    main, added = _line(shape, second, times, weights, of_two)
    if not math.isfinite(main):
        return -np.inf, 0.0
    for i in range(count):
        ratio = (main * shape[i] + added * second[i]) / times[i]
        error = math.log(ratio) if ratio > 0 else -LARGEST_ERROR
        errors[i] = min(error * error, LARGEST_ERROR**2)
    return _log_likelihood(errors, 2 if of_two else 1), added / main


@inner
def _log_likelihood(squares: Floats, fitted: int) -> float:
    """Return the log likelihood of squared errors of log t, averaged over the noises."""
    count, best, total = len(squares), -np.inf, 0.0
    for noise in NOISES:
        unit = 1 / (HEAVY_TAIL * noise * noise)
        log, density = 0.0, 1.0
        for i in range(count):
            density *= 1 + squares[i] * unit
            if i % _CHUNK == _CHUNK - 1:
                log += math.log(density)
                density = 1.0
        log = -(HEAVY_TAIL + 1) / 2 * (log + math.log(density))
        log += (fitted - count) * math.log(noise) - fitted * 0.5 * math.log(count)
        if log > best:
            total = total * math.exp(best - log) + 1 if total > 0 else 1.0
            best = log
        else:
            total += math.exp(log - best)
    return best + math.log(total)


@inner
def _is_new(seen: Ints, mark: int) -> bool:
    """Return whether a mark is not in a hash table yet, and put it there."""
    place = mark % len(seen)
    while seen[place] != 0:
        if seen[place] == mark:
            return False
        place = (place + 1) % len(seen)
    seen[place] = mark
    return True


@inner
def _put(table: Ints, figures: Floats, count: int, row: Ints, row_figures: Floats) -> int:
    """Insert a row by its log posterior, the first of its figures; return how many there are then.

    The first `count` rows are in use, the best first. If all are, the last one is lost, and if the
    new one is worse, that is.
    """
    place, log = min(count, len(figures) - 1), row_figures[0]
    if not math.isfinite(log) or (count == len(figures) and log <= figures[place, 0]):
        return count
    while place > 0 and log > figures[place - 1, 0]:
        for j in range(len(row)):
            table[place, j] = table[place - 1, j]
        for j in range(len(row_figures)):
            figures[place, j] = figures[place - 1, j]
        place -= 1
    for j in range(len(row)):
        table[place, j] = row[j]
    for j in range(len(row_figures)):
        figures[place, j] = row_figures[j]
    return min(count + 1, len(table))


@inner
def _to_shape(logs: Floats, shape: Floats) -> float:
    """Fill `shape` with exponentials, scaled to at most 1; return the largest logarithm."""
    largest = -np.inf
    for i in range(len(logs)):
        largest = max(largest, logs[i])
    for i in range(len(logs)):
        shape[i] = math.exp(logs[i] - largest)
    return largest


def plain_seconds(logs: Floats, found: Ints) -> float:
    """Return how long `most_probable_products` takes uncompiled."""
    most_factors = found.shape[1] - 1
    return 1e-9 * PLAIN_NS_PER_BYTE * most_factors * logs.nbytes


@kernel(plain_s=lambda *args: plain_seconds(args[0], args[7]))
def most_probable_products(
    logs: Floats,
    prior: Floats,
    second_prior: Floats,
    uses: Ints,
    marks: Ints,
    times: Floats,
    width: int,
    found: Ints,
    figures: Floats,
) -> int:
    """Fill `found` with the most probable functions, best first; return their number.

    A row of `found` has the factor G, or -1 for a constant or none, and then the factors of F and
    -1 after the last, shape (most functions, 1 + most factors). The row of `figures` has its log
    posterior and d/c, shape (most functions, 2). Each round multiplies the `width` best products of
    the last one by one more factor. Every G is tried with the best products of all rounds, at
    most `MOST_WITH_SECOND`, and has the log prior probability `second_prior`.
    """
    factors, count = logs.shape
    depth = found.shape[1] - 1
    shape, ones, work = np.ones(count), np.ones(count), np.empty((2, count))
    seen = np.zeros(4 * width * factors * depth + 64, dtype=np.int64)
    # a row for each product of the last round, of this one, and of the best: mark, parameters,
    # factors; and log posterior, log prior, the logarithm of the product for each sample
    old, new = np.full((width, 2 + depth), -1), np.full((width, 2 + depth), -1)
    old_figures, new_figures = np.zeros((width, 2 + count)), np.zeros((width, 2 + count))
    top, top_figures = (
        np.full((MOST_WITH_SECOND, 2 + depth), -1),
        np.zeros((MOST_WITH_SECOND, 2 + count)),
    )
    own, own_figures = np.full(2 + depth, -1), np.zeros(2 + count)
    function, function_figures = np.full(1 + depth, -1), np.zeros(2)
    old[0, :2] = 0
    function_figures[0], function_figures[1] = _evidence(shape, ones, times, work, False)
    kept = _put(found, figures, 0, function, function_figures)
    olds, tops = 1, 0
    for size in range(depth):
        news = 0
        for k in range(olds):
            for factor in range(factors):
                mark = old[k, 0] ^ marks[factor]
                if old[k, 1] & uses[factor] or not _is_new(seen, mark):
                    continue
                for i in range(count):
                    own_figures[2 + i] = old_figures[k, 2 + i] + logs[factor, i]
                largest = _to_shape(own_figures[2:], shape)
                own[:] = old[k]
                own[0], own[1], own[2 + size] = mark, own[1] | uses[factor], factor
                own_figures[0], own_figures[1] = -np.inf, old_figures[k, 1] + prior[factor]
                function[1:] = own[2:]
                for of_two in range(2):
                    log, ratio = _evidence(shape, ones, times, work, of_two == 1)
                    log += own_figures[1]
                    function_figures[0] = log
                    function_figures[1] = ratio * math.exp(min(largest, LARGEST_LOG))
                    kept = _put(found, figures, kept, function, function_figures)
                    own_figures[0] = max(own_figures[0], log)
                news = _put(new, new_figures, news, own, own_figures)
        for k in range(news):
            tops = _put(top, top_figures, tops, new[k], new_figures[k])
        old, new, old_figures, new_figures, olds = new, old, new_figures, old_figures, news
    return _add_seconds(
        logs, second_prior, times, top[:tops], top_figures[:tops], found, figures, kept
    )


@kernel
def _add_seconds(
    logs: Floats,
    second_prior: Floats,
    times: Floats,
    top: Ints,
    top_figures: Floats,
    found: Ints,
    figures: Floats,
    kept: int,
) -> int:
    """Try the sums of each product of `top` and each factor; return the number of `found`."""
    factors, count = logs.shape
    shape, second, work = np.empty(count), np.empty(count), np.empty((2, count))
    function, function_figures = np.full(found.shape[1], -1), np.zeros(2)
    for k in range(len(top)):
        function[1:] = top[k, 2:]
        of_first = _to_shape(top_figures[k, 2:], shape)
        for factor in range(factors):
            if not math.isfinite(second_prior[factor]):
                continue
            function[0] = factor
            of_second = _to_shape(logs[factor], second)
            log, ratio = _evidence(shape, second, times, work, True)
            function_figures[0] = log + top_figures[k, 1] + second_prior[factor]
            function_figures[1] = ratio * math.exp(min(of_first - of_second, LARGEST_LOG))
            kept = _put(found, figures, kept, function, function_figures)
    return kept
