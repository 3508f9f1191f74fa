"""Parser of a line's fields, `name:{ content }`, in any order and with any blanks."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from tracebigsim._grammar import (
    CONTROL_IN_NAME,
    CYCLES,
    DUPLICATE_FIELD,
    EMPTY_NAME,
    EVENT,
    FIELD_IN_NAME,
    FIELDS,
    FINE,
    FULL_COUNTERS,
    GLUED,
    MAX_PARAMS,
    NEGATIVE_TIME,
    NO_EVENT,
    NO_TIME,
    NO_TIME_NO_SEB,
    NOT_A_FIELD,
    NOT_CLOSED,
    NOT_ONE_SEQNO,
    PAPI,
    PARAMS,
    SEQNO,
    SEVERAL_TIMES,
    TIME,
    TOO_MANY_PARAMS,
    TWO_TIMES,
)
from tracebigsim._numbers import SLOW, read_integer, read_number
from tracebigsim._tokens import (
    AT,
    COUNTERS_END,
    KEYWORD_BYTES,
    NAME_END,
    NAME_START,
    OF_TIME,
    SEB,
    SEQUENCE,
    UNIT,
    Values,
    add_param,
    is_keyword,
    line_ends,
    note_slow,
    skip_blanks,
)
from tracebigsim.compiled import inner

_FIELD_LENGTHS: Final = tuple(len(name) for name in FIELDS)
_TIME_OR_SEB: Final = 1 << TIME | 1 << CYCLES | 1 << SEQNO
_FIELD_BYTES: Final = np.array(
    [list(name.encode().ljust(max(_FIELD_LENGTHS))) for name in FIELDS], dtype=np.uint8
)


@inner
def _field_at(text: NDArray[np.uint8], at: int, end: int) -> int:
    """Return the number of the field whose name is at `at`, -1 if there is none."""
    length = 0
    while at + length < end and length <= 14:
        byte = int(text[at + length]) | 32
        if (byte < 97 or byte > 122) and int(text[at + length]) != 95:
            break
        length += 1
    for field in range(len(_FIELD_LENGTHS)):
        if length != _FIELD_LENGTHS[field]:
            continue
        same = 0
        while same < length and text[at + same] == _FIELD_BYTES[field, same]:
            same += 1
        if same == length:
            return field
    return -1


@inner
def _open_brace(text: NDArray[np.uint8], at: int, end: int) -> int:
    """Return the position after the colon and opening brace at `at`, -1 if they are not there."""
    at = skip_blanks(text, at, end)
    if at >= end or int(text[at]) != 58:
        return -1
    at = skip_blanks(text, at + 1, end)
    if at >= end or int(text[at]) != 123:
        return -1
    return at + 1


@inner
def _colon_before(text: NDArray[np.uint8], at: int, first: int) -> bool:
    """Return whether a single colon, as in a field, and not `::` comes before the brace at `at`."""
    at -= 1
    while at > first and (int(text[at]) == 32 or int(text[at]) == 9):
        at -= 1
    if at < first or int(text[at]) != 58:
        return False
    return at == first or int(text[at - 1]) != 58


@inner
def _read_name(text: NDArray[np.uint8], at: int, end: int, record: NDArray[np.int64]) -> int:
    """Read an event's name up to the brace that closes it; braces within it come in pairs."""
    first = skip_blanks(text, at, end)
    at = first
    depth = 0
    code = FINE
    while code == FINE:
        if line_ends(text, at, end):
            code = NOT_CLOSED
            break
        byte = int(text[at])
        if byte == 125:
            if depth == 0:
                break
            depth -= 1
        elif byte == 123:
            depth += 1
            if _colon_before(text, at, first):
                code = FIELD_IN_NAME
        elif (byte < 32 and byte != 9) or byte == 127:
            code = CONTROL_IN_NAME
        elif byte == KEYWORD_BYTES[0] and is_keyword(text, at, end):
            code = GLUED
        at += 1
    record[AT] = at
    return _set_name(text, first, at, record) if code == FINE else code


@inner
def _set_name(text: NDArray[np.uint8], first: int, last: int, record: NDArray[np.int64]) -> int:
    """Record the name without trailing blanks, and move past the closing brace."""
    record[AT] = last + 1
    while last > first and (int(text[last - 1]) == 32 or int(text[last - 1]) == 9):
        last -= 1
    record[NAME_START] = first
    record[NAME_END] = last
    return FINE if last > first else EMPTY_NAME


@inner
def _read_params(
    text: NDArray[np.uint8], at: int, end: int, values: Values, record: NDArray[np.int64]
) -> int:
    """Read the numbers of `params:{..}` and the closing brace."""
    count = 0
    while True:
        at = skip_blanks(text, at, end)
        if line_ends(text, at, end):
            return NOT_CLOSED
        if int(text[at]) == 125:
            record[AT] = at + 1
            return FINE
        code = add_param(text, at, end, values, record)
        if code != FINE:
            return code
        at = record[AT]
        count += 1
        if count > MAX_PARAMS:
            return TOO_MANY_PARAMS


