"""Events that wait for others, as a graph."""

from __future__ import annotations

import numpy as np

from rewritelog.arrays import Ints
from rewritelog.core import core


def followers(before: Ints, after: Ints, count: int) -> tuple[Ints, Ints]:
    """Return the events that wait for each one, and where those of each begin.

    `after[k]` waits for `before[k]`; the second result has `count` + 1 elements.
    """
    order = np.argsort(before, kind="stable")
    first = np.searchsorted(before[order], np.arange(count + 1)).astype(np.int64)
    return np.ascontiguousarray(after[order]), first


def never_run(before: Ints, after: Ints, count: int) -> Ints:
    """Return the events that never run since they wait for themselves, or for such events."""
    waiting, first = followers(before, after, count)
    missing = np.bincount(after, minlength=count).astype(np.int64)
    order = np.empty(count, dtype=np.int64)
    has_run = np.zeros(count, dtype=np.bool_)
    has_run[order[: core.run_order(first, waiting, missing, order)]] = True
    return np.flatnonzero(~has_run)
