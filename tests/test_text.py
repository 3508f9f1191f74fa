"""Text for people: tables within 80 columns whatever the names, numbers that strict JSON has."""

import json
import math
import re
import tracemalloc

import pytest

from rewritelog.text import (
    WIDTH,
    TextTable,
    bytes_text,
    event_label,
    exact_number,
    json_number,
    json_text,
    percent_text,
    range_texts,
    shorten,
    shorten_all,
    time_column,
    time_range_text,
    time_text,
    wrapped,
)

LONG = "Namespace::" + "x" * 100 + "::kernel(double const*, int)"


def test_a_table_aligns_names_left_and_numbers_right() -> None:
    assert TextTable(("event", "lines", "sum"), [("a", "1", "2.5"), ("bcd", "10", "")]).lines() == [
        "  event  lines  sum",
        "  a          1  2.5",
        "  bcd       10",
    ]


def test_a_long_text_in_a_further_column_fits_too() -> None:
    table = TextTable(("line", "call", "error"), [("a.txt:1", LONG, "1 %")], left=frozenset({1}))
    assert max(map(len, table.lines())) <= 80


def test_long_names_are_cut_in_the_middle() -> None:
    head, row = TextTable(("event", "lines"), [(LONG, "7")]).lines()
    assert len(head) == len(row) == WIDTH
    assert row.startswith("  Namespace::xxx")
    assert "…" in row
    assert row.endswith("::kernel(double const*, int)      7")


KERNELS = [
    f"void at::native::vectorized_elementwise_kernel<4, at::native::{functor}<{kind}>, "
    "at::detail::Array<char*, 3>>(int, at::detail::Array<char*, 3>)"
    for functor in ("CUDAFunctor_add", "MulFunctor", "BinaryFunctor")
    for kind in ("float", "double", "c10::Half")
]


@pytest.mark.parametrize("columns", [1, 4, 7])
def test_long_names_that_differ_only_in_the_middle_can_be_told_apart(columns: int) -> None:
    rows = [(name, *("1,234,567",) * columns) for name in (*KERNELS, KERNELS[0])]
    table = TextTable(("event", *("lines",) * columns), rows)
    lines, rows_of_part = table.lines(), len(rows) + 1
    assert max(map(len, lines)) <= WIDTH
    for start in range(0, len(lines), rows_of_part):
        _, *part = lines[start : start + rows_of_part]
        assert len(set(part)) == len(KERNELS)  # the first one has two rows
        assert part[0] == part[-1]
    assert len(set(re.findall("<tr><td>(.*?)</td>", table.html()))) == len(KERNELS)


@pytest.mark.parametrize("width", [20, 40, 60])
def test_names_are_told_apart_by_the_word_that_differs(width: int) -> None:
    short = shorten_all([*KERNELS, "short", LONG], width)
    assert len(set(short)) == len(short)
    assert max(map(len, short)) <= width
    assert short[-2:] == ["short", shorten(LONG, width)]
    if width >= 40:
        assert all(word in name for word, name in zip(("add<f", "add<d"), short, strict=False))


def test_columns_that_do_not_fit_go_on_below_with_the_names_repeated() -> None:
    heads = ("name", *(f"column {k}" for k in range(12)))
    table = TextTable(heads, [(LONG, *(str(k) for k in range(12))), ("short", *("1" * 8,) * 12)])
    lines = table.lines()
    assert max(map(len, lines)) <= WIDTH
    assert len(lines) % 3 == 0
    assert sum(line.startswith("  Namespace") for line in lines) == len(lines) // 3
    assert " ".join(lines).split().count("11") == 1 + 1  # the cell, and "column 11"


def test_further_rows_are_counted() -> None:
    lines = TextTable(("name", "n"), [(str(k), "0") for k in range(2000)], most_rows=3).lines()
    assert len(lines) == 5
    assert lines[-1] == "  and 1,997 more"


def test_a_table_of_huge_names_is_small() -> None:
    name = "\x1b" * 200_000
    text = str(TextTable(("event", "n"), [(name, "1")] * 1000))
    assert len(text) < 1001 * (WIDTH + 1)
    assert "\x1b" not in text


@pytest.mark.parametrize("width", [1, 2, 3, 10, 37, 200])
def test_a_shortened_text_is_no_wider(width: int) -> None:
    for text in ("", "a", "ab", "abc" * 20, "\u202e" * 30, LONG):
        assert len(shorten(text, width)) <= width
    assert shorten("abc", 3) == "abc"


