"""The rules that every SEB of a log is held to, checked in one pass over a block.

What breaks a rule is counted, and its place noted while there is room: piece, SEB, the byte where
the SEB, message or event stands, and its number in the SEB. `tools.checking` says it in words.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rewritelog.arrays import Bytes, Ints
from rewritelog.checking.kernels.violations import (
    OTHER,
    SEB_ITSELF,
    CarriedState,
    Found,
    Machine,
    MessageFlags,
    Records,
    Timelines,
    Violation,
    hash_pair,
    mail_slot,
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
    blame,
    seb_parts,
)
from tracebigsim.compiled import inner, kernel

# Kernels take plain integers for the members of enumerations.
_SEQNO, _NOT_FINITE = int(Violation.SEQNO), int(Violation.NOT_FINITE)
_EXEC_TIME = int(Violation.EXEC_TIME)
_TWO_CAUSES, _FLOATING = int(Violation.TWO_CAUSES), int(Violation.FLOATING)
_STARTING_MESSAGE, _NOT_SENT = int(Violation.STARTING_MESSAGE), int(Violation.NOT_SENT)
_RECV_BEFORE_SEND, _MESSAGE_SIZE = int(Violation.RECV_BEFORE_SEND), int(Violation.MESSAGE_SIZE)
_SEND_OUTSIDE, _MESSAGE_TARGET = int(Violation.SEND_OUTSIDE), int(Violation.MESSAGE_TARGET)
_MESSAGE_NUMBER = int(Violation.MESSAGE_NUMBER)
_MARKS, _EVENT_OUTSIDE = int(Violation.MARKS), int(Violation.EVENT_OUTSIDE)
_DEPENDENCY_ORDER = int(Violation.DEPENDENCY_ORDER)
_DISAGREE = int(Violation.DEPENDENCIES_DISAGREE)
_PARAM_RECORDS = int(Violation.PARAM_RECORDS)

EXEC_SLACK_S = 1e-6
"""How far execTime may be from endTime − startTime (FORMAT 7, rule 4)."""


@inner
def check_times(
    buf: Bytes, at: int, lay: KernelLayout, piece: int, seb: int, found: Found
) -> tuple[float, float]:
    """Check a SEB's own times; return its start and its end."""
    start = load_f8(buf, at + lay.seb_start_time, lay.swap)
    end = load_f8(buf, at + lay.seb_end_time, lay.swap)
    executed = load_f8(buf, at + lay.seb_exec_time, lay.swap)
    received = load_f8(buf, at + lay.seb_recv_time, lay.swap)
    effective = load_f8(buf, at + lay.seb_eff_recv_time, lay.swap)
    if not (
        np.isfinite(start) and np.isfinite(end) and np.isfinite(executed)
        and np.isfinite(received) and np.isfinite(effective)
    ):  # fmt: skip
        note(found, _NOT_FINITE, piece, seb, at, SEB_ITSELF)
    elif end >= start and abs(executed - (end - start)) > EXEC_SLACK_S:
        note(found, _EXEC_TIME, piece, seb, at, SEB_ITSELF)
    return start, end


@inner
def check_cause(
    buf: Bytes, at: int, depends: bool, lay: KernelLayout, machine: Machine, mail: MessageFlags,
    piece: int, seb: int, found: Found,
) -> None:  # fmt: skip
    """Check what a SEB says of itself and of what starts it; note the message that it awaits."""
    if load_i4(buf, at + lay.seb_seqno, lay.swap) != seb:
        note(found, _SEQNO, piece, seb, at, SEB_ITSELF)
    source = load_i4(buf, at + lay.seb_src_pe, lay.swap)
    number = load_i4(buf, at + lay.seb_msg_id, lay.swap)
    if number >= 0:
        if depends:
            note(found, _TWO_CAUSES, piece, seb, at, SEB_ITSELF)
        if 0 <= source < machine.pes:
            mail.awaited[mail_slot(source, number, mail.awaited)] = 1
        else:
            note(found, _STARTING_MESSAGE, piece, seb, at, SEB_ITSELF)
    else:
        if number < -1 or source != -1:
            note(found, _STARTING_MESSAGE, piece, seb, at, SEB_ITSELF)
        if not depends and load_f8(buf, at + lay.seb_recv_time, lay.swap) == -1.0:
            note(found, _FLOATING, piece, seb, at, SEB_ITSELF)


@inner
def exists(node: int, worker: int, machine: Machine) -> bool:
    """Return whether the machine has what a message is for (FORMAT 4)."""
    if node == -2:
        return True
    if worker < -1 or worker >= machine.workers:
        return False
    if node >= -1:
        return node < machine.nodes
    return node <= -100 and -100 - node < machine.nodes


