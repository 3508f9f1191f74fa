"""The brackets of one SEB: the marks among its events, paired, and the regions between them.

The regions of a SEB are a table of three rows with a column for each bound, in seconds: `OLD` and
`NEW` contain the bounds in ascending order, from 0 to the SEB's duration; `GIVEN` contains the
predicted length of the region that begins there, and NaN for a region that is dilated.
"""

from __future__ import annotations

import numpy as np

from rewritelog.arrays import Bytes, Floats
from rewritelog.format.declaration import EventType
from rewritelog.format.layout import KernelLayout
from rewritelog.kernels.raw import load_f8, load_i4
from tracebigsim.compiled import inner

OLD, NEW, GIVEN = 0, 1, 2

START_TEXT = np.frombuffer(b"startTraceBigSim", dtype=np.uint8)
END_TEXT = np.frombuffer(b"endTraceBigSim", dtype=np.uint8)

NO_MARK, START_MARK, END_MARK = 0, 1, 2

IRREGULAR = -1
"""The marks of a SEB are unmatched, reversed or outside of it, so that its brackets are unknown."""

_ROUNDING = 4.0 * np.finfo(np.float64).eps


@inner
def begins_with(buf: Bytes, at: int, length: int, text: Bytes) -> bool:
    """Return whether the `length` bytes at `at` begin with `text`."""
    if length < len(text):
        return False
    for k in range(len(text)):
        if buf[at + k] != text[k]:
            return False
    return True


@inner
def mark_at(buf: Bytes, at: int, lay: KernelLayout) -> int:
    """Return whether the event at `at` is a start mark, an end mark or no mark."""
    if buf[at] == EventType.PROJECTIONS:
        return NO_MARK
    length = load_i4(buf, at + lay.event_bytes, lay.swap)
    text = at + lay.event_bytes + lay.count_bytes
    if begins_with(buf, text, length, START_TEXT):
        return START_MARK
    if begins_with(buf, text, length, END_TEXT):
        return END_MARK
    return NO_MARK


@inner
def after_event(buf: Bytes, at: int, lay: KernelLayout) -> int:
    """Return the offset of the event after the one at `at`; the walk has checked both."""
    if buf[at] == EventType.PROJECTIONS:
        return at + lay.event_bytes + lay.index_bytes
    text = at + lay.event_bytes + lay.count_bytes
    return text + load_i4(buf, at + lay.event_bytes, lay.swap)


@inner
def slack(start: float, end: float) -> float:
    """Return the largest rounding error of a SEB's duration, in seconds."""
    return _ROUNDING * max(abs(start), abs(end))


@inner
def pairs_up(mark: int, bounds: int, time: float, before: float, latest: float) -> bool:
    """Return whether a mark at `time` may be the next bound after the `bounds` found so far.

    The first bound is the start of the SEB; `before` is the last one, `latest` the end of the SEB.
    """
    expected = START_MARK if bounds % 2 == 1 else END_MARK
    return mark == expected and before <= time <= latest


@inner
def find_brackets(
    buf: Bytes, events: int, lay: KernelLayout, duration: float, reach: float, table: Floats
) -> int:
    """Fill in the bounds of the regions from the marks; return the number of brackets.

    The old bounds become 0, the start and end of each bracket, and `duration`; the table has a
    column for each event and two more. Return `IRREGULAR` if the marks do not pair up in order
    within the SEB.
    """
    count = load_i4(buf, events, lay.swap)
    offset = events + lay.count_bytes
    bounds = 1
    table[OLD, 0] = 0.0
    for _ in range(count):
        mark = mark_at(buf, offset, lay)
        if mark != NO_MARK:
            time = load_f8(buf, offset + lay.event_r_time, lay.swap)
            if not pairs_up(mark, bounds, time, table[OLD, bounds - 1], duration + reach):
                return IRREGULAR
            table[OLD, bounds] = min(time, duration)
            bounds += 1
        offset = after_event(buf, offset, lay)
    if bounds % 2 == 0:
        return IRREGULAR
    table[OLD, bounds] = duration
    return bounds // 2
