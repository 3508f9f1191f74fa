"""Lines in every form of the grammar, random and seeded."""

from __future__ import annotations

import random
from collections.abc import Callable

DISTINCT_LINES = 50_000


def _whole(draw: random.Random, most: int = 1000) -> str:
    return f"{draw.randrange(1, most)}.000000"


def _many(draw: random.Random, count: int) -> str:
    return " ".join(_whole(draw) for _ in range(count))


def _time(draw: random.Random) -> str:
    return f"{draw.random() / 1e3:.9f}"


def _timing(draw: random.Random, params: str) -> str:
    return f"TRACEBIGSIM: event:{{ calc }}  time:{{ {_time(draw)} }}  params:{{ {params} }}"


def _cycles(draw: random.Random) -> str:
    cycles = draw.randrange(10**6)
    params = _many(draw, 2)
    return f"TRACEBIGSIM: event:{{ calc }} time_in_cycles:{{ {cycles} }}  params:{{ {params} }}"


def _papi(draw: random.Random) -> str:
    counters = " ".join(str(draw.randrange(10**7)) for _ in range(4))
    return (
        f"TRACEBIGSIM: event:{{ calc }}  time:{{ {_time(draw)} }}  PAPI:{{ {counters} }} "
        f"params:{{ {_many(draw, 2)} }}"
    )


def _param(draw: random.Random) -> str:
    seb = draw.randrange(4000)
    return (
        f"{seb} TRACEBIGSIM: event:{{ calc }} seqno: {{ {seb} }}    params:{{ {_many(draw, 2)} }}"
    )


def _bare(draw: random.Random) -> str:
    return f"{draw.randrange(4000)} TRACEBIGSIM Cell::pairForces {_many(draw, 2)}"


def _reordered(draw: random.Random) -> str:
    return f"TRACEBIGSIM: params:{{ {_many(draw, 2)} }} time:{{ {_time(draw)} }} event:{{ calc }}"


def _long_numbers(draw: random.Random) -> str:
    numbers = " ".join(repr(draw.random() * 1000) for _ in range(2))
    return (
        f"TRACEBIGSIM: event:{{ calc }}  time:{{ {draw.random() / 1e3!r} }}  params:{{ {numbers} }}"
    )


FORMS: dict[str, Callable[[random.Random], str]] = {
    "timing, 2 params": lambda draw: _timing(draw, _many(draw, 2)),
    "timing, no params": lambda draw: _timing(draw, ""),
    "timing, 8 params": lambda draw: _timing(draw, _many(draw, 8)),
    "timing, 20 params": lambda draw: _timing(draw, _many(draw, 20)),
    "time_in_cycles, 2 params": _cycles,
    "PAPI, 4 counters": _papi,
    "param line with seqno": _param,
    "old form without braces": _bare,
    "fields in another order": _reordered,
    "numbers of 16 or 17 digits": _long_numbers,
    "numbers with exponents": lambda draw: _timing(
        draw, f"{draw.random():.5e} {draw.random():.9e}"
    ),
    "1 timing line in 5, between a program's own": lambda draw: (
        "Iteration done on processor 7, residual 0.0031\n" * 4 + _timing(draw, _many(draw, 2))
    ),
}


def text_of(form: str, size_bytes: int) -> bytes:
    """Return lines of a form, at least `size_bytes` of them; they recur after a good while."""
    draw = random.Random(1)  # noqa: S311 - nothing secret
    lines = "".join(FORMS[form](draw) + "\n" for _ in range(DISTINCT_LINES)).encode()
    return lines * -(-size_bytes // len(lines))
