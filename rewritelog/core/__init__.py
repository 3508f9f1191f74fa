"""The compiled core: what is sequential over bytes or events. `core.h` declares its functions.

This module also finds equal texts, and equal rows of tables, with the core's hash table.
"""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct

from rewritelog.arrays import Bytes, Floats, Ints, Keys
from tracebigsim.core import Library

core: Any = Library(Path(__file__).parent)
"""The functions, structs and constants that `core.h` declares."""


class NumberedTexts(NamedTuple):
    """The numbers of texts in order of first appearance; equal texts have the same number."""

    first: Ints
    """The first row of each distinct text."""
    numbers: Ints
    """The number of each text."""
    key: int
    slots: Any
    """The hash table, for `core.find_texts`."""

    @classmethod
    def of(
        cls, buffer: Bytes, at: Ints, lengths: Ints, *, are_names: bool = False
    ) -> NumberedTexts:
        """Return the numbers of texts at offsets of a buffer; names end before any NUL.

        They are hashed with a random key, so that no log can make all collide.
        """
        slots = np.zeros(2 << len(at).bit_length(), dtype=np.int32)
        first, numbers = np.empty((2, len(at)), dtype=np.int64)
        key = secrets.randbits(64)
        count = core.number_texts(buffer, at, lengths, are_names, key, slots, first, numbers)
        return cls(first[:count].copy(), numbers, key, slots)


class DistinctPoints(Struct, frozen=True):
    """The d distinct rows of a table of parameters, in order of first appearance.

    Many SEBs of one event have the same parameters, so that choosing among SEBs, and looking for
    repeated measurements, work on distinct points. −0 and 0 are equal, and so are equal NaNs.
    """

    params: Floats
    """Shape (d, parameters)."""
    counts: Ints
    """The number of equal rows, shape (d,)."""
    point_of_row: Ints
    """The index of the point of each row of the table, shape (rows,)."""
    rows: NumberedTexts

    def __len__(self) -> int:
        return len(self.counts)

    @classmethod
    def of_rows(cls, params: Floats) -> DistinctPoints:
        """Find the distinct rows."""
        width, table = 8 * params.shape[1], _without_signed_zeros(params)
        at, lengths = np.arange(len(table)) * width, np.full(len(table), width)
        rows = NumberedTexts.of(_bytes_of(table), at, lengths)
        counts = np.bincount(rows.numbers, minlength=len(rows.first)).astype(np.int64, copy=False)
        distinct = table if len(rows.first) == len(table) else table[rows.first]
        return cls(distinct, counts, rows.numbers, rows)

    @property
    def count_of_row(self) -> Ints:
        """How many rows are equal to each row of the table, itself among them, shape (rows,)."""
        return self.counts[self.point_of_row]

    def sums(self, values: Floats) -> Floats:
        """Return the sum of each point's values, given one for each row."""
        return np.asarray(np.bincount(self.point_of_row, values, len(self)), dtype=np.float64)

    def means(self, values: Floats) -> Floats:
        """Return the mean of each point's values, given one for each row."""
        return np.asarray(self.sums(values) / self.counts)

    def in_order(self, values: Floats | Keys) -> tuple[Ints, Ints]:
        """Return the rows point by point, those of a point by their values, ascending.

        Also return where each point begins: point i has the rows `order[starts[i]:starts[i + 1]]`.
        """
        order = np.lexsort((values, self.point_of_row))
        return order, np.concatenate([[0], np.cumsum(self.counts)])

    def find(self, params: Floats) -> Ints:
        """Return the index of the point that each row equals, −1 for a row that equals none."""
        numbers = np.full(len(params), -1, dtype=np.int64)
        if params.shape[1] == self.params.shape[1]:
            rows, width = _bytes_of(_without_signed_zeros(params)), 8 * params.shape[1]
            known = _bytes_of(self.params)
            core.find_texts(known, width, rows, self.rows.key, self.rows.slots, numbers)
        return numbers


def _without_signed_zeros(params: Floats) -> Floats:
    return np.add(params, 0.0, order="C")  # -0 + 0 is 0


def _bytes_of(rows: Floats) -> Bytes:
    return rows.view(np.uint8).reshape(-1)
