"""The walk over timelines: it finds each SEB, message and event, and checks every count.

A walk stops at the first fault: the kernel stores its code and byte offset in `fault`, and
`logs/faults.py` has the message of each code.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rewritelog.arrays import Bytes, Ints
from rewritelog.format.declaration import EventType
from rewritelog.format.layout import KernelLayout
from rewritelog.kernels.raw import load_i4
from tracebigsim.compiled import inner, kernel

OK = 0
SEB_TRUNCATED = 1
MESSAGE_COUNT_NEGATIVE = 2
MESSAGES_TRUNCATED = 3
EVENT_COUNT_NEGATIVE = 4
EVENTS_TRUNCATED = 5
EVENT_TYPE = 6
TEXT_NEGATIVE = 7
TEXT_TRUNCATED = 8
BACKWARD_NEGATIVE = 9
BACKWARD_TRUNCATED = 10
FORWARD_NEGATIVE = 11
FORWARD_TRUNCATED = 12
SEB_COUNT_NEGATIVE = 13
SEB_COUNT_TOO_LARGE = 14
BYTES_LEFT_OVER = 15
TIME_NOT_FINITE = 16
SEND_NOT_FINITE = 17
DURATION_OVERFLOW = 18
SEND_OVERFLOW = 19
RECV_OVERFLOW = 20
EVENT_OVERFLOW = 21
SEQNO_WRONG = 22
LOG_CHANGED = 23

FAULT_CODE, FAULT_AT, FAULT_VALUE, FAULT_PIECE, FAULT_SEB = range(5)
FAULT_SIZE = 5
"""A fault is five integers: its code, byte offset in the buffer, value, piece and SEB index."""


class Pieces(NamedTuple):
    """Runs of whole SEBs of one timeline each; arrays of equal length."""

    starts: Ints
    """Byte offset in the buffer of the first SEB."""
    ends: Ints
    """Byte offset in the buffer where the last SEB ends."""
    counts: Ints
    """Number of SEBs."""
    firsts: Ints
    """Index of the first SEB in its timeline."""


@inner
def set_fault(fault: Ints, code: int, at: int, value: int) -> int:
    """Set the fault; return −1, which is not a position."""
    fault[FAULT_CODE] = code
    fault[FAULT_AT] = at
    fault[FAULT_VALUE] = value
    return -1


@inner
def skip_events(buf: Bytes, at: int, end: int, lay: KernelLayout, fault: Ints) -> int:
    """Return the end offset of the events whose count is at `at`, or −1 for a fault."""
    count = load_i4(buf, at, lay.swap)
    if count < 0:
        return set_fault(fault, EVENT_COUNT_NEGATIVE, at, count)
    if count * (lay.event_bytes + lay.index_bytes) > end - at - lay.count_bytes:
        return set_fault(fault, EVENTS_TRUNCATED, at, count)
    offset = at + lay.count_bytes
    for _ in range(count):
        if offset + lay.event_bytes + lay.count_bytes > end:
            return set_fault(fault, EVENTS_TRUNCATED, at, count)
        kind = int(buf[offset])
        if kind == EventType.PROJECTIONS:
            offset += lay.event_bytes + lay.index_bytes
        elif kind in (EventType.PRINT, EventType.MARK):
            length = load_i4(buf, offset + lay.event_bytes, lay.swap)
            if length < 0:
                return set_fault(fault, TEXT_NEGATIVE, offset + lay.event_bytes, length)
            if length > end - offset - lay.event_bytes - lay.count_bytes:
                return set_fault(fault, TEXT_TRUNCATED, offset + lay.event_bytes, length)
            offset += lay.event_bytes + lay.count_bytes + length
        else:
            return set_fault(fault, EVENT_TYPE, offset, kind - 256 if kind > 127 else kind)
    return offset


@inner
def skip_list(
    buf: Bytes, at: int, end: int, size: int, lay: KernelLayout, fault: Ints, codes: int
) -> int:
    """Return the end offset of the list of `size`-byte items whose count is at `at`, or −1.

    `codes` is the fault code for a negative count; the next code is that for a truncated list.
    """
    if at + lay.count_bytes > end:
        return set_fault(fault, SEB_TRUNCATED, at, 0)
    count = load_i4(buf, at, lay.swap)
    if count < 0:
        return set_fault(fault, codes, at, count)
    if count * size > end - at - lay.count_bytes:
        return set_fault(fault, codes + 1, at, count)
    return at + lay.count_bytes + count * size


@inner
def seb_parts(
    buf: Bytes, at: int, end: int, lay: KernelLayout, fault: Ints
) -> tuple[int, int, int]:
    """Return the offsets of the events, the dependencies and the next SEB, for the SEB at `at`.

    The last one is −1 if the SEB is damaged or extends beyond `end`; `fault` says why.
    """
    if at + lay.seb_bytes + lay.count_bytes > end:
        return 0, 0, set_fault(fault, SEB_TRUNCATED, at, 0)
    events = skip_list(
        buf, at + lay.seb_bytes, end, lay.message_bytes, lay, fault, MESSAGE_COUNT_NEGATIVE
    )
    if events < 0:
        return 0, 0, -1
    if events + lay.count_bytes > end:
        return 0, 0, set_fault(fault, SEB_TRUNCATED, at, 0)
    backward = skip_events(buf, events, end, lay, fault)
    if backward < 0:
        return 0, 0, -1
    forward = skip_list(buf, backward, end, lay.dependency_bytes, lay, fault, BACKWARD_NEGATIVE)
    if forward < 0:
        return 0, 0, -1
    return (
        events,
        backward,
        skip_list(buf, forward, end, lay.dependency_bytes, lay, fault, FORWARD_NEGATIVE),
    )


@kernel(ns_per_byte=150)
def advance(
    buf: Bytes, at: int, end: int, most: int, lay: KernelLayout, fault: Ints
) -> tuple[int, int]:
    """Walk up to `most` SEBs from `at`; return how many end before `end`, and their end offset.

    `fault` says why the walk stopped early; its SEB is relative to the first one walked.
    """
    for index in range(most):
        _, _, following = seb_parts(buf, at, end, lay, fault)
        if following < 0:
            fault[FAULT_SEB] = index
            return index, at
        at = following
    return most, at


@kernel(ns_per_byte=150)
def tally(
    buf: Bytes, starts: Ints, ends: Ints, counts: Ints, lay: KernelLayout, fault: Ints
) -> Ints:
    """Return the numbers of messages, events, backward and forward dependencies, shape (pieces, 4).

    A piece begins at a SEB and has to end at the end of the last of its `counts` SEBs.
    """
    totals = np.zeros((len(starts), 4), dtype=np.int64)
    for piece in range(len(starts)):
        at = starts[piece]
        for seb in range(counts[piece]):
            events, backward, following = seb_parts(buf, at, ends[piece], lay, fault)
            if following < 0:
                fault[FAULT_PIECE] = piece
                fault[FAULT_SEB] = seb
                return totals
            links = load_i4(buf, backward, lay.swap)
            totals[piece, 0] += load_i4(buf, at + lay.seb_bytes, lay.swap)
            totals[piece, 1] += load_i4(buf, events, lay.swap)
            totals[piece, 2] += links
            totals[piece, 3] += load_i4(
                buf, backward + lay.count_bytes + links * lay.dependency_bytes, lay.swap
            )
            at = following
        if at != ends[piece]:
            set_fault(fault, BYTES_LEFT_OVER, at, ends[piece] - at)
            fault[FAULT_PIECE] = piece
            fault[FAULT_SEB] = counts[piece]
            return totals
    return totals


@kernel(ns_per_byte=300)
def locate(
    buf: Bytes,
    at: int,
    end: int,
    count: int,
    lay: KernelLayout,
    fault: Ints,
    sebs: Ints,
    messages: Ints,
    events: Ints,
    backward: Ints,
    forward: Ints,
) -> None:
    """Fill in the offsets of everything in the `count` SEBs from `at`; the first one has index 0.

    `sebs` (SEBs, 5): offset, and the numbers of messages, events, backward and forward
    dependencies; `messages` and `events` (…, 3): SEB, index in the SEB, offset; `backward` and
    `forward` (…, 2): SEB, and the SEB it depends on or that depends on it. `tally` returns the
    sizes.
    """
    m = e = b = f = 0
    for seb in range(count):
        events_at, backward_at, following = seb_parts(buf, at, end, lay, fault)
        sebs[seb, 0] = at
        sebs[seb, 1] = load_i4(buf, at + lay.seb_bytes, lay.swap)
        for k in range(sebs[seb, 1]):
            messages[m, 0], messages[m, 1] = seb, k
            messages[m, 2] = at + lay.seb_bytes + lay.count_bytes + k * lay.message_bytes
            m += 1
        sebs[seb, 2] = load_i4(buf, events_at, lay.swap)
        offset = events_at + lay.count_bytes
        for k in range(sebs[seb, 2]):
            events[e, 0], events[e, 1], events[e, 2] = seb, k, offset
            e += 1
            offset += lay.event_bytes + lay.count_bytes
            if buf[offset - lay.event_bytes - lay.count_bytes] != EventType.PROJECTIONS:
                offset += load_i4(buf, offset - lay.count_bytes, lay.swap)
        sebs[seb, 3] = load_i4(buf, backward_at, lay.swap)
        offset = backward_at + lay.count_bytes
        for k in range(sebs[seb, 3]):
            backward[b, 0] = seb
            backward[b, 1] = load_i4(buf, offset + k * lay.dependency_bytes, lay.swap)
            b += 1
        offset += sebs[seb, 3] * lay.dependency_bytes
        sebs[seb, 4] = load_i4(buf, offset, lay.swap)
        for k in range(sebs[seb, 4]):
            forward[f, 0] = seb
            forward[f, 1] = load_i4(
                buf, offset + lay.count_bytes + k * lay.dependency_bytes, lay.swap
            )
            f += 1
        at = following
