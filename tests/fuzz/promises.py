"""What must hold of a block of timelines, whatever bytes it has.

`check_block` does with a block all that the package does, and returns 0 or the number of what did
not hold (see `BROKEN`). It runs compiled on mutants by the million, and as plain Python under a
fuzzer that wants to see inside.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fuzz.mutation import Bytes, Ints
from rewritelog.arrays import Flags, Table
from rewritelog.format.layout import KernelLayout
from rewritelog.kernels.names import NameTable, collect_names
from rewritelog.kernels.raw import load_f8, load_i4, store_f8
from rewritelog.kernels.walk import (
    FAULT_AT,
    FAULT_CODE,
    FAULT_PIECE,
    FAULT_SEB,
    FAULT_SIZE,
    OK,
    Pieces,
    advance,
    locate,
    seb_parts,
    tally,
)
from rewritelog.rewriting.counts import (
    EXAMPLES,
    BlockCount,
    BlockRecords,
    BlockTotals,
    Dilation,
    DurationSum,
)
from rewritelog.rewriting.kernels.patch import patch
from tracebigsim.compiled import kernel

BROKEN = {
    1: "a fault lies outside of the block",
    2: "a walk counts more than its bytes can hold",
    3: "two walks over the same bytes do not agree",
    4: "the walk in parts does not come to the same SEBs",
    7: "a rewrite changes more than times",
    8: "a rewrite changes a SEB without a duration",
    9: "execTime is not endTime - startTime",
    10: "a message left its SEB",
    11: "a message is received before it is sent",
    12: "messages changed their order",
    13: "an event left its SEB",
    14: "a time became something that is no finite number",
    15: "the answer depends on what lies beside the block",
    16: "names of a walked block cannot be interned",
}

_EPSILON = 2.0**-52
_COUNTS, _SUMS = len(BlockCount), len(DurationSum)


class Tools(NamedTuple):
    """What the kernels need beside a block: layout, rates."""

    lay: KernelLayout
    names: NameTable
    """Empty."""
    factor: float
    by_name: bool
    keep_recv: bool


@kernel
def _odd_fault(fault: Ints, size: int, pieces: int) -> bool:
    return not (
        0 <= fault[FAULT_AT] <= size and 0 <= fault[FAULT_PIECE] < pieces and fault[FAULT_SEB] >= 0
    )


@kernel
def _hide_times(buf: Bytes, pieces: Pieces, lay: KernelLayout, fault: Ints) -> None:
    """Put 0 for all times that a rewrite may change."""
    for piece in range(len(pieces.starts)):
        at = pieces.starts[piece]
        for _ in range(pieces.counts[piece]):
            events, _, following = seb_parts(buf, at, pieces.ends[piece], lay, fault)
            store_f8(buf, at + lay.seb_exec_time, 0.0, lay.swap)
            store_f8(buf, at + lay.seb_end_time, 0.0, lay.swap)
            for place in range(at + lay.seb_bytes + lay.count_bytes, events, lay.message_bytes):
                store_f8(buf, place + lay.message_send_time, 0.0, lay.swap)
                store_f8(buf, place + lay.message_recv_time, 0.0, lay.swap)
            place = events + lay.count_bytes
            for _ in range(load_i4(buf, events, lay.swap)):
                store_f8(buf, place + lay.event_r_time, 0.0, lay.swap)
                length = lay.index_bytes
                if buf[place] != 1:
                    length = lay.count_bytes + load_i4(buf, place + lay.event_bytes, lay.swap)
                place += lay.event_bytes + length
            at = following


@kernel
def _check_messages(
    old: Bytes,
    new: Bytes,
    at: int,
    events: int,
    lay: KernelLayout,
    start: float,
    end: float,
    new_end: float,
    keep_recv: bool,
) -> int:
    before, moved_before = -np.inf, -np.inf
    for place in range(at + lay.seb_bytes + lay.count_bytes, events, lay.message_bytes):
        sent = load_f8(old, place + lay.message_send_time, lay.swap)
        received = load_f8(old, place + lay.message_recv_time, lay.swap)
        moved = load_f8(new, place + lay.message_send_time, lay.swap)
        arrived = load_f8(new, place + lay.message_recv_time, lay.swap)
        if not np.isfinite(moved) or (np.isfinite(received) and not np.isfinite(arrived)):
            return 14
        if start <= sent <= end and not start <= moved <= new_end:
            return 10
        if arrived < moved and (keep_recv or not received < sent):
            return 11
        if (before <= sent and moved_before > moved) or (before >= sent and moved_before < moved):
            return 12
        before, moved_before = sent, moved
    return 0


@kernel
def _check_events(
    old: Bytes, new: Bytes, events: int, lay: KernelLayout, duration: float, limit: float
) -> int:
    place = events + lay.count_bytes
    for _ in range(load_i4(old, events, lay.swap)):
        time = load_f8(old, place + lay.event_r_time, lay.swap)
        moved = load_f8(new, place + lay.event_r_time, lay.swap)
        if np.isfinite(time) and not np.isfinite(moved):
            return 14
        if np.isnan(time) and not np.isnan(moved):
            return 14
        if 0.0 <= time <= duration and not 0.0 <= moved <= limit:
            return 13
        length = lay.index_bytes
        if old[place] != 1:
            length = lay.count_bytes + load_i4(old, place + lay.event_bytes, lay.swap)
        place += lay.event_bytes + length
    return 0


@kernel
def _check_seb(
    old: Bytes, new: Bytes, at: int, events: int, following: int, lay: KernelLayout, keep_recv: bool
) -> int:
    start = load_f8(old, at + lay.seb_start_time, lay.swap)
    end = load_f8(old, at + lay.seb_end_time, lay.swap)
    same = True
    for k in range(at, following):
        same = same and old[k] == new[k]
    if same:
        return 0
    if not end > start:
        return 8
    new_end = load_f8(new, at + lay.seb_end_time, lay.swap)
    took = load_f8(new, at + lay.seb_exec_time, lay.swap)
    if not (np.isfinite(new_end) and np.isfinite(took)):
        return 14
    rounding = 4 * _EPSILON * max(abs(start), abs(new_end))
    if not abs(took - (new_end - start)) <= max(1e-6, rounding):
        return 9
    broken = _check_messages(old, new, at, events, lay, start, end, new_end, keep_recv)
    if broken != 0:
        return broken
    return _check_events(old, new, events, lay, end - start, new_end - start)


@kernel
def _copied(names: NameTable) -> NameTable:
    return NameTable(names.names.copy(), names.slots.copy(), names.known.copy())


@kernel
def _check_rewrite(
    buf: Bytes, pieces: Pieces, tools: Tools, records: Table, begins: Ints, trace: Ints
) -> int:
    lay = tools.lay
    fault = np.zeros(FAULT_SIZE, dtype=np.int64)
    names = _copied(tools.names)
    factors = np.full(64 if tools.by_name else 0, tools.factor)
    if tools.by_name and not collect_names(buf, pieces, lay, names, fault):
        return 0 if pieces.counts.sum() > len(factors) else 16
    old = buf.copy()
    many = len(pieces.starts)
    totals = BlockTotals(
        np.zeros(_COUNTS, dtype=np.int64),
        np.zeros((many, _SUMS, 2)),
        np.zeros((_COUNTS, EXAMPLES, 2), dtype=np.int64),
    )
    dilation = Dilation(tools.factor, names, factors)
    paired = BlockRecords(begins, records)
    patch(buf, pieces, lay, dilation, tools.keep_recv, paired, totals, fault)
    trace[8] = fault[FAULT_CODE]
    trace[9] = totals.counts.sum()
    if fault[FAULT_CODE] != OK:
        return 1 if _odd_fault(fault, len(buf), many) else 0
    for piece in range(many):
        at = pieces.starts[piece]
        for _ in range(pieces.counts[piece]):
            events, _, following = seb_parts(old, at, pieces.ends[piece], lay, fault)
            broken = _check_seb(old, buf, at, events, following, lay, tools.keep_recv)
            if broken != 0:
                trace[15] = at
                return broken
            at = following
    hidden = buf.copy()
    _hide_times(hidden, pieces, lay, fault)
    _hide_times(old, pieces, lay, fault)
    return 0 if np.array_equal(hidden, old) else 7


@kernel
def _check_places(buf: Bytes, pieces: Pieces, lay: KernelLayout, totals: Ints, fault: Ints) -> int:
    for piece in range(len(pieces.starts)):
        count = pieces.counts[piece]
        sebs = np.zeros((count, 5), dtype=np.int64)
        messages = np.zeros((totals[piece, 0], 3), dtype=np.int64)
        events = np.zeros((totals[piece, 1], 3), dtype=np.int64)
        backward = np.zeros((totals[piece, 2], 2), dtype=np.int64)
        forward = np.zeros((totals[piece, 3], 2), dtype=np.int64)
        locate(
            buf,
            pieces.starts[piece],
            pieces.ends[piece],
            count,
            lay,
            fault,
            sebs,
            messages,
            events,
            backward,
            forward,
        )
        for k in range(4):
            if sebs[:, 1 + k].sum() != totals[piece, k]:
                return 3
        whole, end = advance(buf, pieces.starts[piece], pieces.ends[piece], count, lay, fault)
        if whole != count or end != pieces.ends[piece]:
            return 4
        middle = (pieces.starts[piece] + pieces.ends[piece]) // 2
        some, part = advance(buf, pieces.starts[piece], middle, count, lay, fault)
        rest, end = advance(buf, part, pieces.ends[piece], count - some, lay, fault)
        if some + rest != count or end != pieces.ends[piece]:
            return 4
        fault[:] = 0
    return 0


@kernel
def _count_sebs(buf: Bytes, starts: Ints, ends: Ints, lay: KernelLayout) -> tuple[Ints, Flags]:
    """Return the number of SEBs that each timeline says it has, and whether as many fit in it.

    Shapes: `starts` and `ends`, (timelines,), where each timeline's count is and it ends.
    """
    counts = np.zeros(len(starts), dtype=np.int64)
    valid = np.zeros(len(starts), dtype=np.bool_)
    smallest = lay.seb_bytes + 4 * lay.count_bytes
    for piece in range(len(starts)):
        room = ends[piece] - starts[piece] - lay.count_bytes
        if room >= 0:
            counts[piece] = load_i4(buf, starts[piece], lay.swap)
            valid[piece] = counts[piece] >= 0 and counts[piece] * smallest <= room
    return counts, valid


@kernel
def check_block(
    buf: Bytes, borders: Ints, tools: Tools, records: Table, begins: Ints, trace: Ints
) -> int:
    """Do everything with a block that starts and ends with its timelines; return what broke.

    The block is rewritten in place. `trace`, shape (16,), gets what an answer is known by.
    """
    lay = tools.lay
    trace[:] = 0
    fault = np.zeros(FAULT_SIZE, dtype=np.int64)
    starts, ends = borders[:-1].copy(), borders[1:].copy()
    counts, valid = _count_sebs(buf, starts, ends, lay)
    trace[0], trace[1] = valid.sum(), counts.sum()
    if not valid.all():
        return 0
    pieces = Pieces(starts + lay.count_bytes, ends, counts, np.zeros_like(counts))
    totals = tally(buf, pieces.starts, pieces.ends, counts, lay, fault)
    trace[2], trace[3], trace[4] = fault[FAULT_CODE], fault[FAULT_AT], fault[FAULT_SEB]
    if fault[FAULT_CODE] != OK:
        if _odd_fault(fault, len(buf), len(starts)):
            return 1
        broken = _check_rewrite(buf, pieces, tools, records, begins, trace)
        if broken != 0:
            return broken
        return 3 if trace[8] == OK else 0
    least = totals[:, 0] * lay.message_bytes + totals[:, 1] * lay.event_bytes
    least += (totals[:, 2] + totals[:, 3]) * lay.dependency_bytes + counts * lay.seb_bytes
    if (least > ends - starts).any():
        return 2
    for broken in (_check_places(buf, pieces, lay, totals, fault),):
        if broken != 0:
            return broken
    return _check_rewrite(buf, pieces, tools, records, begins, trace)
