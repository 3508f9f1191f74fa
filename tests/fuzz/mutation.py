"""How a good input is damaged: numbers that mean much, times that are none, bytes moved about.

A mutation may make the data longer by what the scratch has room for.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

COUNTS = np.array(
    [
        -1,
        0,
        1,
        2,
        3,
        4,
        5,
        8,
        16,
        127,
        128,
        255,
        256,
        32767,
        65535,
        10**6,
        10**9,
        2**31 - 1,
        2**31 - 2,
        -(2**31),
        -(2**31) + 1,
        2**31 // 34,
        2**31 // 4,
        2**30,
        2**32 // 13 - 2**31,
    ],
    dtype=np.int64,
)
"""Values of a count: small, at the borders of a type, and where a product of it overflows."""

TIMES = np.array(
    [
        np.nan,
        np.inf,
        -np.inf,
        0.0,
        -0.0,
        5e-324,
        -5e-324,
        2.2e-308,
        -1e-310,
        1e-9,
        1.0,
        -1.0,
        0.5,
        1e300,
        -1e300,
        1.7976931348623157e308,
        -1.7976931348623157e308,
        2.0**53,
        1e-300,
        3e-16,
    ]
)

WORDS = np.frombuffer(
    b"TRACEBIGSIM : event:{ time:{ time_in_cycles:{ PAPI:{ seqno:{ params:{ } { # \r \n nan inf "
    b"-0 1e308 1e-320 1e999999999 9223372036854775807 9223372036854775808 0.1e-1 -1 :: \x00 \xff "
    b"TRACEBIGSIM: 12345678901234567890.5 startTraceBigSim endTraceBigSim ",
    dtype=np.uint8,
)
"""What lines are made of; a blank ends each."""

WORD_STARTS = np.array([0, *(np.flatnonzero(np.equal(WORDS, 32)) + 1)], dtype=np.int64)


def put_number(buf: Bytes, at: int, value: int, size: int, swap: bool) -> None:
    """Write the lower `size` bytes of an integer; `swap` for the order that is not little."""
    for k in range(size):
        buf[at + (size - 1 - k if swap else k)] = (value >> (8 * k)) & 255


def flip_bytes(buf: Bytes, size: int, rng: np.random.Generator) -> None:
    """Change a bit, a byte or some bytes in a row."""
    at = rng.integers(0, size)
    kind = rng.integers(0, 3)
    if kind == 0:
        buf[at] ^= np.uint8(1 << rng.integers(0, 8))
    else:
        for k in range(at, min(size, at + (1 if kind == 1 else rng.integers(1, 17)))):
            buf[k] = rng.integers(0, 256)


def move_bytes(buf: Bytes, size: int, rng: np.random.Generator) -> int:
    """Repeat, take away or copy a run of bytes; return the new size."""
    kind = rng.integers(0, 4)
    length = rng.integers(1, 1 + min(size, 64))
    at = rng.integers(0, size - length + 1)
    if kind == 0 and size > length:
        for k in range(at, size - length):
            buf[k] = buf[k + length]
        return size - length
    if kind == 1 and size + length <= len(buf):
        for k in range(size - 1, at - 1, -1):
            buf[k + length] = buf[k]
        return size + length
    to = rng.integers(0, size - length + 1)
    if kind == 2:
        for k in range(length):
            buf[to + k] = buf[at + k]
        return size
    return rng.integers(1, size + 1)


def put_word(buf: Bytes, size: int, rng: np.random.Generator) -> int:
    """Put one of the words of a line somewhere, in place of bytes or between them."""
    which = rng.integers(0, len(WORD_STARTS) - 1)
    first, last = WORD_STARTS[which], WORD_STARTS[which + 1] - 1 + rng.integers(0, 2)
    length = last - first
    at = rng.integers(0, size)
    if rng.integers(0, 2) == 0 and size + length <= len(buf):
        for k in range(size - 1, at - 1, -1):
            buf[k + length] = buf[k]
        size += length
    for k in range(length):
        if at + k < size:
            buf[at + k] = WORDS[first + k]
    return size
