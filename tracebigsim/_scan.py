"""The pass over a text's lines: find the records, parse them, and store them in columns."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tracebigsim._bare import read_bare
from tracebigsim._fields import read_fields
from tracebigsim._grammar import (
    BAD_LEADING_NUMBER,
    FINE,
    FULL_NAMES,
    FULL_ROWS,
    GLUED,
    INTEGER_OVERFLOW,
    MAX_LINE_BYTES,
    TOO_LONG,
)
from tracebigsim._numbers import read_integer
from tracebigsim._tokens import (
    AT,
    COUNTERS_END,
    KEYWORD_BYTES,
    NAME_END,
    NAME_START,
    PARAMS_END,
    SEB,
    SEQUENCE,
    SLOW_END,
    UNIT,
    Values,
    is_keyword,
    skip_blanks,
)
from tracebigsim.compiled import inner, kernel

# Indices into the state of a scan, which can be continued where it stopped.
POSITION: Final = 0
LINE: Final = 1
ROWS: Final = 2
PARAMS_USED: Final = 3
COUNTERS_USED: Final = 4
SLOW_USED: Final = 5
NAMES_USED: Final = 6
LAST_NAME: Final = 7
FAULT_COUNT: Final = 8
STATE_LENGTH: Final = 9

NAME_SLOTS: Final = 4096
_PROSE: Final = -2
"""Code of a bare line without any number: the keyword is a word of a sentence."""


class Columns(NamedTuple):
    """The columns with one entry per record (the starts have one more)."""

    name: NDArray[np.int32]
    line: NDArray[np.int64]
    offset: NDArray[np.int64]
    seb: NDArray[np.int64]
    seqno: NDArray[np.int64]
    unit: NDArray[np.uint8]
    param_start: NDArray[np.int64]
    counter_start: NDArray[np.int64]


class Names(NamedTuple):
    """Where names first occur in the text; a name may have several entries, in order of the text.

    `slots` is a cache of entries by hash; a name evicted from it is entered again when it recurs,
    so that no choice of names makes the scan slower than linear.
    """

    start: NDArray[np.int64]
    end: NDArray[np.int64]
    slots: NDArray[np.int32]


@inner
def _line_end(text: NDArray[np.uint8], at: int, end: int) -> int:
    """Return the position of the newline that ends the line, or the text's end."""
    while at < end and int(text[at]) != 10:
        at += 1
    return at


@inner
def _counts(text: NDArray[np.uint8], after: int, end: int) -> bool:
    """Return whether a TRACEBIGSIM that ends at `after` is followed by a colon or a blank."""
    if after >= end:
        return False
    byte = int(text[after])
    return byte == 58 or byte == 32 or byte == 9  # noqa: PLR1714 - kernels compare plainly


@inner
def _search_keyword(
    text: NDArray[np.uint8], start: int, end: int, record: NDArray[np.int64]
) -> tuple[int, int]:
    """Search the line; return the position after the first valid TRACEBIGSIM (else -1) and a code.

    The code is GLUED if the line has a second one, valid or not. Sets record[AT] to the line's end.
    """
    found = -1
    words = 0
    at = start
    while at < end and int(text[at]) != 10:
        if int(text[at]) == KEYWORD_BYTES[0] and is_keyword(text, at, end):
            words += 1
            at += len(KEYWORD_BYTES)
            if found < 0 and _counts(text, at, end):
                found = at
        else:
            at += 1
    record[AT] = at
    return found, GLUED if found >= 0 and words > 1 else FINE


@inner
def _find_keyword(
    text: NDArray[np.uint8], start: int, end: int, record: NDArray[np.int64]
) -> tuple[int, int]:
    """Find the valid TRACEBIGSIM, as `_search_keyword` does, and read the number before it."""
    at = skip_blanks(text, start, end)
    if at < end and int(text[at]) == 35:
        record[AT] = _line_end(text, at, end)
        return -1, FINE
    code = FINE
    if at < end and 48 <= int(text[at]) <= 57:
        code, after, record[SEB] = read_integer(text, at, end)
        if code == INTEGER_OVERFLOW:
            while after < end and 48 <= int(text[after]) <= 57:
                after += 1
        at = skip_blanks(text, after, end)
    if is_keyword(text, at, end) and _counts(text, at + len(KEYWORD_BYTES), end):
        return at + len(KEYWORD_BYTES), BAD_LEADING_NUMBER if code == INTEGER_OVERFLOW else FINE
    record[SEB] = -1
    return _search_keyword(text, start, end, record)


@inner
def _has_brace(text: NDArray[np.uint8], at: int, end: int) -> bool:
    """Return whether a brace comes before the line's end."""
    while at < end and int(text[at]) != 10:
        if int(text[at]) == 123 or int(text[at]) == 125:
            return True
        at += 1
    return False


@inner
def _read_record(
    text: NDArray[np.uint8],
    at: int,
    end: int,
    row: int,
    values: Values,
    record: NDArray[np.int64],
) -> int:
    """Read what follows the keyword: fields, if there is a colon or a brace, else a bare line."""
    values.time[row] = np.nan
    at = skip_blanks(text, at, end)
    colon = at < end and int(text[at]) == 58 and (at + 1 == end or int(text[at + 1]) != 58)
    if colon or _has_brace(text, at, end):
        at += 1 if colon else 0
        return read_fields(text, at, end, row, values, record)
    params_start = record[PARAMS_END]
    code = read_bare(text, at, end, values, record)
    if record[SEB] < 0 and record[PARAMS_END] == params_start:
        return _PROSE
    return code


