"""The distinct parameter points of an event's SEBs, and numbers to draw among rows by.

An event's SEBs often share their parameters: whoever chooses among SEBs, or looks for repeated
measurements, works on the points that differ.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from rewritelog.arrays import Flags, Floats, Ints, Keys
from rewritelog.models.exact_times import GOLDEN, grouped, mix


@dataclass(frozen=True)
class Points:
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
    def of_rows(cls, params: Floats) -> Points:
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
    """Return which rows of `params` stand among the rows of `known`."""
    if len(known) == 0:
        return np.zeros(len(params), dtype=np.bool_)
    both = Points.of_rows(np.concatenate([params, known]))
    has = np.zeros(len(both), dtype=np.bool_)
    has[both.point_of_row[len(params) :]] = True
    return has[both.point_of_row[: len(params)]]


def draw_numbers(label: str, count: int, seed: int) -> Keys:
    """Return a number for each of `count` rows, no two alike, the same on every machine.

    They are the splitmix64 sequence that starts at a digest of seed and label; whoever takes the
    rows with the smallest numbers draws without replacement.
    """
    digest = hashlib.blake2b(f"{seed} {label}".encode(errors="surrogatepass"), digest_size=8)
    return sequence(count, int.from_bytes(digest.digest(), "little"))


def sequence(count: int, start: int = 0) -> Keys:
    """Return the first numbers of the splitmix64 sequence that starts there; no two are alike."""
    return mix(np.arange(1, count + 1, dtype=np.uint64) * GOLDEN + np.uint64(start))
