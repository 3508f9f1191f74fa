"""Extraction of the columns for replays from the bytes of a block, in one pass.

A duration at the dilation f is f·scaled + fixed, and so is every offset within a SEB. The times for
all dilations therefore follow from one reading.
"""

from __future__ import annotations

import numpy as np

from rewritelog.arrays import Bytes, Floats, Ints, Table
from rewritelog.format.layout import KernelLayout
from rewritelog.kernels.brackets import GIVEN, OLD, find_brackets, slack
from rewritelog.kernels.names import NameTable, find_name
from rewritelog.kernels.raw import load_f8, load_i2, load_i4
from rewritelog.kernels.walk import (
    FAULT_PIECE,
    FAULT_SEB,
    SEND_NOT_FINITE,
    TIME_NOT_FINITE,
    Pieces,
    seb_parts,
    set_fault,
)
from rewritelog.replaying.kernels.interface import (
    WAITS_FOR_PREVIOUS,
    MessageColumns,
    Numbers,
    RegionColumns,
    SebColumns,
)
from tracebigsim.compiled import inner, kernel

TABLE_ROWS = 5
_SCALED_BEFORE, _FIXED_BEFORE = 3, 4
"""Further rows of a SEB's table of regions: scaled and fixed seconds before each bound."""


@inner
def add_up_regions(table: Floats, count: int) -> None:
    """Fill in the scaled and fixed seconds before each bound of `count` regions."""
    table[_SCALED_BEFORE, 0] = table[_FIXED_BEFORE, 0] = 0.0
    for k in range(count):
        given = table[GIVEN, k]
        length = table[OLD, k + 1] - table[OLD, k]
        table[_SCALED_BEFORE, k + 1] = table[_SCALED_BEFORE, k]
        table[_FIXED_BEFORE, k + 1] = table[_FIXED_BEFORE, k]
        if np.isnan(given):
            table[_SCALED_BEFORE, k + 1] += length
        else:
            table[_FIXED_BEFORE, k + 1] += given


@inner
def set_regions(
    brackets: int, duration: float, records: Table, first: int, last: int, table: Floats
) -> int:
    """Pair a SEB's brackets with its records `first` to `last`; return the number of regions.

    `table` contains the bounds of the brackets; if these do not match the records, the SEB becomes
    one region.
    """
    many = last - first
    if brackets > 0 and many == brackets:
        for k in range(2 * brackets + 1):
            table[GIVEN, k] = np.nan
        for k in range(many):
            table[GIVEN, 2 * k + 1] = records["seconds"][first + k]
        return 2 * brackets + 1
    table[OLD, 0], table[OLD, 1] = 0.0, duration
    table[GIVEN, 0] = records["seconds"][first] if brackets == 0 and many == 1 else np.nan
    return 1


@inner
def region_at(since: float, table: Floats, count: int) -> int:
    """Return the region that contains an offset; its lower bound belongs to it."""
    k = 0
    while k < count - 1 and table[OLD, k + 1] <= since:
        k += 1
    return k


@inner
def split_offset(offset: float, table: Floats, count: int) -> tuple[float, float]:
    """Return the scaled and the fixed part of an offset within a SEB, in seconds."""
    since = min(max(offset, 0.0), table[OLD, count])
    if since >= table[OLD, count]:
        return table[_SCALED_BEFORE, count], table[_FIXED_BEFORE, count]
    k = region_at(since, table, count)
    inside = since - table[OLD, k]
    if np.isnan(table[GIVEN, k]):
        return table[_SCALED_BEFORE, k] + inside, table[_FIXED_BEFORE, k]
    length = table[OLD, k + 1] - table[OLD, k]
    share = inside / length if length > 0.0 else 0.0
    return table[_SCALED_BEFORE, k], table[_FIXED_BEFORE, k] + share * table[GIVEN, k]


@inner
def extract_messages(
    buf: Bytes,
    at: int,
    lay: KernelLayout,
    start: float,
    duration: float,
    table: Floats,
    count: int,
    messages: MessageColumns,
    first: int,
    fault: Ints,
) -> int:
    """Fill in the messages whose count is at `at`; return the row after the last, −1 for a fault.

    `count` is 0 for a SEB without regions, whose whole `duration` is scaled.
    """
    row = first
    offset = at + lay.count_bytes
    for _ in range(load_i4(buf, at, lay.swap)):
        sent = load_f8(buf, offset + lay.message_send_time, lay.swap)
        if not np.isfinite(sent):
            return set_fault(fault, SEND_NOT_FINITE, offset + lay.message_send_time, 0)
        if count == 0:
            messages.scaled_s[row] = min(max(sent - start, 0.0), duration)
        else:
            scaled, fixed = split_offset(sent - start, table, count)
            messages.scaled_s[row], messages.fixed_s[row] = scaled, fixed
        messages.transit_s[row] = load_f8(buf, offset + lay.message_recv_time, lay.swap) - sent
        messages.size_bytes[row] = load_i4(buf, offset + lay.message_size, lay.swap)
        messages.number[row] = load_i4(buf, offset + lay.message_msg_id, lay.swap)
        messages.node[row] = load_i4(buf, offset + lay.message_dst_node, lay.swap)
        messages.worker[row] = load_i2(buf, offset + lay.message_tid, lay.swap)
        row += 1
        offset += lay.message_bytes
    return row


