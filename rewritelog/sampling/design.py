"""Experimental design: the parameter points to measure for the most certain fit.

Times range over decades and fits are weighted by 1/time, so that the design is for the logarithm of
the time. For all usual kernels (power laws, p², √p, p·log p, products of parameters, sums of these)
that is a smooth function of the logarithms of the parameters, and the candidate terms are those of
its expansion: with u the logarithm of a parameter, scaled to mean 0 and variance 1 over the run's
SEBs,

    1, u of each parameter, and, smaller a priori, u² and the product u·u' of each pair.

Which of them matter is unknown before anything is timed, and there are often more terms than
points. The coefficient of each term therefore has a prior with mean 0, and variance 1 for u and
0.09 for u² and u·u'. The point chosen next is always the one where the fit to the points chosen so
far has the largest predictive variance. That is the sequential D-optimal design (Dykstra, "The
augmentation of experimental data to maximize |X'X|", Technometrics 13, 1971; Fedorov, "Theory of
Optimal Experiments", 1972; Atkinson, Donev and Tobias, "Optimum Experimental Designs", 2007) with
the prior of DuMouchel and Jones, "A simple Bayesian modification of D-optimal designs to reduce
dependence on an assumed model", Technometrics 36, 1994.

The rest of the points are spread over the run (`cover`). The parameter space is divided
recursively, as in a k-d tree: each cell is halved across the parameter that varies most in it, with
half of the rows on either side, and one point is taken from each. Cells are smaller where there are
more rows, so that the choice represents the run, and no part of the space is left out.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rewritelog.arrays import Flags, Floats, Ints, Keys
from rewritelog.models.fitting.design import NARROWEST_RANGE

SECOND_ORDER = 0.3
"""The prior standard deviation of the terms u² and u·u', where that of u is 1."""

NOISE = 0.1
"""Variance of log t that no term explains, as a share of the variance that the terms explain."""

LEAST_SPREAD = 1e-6
"""A product with a smaller standard deviation over the run counts as constant, such as (±1)²."""

LARGEST_RATIO = 1e6
"""Values of a parameter below its largest divided by this are not distinguished from 0."""

BLOCK_ROWS = 1 << 14
"""Rows whose terms are computed at a time."""

_TIE = 1 - 1e-9
"""Points with variances within this factor of the largest are equivalent; the first one is
taken."""


class Coordinates:
    """The logarithms u of the parameters that vary, mean 0 and variance 1 over a run's SEBs.

    `params` has the parameters of each point, and `counts` its number of rows.
    """

    def __init__(self, params: Floats, counts: Ints) -> None:
        lowest, highest = params.min(axis=0), params.max(axis=0)
        largest = np.maximum(np.abs(lowest), np.abs(highest))
        self.varies = highest / 2 - lowest / 2 > NARROWEST_RANGE * largest
        """Which parameters vary among the points; the others have no coordinate."""
        sizes = np.abs(params[:, self.varies])
        smallest = np.where(sizes > 0, sizes, np.inf).min(axis=0, initial=np.inf)
        self.unit = np.maximum(smallest, largest[self.varies] / LARGEST_RATIO)
        """The divisor of each parameter that varies, before its logarithm is taken: its smallest
        magnitude above 0, but not below 1/`LARGEST_RATIO` of the largest."""
        logs = _logs(params[:, self.varies], self.unit)
        self.centre, self.scale = _moments(logs, counts)

    def of(self, params: Floats) -> Floats:
        """Return u of each row, shape (rows, parameters that vary)."""
        scaled: Floats = (_logs(params[:, self.varies], self.unit) - self.centre) / self.scale
        return scaled


class DesignTerms:
    """The candidate terms, scaled so that their mean squares over a run sum to 1."""

    def __init__(self, coordinates: Coordinates, params: Floats, counts: Ints) -> None:
        self.coordinates, first_order = coordinates, coordinates.of(params)
        self.product_centre, scale = _moments(_products(first_order), counts)
        self.product_scale = np.where(scale > LEAST_SPREAD, scale, 1.0)
        columns = _columns(first_order, self.product_centre, self.product_scale)
        self.count = columns.shape[1]
        """The number of terms."""
        self.unit = np.sqrt(float((counts / counts.sum() @ columns**2).sum()))

    def blocks(self, params: Floats) -> Iterator[Floats]:
        """Yield the values of the terms block by block, shape (rows, terms)."""
        for start in range(0, len(params), BLOCK_ROWS):
            first_order = self.coordinates.of(params[start : start + BLOCK_ROWS])
            yield _columns(first_order, self.product_centre, self.product_scale) / self.unit

    def values(self, params: Floats) -> Floats:
        """Return the values of the terms, shape (rows, terms)."""
        return np.concatenate([np.zeros((0, self.count)), *self.blocks(params)])


def design(values: Floats, free: Flags, known: Floats, number: int) -> Ints:
    """Choose `number` of the free points, each where the fit so far is least certain.

    `values` has the terms at each point, and `known` at points already measured, shape (points,
    terms). Return the points in the order of their choice; fewer if not enough are free.
    """
    covariance = covariance_of(known)
    variance = np.where(free, np.einsum("ij,ij->i", values @ covariance, values), -np.inf)
    chosen: list[int] = []
    for _ in range(min(number, int(np.count_nonzero(free)))):
        best = int(np.argmax(variance >= _TIE * variance.max()))
        covariance_at = covariance @ values[best]
        variance_at = NOISE + float(values[best] @ covariance_at)
        covariance -= np.outer(covariance_at, covariance_at) / variance_at
        variance -= (values @ covariance_at) ** 2 / variance_at
        variance[best] = -np.inf
        chosen.append(best)
    return np.array(chosen, dtype=np.int64)


