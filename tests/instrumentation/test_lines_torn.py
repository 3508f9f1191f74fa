"""Lines of several processes, torn and glued at every byte.

What comes out is a true record, a fault, nothing, or a line of the grammar that cannot be told from
one that was printed so: two pieces met within fields of like content, or whole fields are gone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import pytest
from chosen import by_tier

from tracebigsim.lines import LineTable, scan

TIMING = (
    "TRACEBIGSIM: event:{ Cell::pairForces }  time:{ 0.000030180 }  params:{ 157.000000 9.000000 }",
    "TRACEBIGSIM: event:{ Cell::bonded }  time:{ 0.000059690 }  params:{ 99.000000 }",
    "TRACEBIGSIM: event:{ angles }  time:{ 0.020026 }  PAPI:{ 33136473 181 } params:{ 1.0 5790.0 }",
)
PARAM = (
    "22 TRACEBIGSIM: event:{ Cell::pairForces } seqno: { 22 }    params:{ 74.000000 15.000000 }",
    "31 TRACEBIGSIM: event:{ Cell::bonded } seqno: { 31 }    params:{ 70.000000 }",
)
LIKE_CONTENT = {
    ("event", "event"),
    ("time", "time"),
    ("seqno", "seqno"),
    ("PAPI", "PAPI"),
    ("params", "params"),
    ("between", "between"),
}
ONE_NUMBER_LEFT = {("time", "params"), ("time", "PAPI"), ("seqno", "params")}
LISTS = {("params", "PAPI"), ("PAPI", "params"), ("PAPI", "time")}
NAME_OF_A_PARAM_LINE = {
    ("head", "head"),
    ("head", "between"),
    ("event", "seqno"),
    ("event", "params"),
}
"""A param line is a record by its first number alone, so its name may be what is left of others."""


def zones(line: str) -> list[str]:
    """For each cut of a line: the field it is in, `between` fields, or `head` before all."""
    fields = []
    for cut in range(len(line) + 1):
        marks = re.findall(r"(\w+): ?{|(})", line[:cut])
        name, closed = marks[-1] if marks else ("", "")
        fields.append(name or ("between" if closed else "head"))
    return fields


def rows(table: LineTable) -> Iterable[tuple[object, ...]]:
    for row in range(len(table)):
        params = table.params[table.param_start[row] : table.param_start[row + 1]]
        counters = table.counters[table.counter_start[row] : table.counter_start[row + 1]]
        yield (
            table.events[table.event[row]],
            str(table.time[row]),
            int(table.seb[row]),
            int(table.seqno[row]),
            tuple(params.tolist()),
            tuple(counters.tolist()),
        )


def wrong_pairs(first: str, second: str) -> set[tuple[str, str]]:
    """Glue each head of one line to each tail of another: where do wrong records come out?"""
    cuts = [(i, j) for i in range(len(first) + 1) for j in range(len(second) + 1)]
    table = scan("\n".join(first[:i] + second[j:] for i, j in cuts).encode())
    true = {*rows(scan(first.encode())), *rows(scan(second.encode()))}
    in_first, in_second = zones(first), zones(second)
    pairs = set()
    for line, row in zip(table.line.tolist(), rows(table), strict=True):
        if row not in true:
            i, j = cuts[line - 1]
            pairs.add((in_first[i], in_second[j]))
    return pairs


@pytest.mark.parametrize("first", by_tier(TIMING, quick={TIMING[1]}))
@pytest.mark.parametrize("second", by_tier(TIMING, quick={TIMING[1]}))
def test_glued_timing_lines(first: str, second: str) -> None:
    assert wrong_pairs(first, second) <= LIKE_CONTENT | ONE_NUMBER_LEFT | LISTS


@pytest.mark.parametrize("first", by_tier(PARAM, PARAM[1:], PARAM))
@pytest.mark.parametrize("second", by_tier(PARAM, PARAM[1:], PARAM))
def test_glued_param_lines(first: str, second: str) -> None:
    allowed = LIKE_CONTENT | ONE_NUMBER_LEFT | NAME_OF_A_PARAM_LINE
    assert wrong_pairs(first, second) <= allowed


@pytest.mark.parametrize("line", TIMING + PARAM)
def test_a_cut_line_is_a_record_only_where_whole_fields_are_gone(line: str) -> None:
    in_line = zones(line)
    (true,) = rows(scan(line.encode()))
    for cut in range(len(line)):
        for row in rows(scan(line[:cut].encode())):
            assert in_line[cut] == "between"
            assert row[0] == true[0]
            assert row[4] == ()


@pytest.mark.parametrize("line", TIMING)
def test_a_timing_line_without_its_head_is_none(line: str) -> None:
    tails = "\n".join(line[cut:] for cut in range(1, len(line)))
    table = scan(tails.encode())
    assert (len(table), table.fault_count) == (0, 0)


@pytest.mark.parametrize("line", PARAM)
def test_a_param_line_without_its_head_has_not_the_number_of_its_seqno(line: str) -> None:
    """So whoever uses it can warn, as where the two differ otherwise."""
    for cut in range(1, len(line)):
        for row in rows(scan(line[cut:].encode())):
            assert row[2] in (-1, int(str(row[3])) % 10)


@pytest.mark.parametrize("outer", TIMING)
@pytest.mark.parametrize("inner", TIMING)
def test_a_line_printed_within_another(outer: str, inner: str) -> None:
    """The outer line is lost in two pieces; the inner one is true, or lost too, or a fault."""
    true = {*rows(scan(outer.encode())), *rows(scan(inner.encode()))}
    for cut in range(len(outer) + 1):
        table = scan(f"{outer[:cut]}{inner}\n{outer[cut:]}\n".encode())
        assert set(rows(table)) <= true
        assert len(table) + table.fault_count >= 1
