"""Two log sets side by side: what their SEBs, messages and events differ in, in one pass.

Both sides hold the same timelines, each in its own log version and byte order.
"""

from __future__ import annotations

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
    MOST_NAMES,
    OCTAVES,
    PAIRS,
    PIECE,
    RATIOS,
    RECORD,
    SEB,
    Common,
    DiffCount,
    Durations,
    Events,
    Found,
    Rules,
    Side,
)
from rewritelog.inspection.kernels.survey import NAMES_FULL, name_of
from rewritelog.kernels.brackets import OLD, find_brackets, slack
from rewritelog.kernels.raw import load_f8, load_i4
from rewritelog.kernels.sums import add_to
from rewritelog.kernels.walk import BYTES_LEFT_OVER, FAULT_PIECE, FAULT_SEB, blame, seb_parts
from tracebigsim.compiled import inner, kernel

_SEBS, _MESSAGES, _EVENTS = int(DiffCount.SEBS), int(DiffCount.MESSAGES), int(DiffCount.EVENTS)
_BACKWARD, _FORWARD = int(DiffCount.BACKWARD), int(DiffCount.FORWARD)
_UNCLOSED, _IRREGULAR = int(DiffCount.UNCLOSED), int(DiffCount.IRREGULAR)
_BOTH_SEBS, _UNPAIRED = int(Common.SEBS), int(Common.UNPAIRED)


@inner
def bin_of(ratio: float) -> int:
    """Return the bin of a ratio that is not negative."""
    if not ratio >= 2.0**-OCTAVES:
        return 0
    if ratio > 2.0**OCTAVES:
        return BINS - 1
    place = int(np.floor((np.log2(ratio) + OCTAVES) * BINS_AN_OCTAVE + 0.5))
    return min(max(place, 0), BINS - 3) + 1


@inner
def add_pair(to: Durations, row: int, old: float, new: float, used: int) -> int:
    """Note the ratio of two durations of one thing; return how many ratios there are now."""
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
    found: Found, state: Ints, events: Events, first: int, last: int, many: int, table_a: Floats,
    table_b: Floats,
) -> None:  # fmt: skip
    """Add the brackets of a SEB that has `many` on both sides, and the records `first` to `last`.

    Without any bracket, the one record that there is covers the SEB from end to end.
    """
    for k in range(max(many, 1)):
        event = events.event[first + k] if last - first == max(many, 1) else 0
        begin = 2 * k + 1 if many > 0 else 0
        old = table_a[OLD, begin + 1] - table_a[OLD, begin]
        new = table_b[OLD, begin + 1] - table_b[OLD, begin]
        found.by_event.counts[event, COUNT_A] += 1
        found.by_event.counts[event, COUNT_B] += 1
        add_to(found.by_event.seconds, event, 0, old)
        add_to(found.by_event.seconds, event, 2, new)
        state[BRACKET_PAIRS] = add_pair(found.by_event, event, old, new, state[BRACKET_PAIRS])


@inner
def compare_brackets(
    a: Side, events_a: int, start_a: float, end_a: float, b: Side, events_b: int, start_b: float,
    end_b: float, found: Found, state: Ints, events: Events, first: int, last: int,
    table_a: Floats, table_b: Floats,
) -> None:  # fmt: skip
    """Compare the bracketed regions of a SEB that has a duration on both sides."""
    many_a = find_brackets(a.buf, events_a, a.lay, end_a - start_a, slack(start_a, end_a), table_a)
    many_b = find_brackets(b.buf, events_b, b.lay, end_b - start_b, slack(start_b, end_b), table_b)
    if many_a < 0:
        found.figures[0, _IRREGULAR] += 1
    if many_b < 0:
        found.figures[1, _IRREGULAR] += 1
    if many_a != many_b:
        found.common[_UNPAIRED] += 1
    elif many_a > 0 or (many_a == 0 and last - first == 1):
        add_brackets(found, state, events, first, last, many_a, table_a, table_b)


