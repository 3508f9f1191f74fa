"""The rewrite of a block in one pass: walk, pair brackets with records, map times, sum up."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

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
from rewritelog.kernels.names import find_name
from rewritelog.kernels.raw import load_f8, load_i4, store_f8
from rewritelog.kernels.sums import add_to
from rewritelog.kernels.tracer import tracer_replaces_at
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
    seb_parts,
    set_fault,
)
from rewritelog.rewriting.kernels.interface import (
    BlockCount,
    BlockRecords,
    BlockTotals,
    Dilation,
    DurationSum,
    RecordState,
)
from rewritelog.rewriting.kernels.remap import Regions, map_moment, map_time, set_new_bounds
from tracebigsim.compiled import inner, kernel

_NO_RECORD, _EXACT, _MODEL = 0, 1, 2


class Position(NamedTuple):
    """The position that the rewrite of a block has reached."""

    piece: int
    seb: int
    """Index in the timeline."""
    at: int
    record: int


class RewrittenSeb(NamedTuple):
    """The SEB that is being rewritten."""

    piece: int
    number: int
    """The index in the timeline."""
    at: int
    events: int
    """Byte offset of the number of events."""
    start: float
    end: float
    first_record: int
    last_record: int


@inner
def count_example(totals: BlockTotals, which: int, seb: RewrittenSeb) -> None:
    """Count a SEB, and keep it as an example while there is room."""
    known = totals.counts[which]
    if known < totals.examples.shape[1]:
        totals.examples[which, known, 0] = seb.piece
        totals.examples[which, known, 1] = seb.number
    totals.counts[which] = known + 1


@inner
def irregularity(brackets: int, records: int) -> int:
    """Return the count for irregular brackets and records of a SEB, −1 for regular ones."""
    if brackets == 0 and records == 1:
        return BlockCount.UNMARKED_WITH_RECORD
    if brackets == IRREGULAR:
        return BlockCount.MARKS_IRREGULAR
    if records not in (0, brackets):
        return BlockCount.RECORDS_MISMATCHED
    return -1


@inner
def choose_regions(
    brackets: int, seb: RewrittenSeb, records: Table, factor: float, table: Floats
) -> Regions:
    """Pair a SEB's brackets with its records; return its regions.

    `table` contains the old bounds of the brackets; if these do not match the records, the SEB
    becomes one region.
    """
    first, count = seb.first_record, seb.last_record - seb.first_record
    if brackets > 0 and count in (0, brackets):
        for k in range(2 * brackets + 1):
            table[GIVEN, k] = np.nan
        for k in range(count):
            table[GIVEN, 2 * k + 1] = records["seconds"][first + k]
        return Regions(table, 2 * brackets + 1, factor)
    table[OLD, 0], table[OLD, 1] = 0.0, seb.end - seb.start
    table[GIVEN, 0] = records["seconds"][first] if brackets == 0 and count == 1 else np.nan
    return Regions(table, 1, factor)


@inner
def fill_in_records(records: Table, seb: RewrittenSeb, regions: Regions) -> int:
    """Fill in the state and lengths of each record of a SEB.

    Return `_NO_RECORD` if none was used, `_EXACT` if all used ones are exact matches, and `_MODEL`
    otherwise.
    """
    used = _NO_RECORD
    first, last, count = seb.first_record, seb.last_record, regions.region_count
    paired = count == 2 * (last - first) + 1 or (count == 1 and last - first == 1)
    for k in range(first, last):
        if not paired:
            records["state"][k] = RecordState.NOT_PAIRED
            continue
        region = 2 * (k - first) + 1 if count > 1 else 0
        records["old"][k] = regions.table[OLD, region + 1] - regions.table[OLD, region]
        if np.isnan(records["seconds"][k]):
            records["state"][k] = RecordState.NOT_COVERED
            records["new"][k] = regions.table[NEW, region + 1] - regions.table[NEW, region]
        else:
            records["state"][k] = RecordState.PREDICTED
            records["new"][k] = records["seconds"][k]
            used = max(used, _EXACT if records["exact"][k] else _MODEL)
    return used


@inner
def add_durations(sums: Floats, piece: int, regions: Regions, bracketed: bool) -> None:
    """Add a SEB's old and new durations, and those of its regions, to its piece's sums.

    `bracketed` says that a SEB with one region is a bracket from start to end.
    """
    table, count = regions.table, regions.region_count
    add_to(sums, piece, DurationSum.OLD, table[OLD, count])
    add_to(sums, piece, DurationSum.NEW, table[NEW, count])
    if count == 1:
        old = DurationSum.BRACKETED_OLD if bracketed else DurationSum.WITHOUT_OLD
        add_to(sums, piece, old, table[OLD, 1])
        add_to(sums, piece, old + 1, table[NEW, 1])
        return
    for k in range(count):
        old = DurationSum.BRACKETED_OLD if k % 2 == 1 else DurationSum.AROUND_OLD
        add_to(sums, piece, old, table[OLD, k + 1] - table[OLD, k])
        add_to(sums, piece, old + 1, table[NEW, k + 1] - table[NEW, k])


@inner
def patch_messages(
    buf: Bytes,
    seb: RewrittenSeb,
    lay: KernelLayout,
    keep_recv: bool,
    new_end: float,
    regions: Regions,
    counts: Ints,
    fault: Ints,
) -> bool:
    """Map the times of a SEB's messages; return whether all stay finite.

    A receive time that was not finite before need not become finite.
    """
    at = seb.at + lay.seb_bytes
    for k in range(load_i4(buf, at, lay.swap)):
        message = at + lay.count_bytes + k * lay.message_bytes
        sent = load_f8(buf, message + lay.message_send_time, lay.swap)
        if not np.isfinite(sent):
            set_fault(fault, SEND_NOT_FINITE, message + lay.message_send_time, 0)
            return False
        if sent < seb.start or sent > seb.end:
            counts[BlockCount.MESSAGES_OUTSIDE] += 1
        moved = map_moment(sent, seb.start, seb.end, new_end, regions)
        if not np.isfinite(moved):
            set_fault(fault, SEND_OVERFLOW, message + lay.message_send_time, 0)
            return False
        store_f8(buf, message + lay.message_send_time, moved, lay.swap)
        received = load_f8(buf, message + lay.message_recv_time, lay.swap)
        if not keep_recv:
            if moved != sent:
                arrived = moved + (received - sent)
                if np.isfinite(received) and not np.isfinite(arrived):
                    set_fault(fault, RECV_OVERFLOW, message + lay.message_recv_time, 0)
                    return False
                store_f8(buf, message + lay.message_recv_time, arrived, lay.swap)
        elif received < moved:
            counts[BlockCount.RECV_RAISED] += 1
            store_f8(buf, message + lay.message_recv_time, moved, lay.swap)
    return True


@inner
def patch_events(
    buf: Bytes, seb: RewrittenSeb, lay: KernelLayout, limit: float, regions: Regions, fault: Ints
) -> bool:
    """Map the times of a SEB's log events; marks are moved to the bounds of their regions.

    `limit` is the new duration as a reader computes it, which no event within the SEB may exceed.
    Return whether all times that were finite are still finite.
    """
    table, old_end = regions.table, regions.table[OLD, regions.region_count]
    latest = old_end + slack(seb.start, seb.end)
    bound = 0
    offset = seb.events + lay.count_bytes
    for _ in range(load_i4(buf, seb.events, lay.swap)):
        time = load_f8(buf, offset + lay.event_r_time, lay.swap)
        if regions.region_count > 1 and mark_at(buf, offset, lay) != NO_MARK:
            bound += 1
            moved = min(table[NEW, bound], limit)
        elif time > latest:
            moved = limit + (time - old_end)
        else:
            moved = min(map_time(min(time, old_end), regions), limit)
        if np.isfinite(time) and not np.isfinite(moved):
            set_fault(fault, EVENT_OVERFLOW, offset + lay.event_r_time, 0)
            return False
        store_f8(buf, offset + lay.event_r_time, moved, lay.swap)
        offset = after_event(buf, offset, lay)
    return True


@inner
def patch_seb(
    buf: Bytes,
    seb: RewrittenSeb,
    lay: KernelLayout,
    keep_recv: bool,
    regions: Regions,
    counts: Ints,
    fault: Ints,
) -> bool:
    """Write the new times of a SEB; return False for an overflow or a wrong seqno."""
    seqno = load_i4(buf, seb.at + lay.seb_seqno, lay.swap)
    if seqno != seb.number:
        set_fault(fault, SEQNO_WRONG, seb.at + lay.seb_seqno, seqno)
        return False
    duration = regions.table[NEW, regions.region_count]
    new_end = seb.start + duration
    if not np.isfinite(new_end):
        set_fault(fault, DURATION_OVERFLOW, seb.at + lay.seb_end_time, 0)
        return False
    store_f8(buf, seb.at + lay.seb_exec_time, duration, lay.swap)
    store_f8(buf, seb.at + lay.seb_end_time, new_end, lay.swap)
    return patch_events(buf, seb, lay, new_end - seb.start, regions, fault) and patch_messages(
        buf, seb, lay, keep_recv, new_end, regions, counts, fault
    )


@inner
def leave_alone(seb: RewrittenSeb, records: Table, counts: Ints) -> bool:
    """Return whether a SEB has no duration to rewrite; count it and its records in that case."""
    if seb.end > seb.start:
        return False
    counts[BlockCount.ZERO_LENGTH if seb.end == seb.start else BlockCount.UNCLOSED] += 1
    for k in range(seb.first_record, seb.last_record):
        records["state"][k] = RecordState.SEB_LEFT_ALONE
    return True


@inner
def rewrite_seb(
    buf: Bytes,
    seb: RewrittenSeb,
    lay: KernelLayout,
    factor: float,
    keep_recv: bool,
    records: Table,
    table: Floats,
    totals: BlockTotals,
    fault: Ints,
) -> bool:
    """Rewrite a SEB that has a duration; count and sum it.

    Return False for an overflow or a wrong seqno.
    """
    counts = totals.counts
    many = seb.last_record - seb.first_record
    reach = slack(seb.start, seb.end)
    brackets = find_brackets(buf, seb.events, lay, seb.end - seb.start, reach, table)
    irregular = irregularity(brackets, many)
    if irregular >= 0:
        count_example(totals, irregular, seb)
    if brackets > 0:
        counts[BlockCount.BRACKETS] += brackets
        counts[BlockCount.BRACKETS_WITHOUT_RECORD] += brackets if many == 0 else 0
    regions = choose_regions(brackets, seb, records, factor, table)
    changed = set_new_bounds(regions)
    used = fill_in_records(records, seb, regions)
    add_durations(totals.sums, seb.piece, regions, irregular == BlockCount.UNMARKED_WITH_RECORD)
    if used != _NO_RECORD:
        counts[BlockCount.BY_EXACT if used == _EXACT else BlockCount.BY_MODEL] += 1
        counts[BlockCount.TRACER_REPLACES] += tracer_replaces_at(buf, seb.at + lay.seb_name)
    else:
        counts[BlockCount.BY_DILATION if changed else BlockCount.UNCHANGED] += 1
    return not changed or patch_seb(buf, seb, lay, keep_recv, regions, counts, fault)


@inner
def patch_piece(
    buf: Bytes,
    pieces: Pieces,
    position: Position,
    lay: KernelLayout,
    dilation: Dilation,
    keep_recv: bool,
    records: BlockRecords,
    table: Floats,
    totals: BlockTotals,
    fault: Ints,
) -> tuple[Position, int]:
    """Rewrite the SEBs of a piece, starting at a position.

    Return the position reached, and the number of columns that the table of regions needs to
    continue; 0 if the piece is done, −1 for a fault.
    """
    piece, seb, at, last = position
    end_at, stop = pieces.ends[piece], pieces.firsts[piece] + pieces.counts[piece]
    rows, no_more = records.rows, records.begins[piece + 1]
    while seb < stop:
        fault[FAULT_SEB] = seb
        events, _, following = seb_parts(buf, at, end_at, lay, fault)
        if following < 0:
            return Position(piece, seb, at, last), -1
        columns = load_i4(buf, events, lay.swap) + 3
        if columns > table.shape[1]:
            return Position(piece, seb, at, last), columns
        first = last
        while last < no_more and rows["seb"][last] == seb:
            last += 1
        totals.counts[BlockCount.SEBS] += 1
        totals.counts[BlockCount.MESSAGES] += load_i4(buf, at + lay.seb_bytes, lay.swap)
        start = load_f8(buf, at + lay.seb_start_time, lay.swap)
        end = load_f8(buf, at + lay.seb_end_time, lay.swap)
        if not (np.isfinite(start) and np.isfinite(end)):
            set_fault(fault, TIME_NOT_FINITE, at + lay.seb_start_time, 0)
            return Position(piece, seb, at, last), -1
        found = RewrittenSeb(piece, seb, at, events, start, end, first, last)
        if not leave_alone(found, rows, totals.counts):
            factor = dilation.factor
            if len(dilation.factors) > 0:
                factor = dilation.factors[find_name(buf, at + lay.seb_name, dilation.names)]
            if not rewrite_seb(buf, found, lay, factor, keep_recv, rows, table, totals, fault):
                return Position(piece, seb, at, last), -1
        at = following
        seb += 1
    fault[FAULT_SEB] = seb
    lacking = set_fault(fault, BYTES_LEFT_OVER, at, end_at - at) if at != end_at else 0
    return Position(piece, seb, at, last), lacking


@kernel(ns_per_byte=750)
def patch(
    buf: Bytes,
    pieces: Pieces,
    lay: KernelLayout,
    dilation: Dilation,
    keep_recv: bool,
    records: BlockRecords,
    totals: BlockTotals,
    fault: Ints,
) -> None:
    """Rewrite all SEBs of the pieces in place; stop at the first fault."""
    table = np.empty((3, 64))
    for piece in range(len(pieces.starts)):
        fault[FAULT_PIECE] = piece
        start, first = pieces.starts[piece], pieces.firsts[piece]
        position = Position(piece, first, start, records.begins[piece])
        lacking = 1
        while lacking > 0:
            position, lacking = patch_piece(
                buf, pieces, position, lay, dilation, keep_recv, records, table, totals, fault
            )
            if lacking > 0:
                table = np.empty((3, lacking))
        if lacking < 0:
            return
