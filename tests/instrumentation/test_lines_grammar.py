"""What is a record, what is a fault, and what is neither."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
from chosen import by_tier

from tracebigsim.lines import FAULT_TEXT_LENGTH, FAULTS_KEPT, LineTable, TimeUnit, scan


@dataclass(frozen=True)
class Record:
    """A row of a table, for comparing."""

    event: str
    params: list[float] = field(default_factory=list)
    time: float | None = None
    unit: TimeUnit = TimeUnit.NONE
    seb: int = -1
    seqno: int = -1
    counters: list[int] = field(default_factory=list)


def records(table: LineTable) -> list[Record]:
    return [
        Record(
            event=table.events[table.event[row]],
            params=table.params[table.param_start[row] : table.param_start[row + 1]].tolist(),
            time=None if np.isnan(table.time[row]) else float(table.time[row]),
            unit=TimeUnit(table.time_unit[row]),
            seb=int(table.seb[row]),
            seqno=int(table.seqno[row]),
            counters=table.counters[
                table.counter_start[row] : table.counter_start[row + 1]
            ].tolist(),
        )
        for row in range(len(table))
    ]


SECONDS, CYCLES = TimeUnit.SECONDS, TimeUnit.CYCLES
TWENTY = " ".join(str(number) for number in range(20))

GOOD = {
    "19 TRACEBIGSIM: event:{ Cell::pairForces } seqno: { 19 }    params:{ 53.000000 11.000000 }": (
        Record("Cell::pairForces", [53, 11], seb=19, seqno=19)
    ),
    "TRACEBIGSIM: event:{ P::b }  time:{ 0.002586 }  params:{ 16384.00 1.00 220.00 }": (
        Record("P::b", [16384, 1, 220], 0.002586, SECONDS)
    ),
    "TRACEBIGSIM: event:{ s }  time:{ 0.00403 }  PAPI:{ 35 -6 11 } params:{ 63.0 }": (
        Record("s", [63], 0.00403, SECONDS, counters=[35, -6, 11])
    ),
    "TRACEBIGSIM: event:{ k } time_in_cycles:{ 1034412 }  params:{ 64.0 }": (
        Record("k", [64], 1034412, CYCLES)
    ),
    "TRACEBIGSIM:params:{1}time:{2}event:{k}": Record("k", [1], 2, SECONDS),
    "TRACEBIGSIM params : { 1 } time :{2 } seqno  :\t{ 7 } event\t: {\tk\t}  ": (
        Record("k", [1], 2, SECONDS, seqno=7)
    ),
    "TRACEBIGSIM : event:{ k } time:{ 1 }": Record("k", [], 1, SECONDS),
    "TRACEBIGSIM: event:{ k } time:{ 1 } params:{ } PAPI:{}": Record("k", [], 1, SECONDS),
    "TRACEBIGSIM: event:{ a TRACE with  blanks } time:{ 1 }": (
        Record("a TRACE with  blanks", [], 1, SECONDS)
    ),
    "TRACEBIGSIM: event:{ Foo<Bar, 3>::baz } time:{ 1 }": (
        Record("Foo<Bar, 3>::baz", [], 1, SECONDS)
    ),
    "TRACEBIGSIM: event:{ main::{lambda(int)#1}::operator() } time:{ 1 }": (
        Record("main::{lambda(int)#1}::operator()", [], 1, SECONDS)
    ),
    "TRACEBIGSIM: event:{ f{} } time:{ 1 }": Record("f{}", [], 1, SECONDS),
    "TRACEBIGSIM: event:{ größe } time:{ 1 }": Record("größe", [], 1, SECONDS),
    "TRACEBIGSIM: event:{ k } time:{ -0.0 } params:{ -0 -0.0e5 +1 1e5 5. .5 -2.5E-1 }": (
        Record("k", [0, 0, 1, 1e5, 5, 0.5, -0.25], 0, SECONDS)
    ),
    f"TRACEBIGSIM: event:{{ k }} time:{{ 1 }} params:{{ {TWENTY} }}": (
        Record("k", [float(number) for number in range(20)], 1, SECONDS)
    ),
    "9223372036854775807 TRACEBIGSIM: event:{ k }": Record("k", seb=2**63 - 1),
    "   4\tTRACEBIGSIM: event:{ k }": Record("k", seb=4),
    "Iteration 3 TRACEBIGSIM: event:{ k } seqno:{ 5 }": Record("k", seqno=5),
    "3 steps TRACEBIGSIM: event:{ k } seqno:{ 5 }": Record("k", seqno=5),
    "12TRACEBIGSIM: event:{ k } seqno:{ 5 }": Record("k", seqno=5),
    "-3 TRACEBIGSIM: event:{ k } seqno:{ 5 }": Record("k", seqno=5),
    "done.TRACEBIGSIM: event:{ k } time:{ 1 }": Record("k", [], 1, SECONDS),
    "19 TRACEBIGSIM Cell::pairForces 53.0 11.0": Record("Cell::pairForces", [53, 11], seb=19),
    "19\tTRACEBIGSIM\tk\t53.0\t11.0": Record("k", [53, 11], seb=19),
    "19 TRACEBIGSIM Foo<Bar, 3>::baz 5 3": Record("Foo<Bar, 3>::baz", [5, 3], seb=19),
    "19 TRACEBIGSIM phase 2 of nano info 7": Record("phase 2 of nano info", [7], seb=19),
    "19 TRACEBIGSIM phase 2.5.1": Record("phase 2.5.1", seb=19),
    "\ufeff 19 TRACEBIGSIM k 1": Record("k", [1], seb=19),
    "19 TRACEBIGSIM ::global 1": Record("::global", [1], seb=19),
    "TRACEBIGSIM Cell::pairForces 53.0 11.0": Record("Cell::pairForces", [53, 11]),
}


@pytest.mark.parametrize("line", GOOD)
@pytest.mark.parametrize("line_end", ["", "\n", "\r\n", "\r"], ids=["none", "lf", "crlf", "cr"])
def test_a_good_line_is_one_record(line: str, line_end: str) -> None:
    table = scan((line + line_end).encode())
    assert table.faults == ()
    assert records(table) == [GOOD[line]]


NOT_RECORDS = [
    "",
    "   ",
    "\r",
    "Charm++> Running on 4 processors",
    '# this file holds only the lines containing "TRACEBIGSIM"',
    "  # TRACEBIGSIM: event:{ k } time:{ 1 }",
    "\ufeff# TRACEBIGSIM: event:{ k } time:{ 1 }",
    "a line containing TRACEBIGSIM",
    "TRACEBIGSIM",
    "TRACEBIGSIM ",
    "TRACEBIGSIM_OUTPUT=x",
    "TRACEBIGSIM is a word",
    "the word TRACEBIGSIM is in prose",
    "TRACEBIGSI",
    "tracebigsim: event:{ k } time:{ 1 }",
    "19 ",
    "99999999999999999999999999999",
]


@pytest.mark.parametrize("line", NOT_RECORDS)
def test_program_output_is_passed_over(line: str) -> None:
    table = scan(f"{line}\nTRACEBIGSIM: event:{{ k }} time:{{ 1 }}\n{line}".encode())
    assert (table.fault_count, records(table)) == (0, [Record("k", [], 1, SECONDS)])
    assert table.line.tolist() == [2]


E = "TRACEBIGSIM: event:{ k } "
FAULTY = {
    "TRACEBIGSIM:": "no event",
    "TRACEBIGSIM: Cell::pairForces 53.0 11.0": "a known field or the end of the line at 'Cell",
    "TRACEBIGSIM: time:{ 1 }": "no event",
    "19 TRACEBIGSIM 53.0 11.0": "no event",
    "TRACEBIGSIM: event:{ } time:{ 1 }": "name is empty",
    "TRACEBIGSIM: event:{} time:{ 1 }": "name is empty",
    "TRACEBIGSIM: event:{ k": "closing brace",
    "TRACEBIGSIM: event:{ k{ } time:{ 1 }": "field begins within",
    "TRACEBIGSIM: event:{ k{ }": "closing brace",
    "TRACEBIGSIM: event:{ k } } time:{ 1 }": "end of the line at '}'",
    "TRACEBIGSIM: event:{ k seqno: { 3 } } time:{ 1 }": "field begins within",
    "TRACEBIGSIM: event:{ a\x00b } time:{ 1 }": "control character",
    "TRACEBIGSIM: event:{ a\x7fb } time:{ 1 }": "control character",
    "TRACEBIGSIM: event:{ a\rb } time:{ 1 }": "control character",
    "TRACEBIGSIM: event:{ Cell::event:{ k } time:{ 1 }": "field begins within",
    E: "neither a time nor",
    E + "params:{ 1 }": "neither a time nor",
    E + "time:{ 1": "closing brace",
    E + "time:{ ": "closing brace",
    E + "time:{ }": "a time must be one number; at '}'",
    E + "time:{ 1 2 }": "a time must be one number; at '2'",
    E + "time:{ 1 } time:{ 1 }": "duplicate field at 'time:{'",
    E + "time:{ 1 } event:{ k }": "duplicate field",
    E + "time:{ 1 } time_in_cycles:{ 1 }": "both time and time_in_cycles",
    E + "time:{ -1e-6 }": "a negative time: '-1e-6'",
    E + "time:{ nan }": "(NaN)",
    E + "time:{ inf }": "infinite",
    E + "time:{ 1 } params:{ 1 -nan }": "(NaN): '-nan'",
    E + "time:{ 1 } params:{ nan(0x8000) }": "(NaN)",
    E + "time:{ 1 } params:{ -Infinity }": "infinite",
    E + "time:{ 1 } params:{ 1e999 }": "infinite, or too large): '1e999'",
    E + "time:{ 1.1e100 }": "infinite, or too large): '1.1e100'",
    E + "time:{ 1 } params:{ 1e309 }": "too large",
    E + f"time:{{ 1 }} params:{{ {TWENTY} 20 }}": "more than 20",
    f"19 TRACEBIGSIM k {TWENTY} 20": "more than 20",
    "19 TRACEBIGSIM k nan": "(NaN)",
    "19 TRACEBIGSIM k\x07b 1": "control character",
    "19 TRACEBIGSIM k\x7fb 1": "control character",
    E + "time:{ 1 } params:{ 1,2 }": "not a number: '1,2'",
    E + "time:{ 1 } params:{ 1.0.0 }": "not a number",
    E + "time:{ 1 } params:{ 0x10 }": "not a number",
    E + "time:{ 1 } params:{ 1e }": "not a number",
    E + "time:{ 1 } params:{ - }": "not a number: '-'",
    E + "time:{ 1 } params:{ . }": "not a number: '.'",
    E + "time:{ 1 } params:{ -.e1 }": "not a number: '-.e1'",
    E + "time:{ 1 } params:{ 1_0 }": "not a number",
    E + "time:{ 1 } params:{ 1": "closing brace",
    E + "time:{ 1 } params:{ 1 \r 2 }": "not a number",
    E + "time:{ 1 } params:{ 1 } trailing": "the end of the line at 'trailing'",
    E + "time:{ 1 } params:": "expected a known field",
    E + "time:{ 1 } colour:{ 1 }": "the end of the line at 'colour:{'",
    E + "time:{ 1 } Params:{ 1 }": "expected a known field",
    E + "time:{ 1 } paramsx:{ 1 }": "expected a known field",
    E + "time_in_cycles_of_a_clock:{ 1 }": "expected a known field",
    E + "time:{ 1 } PAPI:{ 1.5 }": "not an integer: '1.5'",
    E + "time:{ 1 } PAPI:{ 9223372036854775808 }": "does not fit in 64 bits",
    E + "time:{ 1 } PAPI:{ 1": "closing brace",
    E + "seqno:{ }": "one non-negative integer",
    E + "seqno:{ -1 }": "one non-negative integer; at '-1'",
    E + "seqno:{ 1 2 }": "one non-negative integer",
    E + "seqno:{ 1.0 }": "not an integer",
    "9223372036854775808 " + E: "leading number does not fit",
    E + "time:{ 1 } " + E + "time:{ 1 }": "ran together",
    E + "time:{ 0.1TRACEBIGSIM: event:{ k } time:{ 1 }": "ran together",
    "TRACEBIGSIM: event:{ Cell::TRACEBIGSIM: event:{ k } time:{ 1 }": "ran together",
    "TRACEBIGSIM: event:{ CellTRACEBIGSIM k } time:{ 1 }": "ran together",
    "19 TRACEBIGSIM" + E + "time:{ 1 }": "ran together",
    "1 TRACEBIGSIM Cel2 TRACEBIGSIM Cell 2 3": "ran together",
    E + "time:{ 1 } TRACEBIGSIM": "ran together",
    "x" * (1 << 20) + E + "time:{ 1 }": "longer than",
    "x" * ((1 << 20) + 1): "longer than",
}


SHORT = [line for line in FAULTY if len(line) < 1000]


@pytest.mark.parametrize("line", by_tier(FAULTY, SHORT, FAULTY), ids=lambda line: repr(line[:60]))
@pytest.mark.parametrize("line_end", ["", "\n", "\r\n"], ids=["none", "lf", "crlf"])
def test_a_faulty_line_is_one_fault_and_no_record(line: str, line_end: str) -> None:
    table = scan((line + line_end).encode())
    assert (len(table), table.events) == (0, ())
    (fault,) = table.faults
    assert FAULTY[line] in fault.problem
    assert (fault.line, fault.offset_bytes, table.fault_count) == (1, 0, 1)
    assert fault.text == line[:FAULT_TEXT_LENGTH]


def test_a_fault_leaves_the_lines_around_it_alone() -> None:
    good = "7 TRACEBIGSIM: event:{ k } params:{ 1 1e-320 } PAPI:{ 1 }"
    bad = "7 TRACEBIGSIM: PAPI:{ 8 8 } params:{ 2 3 1e-320 } event:{ z } time:{ 1e-320 x }"
    table = scan(f"{good}\n{bad}\noutput\n{good}\n{bad}".encode())
    assert records(table) == [Record("k", [1, 1e-320], seb=7, counters=[1])] * 2
    assert table.events == ("k",)
    assert table.line.tolist() == [1, 4]
    assert table.offset.tolist() == [0, len(good) + len(bad) + len("output") + 3]
    assert [fault.line for fault in table.faults] == [2, 5]
    assert "line 2 (byte" in str(table.faults[0])


def test_all_faults_are_counted_and_the_first_ones_kept() -> None:
    table = scan(b"TRACEBIGSIM: x\n" * 1000)
    assert table.fault_count == 1000
    assert [fault.line for fault in table.faults] == list(range(1, FAULTS_KEPT + 1))


def test_invalid_utf_8_is_shown_with_backslashes() -> None:
    table = scan(b"TRACEBIGSIM: event:{ \xff } time:{ 1 }\nTRACEBIGSIM: event:{ \xfe\n")
    assert table.events == (r"\xff",)
    assert table.faults[0].text == r"TRACEBIGSIM: event:{ \xfe"


def test_the_longest_line_has_a_mebibyte() -> None:
    line = E + "time:{ 1 }"
    table = scan(
        "\n".join("x" * (size - len(line)) + line for size in (1 << 20, (1 << 20) + 1)).encode()
    )
    assert table.line.tolist() == [1]
    assert "longer than 1048576 bytes" in table.faults[0].problem


def test_events_whose_names_begin_alike_are_told_apart() -> None:
    names = ["kernel", "kernel2", "kern", "kernel"]
    table = scan(
        "\n".join(f"TRACEBIGSIM: event:{{ {name} }} time:{{ 1 }}" for name in names).encode()
    )
    assert [table.events[event] for event in table.event] == names


@pytest.mark.long
def test_events_are_distinct_in_order_of_first_appearance() -> None:
    """More names than the kernel's memory of names has slots, each met three times."""
    names = [f"event {number}" for number in range(6000)] * 3
    table = scan("\n".join(f"1 TRACEBIGSIM: event:{{ {name} }}" for name in names).encode())
    assert table.events == tuple(names[:6000])
    assert [table.events[number] for number in table.event] == names


