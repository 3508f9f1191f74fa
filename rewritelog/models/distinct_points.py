"""The distinct parameter points of an event's SEBs.

An event's SEBs often share their parameters: whoever chooses among SEBs, or looks for repeated
measurements, works on the points that differ.
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
    """How many rows are alike, shape (d,)."""
    point_of_row: Ints
    """Which point each row of the table is, shape (rows,)."""

    def __len__(self) -> int:
        return len(self.counts)

    @classmethod
    def of_rows(cls, params: Floats) -> DistinctPoints:
        """Find the distinct rows; −0 and 0 are the same."""
        _, order, first = grouped(params)
        group = np.cumsum(first) - 1
        starts = order[first]  # order is stable: the first row of each group
        by_appearance = np.argsort(starts, kind="stable")
        place = np.empty(len(starts), dtype=np.int64)
        place[by_appearance] = np.arange(len(starts))
        point_of_row = np.empty(len(params), dtype=np.int64)
        point_of_row[order] = place[group]
        counts = np.bincount(point_of_row, minlength=len(starts)).astype(np.int64)
        return cls(params[starts[by_appearance]], counts, point_of_row)


def among(params: Floats, known: Floats) -> Flags:
    """Return which rows of `params` are among the rows of `known`."""
    if len(known) == 0:
        return np.zeros(len(params), dtype=np.bool_)
    both = DistinctPoints.of_rows(np.concatenate([params, known]))
    has = np.zeros(len(both), dtype=np.bool_)
    has[both.point_of_row[len(params) :]] = True
    return has[both.point_of_row[: len(params)]]