def test_labels_name_the_parameters() -> None:
    assert event_label("k", 0) == "k()"
    assert event_label("Cell::f(int)", 2) == "Cell::f(int)(p1, p2)"
    assert event_label("k", 9, 2.5) == "k(p1, ..., p9), category 2.5"
    assert len(event_label(LONG, 2)) < len(LONG)


@pytest.mark.parametrize("value", [0.0, -1.5, math.nan, math.inf, -math.inf])
def test_numbers_that_json_has(value: float) -> None:
    assert json_number(value) == (value if math.isfinite(value) else None)
    number = json.loads(json.dumps(exact_number(value), allow_nan=False))
    assert str(float(number)) == str(value)


@pytest.mark.parametrize(
    ("ends", "texts"),
    [
        ((0.1 + 0.2, 1e7), ("0.3", "1e+07")),
        ((1.7e9 + 0.5, 1.7e9 + 29.2), ("1700000000.5", "1700000029.2")),
        ((1e6, 1e6 + 79), ("1000000", "1000079")),
        ((1e300, 1e300), ("1e+300", "1e+300")),
        ((-math.inf, math.nan), ("-inf", "nan")),
    ],
)
def test_the_ends_of_a_narrow_range_are_told_apart(
    ends: tuple[float, float], texts: tuple[str, str]
) -> None:
    assert range_texts(*ends) == texts


def test_shares_in_per_cent() -> None:
    assert percent_text(0.0125) == "1.25 %"
    assert percent_text(0.5, 0, "+") == "+50 %"
    assert percent_text(-1e-16) == "0.00 %"
    assert percent_text(-1e-16, 1, "+") == "+0.0 %"
    assert percent_text(None) == "–"


def test_sizes_have_the_unit_that_fits() -> None:
    sizes = (0, 1, 999, 1000, 999_949, 999_950, 2_500_000, 4_321e6, 5e12, 7e15)
    texts = ["0 bytes", "1 byte", "999 bytes", "1.0 kB", "999.9 kB", "1.0 MB", "2.5 MB", "4.3 GB"]
    texts += ["5.0 TB", "7000.0 TB"]
    assert [bytes_text(size) for size in sizes] == texts
    texts = ["0 bytes", "1 byte", "999 bytes", "1 kB", "999.949 kB", "999.95 kB", "2.5 MB"]
    texts += ["4.321 GB", "5 TB", "7000 TB"]
    assert [bytes_text(size, 6) for size in sizes] == texts


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.000681, "681.0 µs"),
        (9.9589e-05, "99.59 µs"),
        (0.000999996, "1.000 ms"),
        (12.3456, "12.35 s"),
        (123456.0, "123,456 s"),
        (-2.5e-06, "-2.500 µs"),
        (3e9, "3e+09 s"),
        (5e-324, "4.941e-324 s"),
        (0.0, "0 s"),
        (math.inf, "inf s"),
        (math.nan, "–"),
        (None, "–"),
    ],
)
def test_a_time_has_the_unit_that_suits_it(seconds: float | None, text: str) -> None:
    assert time_text(seconds) == text


def test_times_of_a_column_have_one_unit_unless_they_would_vanish() -> None:
    times = time_column([0.0010985, 0.00084213, 9e-8, None, 0.0])
    assert times == ["1.099 ms", "0.842 ms", "90 ns", "–", "0 s"]
    assert time_range_text(1.064e-3, 1.11e-3) == "1.064 to 1.110 ms"
    assert time_range_text(9e-7, 1.11e-3) == "900 ns to 1.110 ms"


def test_a_wrapped_line_keeps_a_number_with_its_unit() -> None:
    lines = wrapped("x" * 76 + " 12 µs " + "y" * 70 + " 12.5 % and").splitlines()
    assert lines[1].strip().startswith("12 µs")
    assert lines[2].strip().startswith("12.5 %")


@pytest.mark.slow
def test_a_report_as_json_takes_little_memory_beside_its_text() -> None:
    """A list of its tokens took twelve times as much as the text."""
    report = [{"a": 0.5, "b": [1, 2]}] * 18_000
    tracemalloc.start()
    text = json_text(report, indent=2)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert json.loads(text) == report
    assert peak < 8 * len(text)
