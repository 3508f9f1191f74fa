"""Equal rows of tables of parameters: found by a hash of their bits, and then compared in full.

A hash collision costs time, but never leads to a wrong result. −0 and 0 are equal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rewritelog.arrays import Flags, Floats, Ints, Keys
from rewritelog.hashing import GOLDEN, mix
from rewritelog.models.parallel import map_in_threads

BLOCK_ROWS = 1 << 15
"""Rows that are hashed and compared at a time, few enough for the cache of a core."""


def hash_rows(rows: Floats) -> Keys:
    """Return a 64-bit hash of each row."""
    return np.concatenate(list(map_in_threads(_hash_block, _in_blocks(rows))))


def _hash_block(rows: Floats) -> Keys:
    keys = np.zeros(len(rows), dtype=np.uint64)
    for column in rows.T:
        bits = (column + 0.0).view(np.uint64)  # -0 + 0 is 0
        keys = mix(keys * GOLDEN ^ bits)
    return keys


def _in_blocks(rows: NDArray[Any]) -> list[NDArray[Any]]:
    """Return views of blocks of the rows, at least one."""
    return [rows[start : start + BLOCK_ROWS] for start in range(0, max(len(rows), 1), BLOCK_ROWS)]


def grouped(rows: Floats) -> tuple[Keys, Ints, Flags]:
    """Return the rows' hashes, a permutation that groups equal rows, and where each group begins.

    The permutation is a stable sort by hash.
    """
    keys = hash_rows(rows)
    order = np.argsort(keys, kind="stable")
    changes = _changes(keys[order])
    first = changes | _rows_change(rows, order, ~changes)
    if np.count_nonzero(first) > np.count_nonzero(changes):
        order = np.lexsort((*rows.T, keys))  # hash collision: sort by the rows, too
        first = changes | _rows_change(rows, order, ~changes)
    return keys, order, first


def _changes(values: NDArray[Any]) -> Flags:
    """Return where a value differs from its predecessor; True for the first one."""
    changes = np.ones(len(values), dtype=np.bool_)
    changes[1:] = values[1:] != values[:-1]
    return changes


def _rows_change(rows: Floats, order: Ints, same_hash: Flags) -> Flags:
    """Return which rows with the hash of their predecessor, in this order, differ from it."""

    def differ(places: Ints) -> Flags:
        before, after = rows.take(order[places - 1], axis=0), rows.take(order[places], axis=0)
        return np.asarray((before != after).any(axis=1))

    changes = np.zeros(len(order), dtype=np.bool_)
    places = _in_blocks(np.flatnonzero(same_hash))
    changes[same_hash] = np.concatenate(list(map_in_threads(differ, places)))
    return changes


def find_rows(rows: Floats, known: Floats, keys: Keys) -> Ints:
    """Return the index of each row in `known`, −1 if it is not there.

    The known rows all differ, and are in the ascending order of their hashes `keys`.
    """
    indices = np.full(len(rows), -1, dtype=np.int64)
    if not len(keys) or rows.shape[1] != known.shape[1]:
        return indices
    hashes = hash_rows(rows)
    candidates, pending = np.searchsorted(keys, hashes), np.arange(len(rows))
    while len(pending):
        pending = pending[candidates[pending] < len(keys)]
        pending = pending[keys[candidates[pending]] == hashes[pending]]
        places = candidates[pending]
        equal = np.ones(len(pending), dtype=np.bool_)
        for column in range(rows.shape[1]):
            equal &= rows[pending, column] == known[places, column]
        indices[pending[equal]] = places[equal]
        pending = pending[~equal]
        candidates[pending] += 1
    return indices


def is_among(rows: Floats, known: Floats) -> Flags:
    """Return which rows are in `known`."""
    keys, order, first = grouped(known)
    distinct = order[first]
    return find_rows(rows, known[distinct], keys[distinct]) >= 0


@dataclass(frozen=True)
class DistinctPoints:
    """The d distinct rows of a table of parameters, in order of first appearance.

    Many SEBs of one event have the same parameters, so that choosing among SEBs, and looking for
    repeated measurements, work on distinct points.
    """

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
        """Find the distinct rows."""
        _, order, first = grouped(params)
        starts = order[first]  # order is stable: the first row of each group
        by_appearance = np.argsort(starts, kind="stable")
        rank = np.empty(len(starts), dtype=np.int64)
        rank[by_appearance] = np.arange(len(starts))
        point_of_row = np.empty(len(params), dtype=np.int64)
        point_of_row[order] = rank[np.cumsum(first) - 1]
        counts = np.bincount(point_of_row, minlength=len(starts)).astype(np.int64)
        return cls(params[starts[by_appearance]], counts, point_of_row)