@inner
def check_messages(
    buf: Bytes, at: int, lay: KernelLayout, machine: Machine, start: float, end: float, pe: int,
    mail: MessageFlags, last: Ints, piece: int, seb: int, found: Found,
) -> None:  # fmt: skip
    """Check the messages counted at `at`; note that they were sent."""
    for k in range(load_i4(buf, at, lay.swap)):
        place = at + lay.count_bytes + k * lay.message_bytes
        sent = load_f8(buf, place + lay.message_send_time, lay.swap)
        received = load_f8(buf, place + lay.message_recv_time, lay.swap)
        if not (np.isfinite(sent) and np.isfinite(received)):
            note(found, _NOT_FINITE, piece, seb, place, k)
        if received < sent:
            note(found, _RECV_BEFORE_SEND, piece, seb, place, k)
        if end >= start and (sent < start or sent > end):
            note(found, _SEND_OUTSIDE, piece, seb, place, k)
        if load_i4(buf, place + lay.message_size, lay.swap) < 0:
            note(found, _MESSAGE_SIZE, piece, seb, place, k)
        node = load_i4(buf, place + lay.message_dst_node, lay.swap)
        if not exists(node, load_i2(buf, place + lay.message_tid, lay.swap), machine):
            note(found, _MESSAGE_TARGET, piece, seb, place, k)
        number = load_i4(buf, place + lay.message_msg_id, lay.swap)
        if number <= last[0]:
            note(found, _MESSAGE_NUMBER, piece, seb, place, k)
        last[0] = number
        if number >= 0:
            mail.sent[mail_slot(pe, number, mail.sent)] = 1


@inner
def check_events(
    buf: Bytes, at: int, lay: KernelLayout, start: float, end: float, piece: int, seb: int,
    found: Found,
) -> int:  # fmt: skip
    """Check the events counted at `at`; return the number of brackets, or `IRREGULAR`."""
    duration, latest = np.inf, np.inf
    if end >= start:
        duration = end - start
        latest = duration + slack(start, end)
    bounds, before, regular = 1, 0.0, True
    place = at + lay.count_bytes
    for k in range(load_i4(buf, at, lay.swap)):
        time = load_f8(buf, place + lay.event_r_time, lay.swap)
        if not np.isfinite(time):
            note(found, _NOT_FINITE, piece, seb, place, OTHER - k)
        elif time < 0.0 or time > latest:
            note(found, _EVENT_OUTSIDE, piece, seb, place, k)
        mark = mark_at(buf, place, lay)
        if mark != NO_MARK:
            regular &= pairs_up(mark, bounds, time, before, latest)
            before = min(time, duration)
            bounds += 1
        place = after_event(buf, place, lay)
    if regular and bounds % 2 == 1:
        return bounds // 2
    note(found, _MARKS, piece, seb, at, SEB_ITSELF)
    return IRREGULAR


@inner
def check_backward(
    buf: Bytes, at: int, lay: KernelLayout, total: int, trail: CarriedState, piece: int, seb: int,
    found: Found,
) -> int:  # fmt: skip
    """Check the backward dependencies counted at `at`; return where they end."""
    count = load_i4(buf, at, lay.swap)
    place = at + lay.count_bytes
    for k in range(count):
        other = load_i4(buf, place + k * lay.dependency_bytes, lay.swap)
        if other < 0 or other >= seb:
            note(found, _DEPENDENCY_ORDER, piece, seb, place + k * lay.dependency_bytes, k)
        if 0 <= other < total:
            found.disordered[piece] |= other >= seb
            found.waits[piece] += 1
            trail.links[other >> trail.shift] -= hash_pair(other, seb, trail.key)
    return place + count * lay.dependency_bytes


@inner
def check_forward(
    buf: Bytes, at: int, lay: KernelLayout, total: int, trail: CarriedState, piece: int, seb: int,
    found: Found,
) -> None:  # fmt: skip
    """Check the forward dependencies counted at `at`."""
    place = at + lay.count_bytes
    links = np.uint64(0)
    for k in range(load_i4(buf, at, lay.swap)):
        other = load_i4(buf, place + k * lay.dependency_bytes, lay.swap)
        if other <= seb or other >= total:
            note(found, _DEPENDENCY_ORDER, piece, seb, place + k * lay.dependency_bytes, OTHER - k)
        if 0 <= other < total:
            links += hash_pair(seb, other, trail.key)
    trail.links[seb >> trail.shift] += links


