"""SEB names as numbers: a hash table over the name field, up to its first NUL."""

from __future__ import annotations

import secrets

import numpy as np
from numpy.typing import NDArray

from rewritelog.arrays import Bytes, Ints
from rewritelog.format.layout import KernelLayout
from rewritelog.kernels.walk import seb_parts
from tracebigsim.compiled import inner, kernel

FULL = -1

_KEY_ENTRIES = 2
"""The last entries of a hash table are its key."""


def new_slots(capacity: int) -> NDArray[np.int32]:
    """Return an empty hash table for `capacity` names, a power of two.

    Its key is drawn anew, so that nobody can make a log whose names all meet in one slot.
    """
    slots = np.zeros(2 * capacity + _KEY_ENTRIES, dtype=np.int32)
    slots[-_KEY_ENTRIES:] = np.frombuffer(secrets.token_bytes(4 * _KEY_ENTRIES), dtype=np.int32)
    return slots


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
def slot_of(buf: Bytes, at: int, names: Bytes, slots: NDArray[np.int32], most: int) -> int:
    """Return the slot where the name at `at` stands, or the free one where it belongs.

    `slots`, from `new_slots`, holds 1 + the index into `names` or 0, and is never full.
    """
    length = name_length(buf, at, most)
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


@kernel
def intern_names(
    buf: Bytes,
    starts: Ints,
    ends: Ints,
    counts: Ints,
    lay: KernelLayout,
    names: Bytes,
    slots: NDArray[np.int32],
    known: int,
    fault: Ints,
) -> int:
    """Note each new SEB name of the pieces in `names`; return how many are known, or `FULL`.

    `names` has the shape (capacity, 20), and `slots` is from `new_slots`. A damaged SEB ends its
    piece without a word: the rewrite that follows names it.
    """
    for piece in range(len(starts)):
        at = starts[piece]
        for _ in range(counts[piece]):
            _, _, following = seb_parts(buf, at, ends[piece], lay, fault)
            if following < 0:
                break
            place = at + lay.seb_name
            slot = slot_of(buf, place, names, slots, lay.name_bytes)
            if slots[slot] == 0:
                if known == len(names):
                    return FULL
                for k in range(name_length(buf, place, lay.name_bytes)):
                    names[known, k] = buf[place + k]
                known += 1
                slots[slot] = known
            at = following
    return known