def covariance_of(values: Floats) -> Floats:
    """Return the posterior covariance of the coefficients after measurements at the rows."""
    information = np.eye(values.shape[1]) + values.T @ values / NOISE
    return np.asarray(np.linalg.inv(information), dtype=np.float64)


def leverages(terms: DesignTerms, measured: Floats, params: Floats) -> Floats:
    """Return the leverage of each row of `params` on a fit to the measured rows.

    It is the variance of a prediction in units of the noise. A prediction with more leverage than
    all measured rows is an extrapolation in the combination of its terms.
    """
    covariance: Floats = covariance_of(terms.values(measured)) / NOISE
    parts = [np.einsum("ij,ij->i", block @ covariance, block) for block in terms.blocks(params)]
    return np.concatenate([np.zeros(0), *parts])


def _logs(params: Floats, unit: Floats) -> Floats:
    """Return log(1 + |p|/unit) with the sign of p."""
    with np.errstate(over="ignore"):  # timing lines may have parameters far beyond the run's
        sizes = np.minimum(np.abs(params) / unit, np.finfo(np.float64).max)
    return np.asarray(np.copysign(np.log1p(sizes), params))


def _moments(columns: Floats, counts: Ints) -> tuple[Floats, Floats]:
    """Return mean and standard deviation of each column, weighted with the numbers of rows."""
    weights = counts / counts.sum()
    centre: Floats = weights @ columns
    scale: Floats = np.sqrt(weights @ (columns - centre) ** 2)
    return centre, scale


def _products(first_order: Floats) -> Floats:
    """Return the products of all pairs of columns, including squares."""
    first, second = np.triu_indices(first_order.shape[1])
    return np.asarray(first_order[:, first] * first_order[:, second])


def _columns(first_order: Floats, centre: Floats, scale: Floats) -> Floats:
    """Return the columns of all terms, multiplied by their prior standard deviations."""
    products = (_products(first_order) - centre) / scale
    return np.column_stack([np.ones(len(first_order)), first_order, SECOND_ORDER * products])


SAMPLED_POINTS = 1 << 10
"""The parameter that varies most in a cell is determined with about this many of its points."""


def cover(coordinates: Floats, counts: Ints, taken: Flags, number: int, numbers: Keys) -> Ints:
    """Choose points until `number` are taken, first in cells that have none.

    `coordinates` has the shape (points, parameters), with parameters scaled to be comparable;
    `counts` is the number of rows at each point, `taken` the points that count as chosen already;
    random `numbers` decide within a cell. Return the newly chosen points, ascending.
    """
    columns = np.asfortranarray(coordinates)
    weights = None if (counts == counts[0]).all() else counts
    chosen: list[Ints] = []
    all_points = np.arange(len(counts), dtype=np.int64)
    cells = [(all_points, int(np.count_nonzero(taken)), min(number, len(counts)))]
    while cells:
        cell, taken_in_cell, quota = cells.pop()
        needed = quota - taken_in_cell
        if needed <= 0:
            continue
        if quota == 1 or quota == len(cell):
            free = cell[~taken[cell]]
            chosen.append(free[np.argsort(numbers[free], kind="stable")[:needed]])
            continue
        lower, upper = _halves(cell, columns, weights)
        taken_below = int(np.count_nonzero(taken[lower]))
        odd = int(numbers[cell[0]] & np.uint64(1)) if quota % 2 else 0
        least = max(taken_below, quota - len(upper))
        most = min(len(lower), quota - (taken_in_cell - taken_below))
        below = min(max(quota // 2 + odd, least), most)
        cells.append((upper, taken_in_cell - taken_below, quota - below))
        cells.append((lower, taken_below, below))
    return np.sort(np.concatenate([np.zeros(0, dtype=np.int64), *chosen]))


def _halves(cell: Ints, columns: Floats, weights: Ints | None) -> tuple[Ints, Ints]:
    """Divide a cell of at least two points into two with numbers of rows as equal as possible.

    Without weights all points have the same number of rows.
    """
    middle = len(cell) // 2
    if columns.shape[1] == 0:
        return cell[:middle], cell[middle:]
    sampled_rows = columns[cell[:: 1 + len(cell) // SAMPLED_POINTS]]
    values = columns[cell, int(np.argmax(sampled_rows.std(axis=0)))]
    if weights is None:
        border = np.partition(values, middle)[middle]
        below = values < border
        equal = np.flatnonzero(values == border)
        below[equal[: middle - int(np.count_nonzero(below))]] = True
        return cell[below], cell[~below]
    order = np.argsort(values, kind="stable")
    rows = np.cumsum(weights[cell[order]])
    cut = int(np.searchsorted(rows, rows[-1] / 2)) + 1
    cut = min(max(cut, 1), len(cell) - 1)
    return cell[order[:cut]], cell[order[cut:]]
