"""The parser of timing lines and param lines: bytes in, columns out.

A line that does not begin with `#` holds a record if it has TRACEBIGSIM before a colon or a blank:

    19 TRACEBIGSIM: event:{ Cell::pairForces } seqno: { 19 }    params:{ 53.000000 11.000000 }
    TRACEBIGSIM: event:{ calc_self }  time:{ 0.00403 }  PAPI:{ 3560647 673 } params:{ 630.0 }
    19 TRACEBIGSIM Cell::pairForces 53.0 11.0

Fields come in any order, each at most once, with any blanks. A name ends at the brace that matches
its opening brace, so braces within it come in pairs. Other lines are the program's own output and
are skipped. Lines that no program can have printed in one piece are faults and yield no record.

Some damage cannot be detected: a line that lost whole fields (cut after `time:{..}`, it reads as
one without parameters), or two pieces joined within one name, one number or one list of numbers,
is still a line of the grammar. Its event or its number of parameters then mostly differs from
those of other records, which the caller can see but this module cannot.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tracebigsim.core import core
from tracebigsim.writing import KEYWORD, MAX_LINE_BYTES, MAX_PARAMS

Text = bytes | bytearray | memoryview | NDArray[np.uint8]

FAULTS_KEPT: Final = 20
FAULT_TEXT_LENGTH: Final = 200
_TOKEN: Final = re.compile(rb"[^\s}]{1,60}|\S?")

_PROBLEMS: Final = {
    core.GLUED: f"two {KEYWORD} in one line: lines of several processes ran together",
    core.TOO_LONG: f"the line is longer than {MAX_LINE_BYTES} bytes",
    core.BAD_LEADING_NUMBER: "the leading number does not fit in 64 bits",
    core.NO_EVENT: "no event:{..} field",
    core.EMPTY_NAME: "the event's name is empty",
    core.CONTROL_IN_NAME: "a control character in the event's name",
    core.FIELD_IN_NAME: (
        "a field begins within the event's name: lines that are torn or ran together"
    ),
    core.NOT_A_FIELD: "expected a known field or the end of the line at {token}",
    core.DUPLICATE_FIELD: "duplicate field at {token}",
    core.NOT_CLOSED: "a closing brace is missing: a torn line",
    core.NOT_A_NUMBER: "not a number: {token}",
    core.IS_NAN: "not a finite number (NaN): {token}",
    core.IS_INFINITE: "not a finite number (infinite, or too large): {token}",
    core.TOO_MANY_PARAMS: f"more than {MAX_PARAMS} parameters",
    core.NOT_ONE_TIME: "a time must be one number; at {token}",
    core.TWO_TIMES: "both time and time_in_cycles",
    core.NEGATIVE_TIME: "a negative time: {token}",
    core.NOT_AN_INTEGER: "not an integer: {token}",
    core.INTEGER_OVERFLOW: "an integer that does not fit in 64 bits: {token}",
    core.NOT_ONE_SEQNO: "seqno must be one non-negative integer; at {token}",
    core.NO_TIME_NO_SEB: "neither a time nor a SEB number",
}

_RECORDS, _PARAMS, _SLOTS = 1 << 16, 1 << 18, 1 << 12
"""Array lengths for one call of the core: enough for the longest line, and for most chunks."""

_NEWLINE: Final = np.uint8(ord("\n"))


class TimeUnit(IntEnum):
    """The unit of a record's time."""

    NONE = 0
    SECONDS = 1
    CYCLES = 2


@dataclass(frozen=True)
class Fault:
    """A line that holds TRACEBIGSIM but no valid record."""

    line: int
    """1-based line number."""
    offset_bytes: int
    """Where the line begins in the text, in bytes."""
    problem: str
    text: str
    """The line, cut to FAULT_TEXT_LENGTH characters."""

    def __str__(self) -> str:
        return f"line {self.line} (byte {self.offset_bytes}): {self.problem}: {self.text!r}"


@dataclass(frozen=True, eq=False)
class LineTable:
    """The n records of a text, in order: an entry each in arrays, which do not alias the text."""

    events: tuple[str, ...]
    """The distinct names of events, in order of first appearance."""
    event: NDArray[np.int32]
    """Index into `events`."""
    line: NDArray[np.int64]
    """1-based number of the record's line."""
    offset: NDArray[np.int64]
    """Where the line begins, in bytes."""
    seb: NDArray[np.int64]
    """The number at the beginning of a param line, the SEB's index; -1 if there is none."""
    seqno: NDArray[np.int64]
    """The value of the field `seqno`, -1 if there is none."""
    time: NDArray[np.float64]
    """The time as written, not negative, in seconds or cycles (`time_unit`); NaN without one."""
    time_unit: NDArray[np.uint8]
    """A TimeUnit."""
    param_start: NDArray[np.int64]
    """(n + 1,): record i has params[param_start[i]:param_start[i + 1]]."""
    params: NDArray[np.float64]
    """The parameters of all records: finite; -0 is stored as 0."""
    counter_start: NDArray[np.int64]
    """(n + 1,): like `param_start`, for `counters`."""
    counters: NDArray[np.int64]
    """The PAPI counters of all records."""
    faults: tuple[Fault, ...]
    """The first FAULTS_KEPT faults."""
    fault_count: int
    """The number of all faults."""

    def __len__(self) -> int:
        return len(self.event)


