"""Which of many lines or points a page shows: a sample, the same each time."""

from __future__ import annotations

import numpy as np

from rewritelog.arrays import Ints
from rewritelog.hashing import draw_numbers

MOST_POINTS = 5_000
"""At most this many lines of an event are drawn."""

MOST_POINTS_A_PAGE = 60_000

SEED = 1
"""Seed of the sample of lines that is drawn if there are more."""


def some_rows(label: str, count: int, most: int) -> Ints:
    """Return at most `most` of `count` rows, in ascending order, sampled by `label` and `SEED`."""
    if count <= most:
        return np.arange(count)
    return np.sort(np.argsort(draw_numbers(label, count, SEED), kind="stable")[:most])
