"""The rewrite of a block in one pass: walk, pair brackets with records, map times, sum up."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rewritelog.arrays import Bytes, Floats, Ints, Table
from rewritelog.format.layout import KernelLayout
from rewritelog.kernels.brackets import (
    GIVEN,
    IRREGULAR,
    NEW,
    NO_MARK,
    OLD,
    after_event,
    find_brackets,
    mark_at,
    slack,
)
from rewritelog.kernels.names import slot_of
from rewritelog.kernels.raw import load_f8, load_i4, store_f8
from rewritelog.kernels.sums import add_to
from rewritelog.kernels.walk import (
    BYTES_LEFT_OVER,
    DURATION_OVERFLOW,
    EVENT_OVERFLOW,
    FAULT_PIECE,
    FAULT_SEB,
    RECV_OVERFLOW,
    SEND_NOT_FINITE,
    SEND_OVERFLOW,
    SEQNO_WRONG,
    TIME_NOT_FINITE,
    Pieces,
    blame,
    seb_parts,
)
from rewritelog.rewriting.kernels.interface import Account, BlockCount, Dilation, RecordState, Sum
from rewritelog.rewriting.kernels.remap import map_moment, map_time, set_new_bounds
from tracebigsim.compiled import inner, kernel

# Kernels take plain integers for the members of enumerations.
_SEBS, _MESSAGES = int(BlockCount.SEBS), int(BlockCount.MESSAGES)
_BY_MODEL, _BY_EXACT = int(BlockCount.BY_MODEL), int(BlockCount.BY_EXACT)
_BY_DILATION, _UNCHANGED = int(BlockCount.BY_DILATION), int(BlockCount.UNCHANGED)
_UNCLOSED, _ZERO_LENGTH = int(BlockCount.UNCLOSED), int(BlockCount.ZERO_LENGTH)
_BRACKETS = int(BlockCount.BRACKETS)
_WITHOUT_RECORD = int(BlockCount.BRACKETS_WITHOUT_RECORD)
_MARKS_IRREGULAR = int(BlockCount.MARKS_IRREGULAR)
_MISMATCHED = int(BlockCount.RECORDS_MISMATCHED)
_UNMARKED = int(BlockCount.UNMARKED_WITH_RECORD)
_OUTSIDE, _RAISED = int(BlockCount.MESSAGES_OUTSIDE), int(BlockCount.RECV_RAISED)
_OLD, _NEW = int(Sum.OLD), int(Sum.NEW)
_BRACKETED_OLD, _BRACKETED_NEW = int(Sum.BRACKETED_OLD), int(Sum.BRACKETED_NEW)
_AROUND_OLD, _AROUND_NEW = int(Sum.AROUND_OLD), int(Sum.AROUND_NEW)
_WITHOUT_OLD, _WITHOUT_NEW = int(Sum.WITHOUT_OLD), int(Sum.WITHOUT_NEW)
_PREDICTED, _NOT_COVERED = int(RecordState.PREDICTED), int(RecordState.NOT_COVERED)
_NOT_PAIRED, _LEFT_ALONE = int(RecordState.NOT_PAIRED), int(RecordState.SEB_LEFT_ALONE)


@inner
def count_example(figures: Ints, examples: Ints, figure: int, piece: int, seb: int) -> None:
    """Count a figure by one and remember its place while there is room."""
    known = figures[figure]
    if known < examples.shape[1]:
        examples[figure, known, 0] = piece
        examples[figure, known, 1] = seb
    figures[figure] = known + 1


@inner
def irregularity(brackets: int, records: int) -> int:
    """Return the figure that a SEB's brackets and records are counted under, or −1 for none."""
    if brackets == 0 and records == 1:
        return _UNMARKED
    if brackets == IRREGULAR:
        return _MARKS_IRREGULAR
    if records not in (0, brackets):
        return _MISMATCHED
    return -1