@inner
def extract_regions(
    brackets: int,
    seb: int,
    events: Ints,
    first: int,
    last: int,
    table: Floats,
    count: int,
    regions: RegionColumns,
    row: int,
) -> int:
    """Fill in the middle regions paired with the records; return the row after the last."""
    many = last - first
    if not (brackets == many or (brackets == 0 and many == 1)):
        return row
    for k in range(many):
        region = 2 * k + 1 if count > 1 else 0
        regions.seb[row] = seb
        regions.event[row] = events[first + k]
        regions.begin_scaled_s[row] = table[_SCALED_BEFORE, region]
        regions.begin_fixed_s[row] = table[_FIXED_BEFORE, region]
        regions.scaled_s[row] = table[_SCALED_BEFORE, region + 1] - table[_SCALED_BEFORE, region]
        regions.fixed_s[row] = table[_FIXED_BEFORE, region + 1] - table[_FIXED_BEFORE, region]
        row += 1
    return row


@inner
def regions_of_seb(
    buf: Bytes,
    events_at: int,
    lay: KernelLayout,
    start: float,
    end: float,
    records: Table,
    first: int,
    last: int,
    table: Floats,
) -> tuple[int, int]:
    """Pair a SEB's brackets with its records; return the numbers of brackets and regions."""
    brackets = find_brackets(buf, events_at, lay, end - start, slack(start, end), table)
    count = set_regions(brackets, end - start, records, first, last, table)
    add_up_regions(table, count)
    return brackets, count


@inner
def extract_cause(
    buf: Bytes,
    at: int,
    lay: KernelLayout,
    depends: bool,
    first_of_timeline: bool,
    sebs: SebColumns,
    row: int,
) -> None:
    """Fill in the inputs that a SEB waits for.

    A SEB without starting message and dependencies waits for the previous SEB of its timeline. So
    does one with dependencies and a receive time but no message: whatever resumed it is not among
    its dependencies.
    """
    number = load_i4(buf, at + lay.seb_msg_id, lay.swap)
    sebs.source[row] = load_i4(buf, at + lay.seb_src_pe, lay.swap)
    sebs.number[row] = number
    follows = number < 0 and (not depends or load_f8(buf, at + lay.seb_recv_time, lay.swap) != -1.0)
    sebs.flags[row] = WAITS_FOR_PREVIOUS if follows and not first_of_timeline else 0


@inner
def extract_dependencies(
    buf: Bytes, at: int, lay: KernelLayout, dependencies: Numbers, row: int
) -> int:
    """Fill in the backward dependencies whose count is at `at`; return the row after the last."""
    count = load_i4(buf, at, lay.swap)
    for k in range(count):
        offset = at + lay.count_bytes + k * lay.dependency_bytes
        dependencies[row + k] = load_i4(buf, offset, lay.swap)
    return row + count


@kernel(ns_per_byte=1000)
def extract(
    buf: Bytes,
    pieces: Pieces,
    lay: KernelLayout,
    names: NameTable,
    begins: Ints,
    records: Table,
    events: Ints,
    sebs: SebColumns,
    messages: MessageColumns,
    dependencies: Numbers,
    regions: RegionColumns,
    fault: Ints,
) -> tuple[int, float]:
    """Fill in the columns of a block; return the number of regions, and the latest end of a SEB.

    The number is −1 for a fault. `walk.tally` has checked the block. `begins`, shape (pieces + 1,),
    is the first record of each piece, and `events` the event of each record.
    """
    table = np.empty((TABLE_ROWS, 64))
    row = message = dependency = region = 0
    latest = 0.0
    for piece in range(len(pieces.starts)):
        fault[FAULT_PIECE] = piece
        at, last = pieces.starts[piece], begins[piece]
        for k in range(pieces.counts[piece]):
            seb = pieces.firsts[piece] + k
            fault[FAULT_SEB] = k
            events_at, backward, following = seb_parts(buf, at, pieces.ends[piece], lay, fault)
            columns = load_i4(buf, events_at, lay.swap) + 3
            if columns > table.shape[1]:
                table = np.empty((TABLE_ROWS, columns))
            first = last
            while last < begins[piece + 1] and records["seb"][last] == seb:
                last += 1
            start = load_f8(buf, at + lay.seb_start_time, lay.swap)
            end = load_f8(buf, at + lay.seb_end_time, lay.swap)
            spent = load_f8(buf, at + lay.seb_exec_time, lay.swap)
            if not (np.isfinite(start) and np.isfinite(end) and np.isfinite(spent)):
                return set_fault(fault, TIME_NOT_FINITE, at + lay.seb_start_time, 0), latest
            latest = max(latest, end)
            duration = max(spent, 0.0) if end >= start else 0.0
            count = 0
            sebs.scaled_s[row] = duration
            if last > first and end > start:
                brackets, regions_found = regions_of_seb(
                    buf, events_at, lay, start, end, records, first, last, table
                )
                region = extract_regions(
                    brackets, row, events, first, last, table, regions_found, regions, region
                )
                if len(sebs.fixed_s) > 0 and has_given(table, regions_found):
                    count = regions_found
                    sebs.scaled_s[row] = table[_SCALED_BEFORE, count]
                    sebs.fixed_s[row] = table[_FIXED_BEFORE, count]
            sebs.name[row] = find_name(buf, at + lay.seb_name, names)
            sebs.messages[row] = load_i4(buf, at + lay.seb_bytes, lay.swap)
            sebs.dependencies[row] = load_i4(buf, backward, lay.swap)
            extract_cause(buf, at, lay, sebs.dependencies[row] > 0, seb == 0, sebs, row)
            message = extract_messages(
                buf,
                at + lay.seb_bytes,
                lay,
                start,
                duration,
                table,
                count,
                messages,
                message,
                fault,
            )
            if message < 0:
                return -1, latest
            dependency = extract_dependencies(buf, backward, lay, dependencies, dependency)
            row += 1
            at = following
    return region, latest


@inner
def has_given(table: Floats, count: int) -> bool:
    """Return whether the length of any region is predicted."""
    for k in range(count):
        if not np.isnan(table[GIVEN, k]):
            return True
    return False
