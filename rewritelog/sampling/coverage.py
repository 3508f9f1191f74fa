"""Space-filling choice: one point from each of many cells with equally many rows.

The parameter space is divided recursively, as in a k-d tree: each cell is halved across the
parameter that varies most in it, with half of the rows on either side. Cells are smaller where
there are more rows, so that the choice represents the run, and no region is left out.
"""

from __future__ import annotations

import numpy as np

from rewritelog.arrays import Flags, Floats, Ints, Keys

SAMPLED_POINTS = 1 << 10
"""The parameter that varies most in a cell is determined with about this many of its points."""


def cover(coordinates: Floats, counts: Ints, taken: Flags, number: int, numbers: Keys) -> Ints:
    """Choose points, in cells without any first, until `wanted` points are taken.

    `coordinates` has the shape (points, parameters), with parameters scaled to be comparable;
    `counts` is the number of rows at each point, `taken` the points that count as chosen already;
    random `numbers` decide within a cell. Return the newly chosen points, ascending.
    """
    columns = np.asfortranarray(coordinates)
    weights = None if (counts == counts[0]).all() else counts
    chosen: list[Ints] = []
    everything = np.arange(len(counts), dtype=np.int64)
    cells = [(everything, int(np.count_nonzero(taken)), min(number, len(counts)))]
    while cells:
        cell, occupied, here = cells.pop()
        missing = here - occupied
        if missing <= 0:
            continue
        if here == 1 or here == len(cell):
            free = cell[~taken[cell]]
            chosen.append(free[np.argsort(numbers[free], kind="stable")[:missing]])
            continue
        lower, upper = _halves(cell, columns, weights)
        occupied_below = int(np.count_nonzero(taken[lower]))
        odd = int(numbers[cell[0]] & np.uint64(1)) if here % 2 else 0
        least = max(occupied_below, here - len(upper))
        most = min(len(lower), here - (occupied - occupied_below))
        below = min(max(here // 2 + odd, least), most)
        cells.append((upper, occupied - occupied_below, here - below))
        cells.append((lower, occupied_below, below))
    return np.sort(np.concatenate([np.zeros(0, dtype=np.int64), *chosen]))


def _halves(cell: Ints, columns: Floats, weights: Ints | None) -> tuple[Ints, Ints]:
    """Divide a cell of at least two points into two with numbers of rows as equal as possible.

    Without weights all points have the same number of rows.
    """
    middle = len(cell) // 2
    if columns.shape[1] == 0:
        return cell[:middle], cell[middle:]
    sample = columns[cell[:: 1 + len(cell) // SAMPLED_POINTS]]
    along = columns[cell, int(np.argmax(sample.std(axis=0)))]
    if weights is None:
        border = np.partition(along, middle)[middle]
        below = along < border
        equal = np.flatnonzero(along == border)
        below[equal[: middle - int(np.count_nonzero(below))]] = True
        return cell[below], cell[~below]
    order = np.argsort(along, kind="stable")
    rows = np.cumsum(weights[cell[order]])
    cut = int(np.searchsorted(rows, rows[-1] / 2)) + 1
    cut = min(max(cut, 1), len(cell) - 1)
    return cell[order[:cut]], cell[order[cut:]]