@inner
def check_seb(
    buf: Bytes, at: int, events: int, backward: int, lay: KernelLayout, machine: Machine,
    pe: int, total: int, records: int, trail: CarriedState, mail: MessageFlags, piece: int,
    seb: int, found: Found,
) -> None:  # fmt: skip
    """Check the SEB at `at`; `records` is how many param records it has, −1 without any params."""
    start, end = check_times(buf, at, lay, piece, seb, found)
    depends = load_i4(buf, backward, lay.swap) > 0
    check_cause(buf, at, depends, lay, machine, mail, piece, seb, found)
    check_messages(
        buf,
        at + lay.seb_bytes,
        lay,
        machine,
        start,
        end,
        pe,
        mail,
        trail.number,
        piece,
        seb,
        found,
    )
    brackets = check_events(buf, events, lay, start, end, piece, seb, found)
    if records >= 0 and brackets not in (IRREGULAR, records):
        note(found, _PARAM_RECORDS, piece, seb, at, records << 32 | brackets)
    forward = check_backward(buf, backward, lay, total, trail, piece, seb, found)
    check_forward(buf, forward, lay, total, trail, piece, seb, found)


@inner
def compare_links(trail: CarriedState, total: int, piece: int, found: Found) -> None:
    """Note the SEBs whose forward dependencies are not what the backward ones say."""
    for k in range(((total - 1) >> trail.shift) + 1 if total > 0 else 0):
        if trail.links[k] != np.uint64(0):
            note(found, _DISAGREE, piece, k << trail.shift, -1, SEB_ITSELF)


@inner
def check_piece(
    buf: Bytes, lines: Timelines, piece: int, lay: KernelLayout, machine: Machine,
    records: Records, trail: CarriedState, mail: MessageFlags, found: Found, fault: Ints,
) -> bool:  # fmt: skip
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
        check_seb(
            buf, at, events, backward, lay, machine, lines.pes[piece], total, known, trail, mail,
            piece, seb, found,
        )  # fmt: skip
        at = following
        seb += 1
    if seb == total and lines.closed[piece] and at != end:
        fault[FAULT_SEB] = seb
        blame(fault, BYTES_LEFT_OVER, at, end - at)
    return True


@kernel
def check(
    buf: Bytes, lines: Timelines, lay: KernelLayout, machine: Machine, records: Records,
    trail: CarriedState, mail: MessageFlags, found: Found, faults: Ints,
) -> None:  # fmt: skip
    """Check all SEBs of a block; where one cannot be walked, go on with the next piece.

    `faults`, shape (pieces, FAULT_SIZE), takes the fault of each piece.
    """
    for piece in range(len(lines.pes)):
        total = lines.totals[piece]
        if lines.pieces.firsts[piece] == 0:
            trail.number[0] = -1
            for k in range(((total - 1) >> trail.shift) + 1 if total > 0 else 0):
                trail.links[k] = 0
        fault = faults[piece]
        fault[FAULT_PIECE] = piece
        whole = check_piece(
            buf, lines, piece, lay, machine, records, trail, mail, found, fault
        )  # fmt: skip
        if whole and lines.pieces.firsts[piece] + lines.pieces.counts[piece] == total:
            compare_links(trail, total, piece, found)


@kernel
def find_not_sent(
    buf: Bytes, lines: Timelines, lay: KernelLayout, machine: Machine, mail: MessageFlags,
    found: Found, fault: Ints,
) -> None:  # fmt: skip
    """Note the SEBs of a block that await a message which no PE has sent."""
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
                and mail.sent[mail_slot(source, number, mail.sent)] == 0
            ):
                note(found, _NOT_SENT, piece, lines.pieces.firsts[piece] + index, at, SEB_ITSELF)
            at = following


@kernel
def find_waits(
    buf: Bytes, pieces: Pieces, lay: KernelLayout, offsets: Ints, waits: NDArray[np.int32],
    fault: Ints,
) -> int:  # fmt: skip
    """Find which SEBs of whole timelines wait for which others; the SEBs are numbered through.

    Fill in where each SEB stands, and in each row of `waits`, shape (waits, 2), a SEB and the one
    of its timeline that it waits for. Return the number of rows, at most those that there are.
    """
    rows = base = 0
    for piece in range(len(pieces.starts)):
        at, count = pieces.starts[piece], pieces.counts[piece]
        for seb in range(count):
            _, backward, following = seb_parts(buf, at, pieces.ends[piece], lay, fault)
            offsets[base + seb] = at
            for k in range(load_i4(buf, backward, lay.swap)):
                place = backward + lay.count_bytes + k * lay.dependency_bytes
                other = load_i4(buf, place, lay.swap)
                if 0 <= other < count and rows < len(waits):
                    waits[rows, 0], waits[rows, 1] = base + seb, base + other
                    rows += 1
            at = following
        base += count
    return rows


@kernel
def sound_sebs(
    buf: Bytes, at: int, end: int, most: int, lay: KernelLayout, fault: Ints
) -> tuple[int, int]:
    """Walk up to `most` SEBs of a timeline from its first, as long as each has its index as seqno.

    Return how many there are, and where the last of them ends.
    """
    for index in range(most):
        _, _, following = seb_parts(buf, at, end, lay, fault)
        if following < 0 or load_i4(buf, at + lay.seb_seqno, lay.swap) != index:
            return index, at
        at = following
    return most, at
