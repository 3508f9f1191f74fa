"""Pseudo-random numbers in [0, 1) that determine the spread of each bracket's duration."""

from __future__ import annotations

import numpy as np

from rewritelog.arrays import Floats, Ints
from rewritelog.hashing import GOLDEN, mix


def drawn_numbers(seed: int, pe: Ints, seb: Ints, ordinal: Ints) -> Floats:
    """Return a number in [0, 1) for each bracket, determined by the seed and its location.

    `ordinal` is the index of the bracket in its SEB. The number is a splitmix64 hash of the four
    integers, the same on every machine and for any order of the brackets.
    """
    keys = np.full(len(pe), np.uint64(seed))
    for part in (pe, seb, ordinal):
        keys = mix(keys + GOLDEN) ^ part.astype(np.uint64)
    return (mix(keys + GOLDEN) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def ordinals(piece: Ints, seb: Ints) -> Ints:
    """Return the index of each record among those of its SEB, which have to be contiguous."""
    if not len(seb):
        return np.zeros(0, dtype=np.int64)
    begins = np.ones(len(seb), dtype=np.bool_)
    begins[1:] = (seb[1:] != seb[:-1]) | (piece[1:] != piece[:-1])
    first = np.flatnonzero(begins)
    numbers: Ints = np.arange(len(seb)) - first[np.cumsum(begins) - 1]
    return numbers
