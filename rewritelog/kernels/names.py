"""A hash table of distinct SEB names, numbered in order of first appearance.

A name consists of the bytes before the first NUL of the field.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rewritelog.arrays import Bytes, Ints
from rewritelog.format.layout import KernelLayout
from rewritelog.kernels.walk import FAULT_SIZE, Pieces, seb_parts
from tracebigsim.compiled import inner, kernel

FULL = -1

_FEW_NAMES = 256
_KEY_ENTRIES = 2
"""The last entries of a hash table contain its key."""


class NameTable(NamedTuple):
    """Distinct names; kernels add to it until it is full."""

    names: Bytes
    """Padded with NULs, shape (capacity, bytes of a name)."""
    slots: NDArray[np.int32]
    """The open-addressing hash table: 1 + the index into `names`, or 0; at least half is free."""
    known: Ints
    """The number of names, shape (1,)."""


def new_table(name_bytes: int, capacity: int = _FEW_NAMES) -> NameTable:
    """Return an empty table; its capacity is a power of two, or 0 for a table without names.

    Its hash key is random, so that no log can be crafted whose names all collide.
    """
    slots = np.zeros(2 * capacity + _KEY_ENTRIES, dtype=np.int32)
    slots[-_KEY_ENTRIES:] = np.frombuffer(secrets.token_bytes(4 * _KEY_ENTRIES), dtype=np.int32)
    names = np.zeros((capacity, name_bytes), dtype=np.uint8)
    return NameTable(names, slots, np.zeros(1, dtype=np.int64))


def enlarged(table: NameTable) -> NameTable:
    """Return a table with the same names and twice the capacity."""
    capacity, name_bytes = table.names.shape
    larger = new_table(name_bytes, 2 * capacity)
    larger.names[:capacity] = table.names
    larger.known[:] = table.known
    _enter_names(larger)
    return larger


def table_of(names: Sequence[bytes], name_bytes: int) -> NameTable:
    """Return a table of distinct names, numbered in this order."""
    table = new_table(name_bytes, 1 << max(len(names) - 1, 1).bit_length())
    for number, name in enumerate(names):
        table.names[number, : len(name)] = np.frombuffer(name, dtype=np.uint8)
    table.known[0] = len(names)
    _enter_names(table)
    return table


def names_of(table: NameTable) -> list[bytes]:
    """Return the names in the order of their numbers."""
    return [name.tobytes().rstrip(b"\0") for name in table.names[: table.known[0]]]


def names_of_block(buf: Bytes, pieces: Pieces, lay: KernelLayout) -> NameTable:
    """Return the names of all SEBs of a block; a damaged SEB ends its piece without an error."""
    table = new_table(lay.name_bytes)
    fault = np.zeros(FAULT_SIZE, dtype=np.int64)
    while not collect_names(buf, pieces, lay, table, fault):
        table = enlarged(table)
    return table


@inner
def name_length(buf: Bytes, at: int, most: int) -> int:
    """Return the number of bytes before the NUL of the name at `at`."""
    for k in range(most):
        if buf[at + k] == 0:
            return k
    return most


@inner
def same_name(buf: Bytes, at: int, length: int, name: Bytes) -> bool:
    """Return whether the `length` bytes at `at` are `name`, which is padded with NULs."""
    for k in range(length):
        if buf[at + k] != name[k]:
            return False
    return bool(length == len(name) or name[length] == 0)


@inner
def slot_of(buf: Bytes, at: int, table: NameTable) -> int:
    """Return the slot of the name at `at`, or a free one (keyed FNV-1a, linear probing)."""
    names, slots = table.names, table.slots
    length = name_length(buf, at, names.shape[1])
    size = len(slots) - _KEY_ENTRIES
    key = (int(slots[size]) & 0xFFFFFFFF) << 31 ^ (int(slots[size + 1]) & 0xFFFFFFFF)
    mix = np.uint64(14695981039346656037) ^ np.uint64(key)
    for k in range(length):
        mix = (mix ^ np.uint64(buf[at + k])) * np.uint64(1099511628211)
    mask = size - 1
    slot = int(mix >> np.uint64(32)) & mask
    while slots[slot] != 0 and not same_name(buf, at, length, names[slots[slot] - 1]):
        slot = (slot + 1) & mask
    return slot


@inner
def find_name(buf: Bytes, at: int, table: NameTable) -> int:
    """Return the number of the name at `at`, −1 if it is not in the table."""
    return int(table.slots[slot_of(buf, at, table)]) - 1


@inner
def add_name(buf: Bytes, at: int, table: NameTable) -> int:
    """Return the number of the name at `at`, adding it if it is new, or `FULL`."""
    slot = slot_of(buf, at, table)
    if table.slots[slot] == 0:
        count = table.known[0]
        if count == len(table.names):
            return FULL
        for k in range(name_length(buf, at, table.names.shape[1])):
            table.names[count, k] = buf[at + k]
        table.known[0] = count + 1
        table.slots[slot] = count + 1
    return int(table.slots[slot]) - 1


@kernel(ns_per_byte=300)
def collect_names(
    buf: Bytes, pieces: Pieces, lay: KernelLayout, table: NameTable, fault: Ints
) -> bool:
    """Add the name of each SEB to the table; return whether it had room for all of them."""
    for piece in range(len(pieces.starts)):
        at = pieces.starts[piece]
        for _ in range(pieces.counts[piece]):
            _, _, following = seb_parts(buf, at, pieces.ends[piece], lay, fault)
            if following < 0:
                break
            if add_name(buf, at + lay.seb_name, table) == FULL:
                return False
            at = following
    return True


@kernel(ns_per_byte=300)
def _enter_names(table: NameTable) -> None:
    """Fill in the hash table for the names of a table."""
    flat = table.names.reshape(-1)
    width = table.names.shape[1]
    for k in range(table.known[0]):
        table.slots[slot_of(flat, k * width, table)] = k + 1