@inner
def _same_name(text: NDArray[np.uint8], names: Names, entry: int, first: int, last: int) -> bool:
    """Return whether an entry's name is text[first:last]."""
    if entry < 0:
        return False
    start = names.start[entry]
    if names.end[entry] - start != last - first:
        return False
    for index in range(last - first):  # noqa: SIM110 - a loop is what compiles
        if text[start + index] != text[first + index]:
            return False
    return True


@inner
def _slot(text: NDArray[np.uint8], first: int, last: int) -> int:
    """Return the slot of a name, by its hash."""
    mixed = 0
    for at in range(first, last):
        mixed = ((mixed ^ int(text[at])) * 16777619) & 0xFFFFFFFF
    return (mixed ^ (mixed >> 16)) & (NAME_SLOTS - 1)


@inner
def _name_entry(
    text: NDArray[np.uint8], names: Names, state: NDArray[np.int64], first: int, last: int
) -> int:
    """Return the entry of a name, a new one if needed; -1 if there is no room."""
    entry: int = state[LAST_NAME]
    if _same_name(text, names, entry, first, last):
        return entry
    slot = _slot(text, first, last)
    for choice in (slot, slot ^ 1):
        entry = names.slots[choice]
        if _same_name(text, names, entry, first, last):
            return entry
    entry = state[NAMES_USED]
    if entry == len(names.start):
        return -1
    if names.slots[slot] >= 0 and names.slots[slot ^ 1] < 0:
        slot ^= 1
    names.slots[slot] = entry
    names.start[entry] = first
    names.end[entry] = last
    state[NAMES_USED] = entry + 1
    return entry


@inner
def _keep(
    text: NDArray[np.uint8],
    columns: Columns,
    names: Names,
    state: NDArray[np.int64],
    record: NDArray[np.int64],
) -> int:
    """Store the line just read as a record; return FULL_NAMES if there is no room for its name."""
    entry = _name_entry(text, names, state, record[NAME_START], record[NAME_END])
    if entry < 0:
        return FULL_NAMES
    row = state[ROWS]
    columns.name[row] = entry
    columns.line[row] = state[LINE]
    columns.offset[row] = state[POSITION]
    columns.seb[row] = record[SEB]
    columns.seqno[row] = record[SEQUENCE]
    columns.unit[row] = record[UNIT]
    columns.param_start[row + 1] = record[PARAMS_END]
    columns.counter_start[row + 1] = record[COUNTERS_END]
    state[LAST_NAME] = entry
    state[ROWS] = row + 1
    state[PARAMS_USED] = record[PARAMS_END]
    state[COUNTERS_USED] = record[COUNTERS_END]
    state[SLOW_USED] = record[SLOW_END]
    return FINE


@inner
def _note_fault(
    faults: NDArray[np.int64], state: NDArray[np.int64], code: int, at: int, line_end: int
) -> None:
    """Count a fault; store line, offset, code, fault's offset and line's end of the first ones."""
    row = state[FAULT_COUNT]
    if row < len(faults):
        faults[row, 0] = state[LINE]
        faults[row, 1] = state[POSITION]
        faults[row, 2] = code
        faults[row, 3] = at
        faults[row, 4] = line_end
    state[FAULT_COUNT] = row + 1


@inner
def _begin(state: NDArray[np.int64], record: NDArray[np.int64]) -> None:
    """Clear the record of a line; its numbers go after those of earlier lines."""
    record[SEB] = -1
    record[SEQUENCE] = -1
    record[UNIT] = 0
    record[PARAMS_END] = state[PARAMS_USED]
    record[COUNTERS_END] = state[COUNTERS_USED]
    record[SLOW_END] = state[SLOW_USED]


@inner
def _final_code(
    text: NDArray[np.uint8], start: int, line_end: int, code: int, record: NDArray[np.int64]
) -> int:
    """Return a line's code: a fault of the whole line takes precedence over one of a part."""
    if line_end - start > MAX_LINE_BYTES:
        return TOO_LONG
    if code > FINE:
        at = record[AT]
        _, glued = _search_keyword(text, start, line_end, record)
        record[AT] = at
        if glued == GLUED:
            return GLUED
    return code


@kernel(ns_per_byte=2100)
def scan_lines(
    text: NDArray[np.uint8],
    columns: Columns,
    values: Values,
    names: Names,
    faults: NDArray[np.int64],
    state: NDArray[np.int64],
    record: NDArray[np.int64],
) -> int:
    """Scan from state[POSITION] to the text's end, or to a line that an array has no room for.

    Return FINE, or that array's code; nothing of that line is stored. `record` is scratch space.
    """
    end = len(text)
    while state[POSITION] < end:
        start = state[POSITION]
        _begin(state, record)
        after, code = _find_keyword(text, start, end, record)
        if after >= 0:
            record[AT] = after
            if state[ROWS] == len(columns.name):
                return FULL_ROWS
            if code == FINE:
                code = _read_record(text, after, end, state[ROWS], values, record)
        if code >= FULL_ROWS:
            return code
        line_end = _line_end(text, record[AT], end)
        code = _final_code(text, start, line_end, code, record)
        if code > FINE:
            _note_fault(faults, state, code, record[AT], line_end)
        elif after >= 0 and code == FINE and _keep(text, columns, names, state, record) != FINE:
            return FULL_NAMES
        state[POSITION] = line_end + 1
        state[LINE] += 1
    return FINE
