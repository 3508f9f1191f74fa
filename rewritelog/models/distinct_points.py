"""The distinct parameter points of an event's SEBs.

SEBs of one event often have the same parameters. Choosing among SEBs, and looking for repeated
measurements, therefore works on distinct points.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rewritelog.arrays import Flags, Floats, Ints
from rewritelog.models.exact_times import grouped


@dataclass(frozen=True)
class DistinctPoints:
    """The d distinct rows of a table of parameters, in order of first appearance."""

    params: Floats
    """Shape (d, parameters)."""
    counts: Ints
    """The number of equal rows, shape (d,)."""
    point_of_row: Ints
    """The index of the point of each row of the table, shape (rows,)."""

    def __len__(self) -> int:
        return len(self.counts)

    @classmethod
    def of_rows(cls, params: Floats) -> DistinctPoints:
        """Find the distinct rows; −0 and 0 are equal."""
        _, order, first = grouped(params)
        group = np.cumsum(first) - 1
        starts = order[first]  # order is stable: the first row of each group
        by_appearance = np.argsort(starts, kind="stable")
        rank = np.empty(len(starts), dtype=np.int64)
        rank[by_appearance] = np.arange(len(starts))
        point_of_row = np.empty(len(params), dtype=np.int64)
        point_of_row[order] = rank[group]
        counts = np.bincount(point_of_row, minlength=len(starts)).astype(np.int64)
        return cls(params[starts[by_appearance]], counts, point_of_row)


def is_among(params: Floats, known: Floats) -> Flags:
    """Return which rows of `params` are rows of `known` too."""
    if len(known) == 0:
        return np.zeros(len(params), dtype=np.bool_)
    both = DistinctPoints.of_rows(np.concatenate([params, known]))
    has = np.zeros(len(both), dtype=np.bool_)
    has[both.point_of_row[len(params) :]] = True
    return has[both.point_of_row[: len(params)]]
