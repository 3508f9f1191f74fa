"""Mutants of blocks of timelines, in memory and by the million."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fuzz.mutation import (
    COUNTS,
    TIMES,
    Bytes,
    Ints,
    flip_bytes,
    move_bytes,
    put_number,
)
from fuzz.promises import Tools, check_block
from rewritelog.arrays import Table
from rewritelog.kernels.raw import load_f8, load_i4, store_f8
from rewritelog.kernels.walk import OK
from tracebigsim.compiled import kernel


class Seed(NamedTuple):
    """A good block, and where its numbers are."""

    data: Bytes
    borders: Ints
    counts: Ints
    """Offsets of all counts."""
    times: Ints
    """Offsets of all times."""
    kinds: Ints
    """Offsets of the events' types."""


@kernel
def _damage(
    buf: Bytes, size: int, seed: Seed, borders: Ints, swap: bool, rng: np.random.Generator
) -> int:
    kind = rng.integers(0, 16)
    if kind < 4:
        at = seed.counts[rng.integers(0, len(seed.counts))]
        if at + 4 <= size:
            value = COUNTS[rng.integers(0, len(COUNTS))]
            if rng.integers(0, 3) == 0:
                value = load_i4(buf, at, swap) + rng.integers(-2, 3)
            put_number(buf, at, value, 4, swap)
    elif kind < 10:
        at = seed.times[rng.integers(0, len(seed.times))]
        if at + 8 <= size:
            value = TIMES[rng.integers(0, len(TIMES))]
            if rng.integers(0, 2) == 0:
                other = seed.times[rng.integers(0, len(seed.times))]
                value = load_f8(seed.data, other, swap)
            store_f8(buf, at, value, swap)
    elif kind == 10 and len(seed.kinds) > 0:
        at = seed.kinds[rng.integers(0, len(seed.kinds))]
        if at < size:
            buf[at] = rng.integers(0, 5)
    elif kind == 11:
        piece = rng.integers(1, len(borders))
        step = rng.integers(-8, 9)
        low = borders[piece - 1] + 4
        high = borders[piece + 1] - 4 if piece + 1 < len(borders) else size + 8
        borders[piece] = min(max(low, borders[piece] + step), high)
    elif kind < 14:
        flip_bytes(buf, size, rng)
    else:
        return move_bytes(buf, size, rng)
    return size


@kernel
def _mutant(scratch: Bytes, seed: Seed, borders: Ints, swap: bool, rng: np.random.Generator) -> int:
    """Make a mutant in `scratch`, with borders that a file's head could have; return its size."""
    size = len(seed.data)
    scratch[:size] = seed.data
    borders[:] = seed.borders
    for _ in range(rng.integers(1, 5)):
        size = _damage(scratch, size, seed, borders, swap, rng)
    room = 4 * (len(borders) - 1)
    size = min(max(size, room), len(scratch))
    if borders[-1] == len(seed.data):
        borders[-1] = size
    borders[-1] = min(borders[-1], size)
    for k in range(len(borders) - 1, 0, -1):
        borders[k - 1] = max(0, min(borders[k - 1], borders[k] - 4))
    for k in range(1, len(borders)):
        borders[k] = max(borders[k], borders[k - 1] + 4)
    borders[0] = 0
    return borders[-1]


@kernel
def _fill_records(records: Table, pieces: int, rng: np.random.Generator) -> Ints:
    """Make param records of SEBs that may be there; return where each piece's begin."""
    begins = np.zeros(pieces + 1, dtype=np.int64)
    for piece in range(pieces):
        begins[piece + 1] = min(len(records), begins[piece] + rng.integers(0, 6))
        seb = 0
        for k in range(begins[piece], begins[piece + 1]):
            seb += rng.integers(0, 2)
            records[k].seb = seb
            records[k].seconds = 10.0 ** rng.integers(-9, 3)
            kind = rng.integers(0, 12)
            if kind < 2:
                records[k].seconds = np.nan if kind == 0 else 0.0
            elif kind == 2:
                records[k].seconds = 1.7e308
            records[k].exact = rng.integers(0, 2)
            records[k].old = records[k].new = 0.0
            records[k].state = 0
    return begins


@kernel
def run_mutants(
    low: Bytes,
    high: Bytes,
    scratch: Bytes,
    seed: Seed,
    tools: Tools,
    records: Table,
    rng: np.random.Generator,
    runs: int,
) -> tuple[int, int, int]:
    """Check `runs` mutants; return what broke, how many were done, and how many were whole logs.

    The mutant that broke something is in `scratch`. `low` begins after a closed page and
    `high` ends before one.
    """
    first, second = np.zeros(16, dtype=np.int64), np.zeros(16, dtype=np.int64)
    borders = seed.borders.copy()
    other = records.copy()
    whole = 0
    for done in range(runs):
        size = _mutant(scratch, seed, borders, tools.lay.swap, rng)
        begins = _fill_records(records, len(borders) - 1, rng)
        other[:] = records
        right = high[len(high) - size :]
        low[:size] = scratch[:size]
        right[:] = scratch[:size]
        broken = check_block(low[:size], borders, tools, records, begins, first)
        if broken == 0:
            broken = check_block(right, borders, tools, other, begins, second)
        if broken == 0 and not np.array_equal(first, second):
            broken = 15
        if broken == 0 and not np.array_equal(low[:size], right):
            broken = 15
        if broken != 0:
            return broken, done, size
        whole += first[8] == OK and first[2] == OK and first[0] == OK
        low[size : size + 64] = 170
        high[max(0, len(high) - size - 64) : len(high) - size] = 85
    return 0, runs, whole
