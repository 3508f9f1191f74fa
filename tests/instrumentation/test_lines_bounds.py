"""Texts that end anywhere, against a page that cannot be read: no byte beside a text is read."""

from __future__ import annotations

import numpy as np
import pytest
from fuzz.arena import Arena

from tracebigsim.lines import LineTable, scan

LINES = [
    b"  19 TRACEBIGSIM : event:{ a::{b} c } seqno : { 19 } params:{ 53.5e+1 -1e-320 123456.5e9 }",
    b"TRACEBIGSIM: time:{ 0.12345678901234567 } PAPI:{ -3 5 } event:{ k } \r",
    b"TRACEBIGSIM: event:{ k } time_in_cycles:{ 1.5 }  params:{ -inf",
    b"TRACEBIGSIM: event:{ k } params:{ nan( }",
    b"x 99999999999999999999 TRACEBIGSIM ",
    b"99999999999999999999 TRACEBIGSIM: ",
    b"19 TRACEBIGSIM Cell of TRACEBIG 53.0 infinity",
    b"# TRACEBIGSIM:",
    b"TRACEBIGSIM",
    b"TRACEBIGSIM::",
]


def answer(table: LineTable) -> tuple[object, ...]:
    columns = (table.seb, table.seqno, table.time.astype(str), table.params, table.counters)
    return (table.events, *(column.tolist() for column in columns), table.faults)


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize("before", [b"", b"\n", b"7 TRACEBIGSIM k 1\r\n"])
def test_a_text_that_ends_anywhere(before: bytes, line: bytes) -> None:
    """A text without a newline at its end would be copied, and be read elsewhere."""
    memory = Arena(len(before) + len(line) + 1, filler=ord("}")).open
    for size in range(len(before), len(before + line) + 1):
        text = (before + line)[:size]
        expected = answer(scan(text))
        for place in (slice(size + 1), slice(len(memory) - size - 1, None)):
            memory[place] = np.frombuffer(text + b"\n", dtype=np.uint8)
            assert answer(scan(memory[place])) == expected


def test_a_text_of_more_numbers_and_names_than_are_read_at_once() -> None:
    """It gives the same records as its lines do one by one."""
    slow = [f"{k} TRACEBIGSIM: event:{{ e{k % 700} }} params:{{ {k}e-320 }}" for k in range(3000)]
    counted = [
        f"TRACEBIGSIM: event:{{ c }} time:{{ {k} }} PAPI:{{{' 7' * 300_000}}}" for k in range(4)
    ]
    plain = [f"{k} TRACEBIGSIM: event:{{ e{k} }} params:{{ {k} }}" for k in range(70_000)]
    table = scan("\n".join([*slow, *counted, *plain]).encode())
    assert table.fault_count == 0
    assert table.line.tolist() == list(range(1, 73_005))
    names = [f"e{k % 700}" for k in range(3000)] + ["c"] * 4 + [f"e{k}" for k in range(70_000)]
    assert [table.events[event] for event in table.event.tolist()] == names
    assert table.params.tolist() == [
        *(float(f"{k}e-320") for k in range(3000)),
        *map(float, range(70_000)),
    ]
    assert np.diff(table.param_start).tolist() == [1] * 3000 + [0] * 4 + [1] * 70_000
    assert table.counters.sum() == 7 * 4 * 300_000
    assert np.diff(table.counter_start).nonzero()[0].tolist() == [3000, 3001, 3002, 3003]
    assert table.time[3000:3004].tolist() == [0, 1, 2, 3]
