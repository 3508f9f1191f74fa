"""Parser of numbers as C prints them: bytes to exactly the double that Python's `float` returns.

Three methods, tried in turn, each exact or declining: digits and power of ten that doubles hold
exactly (one rounding; Clinger, 1990); else the product of the digits and 128 bits of the power of
five, used if its error cannot change the rounding (Lemire, 2021); else SLOW, and the caller uses
`float` itself.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from tracebigsim._grammar import FINE, INFINITE, INTEGER_OVERFLOW, NAN, NOT_A_NUMBER, NOT_AN_INTEGER
from tracebigsim.compiled import inner

SLOW: Final = -1
"""Code of a number that only `float` reads exactly: subnormal, near a tie, or over 18 digits."""

_LAST_DIGIT_ROOM: Final = 10**17
"""Below it there is room for one more digit: the digits read stay below 10**18."""
_EXACT_INTEGER: Final = 1 << 53
_EXACT_POWER: Final = 22
_MAX_POWER: Final = 308
_MIN_POWER: Final = -326
_EXPONENT_LIMIT: Final = 100_000_000
"""Cap of written exponents: no line has enough digits to make up for a larger one."""
_MAX_EXPONENT: Final = 971
_MIN_EXPONENT: Final = -1074

_TENS: Final = np.array([float(10**power) for power in range(_EXACT_POWER + 1)])
_TWOS: Final = np.array([2.0**power for power in range(_MIN_EXPONENT, _MAX_EXPONENT + 1)])


def _power_of_five(power: int) -> tuple[int, int]:
    """Return 5**power as 128 bits (the highest one set, rounded down) times a power of two."""
    if power >= 0:
        exact = 5**power
        shift = exact.bit_length() - 128
        return (exact >> shift if shift > 0 else exact << -shift), shift
    divisor = 5**-power
    shift = 127 + divisor.bit_length()
    return (1 << shift) // divisor, -shift


_FIVES: Final = [_power_of_five(power) for power in range(_MIN_POWER, _MAX_POWER + 1)]
_FIVES_HIGH: Final = np.array([five >> 64 for five, _ in _FIVES], dtype=np.uint64)
_FIVES_LOW: Final = np.array([five & (2**64 - 1) for five, _ in _FIVES], dtype=np.uint64)
_FIVES_SHIFT: Final = np.array([shift for _, shift in _FIVES], dtype=np.int64)

_HALF_WORD: Final = np.uint64(32)
_LOW_HALF: Final = np.uint64(0xFFFFFFFF)
_ALL_ONES: Final = np.uint64(0xFFFFFFFFFFFFFFFF)
_ONE: Final = np.uint64(1)
_TOP_BIT: Final = np.uint64(63)
_NO_BITS: Final = np.uint64(0)


@inner
def _product(a: np.uint64, b: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Return the upper and the lower 64 bits of a * b; no step overflows."""
    a_low = a & _LOW_HALF
    a_high = a >> _HALF_WORD
    b_low = b & _LOW_HALF
    b_high = b >> _HALF_WORD
    low = a_low * b_low
    middle = a_high * b_low + (low >> _HALF_WORD)
    cross = a_low * b_high + (middle & _LOW_HALF)
    high = a_high * b_high + (middle >> _HALF_WORD) + (cross >> _HALF_WORD)
    return high, (cross << _HALF_WORD) | (low & _LOW_HALF)


@inner
def _leading_zeros(digits: int) -> int:
    """Count the zero bits above the highest one of a positive number below 2**63."""
    zeros = 1
    for step in (32, 16, 8, 4, 2, 1):
        if digits >> (63 - step) == 0:
            digits <<= step
            zeros += step
    return zeros


@inner
def _wide_value(digits: int, power: int, dropped: bool) -> tuple[int, float]:
    """Round digits * 10**power, digits in [1, 10**18); return FINE, INFINITE or SLOW, and a value.

    With both factors shifted to full words, the true product lies in [p, p + 2) of p's lowest
    bit, p being the 128 bits kept here; so the rounding is certain unless p is that close to a
    tie. `dropped` says that further digits follow which are not in `digits`. Numbers within an
    eighth of a unit below the border to infinity are called infinite.
    """
    if power > _MAX_POWER:
        return INFINITE, np.inf
    if power < _MIN_POWER:
        return SLOW, 0.0
    zeros = _leading_zeros(digits)
    word = np.uint64(digits) << np.uint64(zeros)
    row = power - _MIN_POWER
    high, low = _product(word, _FIVES_HIGH[row])
    carry, _ = _product(word, _FIVES_LOW[row])
    room = _ALL_ONES - low
    if carry > room:
        high += _ONE
        low = carry - room - _ONE
    else:
        low += carry
    kept = 10 if high >> _TOP_BIT == _NO_BITS else 11
    mantissa = np.int64(high >> np.uint64(kept))
    rest = np.int64(high & ((_ONE << np.uint64(kept)) - _ONE))
    half = 1 << (kept - 1)
    exponent = 128 + kept + int(_FIVES_SHIFT[row]) + power - zeros
    if exponent > _MAX_EXPONENT:
        return INFINITE, np.inf
    if exponent == _MAX_EXPONENT and mantissa == _EXACT_INTEGER - 1 and rest >= half - (half >> 2):
        return INFINITE, np.inf
    tie_above = rest == half - 1 and low >= _ALL_ONES - _ONE
    if dropped or exponent < _MIN_EXPONENT or tie_above or (rest == half and low == _NO_BITS):
        return SLOW, 0.0
    if rest >= half:
        mantissa += 1
    return FINE, np.float64(mantissa) * _TWOS[exponent - _MIN_EXPONENT]


