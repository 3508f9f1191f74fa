"""The comparison of two blocks in one pass: SEBs, messages, log events, durations.

Both sides contain the same timelines, each in its own log version and byte order.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rewritelog.arrays import Floats, Ints
from rewritelog.diffing.kernels.fields import compare_seb
from rewritelog.diffing.kernels.interface import (
    AT_A,
    AT_B,
    BINS,
    BINS_AN_OCTAVE,
    BRACKET_PAIRS,
    COUNT_A,
    COUNT_B,
    DONE,
    FAULTY,
    HIGHEST,
    LOWEST,
    OCTAVES,
    PAIRS,
    PIECE,
    RATIOS,
    RECORD,
    SEB,
    CommonCount,
    DiffCount,
    Differences,
    Durations,
    RecordedEvents,
    Rules,
    Side,
    SideSeb,
)
from rewritelog.kernels.brackets import OLD, find_brackets, slack
from rewritelog.kernels.names import FULL, add_name
from rewritelog.kernels.raw import load_f8, load_i4
from rewritelog.kernels.sums import add_to
from rewritelog.kernels.walk import BYTES_LEFT_OVER, FAULT_PIECE, FAULT_SEB, seb_parts, set_fault
from tracebigsim.compiled import inner, kernel


class RegionTables(NamedTuple):
    """The regions of a SEB on both sides; see `kernels.brackets`."""

    a: Floats
    b: Floats


@inner
def bin_of(ratio: float) -> int:
    """Return the bin of a non-negative ratio."""
    if not ratio >= 2.0**-OCTAVES:
        return 0
    if ratio > 2.0**OCTAVES:
        return BINS - 1
    number = int(np.floor((np.log2(ratio) + OCTAVES) * BINS_AN_OCTAVE + 0.5))
    return min(max(number, 0), BINS - 3) + 1


@inner
def add_pair(to: Durations, row: int, old: float, new: float, used: int) -> int:
    """Add the ratio of a pair of durations; return the new number of ratios."""
    if not (old > 0.0 and np.isfinite(old) and np.isfinite(new)):
        return used
    ratio = new / old
    to.counts[row, RATIOS] += 1
    to.extremes[row, LOWEST] = min(to.extremes[row, LOWEST], ratio)
    to.extremes[row, HIGHEST] = max(to.extremes[row, HIGHEST], ratio)
    to.keys[used] = row * BINS + bin_of(ratio)
    return used + 1


@inner
def add_brackets(
    found: Differences,
    state: Ints,
    events: RecordedEvents,
    first: int,
    last: int,
    brackets: int,
    tables: RegionTables,
) -> None:
    """Add the durations of the brackets of a SEB, with its records `first` to `last`.

    Both sides have the same number of brackets. Without brackets a single record covers the whole
    SEB.
    """
    for k in range(max(brackets, 1)):
        event = events.event[first + k] if last - first == max(brackets, 1) else 0
        begin = 2 * k + 1 if brackets > 0 else 0
        old = tables.a[OLD, begin + 1] - tables.a[OLD, begin]
        new = tables.b[OLD, begin + 1] - tables.b[OLD, begin]
        found.by_event.counts[event, COUNT_A] += 1
        found.by_event.counts[event, COUNT_B] += 1
        add_to(found.by_event.seconds, event, 0, old)
        add_to(found.by_event.seconds, event, 1, new)
        state[BRACKET_PAIRS] = add_pair(found.by_event, event, old, new, state[BRACKET_PAIRS])


@inner
def brackets_of(side: Side, seb: SideSeb, table: Floats) -> int:
    """Return the number of brackets of a SEB, or `IRREGULAR`."""
    duration, reach = seb.end - seb.start, slack(seb.start, seb.end)
    return find_brackets(side.buf, seb.events, side.lay, duration, reach, table)


@inner
def compare_brackets(
    a: Side,
    seb_a: SideSeb,
    b: Side,
    seb_b: SideSeb,
    found: Differences,
    state: Ints,
    events: RecordedEvents,
    first: int,
    last: int,
    tables: RegionTables,
) -> None:
    """Compare the bracketed regions of a SEB that has a duration on both sides."""
    brackets_a = brackets_of(a, seb_a, tables.a)
    brackets_b = brackets_of(b, seb_b, tables.b)
    if brackets_a < 0:
        found.counts[0, DiffCount.IRREGULAR] += 1
    if brackets_b < 0:
        found.counts[1, DiffCount.IRREGULAR] += 1
    if brackets_a != brackets_b:
        found.common[CommonCount.UNPAIRED] += 1
    elif brackets_a > 0 or (brackets_a == 0 and last - first == 1):
        add_brackets(found, state, events, first, last, brackets_a, tables)


@inner
def count_side(
    side: Side, which: int, at: int, parts: tuple[int, int, int], found: Differences
) -> SideSeb:
    """Count a SEB of one side; return it."""
    events, backward, _ = parts
    lay = side.lay
    links = load_i4(side.buf, backward, lay.swap)
    found.counts[which, DiffCount.SEBS] += 1
    found.counts[which, DiffCount.MESSAGES] += load_i4(side.buf, at + lay.seb_bytes, lay.swap)
    found.counts[which, DiffCount.EVENTS] += load_i4(side.buf, events, lay.swap)
    found.counts[which, DiffCount.BACKWARD] += links
    found.counts[which, DiffCount.FORWARD] += load_i4(
        side.buf, backward + lay.count_bytes + links * lay.dependency_bytes, lay.swap
    )
    name = add_name(side.buf, at + lay.seb_name, found.names)
    if name == FULL:
        name = len(found.names.names)
    found.by_name.counts[name, which] += 1
    start = load_f8(side.buf, at + lay.seb_start_time, lay.swap)
    end = load_f8(side.buf, at + lay.seb_end_time, lay.swap)
    closed = np.isfinite(start) and np.isfinite(end) and end >= start
    if closed:
        add_to(found.by_name.seconds, name, which, end - start)
    else:
        found.counts[which, DiffCount.UNCLOSED] += 1
    return SideSeb(at, events, backward, name, start, end, closed)


@inner
def parts_at(
    side: Side, here: bool, at: int, piece: int, seb: int, fault: Ints
) -> tuple[int, int, int]:
    """Return `seb_parts` of the SEB at `at`; a side without this SEB stays at `at`."""
    if not here:
        return 0, 0, at
    parts = seb_parts(side.buf, at, side.pieces.ends[piece], side.lay, fault)
    if parts[2] < 0:
        fault[FAULT_SEB] = seb
    return parts


@inner
def columns_for(side: Side, here: bool, events: int) -> int:
    """Return how many columns a table of regions needs for the log events of a SEB."""
    return load_i4(side.buf, events, side.lay.swap) + 3 if here else 0


@inner
def ends_early(side: Side, piece: int, at: int, fault: Ints) -> bool:
    """Return whether bytes are left over after the last SEB of a piece; set the fault if so."""
    left = side.pieces.ends[piece] - at
    if left != 0:
        fault[FAULT_SEB] = side.pieces.counts[piece]
        set_fault(fault, BYTES_LEFT_OVER, at, left)
    return left != 0


@inner
def compare_piece(
    a: Side,
    b: Side,
    piece: int,
    how: Rules,
    events: RecordedEvents,
    found: Differences,
    state: Ints,
    tables: RegionTables,
    fault_a: Ints,
    fault_b: Ints,
) -> int:
    """Compare a piece from `state` on; return `DONE`, `FAULTY`, or the columns that it needs."""
    count_a, count_b = a.pieces.counts[piece], b.pieces.counts[piece]
    while state[SEB] < max(count_a, count_b):
        seb, at, bt = state[SEB], state[AT_A], state[AT_B]
        in_a, in_b = seb < count_a, seb < count_b
        parts_a = parts_at(a, in_a, at, piece, seb, fault_a)
        parts_b = parts_at(b, in_b, bt, piece, seb, fault_b)
        if parts_a[2] < 0 or parts_b[2] < 0:
            return FAULTY
        columns = max(columns_for(a, in_a, parts_a[0]), columns_for(b, in_b, parts_b[0]))
        if columns > tables.a.shape[1]:
            return columns
        if in_a and in_b:
            seb_a = count_side(a, 0, at, parts_a, found)
            seb_b = count_side(b, 1, bt, parts_b, found)
            compare_pair(a, seb_a, b, seb_b, piece, how, events, found, state, tables)
        elif in_a:
            count_side(a, 0, at, parts_a, found)
        else:
            count_side(b, 1, bt, parts_b, found)
        state[SEB], state[AT_A], state[AT_B] = seb + 1, parts_a[2], parts_b[2]
    if ends_early(a, piece, state[AT_A], fault_a) or ends_early(b, piece, state[AT_B], fault_b):
        return FAULTY
    return DONE


@inner
def compare_pair(
    a: Side,
    seb_a: SideSeb,
    b: Side,
    seb_b: SideSeb,
    piece: int,
    how: Rules,
    events: RecordedEvents,
    found: Differences,
    state: Ints,
    tables: RegionTables,
) -> None:
    """Compare a SEB that both sides have."""
    found.common[CommonCount.SEBS] += 1
    index = a.pieces.firsts[piece] + state[SEB]
    compare_seb(a, seb_a, b, seb_b, how, found, piece, index)
    first = state[RECORD]
    stop = events.begins[piece + 1]
    last = first
    while last < stop and events.seb[last] == index:
        last += 1
    state[RECORD] = last
    if seb_a.closed and seb_b.closed:
        old, new = seb_a.end - seb_a.start, seb_b.end - seb_b.start
        state[PAIRS] = add_pair(found.by_name, seb_a.name, old, new, state[PAIRS])
        compare_brackets(a, seb_a, b, seb_b, found, state, events, first, last, tables)


@inner
def compare_pieces(
    a: Side,
    b: Side,
    how: Rules,
    events: RecordedEvents,
    found: Differences,
    state: Ints,
    tables: RegionTables,
    fault_a: Ints,
    fault_b: Ints,
) -> int:
    """Compare all pieces from `state` on; return what `compare_piece` returns."""
    while state[PIECE] < len(a.pieces.starts):
        piece = state[PIECE]
        fault_a[FAULT_PIECE] = fault_b[FAULT_PIECE] = piece
        if state[AT_A] < 0:
            state[SEB] = 0
            state[AT_A], state[AT_B] = a.pieces.starts[piece], b.pieces.starts[piece]
            state[RECORD] = events.begins[piece]
        outcome = compare_piece(a, b, piece, how, events, found, state, tables, fault_a, fault_b)
        if outcome != DONE:
            return outcome
        state[PIECE] += 1
        state[AT_A] = -1
    return DONE


@kernel(ns_per_byte=1700)
def compare(
    a: Side,
    b: Side,
    how: Rules,
    events: RecordedEvents,
    found: Differences,
    state: Ints,
    fault_a: Ints,
    fault_b: Ints,
) -> int:
    """Add the differences between the two sides of a block to `found`.

    Return `DONE`, or `FAULTY` if a SEB is damaged, as described by one of the faults.
    """
    tables = RegionTables(np.empty((3, 64)), np.empty((3, 64)))
    outcome = compare_pieces(a, b, how, events, found, state, tables, fault_a, fault_b)
    while outcome > 0:
        tables = RegionTables(np.empty((3, outcome)), np.empty((3, outcome)))
        outcome = compare_pieces(a, b, how, events, found, state, tables, fault_a, fault_b)
    return outcome