@inner
def count_side(
    side: Side, which: int, at: int, parts: tuple[int, int, int], name: int, found: Found
) -> tuple[float, float, bool]:
    """Count a SEB of one side; return its start, its end and whether they are a duration."""
    events, backward, _ = parts
    lay = side.lay
    links = load_i4(side.buf, backward, lay.swap)
    found.figures[which, _SEBS] += 1
    found.figures[which, _MESSAGES] += load_i4(side.buf, at + lay.seb_bytes, lay.swap)
    found.figures[which, _EVENTS] += load_i4(side.buf, events, lay.swap)
    found.figures[which, _BACKWARD] += links
    found.figures[which, _FORWARD] += load_i4(
        side.buf, backward + lay.count_bytes + links * lay.dependency_bytes, lay.swap
    )
    found.by_name.counts[name, which] += 1
    start = load_f8(side.buf, at + lay.seb_start_time, lay.swap)
    end = load_f8(side.buf, at + lay.seb_end_time, lay.swap)
    closed = np.isfinite(start) and np.isfinite(end) and end >= start
    if closed:
        add_to(found.by_name.seconds, name, 2 * which, end - start)
    else:
        found.figures[which, _UNCLOSED] += 1
    return start, end, closed


@inner
def name_at(side: Side, at: int, found: Found) -> int:
    """Return the row of the name of the SEB at `at`, or `NAMES_FULL`."""
    lay = side.lay
    row = name_of(
        side.buf, at + lay.seb_name, lay.name_bytes, found.names, found.slots, found.known
    )
    return MOST_NAMES if row == NAMES_FULL and len(found.names) == MOST_NAMES else row


@inner
def parts_at(
    side: Side, here: bool, at: int, piece: int, seb: int, fault: Ints
) -> tuple[int, int, int]:
    """Return the parts of the SEB at `at`, as `seb_parts`; a side that has none stays at `at`."""
    if not here:
        return 0, 0, at
    parts = seb_parts(side.buf, at, side.pieces.ends[piece], side.lay, fault)
    if parts[2] < 0:
        fault[FAULT_SEB] = seb
    return parts


@inner
def columns_for(side: Side, here: bool, events: int) -> int:
    """Return how many columns a table of regions needs for the events counted at `events`."""
    return load_i4(side.buf, events, side.lay.swap) + 3 if here else 0


@inner
def ends_early(side: Side, piece: int, at: int, fault: Ints) -> bool:
    """Return whether bytes are left over after the last SEB of a piece, and blame them."""
    left = side.pieces.ends[piece] - at
    if left != 0:
        fault[FAULT_SEB] = side.pieces.counts[piece]
        blame(fault, BYTES_LEFT_OVER, at, left)
    return left != 0


@inner
def compare_piece(
    a: Side, b: Side, piece: int, how: Rules, events: Events, found: Found, state: Ints,
    table_a: Floats, table_b: Floats, fault_a: Ints, fault_b: Ints,
) -> int:  # fmt: skip
    """Compare a piece from `state` on: `DONE`, or why not, or how many columns the tables lack."""
    count_a, count_b = a.pieces.counts[piece], b.pieces.counts[piece]
    while state[SEB] < max(count_a, count_b):
        seb, at, bt = state[SEB], state[AT_A], state[AT_B]
        in_a, in_b = seb < count_a, seb < count_b
        parts_a = parts_at(a, in_a, at, piece, seb, fault_a)
        parts_b = parts_at(b, in_b, bt, piece, seb, fault_b)
        if parts_a[2] < 0 or parts_b[2] < 0:
            return FAULTY
        columns = max(columns_for(a, in_a, parts_a[0]), columns_for(b, in_b, parts_b[0]))
        if columns > table_a.shape[1]:
            return columns
        name_a = name_at(a, at, found) if in_a else 0
        name_b = name_at(b, bt, found) if in_b else 0
        if name_a < 0 or name_b < 0:
            return NAMES_FULL
        count_and_compare(
            a, b, piece, seb, in_a, in_b, parts_a, parts_b, name_a, name_b, how, events, found,
            state, table_a, table_b,
        )  # fmt: skip
        state[SEB], state[AT_A], state[AT_B] = seb + 1, parts_a[2], parts_b[2]
    if ends_early(a, piece, state[AT_A], fault_a) or ends_early(b, piece, state[AT_B], fault_b):
        return FAULTY
    return DONE