@inner
def _decimal_value(digits: int, power: int, dropped: bool) -> tuple[int, float]:
    """Round digits * 10**power by the fastest exact method; return a code and the value."""
    if digits == 0:
        return FINE, 0.0
    if not dropped and digits <= _EXACT_INTEGER and -_EXACT_POWER <= power <= _EXACT_POWER:
        if power < 0:
            return FINE, np.float64(digits) / _TENS[-power]
        return FINE, np.float64(digits) * _TENS[power]
    return _wide_value(digits, power, dropped)


@inner
def _ends_token(text: NDArray[np.uint8], at: int, end: int) -> bool:
    """Return whether a number ends at `at`: before a blank, a closing brace or the line's end."""
    if at >= end:
        return True
    byte = int(text[at])
    return byte == 32 or byte == 125 or byte == 10 or byte == 9 or byte == 13  # noqa: PLR1714


@inner
def _is_word(text: NDArray[np.uint8], at: int, end: int, word: tuple[int, ...]) -> bool:
    """Return whether `word` (lower-case byte values) is at `at`, in upper or lower case."""
    if end - at < len(word):
        return False
    for index in range(len(word)):  # noqa: SIM110 - a loop is what compiles
        if int(text[at + index]) | 32 != word[index]:
            return False
    return True


_NAN_WORD: Final = tuple(b"nan")
_INF_WORD: Final = tuple(b"inf")
_REST_OF_INFINITY: Final = tuple(b"inity")


@inner
def _refusal(text: NDArray[np.uint8], at: int, end: int) -> int:
    """Return why no number begins at `at`: NAN, INFINITE or NOT_A_NUMBER."""
    if at < end and (int(text[at]) == 45 or int(text[at]) == 43):
        at += 1
    if _is_word(text, at, end, _NAN_WORD):
        at += 3
        return NAN if _ends_token(text, at, end) or int(text[at]) == 40 else NOT_A_NUMBER
    if _is_word(text, at, end, _INF_WORD):
        at += 3
        if _is_word(text, at, end, _REST_OF_INFINITY):
            at += 5
        return INFINITE if _ends_token(text, at, end) else NOT_A_NUMBER
    return NOT_A_NUMBER


@inner
def _read_exponent(text: NDArray[np.uint8], at: int, end: int) -> tuple[int, int]:
    """Read an exponent; return the position after it (-1 if there is no digit) and its value."""
    negative = False
    if at < end and (int(text[at]) == 45 or int(text[at]) == 43):
        negative = int(text[at]) == 45
        at += 1
    first = at
    exponent = 0
    while at < end:
        digit = int(text[at]) - 48
        if digit < 0 or digit > 9:
            break
        if exponent < _EXPONENT_LIMIT:
            exponent = exponent * 10 + digit
        at += 1
    if at == first:
        return -1, 0
    return at, -exponent if negative else exponent


@inner
def _read_digits(
    text: NDArray[np.uint8], at: int, end: int, digits: int
) -> tuple[int, int, int, bool]:
    """Append a run of digits to `digits`; return its end, the digits, how many had no room, a flag.

    The flag tells whether a dropped digit is not 0.
    """
    lost = 0
    dropped = False
    while at < end:
        digit = int(text[at]) - 48
        if digit < 0 or digit > 9:
            break
        if digits < _LAST_DIGIT_ROOM:
            digits = digits * 10 + digit
        else:
            lost += 1
            dropped = dropped or digit != 0
        at += 1
    return at, digits, lost, dropped


@inner
def read_number(text: NDArray[np.uint8], first: int, end: int) -> tuple[int, int, float]:
    """Read the number at `first`; return FINE, SLOW or a fault, the position after it, its value.

    It must be followed by a blank, a closing brace or the line's end.
    """
    start = first
    negative = False
    if start < end and (int(text[start]) == 45 or int(text[start]) == 43):
        negative = int(text[start]) == 45
        start += 1
    at, digits, power, dropped = _read_digits(text, start, end, 0)
    length = at - start
    if at < end and int(text[at]) == 46:
        start = at + 1
        at, digits, lost, also_dropped = _read_digits(text, start, end, digits)
        length += at - start
        power -= at - start - lost
        dropped = dropped or also_dropped
    if length == 0:
        return _refusal(text, first, end), first, 0.0
    if at < end and int(text[at]) | 32 == 101:
        at, exponent = _read_exponent(text, at + 1, end)
        power += exponent
    if at < 0 or not _ends_token(text, at, end):
        return NOT_A_NUMBER, first, 0.0
    status, value = _decimal_value(digits, power, dropped)
    return status, at, -value if negative else value


@inner
def read_integer(text: NDArray[np.uint8], first: int, end: int) -> tuple[int, int, int]:
    """Read a 64-bit integer; return FINE or a fault, the position after it, and its value."""
    at = first
    negative = False
    if at < end and (int(text[at]) == 45 or int(text[at]) == 43):
        negative = int(text[at]) == 45
        at += 1
    start = at
    value = 0
    overflow = False
    while at < end:
        digit = int(text[at]) - 48
        if digit < 0 or digit > 9:
            break
        if value > 922337203685477580 or (value == 922337203685477580 and digit > 7):
            overflow = True
        else:
            value = value * 10 + digit
        at += 1
    if at == start or not _ends_token(text, at, end):
        return NOT_AN_INTEGER, first, 0
    if overflow:
        return INTEGER_OVERFLOW, first, 0
    return FINE, at, -value if negative else value