@inner
def choose_regions(
    brackets: int, duration: float, records: Table, first: int, last: int, table: Floats
) -> int:
    """Pair a SEB's brackets with its records `first` to `last`; return the number of regions.

    `table` holds the old bounds of the brackets; where no pairing is certain it becomes one region
    from end to end.
    """
    many = last - first
    if brackets > 0 and many in (0, brackets):
        for k in range(2 * brackets + 1):
            table[GIVEN, k] = np.nan
        for k in range(many):
            table[GIVEN, 2 * k + 1] = records[first + k].seconds
        return 2 * brackets + 1
    table[OLD, 0], table[OLD, 1] = 0.0, duration
    table[GIVEN, 0] = records[first].seconds if brackets == 0 and many == 1 else np.nan
    return 1


@inner
def note_records(records: Table, first: int, last: int, count: int, table: Floats) -> int:
    """Say of each of a SEB's records what became of it, given the `count` regions.

    Return 0 where none was used, 1 where all were those of identical samples, 2 otherwise.
    """
    used = 0
    paired = count == 2 * (last - first) + 1 or (count == 1 and last - first == 1)
    for k in range(first, last):
        if not paired:
            records[k].state = _NOT_PAIRED
            continue
        region = 2 * (k - first) + 1 if count > 1 else 0
        records[k].old = table[OLD, region + 1] - table[OLD, region]
        if np.isnan(records[k].seconds):
            records[k].state = _NOT_COVERED
            records[k].new = table[NEW, region + 1] - table[NEW, region]
        else:
            records[k].state = _PREDICTED
            records[k].new = records[k].seconds
            used = max(used, 1 if records[k].exact else 2)
    return used


@inner
def add_durations(sums: Floats, piece: int, table: Floats, count: int, bracketed: bool) -> None:
    """Add a SEB's old and new durations, and those of its regions, to its piece's sums.

    `bracketed` says that a SEB of one region is a bracket from end to end.
    """
    add_to(sums, piece, _OLD, table[OLD, count])
    add_to(sums, piece, _NEW, table[NEW, count])
    if count == 1:
        old, new = (_BRACKETED_OLD, _BRACKETED_NEW) if bracketed else (_WITHOUT_OLD, _WITHOUT_NEW)
        add_to(sums, piece, old, table[OLD, 1])
        add_to(sums, piece, new, table[NEW, 1])
        return
    for region in range(count):
        inside = region % 2 == 1
        old, new = (_BRACKETED_OLD, _BRACKETED_NEW) if inside else (_AROUND_OLD, _AROUND_NEW)
        add_to(sums, piece, old, table[OLD, region + 1] - table[OLD, region])
        add_to(sums, piece, new, table[NEW, region + 1] - table[NEW, region])


@inner
def patch_messages(
    buf: Bytes,
    at: int,
    lay: KernelLayout,
    keep_recv: bool,
    start: float,
    end: float,
    new_end: float,
    table: Floats,
    count: int,
    factor: float,
    figures: Ints,
    fault: Ints,
) -> bool:
    """Map the times of the messages counted at `at`; return whether all stay finite numbers.

    A time of arrival that was none before may stay what it was.
    """
    for k in range(load_i4(buf, at, lay.swap)):
        place = at + lay.count_bytes + k * lay.message_bytes
        sent = load_f8(buf, place + lay.message_send_time, lay.swap)
        if not np.isfinite(sent):
            blame(fault, SEND_NOT_FINITE, place + lay.message_send_time, 0)
            return False
        if sent < start or sent > end:
            figures[_OUTSIDE] += 1
        moved = map_moment(sent, start, end, new_end, table, count, factor)
        if not np.isfinite(moved):
            blame(fault, SEND_OVERFLOW, place + lay.message_send_time, 0)
            return False
        store_f8(buf, place + lay.message_send_time, moved, lay.swap)
        received = load_f8(buf, place + lay.message_recv_time, lay.swap)
        if not keep_recv:
            if moved != sent:
                arrived = moved + (received - sent)
                if np.isfinite(received) and not np.isfinite(arrived):
                    blame(fault, RECV_OVERFLOW, place + lay.message_recv_time, 0)
                    return False
                store_f8(buf, place + lay.message_recv_time, arrived, lay.swap)
        elif received < moved:
            figures[_RAISED] += 1
            store_f8(buf, place + lay.message_recv_time, moved, lay.swap)
    return True