def scan(text: Text, first_line: int = 1, offset_bytes: int = 0) -> LineTable:
    """Read every record of a text (a file's bytes, or whole lines of it).

    `first_line` is the number of the text's first line in its file, and `offset_bytes` where that
    line begins. Takes time linear in the text's size, most of it without holding the GIL. Raises
    TypeError for anything but bytes or a one-dimensional array of uint8.
    """
    data = _as_array(text)
    size, numbers = len(data), dict[str, int]()
    records = np.empty(min(size // 16 + 1, _RECORDS), core.structs["line_record"])
    params = np.empty(min(size, _PARAMS) + MAX_PARAMS)
    counters = np.empty(min(size, MAX_LINE_BYTES) // 2 + 1, np.int64)
    faults = np.empty(FAULTS_KEPT, core.structs["line_fault"])
    state = np.zeros(1, core.structs["scan_state"])
    state["line"] = first_line
    parts = list[dict[str, NDArray[Any]]]()
    while not parts or state["position"][0] < size:  # each pass takes as many lines as fit
        for used in ("records", "params", "counters"):
            state[used] = 0
        slots = np.zeros(_SLOTS, np.int32)
        core.scan(data, records, params, counters, slots, faults, state)
        rows = records[: state["records"][0]]
        columns = {name: rows[name] for name in ("line", "offset", "seb", "seqno", "time", "unit")}
        columns |= {
            "event": _events(data, rows, numbers),
            "param_counts": rows["params"],
            "counter_counts": rows["counters"],
            "params": params[: state["params"][0]],
            "counters": counters[: state["counters"][0]],
        }
        parts.append({name: column.copy() for name, column in columns.items()})
    joined = {
        name: np.concatenate([part[name] for part in parts]) if len(parts) > 1 else column
        for name, column in parts[0].items()
    }
    joined["offset"] += offset_bytes
    count = int(state["faults"][0])
    return LineTable(
        events=tuple(numbers),
        time_unit=joined.pop("unit").astype(np.uint8),
        param_start=_starts(joined.pop("param_counts")),
        counter_start=_starts(joined.pop("counter_counts")),
        faults=tuple(_fault(data, row, offset_bytes) for row in faults[:count].tolist()),
        fault_count=count,
        **joined,
    )


def _as_array(text: Text) -> NDArray[np.uint8]:
    """Return a text as the core takes it: a read-only array that ends with a newline."""
    if isinstance(text, np.ndarray):
        if text.dtype != np.uint8 or text.ndim != 1:
            raise TypeError(f"a text is a 1-d array of uint8, not {text.ndim}-d of {text.dtype}")
        data: NDArray[np.uint8] = np.ascontiguousarray(text).view()
    elif isinstance(text, bytes | bytearray | memoryview):
        data = np.frombuffer(text, dtype=np.uint8)
    else:
        raise TypeError(f"a text is bytes or an array of uint8, not {type(text).__name__}")
    if len(data) and data[-1] != _NEWLINE:
        data = np.append(data, _NEWLINE)
    data.flags.writeable = False
    return data


def _events(
    data: NDArray[np.uint8], records: NDArray[Any], numbers: dict[str, int]
) -> NDArray[np.int32]:
    """Return the number of each record's event, and add new names to `numbers`."""
    first = records["first"]
    distinct = np.flatnonzero(first == np.arange(len(first)))
    number_of = np.empty(len(first), np.int32)
    names = records[["name_start", "name_end"]][distinct].tolist()
    for row, (start, end) in zip(distinct.tolist(), names, strict=True):
        name = data[start:end].tobytes().decode("utf-8", errors="backslashreplace")
        number_of[row] = numbers.setdefault(name, len(numbers))
    events: NDArray[np.int32] = number_of[first]
    return events


def _starts(counts: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return where each record's numbers begin, and where the last record's numbers end."""
    starts = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=starts[1:])
    return starts


def _fault(data: NDArray[np.uint8], row: list[int], offset_bytes: int) -> Fault:
    """Return a fault with its text from a row that the core stored."""
    line, offset, code, at, line_end = row
    token = _TOKEN.match(data[at : min(at + 64, line_end)].tobytes())
    shown = "" if token is None else token.group().decode("utf-8", errors="backslashreplace")
    text = data[offset : min(line_end, offset + FAULT_TEXT_LENGTH)].tobytes()
    return Fault(
        line=line,
        offset_bytes=offset + offset_bytes,
        problem=_PROBLEMS[code].replace("{token}", repr(shown) if shown else "the line's end"),
        text=text.decode("utf-8", errors="backslashreplace").rstrip("\r")[:FAULT_TEXT_LENGTH],
    )
