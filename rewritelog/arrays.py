"""Names for the kinds of numpy arrays that this package works with; medians, rows by a key."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Bytes: TypeAlias = NDArray[np.uint8]
Flags: TypeAlias = NDArray[np.bool_]
Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Keys: TypeAlias = NDArray[np.uint64]
"""Hashes, and other words of 64 bits."""

Table: TypeAlias = NDArray[Any]
"""A structured array: a row for each record, a named column for each field."""


FEW = 64
"""As few values are sorted sooner than they are partitioned."""


def median(values: Floats) -> float:
    """Return the median, NaN counting as the largest; numpy's own takes ten times as long."""
    middle = len(values) // 2
    few = len(values) <= FEW
    rising = np.sort(values) if few else np.partition(values, (middle - 1, middle))
    if len(values) % 2:
        return float(rising[middle])
    return (float(rising[middle - 1]) + float(rising[middle])) / 2


def rows_by_key(keys: NDArray[np.signedinteger[Any]], wanted: Flags) -> list[Ints]:
    """Return the wanted rows of each key, in the order in which keys first appear."""
    rows = np.flatnonzero(wanted)
    if not len(rows):
        return []
    rows = rows[np.argsort(keys[rows], kind="stable")]
    groups = np.split(rows, np.flatnonzero(np.diff(keys[rows])) + 1)
    return sorted(groups, key=lambda group: int(group[0]))
