"""How a good input is damaged: numbers that mean much, times that are none, bytes moved about."""

from __future__ import annotations

import struct
from collections.abc import Callable

import numpy as np

COUNTS = (
    *(-1, 0, 1, 2, 3, 4, 5, 8, 16, 127, 128, 255, 256, 32767, 65535, 10**6, 10**9),
    *(2**31 - 1, 2**31 - 2, -(2**31), -(2**31) + 1, 2**31 // 34, 2**31 // 4, 2**30),
    2**32 // 13 - 2**31,
)
"""Values of a count: small, at the borders of a type, and where a product of it overflows."""

TIMES = (
    *(np.nan, np.inf, -np.inf, 0.0, -0.0, 5e-324, -5e-324, 2.2e-308, -1e-310, 1e-9, 1.0, -1.0),
    *(0.5, 1e300, -1e300, 1.7976931348623157e308, -1.7976931348623157e308, 2.0**53, 1e-300, 3e-16),
)

WORDS = (
    b"TRACEBIGSIM : event:{ time:{ time_in_cycles:{ PAPI:{ seqno:{ params:{ } { # \r \n nan inf "
    b"-0 1e308 1e-320 1e999999999 9223372036854775807 9223372036854775808 0.1e-1 -1 :: \x00 \xff "
    b"TRACEBIGSIM: 12345678901234567890.5 startTraceBigSim endTraceBigSim"
).split(b" ")
"""What lines are made of."""


def mutant_of(seed: bytes, rng: np.random.Generator) -> bytes:
    """Return a copy of an input with one to four kinds of damage."""
    data = bytearray(seed)
    for _ in range(int(rng.integers(1, 5))):
        kinds, weights = zip(*_DAMAGE, strict=True)
        if data:
            kinds[int(rng.choice(len(kinds), p=np.array(weights) / sum(weights)))](data, rng)
    return bytes(data)


def _below(rng: np.random.Generator, bound: int) -> int:
    return int(rng.integers(0, bound))


def _put_count(data: bytearray, rng: np.random.Generator) -> None:
    """Write a count where one may be, or change the one that is there by a little."""
    at = _below(rng, len(data))
    order = "<i" if _below(rng, 2) else ">i"
    value = COUNTS[_below(rng, len(COUNTS))]
    if _below(rng, 3) == 0 and at + 4 <= len(data):
        (old,) = struct.unpack_from(order, data, at)
        value = max(-(2**31), min(2**31 - 1, old + _below(rng, 5) - 2))
    data[at : at + 4] = struct.pack(order, value)[: len(data) - at]


def _put_time(data: bytearray, rng: np.random.Generator) -> None:
    """Write a time, or copy the eight bytes of another one."""
    at, other = _below(rng, len(data)), _below(rng, len(data))
    order = "<d" if _below(rng, 2) else ">d"
    packed = struct.pack(order, TIMES[_below(rng, len(TIMES))])
    value = bytes(data[other : other + 8]) if _below(rng, 2) else packed
    data[at : at + len(value)] = value[: len(data) - at]


def _put_word(data: bytearray, rng: np.random.Generator) -> None:
    """Put a word of a line in place of bytes or between them."""
    at, word = _below(rng, len(data)), WORDS[_below(rng, len(WORDS))]
    word += b" " * _below(rng, 2)
    data[at : at + len(word) * _below(rng, 2)] = word


def _flip_bytes(data: bytearray, rng: np.random.Generator) -> None:
    """Change a bit, a byte or some bytes in a row."""
    at, kind = _below(rng, len(data)), _below(rng, 3)
    if kind == 0:
        data[at] ^= 1 << _below(rng, 8)
        return
    for k in range(at, min(len(data), at + (1 if kind == 1 else 1 + _below(rng, 16)))):
        data[k] = _below(rng, 256)


def _move_bytes(data: bytearray, rng: np.random.Generator) -> None:
    """Take away, repeat or copy a run of bytes, or cut the end off."""
    length = 1 + _below(rng, min(len(data), 64))
    at, kind = _below(rng, len(data) - length + 1), _below(rng, 4)
    run = data[at : at + length]
    if kind == 0:
        del data[at : at + length]
    elif kind == 1:
        data[at:at] = run
    elif kind == 2:
        to = _below(rng, len(data) - length + 1)
        data[to : to + length] = run
    else:
        del data[1 + _below(rng, len(data)) :]


_DAMAGE: list[tuple[Callable[[bytearray, np.random.Generator], None], int]] = [
    (_put_count, 3),
    (_put_time, 2),
    (_put_word, 2),
    (_flip_bytes, 2),
    (_move_bytes, 1),
]
"""The kinds of damage, with their weights."""
