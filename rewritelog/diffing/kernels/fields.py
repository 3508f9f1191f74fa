"""The comparison of records field by field: differences are counted, and the first one is kept.

Fields are compared by meaning: `Rules` has the offsets of each one on both sides, and the default
for an absent one.
"""

from __future__ import annotations

import numpy as np

from rewritelog.arrays import Bytes, Ints
from rewritelog.diffing.kernels.interface import (
    DEFAULT,
    FIELD,
    FIRST_A,
    FIRST_B,
    FIRST_ITEM,
    FIRST_PIECE,
    FIRST_SEB,
    GUARD,
    HIGHEST,
    IDLE,
    IN_A,
    IN_B,
    LOWEST,
    SIZE,
    CommonCount,
    Differences,
    Field,
    Rules,
    Side,
    SideSeb,
)
from rewritelog.format.declaration import EventType
from rewritelog.kernels.brackets import after_event
from rewritelog.kernels.names import name_length
from rewritelog.kernels.raw import load_f8, load_i4
from tracebigsim.compiled import inner

_ROUNDING = 4.0 * np.finfo(np.float64).eps


@inner
def note(found: Differences, field: int, piece: int, seb: int, item: int, at: int, bt: int) -> None:
    """Count a difference, and keep the first one of its field."""
    if found.changed[field] == 0:
        first = found.firsts[field]
        first[FIRST_PIECE], first[FIRST_SEB], first[FIRST_ITEM] = piece, seb, item
        first[FIRST_A], first[FIRST_B] = at, bt
    found.changed[field] += 1


@inner
def same_bytes(a: Bytes, at: int, b: Bytes, bt: int, size: int) -> bool:
    """Return whether `size` bytes are equal."""
    k = 0
    while k + 4 <= size:
        if load_i4(a, at + k, False) != load_i4(b, bt + k, False):
            return False
        k += 4
    while k < size:
        if a[at + k] != b[bt + k]:
            return False
        k += 1
    return True


@inner
def same_number(a: Bytes, at: int, b: Bytes, bt: int, size: int, reverse: bool) -> bool:
    """Return whether two numbers have the same bits; `reverse` if their byte orders differ."""
    if not reverse:
        return same_bytes(a, at, b, bt, size)
    for k in range(size):
        if a[at + k] != b[bt + size - 1 - k]:
            return False
    return True


@inner
def is_idle(a: Bytes, at: int, b: Bytes, bt: int, rules: Ints, guard: int) -> bool:
    """Return whether the field of the rule `guard` is 0 on each side that has it."""
    for k in range(rules[guard, SIZE]):
        if rules[guard, IN_A] >= 0 and a[at + rules[guard, IN_A] + k] != 0:
            return False
        if rules[guard, IN_B] >= 0 and b[bt + rules[guard, IN_B] + k] != 0:
            return False
    return True


@inner
def compare_record(
    a: Bytes,
    at: int,
    b: Bytes,
    bt: int,
    how: Rules,
    rules: Ints,
    found: Differences,
    piece: int,
    seb: int,
    item: int,
) -> None:
    """Count the fields in which the records at `at` and `bt` differ, each field once.

    The rules for the elements of an array field (objId) are adjacent.
    """
    noted = -1
    for k in range(len(rules)):
        in_a, in_b, size = rules[k, IN_A], rules[k, IN_B], rules[k, SIZE]
        if in_b < 0:
            same = same_bytes(a, at + in_a, how.defaults_a, rules[k, DEFAULT], size)
        elif in_a < 0:
            same = same_bytes(b, bt + in_b, how.defaults_b, rules[k, DEFAULT], size)
        else:
            same = same_number(a, at + in_a, b, bt + in_b, size, how.reverse)
        if same:
            continue
        field = rules[k, FIELD]
        if rules[k, GUARD] >= 0 and is_idle(a, at, b, bt, rules, rules[k, GUARD]):
            field = rules[k, IDLE]
        if field >= 0 and field != noted:
            noted = field
            offset_a = at + in_a if in_a >= 0 else -1
            offset_b = bt + in_b if in_b >= 0 else -1
            note(found, field, piece, seb, item, offset_a, offset_b)


@inner
def compare_names(
    a: Side, at: int, b: Side, bt: int, found: Differences, piece: int, seb: int
) -> None:
    """Compare two name fields up to their NUL, and after it."""
    size = a.lay.name_bytes
    if same_bytes(a.buf, at, b.buf, bt, size):
        return
    length = name_length(a.buf, at, size)
    same = name_length(b.buf, bt, size) == length and same_bytes(a.buf, at, b.buf, bt, length)
    note(found, Field.NAME_REST if same else Field.NAME, piece, seb, -1, at, bt)


@inner
def compare_list(
    a: Side, at: int, b: Side, bt: int, found: Differences, field: int, piece: int, seb: int
) -> None:
    """Compare two lists of dependencies."""
    left, right = a.lay, b.lay
    count = load_i4(a.buf, at, left.swap)
    same = count == load_i4(b.buf, bt, right.swap)
    k = 0
    while same and k < count:
        here = at + left.count_bytes + k * left.dependency_bytes
        there = bt + right.count_bytes + k * right.dependency_bytes
        same = load_i4(a.buf, here, left.swap) == load_i4(b.buf, there, right.swap)
        k += 1
    if not same:
        note(found, field, piece, seb, -1, at, bt)