@inner
def patch_events(
    buf: Bytes,
    at: int,
    lay: KernelLayout,
    reach: float,
    limit: float,
    table: Floats,
    count: int,
    factor: float,
    fault: Ints,
) -> bool:
    """Map the times of the events counted at `at`; the marks of a pair go to its region's bounds.

    `limit` is the new duration as a reader will compute it, which no event inside may pass, and
    `reach` how far past the old one rounding may have put it. Return whether no time that was a
    finite number has become another thing.
    """
    bound = 0
    place = at + lay.count_bytes
    for _ in range(load_i4(buf, at, lay.swap)):
        time = load_f8(buf, place + lay.event_r_time, lay.swap)
        if count > 1 and mark_at(buf, place, lay) != NO_MARK:
            bound += 1
            moved = min(table[NEW, bound], limit)
        elif time > table[OLD, count] + reach:
            moved = limit + (time - table[OLD, count])
        else:
            moved = min(map_time(min(time, table[OLD, count]), table, count, factor), limit)
        if np.isfinite(time) and not np.isfinite(moved):
            blame(fault, EVENT_OVERFLOW, place + lay.event_r_time, 0)
            return False
        store_f8(buf, place + lay.event_r_time, moved, lay.swap)
        place = after_event(buf, place, lay)
    return True


@inner
def patch_seb(
    buf: Bytes,
    seb: int,
    at: int,
    events: int,
    lay: KernelLayout,
    keep_recv: bool,
    start: float,
    end: float,
    table: Floats,
    count: int,
    factor: float,
    figures: Ints,
    fault: Ints,
) -> bool:
    """Write the new times of SEB `seb`; return whether it could be done faithfully."""
    seqno = load_i4(buf, at + lay.seb_seqno, lay.swap)
    if seqno != seb:
        blame(fault, SEQNO_WRONG, at + lay.seb_seqno, seqno)
        return False
    new_end = start + table[NEW, count]
    if not np.isfinite(new_end):
        blame(fault, DURATION_OVERFLOW, at + lay.seb_end_time, 0)
        return False
    store_f8(buf, at + lay.seb_exec_time, table[NEW, count], lay.swap)
    store_f8(buf, at + lay.seb_end_time, new_end, lay.swap)
    if not patch_events(
        buf, events, lay, slack(start, end), new_end - start, table, count, factor, fault
    ):
        return False
    return patch_messages(
        buf, at + lay.seb_bytes, lay, keep_recv, start, end, new_end, table, count, factor,
        figures, fault,
    )  # fmt: skip


@inner
def leave_alone(
    start: float, end: float, records: Table, first: int, last: int, figures: Ints
) -> bool:
    """Return whether a SEB has no duration to rewrite; count it and its records if so."""
    if end > start:
        return False
    figures[_ZERO_LENGTH if end == start else _UNCLOSED] += 1
    for k in range(first, last):
        records[k].state = _LEFT_ALONE
    return True


@inner
def rewrite_seb(
    buf: Bytes,
    at: int,
    events: int,
    lay: KernelLayout,
    start: float,
    end: float,
    factor: float,
    keep_recv: bool,
    records: Table,
    first: int,
    last: int,
    table: Floats,
    piece: int,
    seb: int,
    figures: Ints,
    sums: Floats,
    examples: Ints,
    fault: Ints,
) -> bool:
    """Rewrite a SEB that has a duration and the records `first` to `last`; count and sum it.

    Return whether it could be done faithfully.
    """
    brackets = find_brackets(buf, events, lay, end - start, slack(start, end), table)
    odd = irregularity(brackets, last - first)
    if odd >= 0:
        count_example(figures, examples, odd, piece, seb)
    if brackets > 0:
        figures[_BRACKETS] += brackets
        figures[_WITHOUT_RECORD] += brackets if last == first else 0
    count = choose_regions(brackets, end - start, records, first, last, table)
    changed = set_new_bounds(table, count, factor)
    used = note_records(records, first, last, count, table)
    add_durations(sums, piece, table, count, odd == _UNMARKED)
    if used > 0:
        figures[_BY_EXACT if used == 1 else _BY_MODEL] += 1
    else:
        figures[_BY_DILATION if changed else _UNCHANGED] += 1
    return not changed or patch_seb(
        buf, seb, at, events, lay, keep_recv, start, end, table, count, factor, figures, fault
    )


