"""Every number is the double that Python's float gives, bit for bit."""

from __future__ import annotations

import math
import struct

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tracebigsim.lines import scan

HARD = [
    "0",
    "0e999999999999",
    "9007199254740993",
    "9007199254740993e1",
    "9007199254740992.99999999999999",
    "9007199254740993.000000000000000000000000001",
    "179769313486231570000000000000000e276",
    "1.7976931348623157e308",
    "2.2250738585072014e-308",
    "2.2250738585072011e-308",
    "4.9e-324",
    "2.4703282292062327e-324",
    "2.4703282292062328e-324",
    "1e-400",
    "1e23",
    "1e100",
    "8.5e22",
    "123456789012345678",
    "0.1000000000000000055511151231257827",
    "0." + "0" * 400 + "1e401",
    "1" + "0" * 400 + "e-400",
    "1" * 300 + ".5",
    "000000000000000000000000000000000001.5",
    "1e-99999999999999999999",
    "1e-18446744073709551616",
    "5e-324",
    "1e22",
    "1e-22",
    "3.14159265358979323846264338327950288",
]


def read(texts: list[str]) -> list[float]:
    lines = (f"1 TRACEBIGSIM: event:{{ k }} params:{{ {text} }}\n" for text in texts)
    table = scan("".join(lines).encode())
    assert table.faults == ()
    return [float(param) for param in table.params]


def bits(number: float) -> bytes:
    return struct.pack("<d", number)


def assert_exact(texts: list[str]) -> None:
    for text, value in zip(texts, read(texts), strict=True):
        assert bits(value) == bits(float(text) + 0.0), text


@pytest.mark.parametrize("sign", ["", "-", "+"])
def test_hard_numbers(sign: str) -> None:
    assert_exact([sign + text for text in HARD])


finite = st.floats(allow_nan=False, allow_infinity=False)
formats = st.sampled_from(["%r", "%f", "%e", "%g", "%.17g", "%.16e", "%.17e", "%.25e", "%.9f"])


@given(st.lists(st.tuples(formats, finite), min_size=1, max_size=200))
@settings(deadline=None)
def test_numbers_as_programs_print_them(printed: list[tuple[str, float]]) -> None:
    texts = [form % number for form, number in printed]
    assert_exact([text for text in texts if math.isfinite(float(text))])


@given(
    st.lists(
        st.tuples(
            st.integers(0, 10**25), st.integers(-345, 310), st.integers(0, 24), st.booleans()
        ),
        min_size=1,
        max_size=200,
    )
)
@settings(deadline=None)
def test_any_digits_and_exponents(parts: list[tuple[int, int, int, bool]]) -> None:
    texts = []
    for digits, exponent, point, upper in parts:
        text = str(digits)
        text = f"{text[:point]}.{text[point:]}{'E' if upper else 'e'}{exponent}"
        if math.isfinite(float(text)) and float(text) < 1e308:
            texts.append(text)
    assert_exact(texts)


@given(st.integers(0, 2**53), st.integers(-1100, 900))
@example(2**53 - 1, 0)
@settings(deadline=None)
def test_ties_between_doubles(mantissa: int, exponent: int) -> None:
    """Just below, at and just above the middle of two doubles, with all digits written."""
    scale = 10**1200
    tie = (2 * mantissa + 1) * scale * 2 ** max(exponent, 0) // 2 ** max(-exponent, 0)
    texts = [f"{tie + step}e-1200" for step in (-1, 0, 1)]
    assert_exact(texts)


def test_a_time_takes_the_same_ways() -> None:
    texts = ["-0.0", *(text for text in HARD if float(text) <= 1e100)]
    lines = (f"TRACEBIGSIM: event:{{ k }} time:{{ {text} }}\n" for text in texts)
    times = scan("".join(lines).encode()).time
    assert [bits(time) for time in times] == [bits(float(text) + 0.0) for text in texts]


@pytest.mark.parametrize(
    "text", ["1.7976931348623159e308", "1e309", "1" * 310, "1e18446744073709551616"]
)
def test_too_large_numbers_are_refused(text: str) -> None:
    table = scan(f"1 TRACEBIGSIM: event:{{ k }} params:{{ {text} }}".encode())
    assert (len(table), table.fault_count) == (0, 1)
