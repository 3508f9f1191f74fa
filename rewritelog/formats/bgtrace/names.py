"""Distinct SEB names, numbered in order of first appearance.

A name consists of the bytes before the first NUL of the field.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence

import numpy as np

from rewritelog.arrays import Bytes, Ints
from rewritelog.core import core
from rewritelog.formats.bgtrace.declaration import NAME_BYTES
from rewritelog.formats.bgtrace.records import Records, offset_of

_FEW_NAMES = 256


class NameTable:
    """A table of distinct names, which grows as names are added."""

    def __init__(self, names: Sequence[bytes] = ()) -> None:
        """Begin with some names; the hash key is random, so that no log can make all collide."""
        self._key = secrets.randbits(64)
        self._known = np.zeros(1, dtype=np.int64)
        self._names = np.zeros((0, NAME_BYTES), dtype=np.uint8)
        self._resize(max(_FEW_NAMES, 2 * len(names)))
        self._add_rows(np.array(names, dtype=f"S{NAME_BYTES}").view(np.uint8))

    def __len__(self) -> int:
        return int(self._known[0])

    @property
    def names(self) -> list[bytes]:
        """The names in the order of their numbers."""
        rows = self._names[: len(self)]
        return [row.tobytes().rstrip(b"\0") for row in rows]

    def add(self, sebs: Records) -> Ints:
        """Return the number of each SEB's name, shape (SEBs,), and add names that are new."""
        return self._number(sebs.buffer, self._fields(sebs), adds=True)

    def find(self, sebs: Records) -> Ints:
        """Return the number of each SEB's name, −1 for one that is not in the table."""
        return self._number(sebs.buffer, self._fields(sebs), adds=False)

    def merge(self, other: NameTable) -> Ints:
        """Return the number here of each name in another table, and add names that are new."""
        return self._add_rows(other._names[: len(other)].reshape(-1))

    def _add_rows(self, rows: Bytes) -> Ints:
        return self._number(rows, NAME_BYTES * np.arange(len(rows) // NAME_BYTES), adds=True)

    def _fields(self, sebs: Records) -> Ints:
        return np.asarray(sebs.at + offset_of(sebs.dtype, "name"))

    def _number(self, buffer: Bytes, at: Ints, *, adds: bool) -> Ints:
        numbers = np.empty(len(at), dtype=np.int64)
        done = 0
        while done < len(at):
            left, room = at[done:], numbers[done:]
            done += core.number_names(
                buffer,
                left,
                NAME_BYTES,
                self._key,
                adds,
                self._names,
                self._slots,
                self._known,
                room,
            )
            if done < len(at):
                self._resize(2 * len(self._names))
        return numbers

    def _resize(self, capacity: int) -> None:
        """Make room for a number of names, a power of two or the next one."""
        capacity = 1 << (capacity - 1).bit_length()
        known = self._names[: len(self)].reshape(-1)
        self._names = np.zeros((capacity, NAME_BYTES), dtype=np.uint8)
        self._slots = np.zeros(2 * capacity, dtype=np.int32)
        self._known[0] = 0
        self._add_rows(known)
