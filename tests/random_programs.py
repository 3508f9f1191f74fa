"""Random small programs as log sets: chains, broadcasts, dependencies, waits, ties and gaps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from logbuilder import message, seb, write_logs

NAMES = (b"work", b"send", b"wait")


@st.composite
def programs(
    draw: st.DrawFn, all_run: bool = False, exact: bool = False
) -> tuple[list[list[dict[str, Any]]], int]:
    """Timelines, and the number of worker threads; with `all_run` every SEB can run.

    Times are multiples of 1/8 half the time, so that many things happen at one moment; with `exact`
    always, and messages are sent at multiples of 1/64, so that no sum of times is rounded.
    """
    workers = draw(st.sampled_from([1, 1, 2]))
    pes = workers * draw(st.integers(1, 4 // workers))
    eighths = st.integers(0, 16).map(lambda n: n / 8)
    anything = st.floats(0, 3, allow_nan=False, allow_subnormal=False)
    times = eighths if exact or draw(st.booleans()) else anything
    shares = st.integers(-1, 9).map(lambda n: n / 8) if exact else st.floats(-0.1, 1.1)
    timelines: list[list[dict[str, Any]]] = [[] for _ in range(pes)]
    sent: list[tuple[int, int]] = []
    numbers = [0] * pes
    for _ in range(draw(st.integers(1, 14))):
        pe = draw(st.integers(0, pes - 1))
        line = timelines[pe]
        fields: dict[str, Any] = {"name": draw(st.sampled_from(NAMES))}
        kind = draw(st.sampled_from(["message", "message", "dependency", "resumed", "nothing"]))
        if not all_run and draw(st.integers(0, 20)) == 0:
            fields |= {"src_pe": draw(st.integers(-1, pes)), "msg_id": draw(st.integers(0, 9))}
        elif kind == "message" and sent:
            source, number = draw(st.sampled_from(sent))
            fields |= {"src_pe": source, "msg_id": number}
        elif kind in ("dependency", "resumed") and line:
            top = len(line) - 1 if all_run else len(line) + 1
            back = draw(st.lists(st.integers(0, top), min_size=1, max_size=3))
            fields |= {"backward": back, "recv_time": -1.0 if kind == "dependency" else 0.5}
        start, duration = draw(times), draw(times)
        sends = []
        for _ in range(draw(st.integers(0, 2))):
            numbers[pe] += draw(st.integers(1, 2))
            at = start + draw(shares) * duration
            number = numbers[pe]
            sends.append(
                message(
                    at,
                    at + draw(times),
                    msg_id=number,
                    dst_node=-1,
                    tid=-1,
                    size=draw(st.integers(0, 5000)),
                )
            )
            sent.append((pe, number))
        line.append(seb(start, start + duration, messages=sends, **fields))
    return timelines, workers


def written(folder: Path, program: tuple[list[list[dict[str, Any]]], int]) -> Path:
    """Write a program's logs."""
    timelines, workers = program
    return write_logs(folder, timelines, wth=workers)
