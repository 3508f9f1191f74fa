"""What `format_line` writes, `scan` reads back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tracebigsim import LineFormatError, format_line
from tracebigsim.lines import TimeUnit, scan
from tracebigsim.writing import around_time, number_text


def test_a_param_line_looks_like_the_emulators() -> None:
    assert format_line("Cell::pairForces", (53, 11), seb=19, seqno=19) == (
        "19 TRACEBIGSIM: event:{ Cell::pairForces } seqno: { 19 }    "
        "params:{ 53.000000 11.000000 }\n"
    )


def test_a_timing_line_looks_like_real_ones() -> None:
    assert format_line("angles", (1, 5790), time_s=0.020026, counters=(33136473, 18194)) == (
        "TRACEBIGSIM: event:{ angles }  time:{ 0.020026 }  PAPI:{ 33136473 18194 } "
        "params:{ 1.000000 5790.000000 }\n"
    )
    assert format_line("k", (64,), time_cycles=1034412) == (
        "TRACEBIGSIM: event:{ k }  time_in_cycles:{ 1034412.000000 }  params:{ 64.000000 }\n"
    )


def timing_lines(
    event: str, params: Sequence[Sequence[float]], times: Sequence[float]
) -> list[str]:
    around = zip((around_time(event, of_call) for of_call in params), times, strict=True)
    return [f"{before}{number_text(time, 'a time')}{after}" for (before, after), time in around]


def test_timing_lines_of_several_calls_are_those_of_each() -> None:
    times = [0.0, 2e-6, 1e-300, 0.1 + 0.2, 5.0, 1e100]
    tiny = 2.2250738585072014e-308
    event, params = f"time:_{{ {tiny} }}", [[tiny, 64.0], [], [-0.0], [1e300], [0.5] * 20, [tiny]]
    lines = [format_line(event, of, time_s=time) for of, time in zip(params, times, strict=True)]
    assert timing_lines(event, params, times) == lines
    long = "ö" * ((1 << 19) - 40)
    assert len(timing_lines(long, [[]], [1.0])) == 1
    for wrong, of, time in (
        ("k", [1.0], math.nan),
        ("k", [math.inf], 1.0),
        ("k", [1.0] * 21, 1.0),
        (" k", [1.0], 1.0),
        (long, [1.0] * 9, 1.0),
    ):
        with pytest.raises(LineFormatError):
            timing_lines(wrong, [of], [time])


numbers = st.floats(allow_nan=False, allow_infinity=False, max_value=1.79e308, min_value=-1.79e308)
indices = st.none() | st.integers(0, 2**63 - 1)


@given(
    event=st.text(st.sampled_from("aB:<>{} ,\té\\#T") | st.characters(), min_size=1, max_size=20),
    params=st.lists(numbers, max_size=20),
    time=st.floats(0, 1e100),
    unit=st.sampled_from(TimeUnit),
    seb=indices,
    seqno=indices,
    counters=st.lists(st.integers(-(2**63) + 1, 2**63 - 1), max_size=9),
)
def test_a_record_comes_back_as_it_was(
    event: str,
    params: list[float],
    time: float,
    unit: TimeUnit,
    seb: int | None,
    seqno: int | None,
    counters: list[int],
) -> None:
    assume(unit != TimeUnit.NONE or seb is not None or seqno is not None)
    try:
        line = format_line(
            event,
            params,
            time_s=time if unit == TimeUnit.SECONDS else None,
            time_cycles=time if unit == TimeUnit.CYCLES else None,
            seb=seb,
            seqno=seqno,
            counters=counters,
        )
    except LineFormatError as error:
        assert "name" in str(error)  # noqa: PT017 - names are drawn that no line can hold
        return
    table = scan(line.encode())
    assert table.faults == ()
    assert table.events == (event,)
    assert table.params.tolist() == params
    assert all(math.copysign(1, param) == 1 for param in table.params if param == 0)
    assert table.counters.tolist() == counters
    assert table.time_unit.tolist() == [unit]
    assert math.isnan(table.time[0]) if unit == TimeUnit.NONE else table.time[0] == time
    assert table.seb.tolist() == [-1 if seb is None else seb]
    assert table.seqno.tolist() == [-1 if seqno is None else seqno]


BAD_NAMES = {
    "": "is empty",
    " k": "blank",
    "k\t": "blank",
    "a\nb": "control",
    "a\x7fb": "control",
    "a{": "pair up",
    "}a{": "pair up",
    "a:{b}": "reads as a field",
    "TRACEBIGSIM": "holds TRACEBIGSIM",
    "\ud800": "Unicode",
}


@pytest.mark.parametrize("name", BAD_NAMES)
def test_names_that_no_line_can_hold(name: str) -> None:
    with pytest.raises(LineFormatError, match=BAD_NAMES[name]):
        format_line(name, time_s=1)


def test_records_that_no_line_can_hold() -> None:
    with pytest.raises(LineFormatError, match="at most 20 parameters, not 21"):
        format_line("k", range(21), time_s=1)
    with pytest.raises(LineFormatError, match="a parameter must be finite"):
        format_line("k", [math.nan], time_s=1)
    with pytest.raises(LineFormatError, match="a time must be finite"):
        format_line("k", time_s=math.inf)
    with pytest.raises(LineFormatError, match="negative time"):
        format_line("k", time_s=-1e-9)
    with pytest.raises(LineFormatError, match="not both"):
        format_line("k", time_s=1, time_cycles=1)
    with pytest.raises(LineFormatError, match="neither a time nor"):
        format_line("k", (1, 2))
    with pytest.raises(LineFormatError, match="the SEB must lie in"):
        format_line("k", seb=-1)
    with pytest.raises(LineFormatError, match="seqno must lie in"):
        format_line("k", seqno=2**63)
    with pytest.raises(LineFormatError, match="a counter must lie"):
        format_line("k", time_s=1, counters=[2**63])
    with pytest.raises(LineFormatError, match="a line has at most"):
        format_line("k" * (1 << 20), time_s=1)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"event": 5}, "an event name must be a text"),
        ({"event": b"k"}, "an event name must be a text"),
        ({"time_s": "x"}, "a time must be a number"),
        ({"seb": "x"}, "the SEB must be an integer"),
        ({"seqno": math.inf}, "seqno must be an integer"),
        ({"counters": [None]}, "a counter must be an integer"),
    ],
)
def test_values_of_other_types_are_refused_in_words(fields: dict[str, Any], message: str) -> None:
    """They raised bare errors."""
    with pytest.raises(LineFormatError, match=message):
        format_line(**{"event": "k", "seb": 0, **fields})