@inner
def note_shift(
    a: Side, at: int, b: Side, bt: int, start_a: float, start_b: float, found: Differences
) -> None:
    """Count whether a message moved within its SEB, and whether its transit time differs."""
    left, right = a.lay, b.lay
    sent_a = load_f8(a.buf, at + left.message_send_time, left.swap)
    sent_b = load_f8(b.buf, bt + right.message_send_time, right.swap)
    shift = (sent_b - start_b) - (sent_a - start_a)
    if shift < 0.0 or shift > 0.0:
        found.common[CommonCount.MOVED] += 1
        found.shifts[LOWEST] = min(found.shifts[LOWEST], shift)
        found.shifts[HIGHEST] = max(found.shifts[HIGHEST], shift)
    came_a = load_f8(a.buf, at + left.message_recv_time, left.swap)
    came_b = load_f8(b.buf, bt + right.message_recv_time, right.swap)
    largest = max(abs(sent_a), abs(sent_b), abs(came_a), abs(came_b))
    if abs((came_b - sent_b) - (came_a - sent_a)) > _ROUNDING * largest:
        found.common[CommonCount.TRANSIT] += 1


@inner
def compare_messages(
    a: Side,
    seb_a: SideSeb,
    b: Side,
    seb_b: SideSeb,
    how: Rules,
    found: Differences,
    piece: int,
    seb: int,
) -> None:
    """Compare the messages of a SEB, by index."""
    left, right = a.lay, b.lay
    at, bt = seb_a.at + left.seb_bytes, seb_b.at + right.seb_bytes
    count_a, count_b = load_i4(a.buf, at, left.swap), load_i4(b.buf, bt, right.swap)
    if count_a != count_b:
        note(found, Field.MESSAGES, piece, seb, -1, at, bt)
    still = how.alike and seb_a.start == seb_b.start
    for k in range(min(count_a, count_b)):
        here = at + left.count_bytes + k * left.message_bytes
        there = bt + right.count_bytes + k * right.message_bytes
        found.common[CommonCount.MESSAGES] += 1
        if still and same_bytes(a.buf, here, b.buf, there, left.message_bytes):
            continue
        compare_record(a.buf, here, b.buf, there, how, how.messages, found, piece, seb, k)
        note_shift(a, here, b, there, seb_a.start, seb_b.start, found)


@inner
def compare_texts(a: Side, at: int, b: Side, bt: int) -> bool:
    """Return whether the texts whose lengths are at `at` and `bt` are equal."""
    length = load_i4(a.buf, at, a.lay.swap)
    if length != load_i4(b.buf, bt, b.lay.swap):
        return False
    return same_bytes(a.buf, at + a.lay.count_bytes, b.buf, bt + b.lay.count_bytes, length)


@inner
def compare_events(
    a: Side,
    at: int,
    b: Side,
    bt: int,
    reverse: bool,
    found: Differences,
    piece: int,
    seb: int,
) -> None:
    """Compare the log events whose counts are at `at` and `bt`, by index."""
    left, right = a.lay, b.lay
    count_a, count_b = load_i4(a.buf, at, left.swap), load_i4(b.buf, bt, right.swap)
    if count_a != count_b:
        note(found, Field.EVENTS, piece, seb, -1, at, bt)
    here, there = at + left.count_bytes, bt + right.count_bytes
    for k in range(min(count_a, count_b)):
        found.common[CommonCount.EVENTS] += 1
        time_a, time_b = here + left.event_r_time, there + right.event_r_time
        if not same_number(a.buf, time_a, b.buf, time_b, 8, reverse):
            note(found, Field.EVENT_TIME, piece, seb, k, time_a, time_b)
        after_a, after_b = here + left.event_bytes, there + right.event_bytes
        if a.buf[here] != b.buf[there]:
            note(found, Field.EVENT_TYPE, piece, seb, k, here, there)
        elif a.buf[here] == EventType.PROJECTIONS:
            if not same_number(a.buf, after_a, b.buf, after_b, left.index_bytes, reverse):
                note(found, Field.EVENT_INDEX, piece, seb, k, after_a, after_b)
        elif not compare_texts(a, after_a, b, after_b):
            note(found, Field.EVENT_TEXT, piece, seb, k, after_a, after_b)
        here, there = after_event(a.buf, here, left), after_event(b.buf, there, right)


@inner
def after_list(side: Side, at: int) -> int:
    """Return the end of the list of dependencies whose count is at `at`."""
    count = load_i4(side.buf, at, side.lay.swap)
    return at + side.lay.count_bytes + count * side.lay.dependency_bytes


@inner
def compare_seb(
    a: Side,
    seb_a: SideSeb,
    b: Side,
    seb_b: SideSeb,
    how: Rules,
    found: Differences,
    piece: int,
    seb: int,
) -> None:
    """Compare all records of a SEB."""
    at, bt, left, right = seb_a.at, seb_b.at, a.lay, b.lay
    if not (how.alike and same_bytes(a.buf, at, b.buf, bt, left.seb_bytes)):
        compare_record(a.buf, at, b.buf, bt, how, how.sebs, found, piece, seb, -1)
        compare_names(a, at + left.seb_name, b, bt + right.seb_name, found, piece, seb)
    compare_messages(a, seb_a, b, seb_b, how, found, piece, seb)
    compare_events(a, seb_a.events, b, seb_b.events, how.reverse, found, piece, seb)
    at, bt = seb_a.backward, seb_b.backward
    compare_list(a, at, b, bt, found, Field.BACKWARD, piece, seb)
    at, bt = after_list(a, at), after_list(b, bt)
    compare_list(a, at, b, bt, found, Field.FORWARD, piece, seb)