@inner
def count_and_compare(
    a: Side, b: Side, piece: int, seb: int, in_a: bool, in_b: bool, parts_a: tuple[int, int, int],
    parts_b: tuple[int, int, int], name_a: int, name_b: int, how: Rules, events: Events,
    found: Found, state: Ints, table_a: Floats, table_b: Floats,
) -> None:  # fmt: skip
    """Count a SEB on the sides that have it, and compare it where both do."""
    start_a = end_a = start_b = end_b = 0.0
    closed_a = closed_b = False
    if in_a:
        start_a, end_a, closed_a = count_side(a, 0, state[AT_A], parts_a, name_a, found)
    if in_b:
        start_b, end_b, closed_b = count_side(b, 1, state[AT_B], parts_b, name_b, found)
    if not (in_a and in_b):
        return
    found.common[_BOTH_SEBS] += 1
    index = a.pieces.firsts[piece] + seb
    compare_seb(
        a, state[AT_A], parts_a, b, state[AT_B], parts_b, how, found, piece, index, start_a,
        start_b,
    )  # fmt: skip
    first = state[RECORD]
    stop = events.begins[piece + 1]
    while first < stop and events.seb[first] < index:
        first += 1
    last = first
    while last < stop and events.seb[last] == index:
        last += 1
    state[RECORD] = last
    if closed_a and closed_b:
        state[PAIRS] = add_pair(
            found.by_name, name_a, end_a - start_a, end_b - start_b, state[PAIRS]
        )
        compare_brackets(
            a, parts_a[0], start_a, end_a, b, parts_b[0], start_b, end_b, found, state, events,
            first, last, table_a, table_b,
        )  # fmt: skip


@inner
def compare_pieces(
    a: Side, b: Side, how: Rules, events: Events, found: Found, state: Ints, table_a: Floats,
    table_b: Floats, fault_a: Ints, fault_b: Ints,
) -> int:  # fmt: skip
    """Compare all pieces from `state` on; return what `compare_piece` does."""
    while state[PIECE] < len(a.pieces.starts):
        piece = state[PIECE]
        fault_a[FAULT_PIECE] = fault_b[FAULT_PIECE] = piece
        if state[AT_A] < 0:
            state[SEB] = 0
            state[AT_A], state[AT_B] = a.pieces.starts[piece], b.pieces.starts[piece]
            state[RECORD] = events.begins[piece]
        outcome = compare_piece(
            a, b, piece, how, events, found, state, table_a, table_b, fault_a, fault_b
        )
        if outcome != DONE:
            return outcome
        state[PIECE] += 1
        state[AT_A] = -1
    return DONE


@kernel
def compare(
    a: Side, b: Side, how: Rules, events: Events, found: Found, state: Ints, fault_a: Ints,
    fault_b: Ints,
) -> int:  # fmt: skip
    """Add what the two sides of a block differ in to `found`.

    Return `DONE`; `NAMES_FULL` where `found` has to grow before it goes on from `state`; or
    `FAULTY` where a SEB is damaged: one of the faults says why.
    """
    table_a, table_b = np.empty((3, 64)), np.empty((3, 64))
    outcome = compare_pieces(a, b, how, events, found, state, table_a, table_b, fault_a, fault_b)
    while outcome > 0:
        table_a, table_b = np.empty((3, outcome)), np.empty((3, outcome))
        outcome = compare_pieces(
            a, b, how, events, found, state, table_a, table_b, fault_a, fault_b
        )
    return outcome
