"""The parser of timing lines and param lines: bytes in, columns out.

A line holds a record if TRACEBIGSIM is followed by a colon or a blank and it begins with no `#`:

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
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tracebigsim import _scan
from tracebigsim._grammar import (
    FINE,
    FULL_COUNTERS,
    FULL_NAMES,
    FULL_PARAMS,
    FULL_ROWS,
    FULL_SLOW,
    PROBLEMS,
)
from tracebigsim._tokens import OF_TIME, RECORD_LENGTH, Values

Text = bytes | bytearray | memoryview | NDArray[np.uint8]

FAULTS_KEPT: Final = 20
FAULT_TEXT_LENGTH: Final = 200
_TOKEN: Final = re.compile(rb"[^\s}]{1,60}|\S?")


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
    """The n records of a text, in order, an entry each in arrays that do not alias the text."""

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
    """The first FAULTS_KEPT ones."""
    fault_count: int
    """The number of all faults."""

    def __len__(self) -> int:
        return len(self.event)


class _Outputs(NamedTuple):
    """The arrays that the kernel writes to."""

    columns: _scan.Columns
    values: Values
    names: _scan.Names
    faults: NDArray[np.int64]
    state: NDArray[np.int64]
    record: NDArray[np.int64]


def scan(text: Text) -> LineTable:
    """Read every record of a text (a file's bytes, or whole lines of it).

    Takes time linear in the text's size, most of it without holding the GIL. Raises TypeError for
    anything but bytes or a one-dimensional array of uint8.
    """
    data = _as_array(text)
    outputs = _first_outputs(len(data))
    code = _scan.scan_lines(data, *outputs)
    while code != FINE:
        outputs = _grown(outputs, code)
        code = _scan.scan_lines(data, *outputs)
    return _table(data, outputs)


def _as_array(text: Text) -> NDArray[np.uint8]:
    """View a text as a read-only array, so that the kernel is compiled for one type only."""
    if isinstance(text, np.ndarray):
        if text.dtype != np.uint8 or text.ndim != 1:
            raise TypeError(f"a text is a 1-d array of uint8, not {text.ndim}-d of {text.dtype}")
        data: NDArray[np.uint8] = np.ascontiguousarray(text).view()
    elif isinstance(text, bytes | bytearray | memoryview):
        data = np.frombuffer(text, dtype=np.uint8)
    else:
        raise TypeError(f"a text is bytes or an array of uint8, not {type(text).__name__}")
    data.flags.writeable = False
    return data


def _first_outputs(size: int) -> _Outputs:
    """Allocate arrays large enough for most texts of this size; untouched memory costs nothing."""
    rows = size // 72 + 16
    columns = _scan.Columns(
        name=np.empty(rows, np.int32),
        line=np.empty(rows, np.int64),
        offset=np.empty(rows, np.int64),
        seb=np.empty(rows, np.int64),
        seqno=np.empty(rows, np.int64),
        unit=np.empty(rows, np.uint8),
        param_start=np.zeros(rows + 1, np.int64),
        counter_start=np.zeros(rows + 1, np.int64),
    )
    values = Values(
        time=np.empty(rows, np.float64),
        params=np.empty(size // 20 + 64, np.float64),
        counters=np.empty(64, np.int64),
        slow=np.empty((64, 3), np.int64),
    )
    names = _scan.Names(
        start=np.empty(256, np.int64),
        end=np.empty(256, np.int64),
        slots=np.full(_scan.NAME_SLOTS, -1, np.int32),
    )
    state = np.zeros(_scan.STATE_LENGTH, np.int64)
    state[_scan.LINE] = 1
    state[_scan.LAST_NAME] = -1
    faults = np.empty((FAULTS_KEPT, 5), np.int64)
    return _Outputs(columns, values, names, faults, state, np.zeros(RECORD_LENGTH, np.int64))


def _longer(array: NDArray[Any]) -> NDArray[Any]:
    """Return a copy of an array with twice its length."""
    longer = np.empty((2 * len(array), *array.shape[1:]), array.dtype)
    longer[: len(array)] = array
    return longer


def _grown(outputs: _Outputs, code: int) -> _Outputs:
    """Return the outputs with the array that a FULL code names lengthened."""
    values, names = outputs.values, outputs.names
    if code == FULL_ROWS:
        columns = _scan.Columns(*(_longer(column) for column in outputs.columns))
        return outputs._replace(columns=columns, values=values._replace(time=_longer(values.time)))
    if code == FULL_NAMES:
        names = names._replace(start=_longer(names.start), end=_longer(names.end))
        return outputs._replace(names=names)
    field = {FULL_PARAMS: "params", FULL_COUNTERS: "counters", FULL_SLOW: "slow"}[code]
    longer = _longer(getattr(values, field))
    return outputs._replace(values=values._replace(**{field: longer}))


def _table(data: NDArray[np.uint8], outputs: _Outputs) -> LineTable:
    """Return the table: outputs cut to length, slow numbers read, events and faults as texts."""
    columns, values, names, faults, state, _ = outputs
    rows = int(state[_scan.ROWS])
    events, event_of_entry = _events(data, names, int(state[_scan.NAMES_USED]))
    fault_count = int(state[_scan.FAULT_COUNT])
    _read_slow(data, values, int(state[_scan.SLOW_USED]))
    return LineTable(
        events=events,
        event=event_of_entry[columns.name[:rows]],
        line=columns.line[:rows].copy(),
        offset=columns.offset[:rows].copy(),
        seb=columns.seb[:rows].copy(),
        seqno=columns.seqno[:rows].copy(),
        time=values.time[:rows].copy(),
        time_unit=columns.unit[:rows].copy(),
        param_start=columns.param_start[: rows + 1].copy(),
        params=values.params[: int(state[_scan.PARAMS_USED])].copy(),
        counter_start=columns.counter_start[: rows + 1].copy(),
        counters=values.counters[: int(state[_scan.COUNTERS_USED])].copy(),
        faults=tuple(_fault(data, row) for row in faults[:fault_count].tolist()),
        fault_count=fault_count,
    )


def _events(
    data: NDArray[np.uint8], names: _scan.Names, used: int
) -> tuple[tuple[str, ...], NDArray[np.int32]]:
    """Return the distinct names, and for each of the kernel's entries the index of its name."""
    numbers: dict[str, int] = {}
    event_of_entry = np.empty(used, np.int32)
    bounds = zip(names.start[:used].tolist(), names.end[:used].tolist(), strict=True)
    for entry, (start, end) in enumerate(bounds):
        name = data[start:end].tobytes().decode("utf-8", errors="backslashreplace")
        event_of_entry[entry] = numbers.setdefault(name, len(numbers))
    return tuple(numbers), event_of_entry


def _read_slow(data: NDArray[np.uint8], values: Values, used: int) -> None:
    """Read with `float` the numbers that the kernel could not round with certainty."""
    for place, start, end in values.slow[:used].tolist():
        value = float(data[start:end].tobytes()) + 0.0
        if place <= OF_TIME:
            values.time[OF_TIME - place] = value
        else:
            values.params[place] = value


def _fault(data: NDArray[np.uint8], row: list[int]) -> Fault:
    """Return a fault with its text from a row that the kernel stored."""
    line, offset, code, at, line_end = row
    token = _TOKEN.match(data[at : min(at + 64, line_end)].tobytes())
    shown = "" if token is None else token.group().decode("utf-8", errors="backslashreplace")
    text = data[offset : min(line_end, offset + FAULT_TEXT_LENGTH)].tobytes()
    return Fault(
        line=line,
        offset_bytes=offset,
        problem=PROBLEMS[code].replace("{token}", repr(shown) if shown else "the line's end"),
        text=text.decode("utf-8", errors="backslashreplace").rstrip("\r")[:FAULT_TEXT_LENGTH],
    )