def test_arrays_grow_for_dense_text() -> None:
    """More records, params, counters and slow numbers than a text of its size mostly holds."""
    line = "TRACEBIGSIM:event:{e}time:{4e-324}params:{" + "1e-320 " * 20 + "}PAPI:{" + "3 " * 99
    table = scan(f"{line}}}\n".encode() * 50 + b"0 TRACEBIGSIM x\n" * 5000)
    assert (len(table), table.fault_count) == (5050, 0)
    assert table.params.tolist() == [1e-320] * 1000
    assert table.time[:50].tolist() == [4e-324] * 50
    assert table.counters.tolist() == [3] * 99 * 50
    assert table.line.tolist() == list(range(1, 5051))


@pytest.mark.parametrize(
    "kind", [bytes, bytearray, memoryview, lambda text: np.frombuffer(text, np.uint8)]
)
def test_every_kind_of_bytes_is_taken(kind: type) -> None:
    assert len(scan(kind(b"1 TRACEBIGSIM k 2\n"))) == 1
    assert len(scan(kind(b""))) == 0


def test_a_strided_array_is_taken() -> None:
    text = np.frombuffer(b"1 TRACEBIGSIM k 2\n", np.uint8)
    assert len(scan(np.repeat(text, 2)[::2])) == 1


@pytest.mark.parametrize("wrong", ["text", np.zeros(3), np.zeros((2, 2), np.uint8), None])
def test_anything_else_is_refused(wrong: object) -> None:
    with pytest.raises(TypeError, match="a text is"):
        scan(wrong)  # type: ignore[arg-type]


def test_the_table_owns_its_memory() -> None:
    text = bytearray(b"1 TRACEBIGSIM k 2\n")
    table = scan(text)
    text[:] = b"x" * len(text)
    text.clear()
    assert (table.events, table.params.tolist()) == (("k",), [2])
