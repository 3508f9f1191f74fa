"""The check of all rules for SEBs in one pass over a block.

Violations are counted, and the first few are kept as examples: piece, SEB, the byte offset of the
SEB, message or log event, and its index in the SEB. `checking.messages` makes their messages.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rewritelog.arrays import Bytes, Ints
from rewritelog.checking.kernels.violations import (
    OTHER,
    SEB_ITSELF,
    CarriedState,
    Machine,
    MessageFlags,
    RecordedSebs,
    Timelines,
    Violation,
    Violations,
    flag_of,
    hash_pair,
    note,
)
from rewritelog.format.layout import KernelLayout
from rewritelog.kernels.brackets import IRREGULAR, NO_MARK, after_event, mark_at, pairs_up, slack
from rewritelog.kernels.raw import load_f8, load_i2, load_i4
from rewritelog.kernels.walk import (
    BYTES_LEFT_OVER,
    FAULT_PIECE,
    FAULT_SEB,
    Pieces,
    seb_parts,
    set_fault,
)
from tracebigsim.compiled import inner, kernel

EXEC_SLACK_S = 1e-6
"""The tolerance of execTime = endTime − startTime (FORMAT 7, rule 4)."""


class CheckedSeb(NamedTuple):
    """The SEB that is being checked."""

    piece: int
    number: int
    """The index in the timeline."""
    at: int
    pe: int
    total: int
    """The number of SEBs of its timeline."""


@inner
def note_seb(found: Violations, rule: int, seb: CheckedSeb) -> None:
    """Count a violation of a SEB itself."""
    note(found, rule, seb.piece, seb.number, seb.at, SEB_ITSELF)


@inner
def check_times(
    buf: Bytes, seb: CheckedSeb, lay: KernelLayout, found: Violations
) -> tuple[float, float]:
    """Check the times of a SEB; return its start and its end."""
    start = load_f8(buf, seb.at + lay.seb_start_time, lay.swap)
    end = load_f8(buf, seb.at + lay.seb_end_time, lay.swap)
    executed = load_f8(buf, seb.at + lay.seb_exec_time, lay.swap)
    received = load_f8(buf, seb.at + lay.seb_recv_time, lay.swap)
    effective = load_f8(buf, seb.at + lay.seb_eff_recv_time, lay.swap)
    finite = np.isfinite(start) and np.isfinite(end) and np.isfinite(executed)
    if not (finite and np.isfinite(received) and np.isfinite(effective)):
        note_seb(found, Violation.NOT_FINITE, seb)
    elif end >= start and abs(executed - (end - start)) > EXEC_SLACK_S:
        note_seb(found, Violation.EXEC_TIME, seb)
    return start, end


@inner
def check_cause(
    buf: Bytes,
    seb: CheckedSeb,
    depends: bool,
    lay: KernelLayout,
    machine: Machine,
    awaited: Bytes,
    found: Violations,
) -> None:
    """Check the index of a SEB and what starts it; set the flag of its starting message."""
    if load_i4(buf, seb.at + lay.seb_seqno, lay.swap) != seb.number:
        note_seb(found, Violation.SEQNO, seb)
    source = load_i4(buf, seb.at + lay.seb_src_pe, lay.swap)
    number = load_i4(buf, seb.at + lay.seb_msg_id, lay.swap)
    if number >= 0:
        if depends:
            note_seb(found, Violation.TWO_CAUSES, seb)
        if 0 <= source < machine.pes:
            awaited[flag_of(source, number, awaited)] = 1
        else:
            note_seb(found, Violation.STARTING_MESSAGE, seb)
    else:
        if number < -1 or source != -1:
            note_seb(found, Violation.STARTING_MESSAGE, seb)
        if not depends and load_f8(buf, seb.at + lay.seb_recv_time, lay.swap) == -1.0:
            note_seb(found, Violation.FLOATING, seb)


@inner
def exists(node: int, worker: int, machine: Machine) -> bool:
    """Return whether the destination of a message exists in the machine (FORMAT 4)."""
    if node == -2:
        return True
    if worker < -1 or worker >= machine.workers:
        return False
    if node >= -1:
        return node < machine.nodes
    return node <= -100 and -100 - node < machine.nodes


@inner
def check_messages(
    buf: Bytes,
    seb: CheckedSeb,
    lay: KernelLayout,
    machine: Machine,
    start: float,
    end: float,
    sent_flags: Bytes,
    last: Ints,
    found: Violations,
) -> None:
    """Check the messages of a SEB; set their flags."""
    piece, index, at = seb.piece, seb.number, seb.at + lay.seb_bytes
    for k in range(load_i4(buf, at, lay.swap)):
        message = at + lay.count_bytes + k * lay.message_bytes
        sent = load_f8(buf, message + lay.message_send_time, lay.swap)
        received = load_f8(buf, message + lay.message_recv_time, lay.swap)
        if not (np.isfinite(sent) and np.isfinite(received)):
            note(found, Violation.NOT_FINITE, piece, index, message, k)
        if received < sent:
            note(found, Violation.RECV_BEFORE_SEND, piece, index, message, k)
        if end >= start and (sent < start or sent > end):
            note(found, Violation.SEND_OUTSIDE, piece, index, message, k)
        if load_i4(buf, message + lay.message_size, lay.swap) < 0:
            note(found, Violation.MESSAGE_SIZE, piece, index, message, k)
        node = load_i4(buf, message + lay.message_dst_node, lay.swap)
        if not exists(node, load_i2(buf, message + lay.message_tid, lay.swap), machine):
            note(found, Violation.MESSAGE_TARGET, piece, index, message, k)
        number = load_i4(buf, message + lay.message_msg_id, lay.swap)
        if number <= last[0]:
            note(found, Violation.MESSAGE_NUMBER, piece, index, message, k)
        last[0] = number
        if number >= 0:
            sent_flags[flag_of(seb.pe, number, sent_flags)] = 1


@inner
def check_events(
    buf: Bytes,
    seb: CheckedSeb,
    at: int,
    lay: KernelLayout,
    start: float,
    end: float,
    found: Violations,
) -> int:
    """Check the log events whose count is at `at`; return the number of brackets or `IRREGULAR`."""
    duration, latest = np.inf, np.inf
    if end >= start:
        duration = end - start
        latest = duration + slack(start, end)
    bounds, before, regular = 1, 0.0, True
    event = at + lay.count_bytes
    for k in range(load_i4(buf, at, lay.swap)):
        time = load_f8(buf, event + lay.event_r_time, lay.swap)
        if not np.isfinite(time):
            note(found, Violation.NOT_FINITE, seb.piece, seb.number, event, OTHER - k)
        elif time < 0.0 or time > latest:
            note(found, Violation.EVENT_OUTSIDE, seb.piece, seb.number, event, k)
        mark = mark_at(buf, event, lay)
        if mark != NO_MARK:
            regular &= pairs_up(mark, bounds, time, before, latest)
            before = min(time, duration)
            bounds += 1
        event = after_event(buf, event, lay)
    if regular and bounds % 2 == 1:
        return bounds // 2
    note(found, Violation.MARKS, seb.piece, seb.number, at, SEB_ITSELF)
    return IRREGULAR


@inner
def check_backward(
    buf: Bytes,
    seb: CheckedSeb,
    at: int,
    lay: KernelLayout,
    carried: CarriedState,
    found: Violations,
) -> int:
    """Check the backward dependencies whose count is at `at`; return their end offset."""
    count = load_i4(buf, at, lay.swap)
    first = at + lay.count_bytes
    for k in range(count):
        dependency = first + k * lay.dependency_bytes
        other = load_i4(buf, dependency, lay.swap)
        if other < 0 or other >= seb.number:
            note(found, Violation.DEPENDENCY_ORDER, seb.piece, seb.number, dependency, k)
        if 0 <= other < seb.total:
            found.disordered[seb.piece] |= other >= seb.number
            found.waits[seb.piece] += 1
            carried.links[other >> carried.shift] -= hash_pair(other, seb.number, carried.key)
    return first + count * lay.dependency_bytes


@inner
def check_forward(
    buf: Bytes,
    seb: CheckedSeb,
    at: int,
    lay: KernelLayout,
    carried: CarriedState,
    found: Violations,
) -> None:
    """Check the forward dependencies whose count is at `at`."""
    links = np.uint64(0)
    for k in range(load_i4(buf, at, lay.swap)):
        dependency = at + lay.count_bytes + k * lay.dependency_bytes
        other = load_i4(buf, dependency, lay.swap)
        if other <= seb.number or other >= seb.total:
            note(found, Violation.DEPENDENCY_ORDER, seb.piece, seb.number, dependency, OTHER - k)
        if 0 <= other < seb.total:
            links += hash_pair(seb.number, other, carried.key)
    carried.links[seb.number >> carried.shift] += links


@inner
def check_seb(
    buf: Bytes,
    seb: CheckedSeb,
    events: int,
    backward: int,
    lay: KernelLayout,
    machine: Machine,
    records: int,
    carried: CarriedState,
    flags: MessageFlags,
    found: Violations,
) -> None:
    """Check a SEB; `records` is its number of param records, −1 without any params."""
    start, end = check_times(buf, seb, lay, found)
    depends = load_i4(buf, backward, lay.swap) > 0
    check_cause(buf, seb, depends, lay, machine, flags.awaited, found)
    check_messages(buf, seb, lay, machine, start, end, flags.sent, carried.number, found)
    brackets = check_events(buf, seb, events, lay, start, end, found)
    if records >= 0 and brackets not in (IRREGULAR, records):
        item = records << 32 | brackets
        note(found, Violation.PARAM_RECORDS, seb.piece, seb.number, seb.at, item)
    forward = check_backward(buf, seb, backward, lay, carried, found)
    check_forward(buf, seb, forward, lay, carried, found)


@inner
def compare_links(carried: CarriedState, total: int, piece: int, found: Violations) -> None:
    """Count the SEBs whose forward dependencies disagree with the backward ones."""
    for k in range(((total - 1) >> carried.shift) + 1 if total > 0 else 0):
        if carried.links[k] != np.uint64(0):
            note(found, Violation.DEPENDENCIES_DISAGREE, piece, k << carried.shift, -1, SEB_ITSELF)


@inner
def check_piece(
    buf: Bytes,
    lines: Timelines,
    piece: int,
    lay: KernelLayout,
    machine: Machine,
    records: RecordedSebs,
    carried: CarriedState,
    flags: MessageFlags,
    found: Violations,
    fault: Ints,
) -> bool:
    """Check the SEBs of a piece; return whether all of them could be walked."""
    at, end = lines.pieces.starts[piece], lines.pieces.ends[piece]
    seb = lines.pieces.firsts[piece]
    total, stop = lines.totals[piece], seb + lines.pieces.counts[piece]
    record, no_more = records.begins[piece], records.begins[piece + 1]
    while seb < stop:
        events, backward, following = seb_parts(buf, at, end, lay, fault)
        if following < 0:
            fault[FAULT_SEB] = seb
            return False
        known = 0 if records.wanted else -1
        while record < no_more and records.sebs[record] <= seb:
            known += records.sebs[record] == seb
            record += 1
        found_seb = CheckedSeb(piece, seb, at, lines.pes[piece], total)
        check_seb(buf, found_seb, events, backward, lay, machine, known, carried, flags, found)
        at = following
        seb += 1
    if seb == total and lines.closed[piece] and at != end:
        fault[FAULT_SEB] = seb
        set_fault(fault, BYTES_LEFT_OVER, at, end - at)
    return True


@kernel(ns_per_byte=600)
def check(
    buf: Bytes,
    lines: Timelines,
    lay: KernelLayout,
    machine: Machine,
    records: RecordedSebs,
    carried: CarriedState,
    flags: MessageFlags,
    found: Violations,
    faults: Ints,
) -> None:
    """Check all SEBs of a block; after one that cannot be walked, continue with the next piece.

    The fault of each piece is stored in `faults`, shape (pieces, FAULT_SIZE).
    """
    for piece in range(len(lines.pes)):
        total = lines.totals[piece]
        if lines.pieces.firsts[piece] == 0:
            carried.number[0] = -1
            for k in range(((total - 1) >> carried.shift) + 1 if total > 0 else 0):
                carried.links[k] = 0
        fault = faults[piece]
        fault[FAULT_PIECE] = piece
        whole = check_piece(buf, lines, piece, lay, machine, records, carried, flags, found, fault)
        if whole and lines.pieces.firsts[piece] + lines.pieces.counts[piece] == total:
            compare_links(carried, total, piece, found)


@kernel(ns_per_byte=150)
def find_not_sent(
    buf: Bytes,
    lines: Timelines,
    lay: KernelLayout,
    machine: Machine,
    flags: MessageFlags,
    found: Violations,
    fault: Ints,
) -> None:
    """Count the SEBs of a block whose starting message no PE has sent."""
    for piece in range(len(lines.pes)):
        at = lines.pieces.starts[piece]
        for index in range(lines.pieces.counts[piece]):
            _, _, following = seb_parts(buf, at, lines.pieces.ends[piece], lay, fault)
            if following < 0:
                break
            source = load_i4(buf, at + lay.seb_src_pe, lay.swap)
            number = load_i4(buf, at + lay.seb_msg_id, lay.swap)
            if (
                number >= 0
                and 0 <= source < machine.pes
                and flags.sent[flag_of(source, number, flags.sent)] == 0
            ):
                note(
                    found,
                    Violation.NOT_SENT,
                    piece,
                    lines.pieces.firsts[piece] + index,
                    at,
                    SEB_ITSELF,
                )
            at = following


@kernel(ns_per_byte=200)
def find_waits(
    buf: Bytes,
    pieces: Pieces,
    lay: KernelLayout,
    offsets: Ints,
    waits: NDArray[np.int32],
    fault: Ints,
) -> int:
    """Find the backward dependencies of whole timelines, with SEBs numbered over all of them.

    Fill in the offset of each SEB, and in each row of `waits`, shape (waits, 2), a SEB and the one
    that it waits for. Return the number of rows filled in.
    """
    rows = base = 0
    for piece in range(len(pieces.starts)):
        at, count = pieces.starts[piece], pieces.counts[piece]
        for seb in range(count):
            _, backward, following = seb_parts(buf, at, pieces.ends[piece], lay, fault)
            offsets[base + seb] = at
            for k in range(load_i4(buf, backward, lay.swap)):
                offset = backward + lay.count_bytes + k * lay.dependency_bytes
                other = load_i4(buf, offset, lay.swap)
                if 0 <= other < count and rows < len(waits):
                    waits[rows, 0], waits[rows, 1] = base + seb, base + other
                    rows += 1
            at = following
        base += count
    return rows


@kernel(ns_per_byte=150)
def sound_sebs(
    buf: Bytes, at: int, end: int, most: int, lay: KernelLayout, fault: Ints
) -> tuple[int, int]:
    """Walk up to `most` SEBs from the first of a timeline, as long as their seqnos are correct.

    Return their number, and the end offset of the last one.
    """
    for index in range(most):
        _, _, following = seb_parts(buf, at, end, lay, fault)
        if following < 0 or load_i4(buf, at + lay.seb_seqno, lay.swap) != index:
            return index, at
        at = following
    return most, at
