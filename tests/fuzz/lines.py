"""Timing and param lines through the scanner, in memory between pages that cannot be touched."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fuzz.arena import Arena
from fuzz.readers import Check
from tracebigsim.lines import FAULTS_KEPT, LineTable, TimeUnit, scan
from tracebigsim.writing import MAX_PARAMS

ROOM = 1 << 14

LINES = [
    b"""  19 TRACEBIGSIM : event:{ a::{b} c } seqno : { 19 } params:{ 53.5e+1 -1e-320 12.5e9 }
19 TRACEBIGSIM: event:{ Cell::pairForces } seqno: { 19 }    params:{ 53.00 11.000 }
""",
    b"""noise
TRACEBIGSIM: time:{ 0.12345678901234567 } PAPI:{ -3 5 } event:{ k } \r
# TRACEBIGSIM:
TRACEBIGSIM: event:{ k } time_in_cycles:{ 1.5 }  params:{ 3 }
""",
    b"""19 TRACEBIGSIM Cell::pairForces 53.0 11.0
20 TRACEBIGSIM: Cell 1e-5 0
TRACEBIGSIM in prose
""",
    b"TRACEBIGSIM: event:{ s } time:{ 1e-310 }\n"
    + b"TRACEBIGSIM: event:{ s } time:{ 1e-310 } params:{%s }\n" % (20 * b" 5e-324")
    + b"20 TRACEBIGSIM f%s\n20 TRACEBIGSIM f%s f 1\n" % (20 * b" 1", 25 * b" 2e-310"),
]
"""Lines of every kind."""


def lines_check(_: Path) -> tuple[Check, list[bytes]]:
    """Scan a mutant after one closed page and before another; what lies beside it differs."""
    low, high = Arena(ROOM, 0xAA).open, Arena(ROOM, 0x55).open

    def check(data: bytes) -> bool:
        size = min(len(data), ROOM)
        text = np.frombuffer(data, dtype=np.uint8)[:size]
        low[:size] = text
        high[ROOM - size :] = text
        first, second = scan(low[:size]), scan(high[ROOM - size :])
        low[:size] = 0xAA
        high[ROOM - size :] = 0x55
        assert _bits(first) == _bits(second), "the answer depends on what lies beside the text"
        _check_table(first, data[:size])
        return len(first) > 0

    return check, LINES


def _bits(table: LineTable) -> list[object]:
    values = vars(table).values()
    return [value.tobytes() if isinstance(value, np.ndarray) else value for value in values]


def _check_table(table: LineTable, text: bytes) -> None:
    """Raise `AssertionError` for what does not hold of the records of a text."""
    newlines = np.flatnonzero(np.frombuffer(text, dtype=np.uint8) == ord("\n"))
    starts = np.append(0, newlines + 1)
    assert (np.diff(table.line) > 0).all(), "records are not in the order of the text"
    assert (starts[table.line - 1] == table.offset).all(), "a record is in another line"
    assert (np.minimum(table.seb, table.seqno) >= -1).all(), "a SEB's number is negative"
    for numbers, begins in (
        (table.params, table.param_start),
        (table.counters, table.counter_start),
    ):
        assert (begins[0], begins[-1]) == (0, len(numbers)), "numbers of no record"
        assert (np.diff(begins) >= 0).all(), "the numbers of records do not follow one another"
    assert (np.diff(table.param_start) <= MAX_PARAMS).all(), "more parameters than a line may have"
    timed = table.time[table.time_unit != TimeUnit.NONE]
    assert np.isnan(table.time[table.time_unit == TimeUnit.NONE]).all(), "a time without a unit"
    for values in (table.params, timed):
        assert np.isfinite(values).all(), "a number is not finite"
        assert not np.signbit(values[values == 0]).any(), "a number is -0"
    assert not np.signbit(timed).any(), "a time is negative"
    assert sorted(set(table.event.tolist())) == list(range(len(table.events))), "a name is unused"
    assert len(table.faults) == min(table.fault_count, FAULTS_KEPT), "faults are missing"
    for fault in table.faults:
        assert starts[fault.line - 1] == fault.offset_bytes, "a fault is in another line"
