"""Shared by the line readers: the record of a line, the arrays of its numbers, and small tokens.

Each reader writes its results to `record` (an int64 array indexed by the names below) and to the
free ends of the output arrays, and returns FINE, a fault, or a FULL code. Nothing of a line is kept
unless it is FINE: the ends move only when the whole line has been read.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tracebigsim._grammar import FINE, FULL_PARAMS, FULL_SLOW, KEYWORD
from tracebigsim._numbers import SLOW, read_number
from tracebigsim.compiled import inner

# Indices into a line's record.
AT: Final = 0
"""Where reading stopped: the fault's offset."""
SEB: Final = 1
SEQUENCE: Final = 2
NAME_START: Final = 3
NAME_END: Final = 4
UNIT: Final = 5
PARAMS_END: Final = 6
COUNTERS_END: Final = 7
SLOW_END: Final = 8
RECORD_LENGTH: Final = 9

OF_TIME: Final = -1
"""Index of a slow number that is the line's time; any other is an index into the params."""


class Values(NamedTuple):
    """The arrays that store the numbers of lines; the record says how much of each is in use."""

    time: NDArray[np.float64]
    params: NDArray[np.float64]
    counters: NDArray[np.int64]
    slow: NDArray[np.int64]
    """Numbers for `float` to read: rows of index, start and end in the text, row of the line."""


KEYWORD_BYTES: Final = tuple(KEYWORD.encode())


@inner
def skip_blanks(text: NDArray[np.uint8], at: int, end: int) -> int:
    """Return the position of the first byte that is neither a space nor a tab."""
    while at < end and (int(text[at]) == 32 or int(text[at]) == 9):
        at += 1
    return at


@inner
def line_ends(text: NDArray[np.uint8], at: int, end: int) -> bool:
    """Return whether the line ends at `at`: the text's end, or a newline with or without a CR."""
    if at >= end or int(text[at]) == 10:
        return True
    return int(text[at]) == 13 and (at + 1 == end or int(text[at + 1]) == 10)


@inner
def is_keyword(text: NDArray[np.uint8], at: int, end: int) -> bool:
    """Return whether TRACEBIGSIM is at `at`."""
    if end - at < len(KEYWORD_BYTES):
        return False
    for index in range(len(KEYWORD_BYTES)):  # noqa: SIM110 - a loop is what compiles
        if int(text[at + index]) != KEYWORD_BYTES[index]:
            return False
    return True


@inner
def note_slow(
    slow: NDArray[np.int64], record: NDArray[np.int64], index: int, start: int, end: int
) -> int:
    """Record a number to be read by `float`; return FINE or a FULL code."""
    row = record[SLOW_END]
    if row == len(slow):
        return FULL_SLOW
    slow[row, 0] = index
    slow[row, 1] = start
    slow[row, 2] = end
    record[SLOW_END] = row + 1
    return FINE


@inner
def add_param(
    text: NDArray[np.uint8], at: int, end: int, values: Values, record: NDArray[np.int64]
) -> int:
    """Read one parameter; -0 is stored as 0. Return FINE, a fault, or a FULL code."""
    index = record[PARAMS_END]
    record[AT] = at
    code, after, value = read_number(text, at, end)
    if code == SLOW:
        code = note_slow(values.slow, record, index, at, after)
    if code != FINE:
        return code
    if index == len(values.params):
        return FULL_PARAMS
    values.params[index] = value + 0.0
    record[PARAMS_END] = index + 1
    record[AT] = after
    return FINE
