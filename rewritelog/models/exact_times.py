"""Mean times of samples with identical parameters, looked up for whole arrays.

Rows are found by a 64-bit hash of their bits and then compared in full: a hash collision costs
time, but never leads to a wrong result.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rewritelog.arrays import Flags, Floats, Ints, Keys
from rewritelog.hashing import GOLDEN, mix
from rewritelog.models.base import EventTimings
from rewritelog.models.form import Form
from rewritelog.models.parallel import map_in_threads

BLOCK_ROWS = 1 << 15
"""Rows that are hashed and compared at a time, few enough for the cache of a core."""

FILTER_BITS = 20
"""Hashes are looked up by this many of their bits first: most rows differ from all others there."""


def hash_rows(rows: Floats) -> Keys:
    """Return a 64-bit hash of each row; −0 and 0 have the same hash."""
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


def rows_among(rows: Floats, others: Floats) -> Ints:
    """Return the indices of the rows whose hash is that of one of the others, ascending."""
    few = np.unique(hash_rows(others))
    if not len(few):
        return np.zeros(0, dtype=np.int64)
    may_be, shift = np.zeros(1 << FILTER_BITS, dtype=np.bool_), np.uint64(64 - FILTER_BITS)
    may_be[few >> shift] = True

    def rows_in_block(start: int) -> Ints:
        keys = hash_rows(rows[start : start + BLOCK_ROWS])
        likely = np.flatnonzero(may_be[keys >> shift])
        nearest = few[np.minimum(np.searchsorted(few, keys[likely]), len(few) - 1)]
        return np.asarray(start + likely[nearest == keys[likely]])

    return np.concatenate(list(map_in_threads(rows_in_block, range(0, len(rows), BLOCK_ROWS))))


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


class ExactTimes(Form, frozen=True, dict=True, rename={"rows": "params", "counts": "samples"}):
    """The distinct parameter sets of one event's samples, each with the mean of its times.

    They are in the order of their hashes.
    """

    seconds: Floats
    """Mean time of each set, shape (sets,)."""
    counts: Ints
    """Number of samples of each set, shape (sets,)."""
    rows: Floats
    """The sets, shape (sets, parameters)."""

    @cached_property
    def keys(self) -> Keys:
        """The hash of each set, ascending."""
        return hash_rows(self.rows)

    @cached_property
    def longest_run(self) -> int:
        """The largest number of sets that share a hash."""
        runs = np.diff(np.flatnonzero(_changes(self.keys)), append=len(self.keys))
        return int(runs.max(initial=0))

    @classmethod
    def from_timings(cls, timings: EventTimings) -> ExactTimes:
        """Group the samples by their parameters, all of which have to be finite.

        Times are added in the order of the samples, so that the result is the same to the bit for
        the same samples. The mean of equal times is exactly that time.
        """
        _, order, first = grouped(timings.params)
        means, counts = _means(timings.seconds[order], first)
        sets = order[first]
        del order, first  # of very many samples they take as much memory as the result
        return cls(means, counts, timings.params.take(sets, axis=0))

    def find(self, params: Floats) -> Ints:
        """Return the index of each row's set, −1 if it was not timed."""
        indices = np.full(len(params), -1, dtype=np.int64)
        if not len(self.keys) or params.shape[1] != self.rows.shape[1]:
            return indices
        first = np.searchsorted(self.keys, hash_rows(params))
        for step in range(self.longest_run):
            candidate = np.minimum(first + step, len(self.keys) - 1)
            equal = np.ones(len(params), dtype=np.bool_)
            for column in range(params.shape[1]):
                equal &= params[:, column] == self.rows[candidate, column]
            indices[equal] = candidate[equal]
        return indices


def _means(seconds: Floats, first: Flags) -> tuple[Floats, Ints]:
    """Return mean and number of the times of each group, given where each group begins."""
    base, group = seconds[first], np.cumsum(first) - 1
    sums = np.bincount(group, weights=seconds - base[group], minlength=len(base))
    counts = np.bincount(group, minlength=len(base)).astype(np.int64, copy=False)
    return base + sums / counts, counts


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