@inner
def patch_piece(
    buf: Bytes,
    at: int,
    end_at: int,
    seb: int,
    stop: int,
    lay: KernelLayout,
    base_factor: float,
    names: Bytes,
    slots: NDArray[np.int32],
    factors: Floats,
    keep_recv: bool,
    records: Table,
    last: int,
    no_more: int,
    table: Floats,
    piece: int,
    figures: Ints,
    sums: Floats,
    examples: Ints,
    fault: Ints,
) -> tuple[int, int, int, int]:
    """Rewrite the SEBs of a piece from index `seb` at byte `at` up to `stop`.

    Return where it came to (SEB, byte and record), and the number of columns that the table of
    regions lacks to go on; 0 where the piece is done, −1 at a fault.
    """
    while seb < stop:
        fault[FAULT_SEB] = seb
        events, _, following = seb_parts(buf, at, end_at, lay, fault)
        if following < 0:
            return seb, at, last, -1
        columns = load_i4(buf, events, lay.swap) + 3
        if columns > table.shape[1]:
            return seb, at, last, columns
        while last < no_more and records[last].seb < seb:
            last += 1
        first = last
        while last < no_more and records[last].seb == seb:
            last += 1
        figures[_SEBS] += 1
        figures[_MESSAGES] += load_i4(buf, at + lay.seb_bytes, lay.swap)
        start = load_f8(buf, at + lay.seb_start_time, lay.swap)
        end = load_f8(buf, at + lay.seb_end_time, lay.swap)
        if not (np.isfinite(start) and np.isfinite(end)):
            return seb, at, last, blame(fault, TIME_NOT_FINITE, at + lay.seb_start_time, 0)
        if not leave_alone(start, end, records, first, last, figures):
            factor = base_factor
            if len(factors) > 0:
                slot = slot_of(buf, at + lay.seb_name, names, slots, lay.name_bytes)
                factor = factors[slots[slot] - 1]
            if not rewrite_seb(
                buf, at, events, lay, start, end, factor, keep_recv, records, first, last, table,
                piece, seb, figures, sums, examples, fault,
            ):  # fmt: skip
                return seb, at, last, -1
        at = following
        seb += 1
    fault[FAULT_SEB] = seb
    if at != end_at:
        return seb, at, last, blame(fault, BYTES_LEFT_OVER, at, end_at - at)
    return seb, at, last, 0


@kernel
def patch(
    buf: Bytes,
    pieces: Pieces,
    lay: KernelLayout,
    dilation: Dilation,
    keep_recv: bool,
    begins: Ints,
    records: Table,
    account: Account,
    fault: Ints,
) -> None:
    """Rewrite all SEBs of the pieces in place; stop at the first fault.

    `begins`, shape (pieces + 1,), says where each piece's records begin.
    """
    table = np.empty((3, 64))
    for piece in range(len(pieces.starts)):
        fault[FAULT_PIECE] = piece
        at, last = pieces.starts[piece], begins[piece]
        seb = pieces.firsts[piece]
        stop = seb + pieces.counts[piece]
        lacking = 1
        while lacking > 0:
            seb, at, last, lacking = patch_piece(
                buf, at, pieces.ends[piece], seb, stop, lay, dilation.factor, dilation.names,
                dilation.slots, dilation.factors, keep_recv, records, last, begins[piece + 1],
                table, piece, account.figures, account.sums, account.examples, fault,
            )  # fmt: skip
            if lacking > 0:
                table = np.empty((3, lacking))
        if lacking < 0:
            return