@inner
def _read_counters(
    text: NDArray[np.uint8],
    at: int,
    end: int,
    counters: NDArray[np.int64],
    record: NDArray[np.int64],
) -> int:
    """Read the integers of `PAPI:{..}` and the closing brace."""
    place = record[COUNTERS_END]
    while True:
        at = skip_blanks(text, at, end)
        record[AT] = at
        if line_ends(text, at, end):
            return NOT_CLOSED
        if int(text[at]) == 125:
            record[AT] = at + 1
            record[COUNTERS_END] = place
            return FINE
        code, after, value = read_integer(text, at, end)
        if code != FINE:
            return code
        if place == len(counters):
            return FULL_COUNTERS
        counters[place] = value
        place += 1
        at = after


@inner
def _close(
    text: NDArray[np.uint8], at: int, end: int, record: NDArray[np.int64], other: int
) -> int:
    """Move past the brace that closes a field of one number; return `other` if more follows."""
    at = skip_blanks(text, at, end)
    record[AT] = at
    if line_ends(text, at, end):
        return NOT_CLOSED
    if int(text[at]) != 125:
        return other
    record[AT] = at + 1
    return FINE


@inner
def _read_time(
    text: NDArray[np.uint8],
    at: int,
    end: int,
    row: int,
    values: Values,
    record: NDArray[np.int64],
) -> int:
    """Read the one number of a time field; -0 is stored as 0."""
    at = skip_blanks(text, at, end)
    record[AT] = at
    if line_ends(text, at, end):
        return NOT_CLOSED
    if int(text[at]) == 125:
        return NO_TIME
    code, after, value = read_number(text, at, end)
    if code == SLOW:
        code = note_slow(values.slow, record, OF_TIME - row, at, after)
        value = -1.0 if int(text[at]) == 45 else 1.0
    if code != FINE:
        return code
    if value < 0:
        return NEGATIVE_TIME
    values.time[row] = value + 0.0
    return _close(text, after, end, record, SEVERAL_TIMES)


@inner
def _read_seqno(text: NDArray[np.uint8], at: int, end: int, record: NDArray[np.int64]) -> int:
    """Read the one integer of `seqno:{..}`."""
    at = skip_blanks(text, at, end)
    record[AT] = at
    if line_ends(text, at, end):
        return NOT_CLOSED
    if int(text[at]) == 125:
        return NOT_ONE_SEQNO
    code, after, value = read_integer(text, at, end)
    if code != FINE:
        return code
    if value < 0:
        return NOT_ONE_SEQNO
    record[SEQUENCE] = value
    return _close(text, after, end, record, NOT_ONE_SEQNO)


@inner
def _open_field(text: NDArray[np.uint8], at: int, end: int, seen: int) -> tuple[int, int, int]:
    """Read a field's name, colon and brace; return a code, the field's number, its content's start.

    `seen` has one bit for each field read before, of which none may come twice.
    """
    field = _field_at(text, at, end)
    if field < 0:
        return NOT_A_FIELD, field, at
    after = _open_brace(text, at + _FIELD_LENGTHS[field], end)
    if after < 0:
        return NOT_A_FIELD, field, at
    return DUPLICATE_FIELD if (seen >> field) & 1 == 1 else FINE, field, after


@inner
def _complete(seen: int, record: NDArray[np.int64]) -> int:
    """Return FINE if the fields seen (one bit each) make a record, else a fault."""
    if (seen >> EVENT) & 1 == 0:
        return NO_EVENT
    if (seen >> TIME) & (seen >> CYCLES) & 1 == 1:
        return TWO_TIMES
    if seen & _TIME_OR_SEB == 0 and record[SEB] < 0:
        return NO_TIME_NO_SEB
    return FINE


@inner
def read_fields(
    text: NDArray[np.uint8],
    at: int,
    end: int,
    row: int,
    values: Values,
    record: NDArray[np.int64],
) -> int:
    """Read fields up to the line's end; return FINE, a fault, or a FULL code."""
    seen = 0
    while True:
        at = skip_blanks(text, at, end)
        record[AT] = at
        if line_ends(text, at, end):
            return _complete(seen, record)
        code, field, after = _open_field(text, at, end, seen)
        if code != FINE:
            return code
        seen |= 1 << field
        if field == EVENT:
            code = _read_name(text, after, end, record)
        elif field == PARAMS:
            code = _read_params(text, after, end, values, record)
        elif field == PAPI:
            code = _read_counters(text, after, end, values.counters, record)
        elif field == SEQNO:
            code = _read_seqno(text, after, end, record)
        else:
            record[UNIT] = 1 if field == TIME else 2
            code = _read_time(text, after, end, row, values, record)
        if code != FINE:
            return code
        at = record[AT]
