"""The records of two sides, field by field: what differs is counted, and the first one kept.

Fields are compared by meaning: `Rules` says where each stands on either side, and what it reads as
where it is absent.
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
    Common,
    Field,
    Found,
    Rules,
    Side,
)
from rewritelog.format.layout import KernelLayout
from rewritelog.kernels.brackets import after_event
from rewritelog.kernels.names import name_length
from rewritelog.kernels.raw import load_f8, load_i4
from rewritelog.kernels.walk import PROJECTIONS
from tracebigsim.compiled import inner

_MESSAGES, _EVENTS = int(Common.MESSAGES), int(Common.EVENTS)
_MOVED, _UNDER_WAY = int(Common.MOVED), int(Common.UNDER_WAY)
_F_NAME, _F_NAME_REST = int(Field.NAME), int(Field.NAME_REST)
_F_MESSAGES, _F_EVENTS = int(Field.MESSAGES), int(Field.EVENTS)
_F_BACKWARD, _F_FORWARD = int(Field.BACKWARD), int(Field.FORWARD)
_F_EVENT_TYPE, _F_EVENT_TIME = int(Field.EVENT_TYPE), int(Field.EVENT_TIME)
_F_EVENT_INDEX, _F_EVENT_TEXT = int(Field.EVENT_INDEX), int(Field.EVENT_TEXT)
_ROUNDING = 4.0 * np.finfo(np.float64).eps


@inner
def note(found: Found, field: int, piece: int, seb: int, item: int, at: int, bt: int) -> None:
    """Count a difference and remember the first of its kind."""
    if found.changed[field] == 0:
        first = found.firsts[field]
        first[FIRST_PIECE], first[FIRST_SEB], first[FIRST_ITEM] = piece, seb, item
        first[FIRST_A], first[FIRST_B] = at, bt
    found.changed[field] += 1


@inner
def same_bytes(a: Bytes, at: int, b: Bytes, bt: int, size: int) -> bool:
    """Return whether `size` bytes are the same."""
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
    """Return whether two numbers have the same bits; `reverse` where their orders differ."""
    if not reverse:
        return same_bytes(a, at, b, bt, size)
    for k in range(size):
        if a[at + k] != b[bt + size - 1 - k]:
            return False
    return True


@inner
def is_idle(a: Bytes, at: int, b: Bytes, bt: int, rules: Ints, guard: int) -> bool:
    """Return whether the field of the rule `guard` is 0 wherever it is present."""
    for k in range(rules[guard, SIZE]):
        if rules[guard, IN_A] >= 0 and a[at + rules[guard, IN_A] + k] != 0:
            return False
        if rules[guard, IN_B] >= 0 and b[bt + rules[guard, IN_B] + k] != 0:
            return False
    return True


@inner
def compare_record(
    a: Bytes, at: int, b: Bytes, bt: int, how: Rules, rules: Ints, found: Found, piece: int,
    seb: int, item: int,
) -> None:  # fmt: skip
    """Note the fields in which the records at `at` and `bt` differ."""
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
        if field >= 0:
            note(
                found, field, piece, seb, item, at + in_a if in_a >= 0 else -1,
                bt + in_b if in_b >= 0 else -1,
            )  # fmt: skip


@inner
def compare_names(
    a: Bytes, at: int, b: Bytes, bt: int, most: int, found: Found, piece: int, seb: int
) -> None:
    """Note whether two name fields differ before their NUL, or after it."""
    if same_bytes(a, at, b, bt, most):
        return
    length = name_length(a, at, most)
    same = name_length(b, bt, most) == length and same_bytes(a, at, b, bt, length)
    note(found, _F_NAME_REST if same else _F_NAME, piece, seb, -1, at, bt)


@inner
def compare_list(
    a: Bytes, at: int, b: Bytes, bt: int, left: KernelLayout, right: KernelLayout, found: Found,
    field: int, piece: int, seb: int,
) -> None:  # fmt: skip
    """Note whether two lists of dependencies differ, in their length or in an entry."""
    count = load_i4(a, at, left.swap)
    same = count == load_i4(b, bt, right.swap)
    k = 0
    while same and k < count:
        here = load_i4(a, at + left.count_bytes + k * left.dependency_bytes, left.swap)
        there = load_i4(b, bt + right.count_bytes + k * right.dependency_bytes, right.swap)
        same = here == there
        k += 1
    if not same:
        note(found, field, piece, seb, -1, at, bt)


@inner
def note_shift(
    a: Bytes, at: int, b: Bytes, bt: int, left: KernelLayout, right: KernelLayout, start_a: float,
    start_b: float, found: Found,
) -> None:  # fmt: skip
    """Count whether a message moved within its SEB, and whether it is under way for longer."""
    sent_a = load_f8(a, at + left.message_send_time, left.swap)
    sent_b = load_f8(b, bt + right.message_send_time, right.swap)
    shift = (sent_b - start_b) - (sent_a - start_a)
    if shift < 0.0 or shift > 0.0:
        found.common[_MOVED] += 1
        found.shifts[LOWEST] = min(found.shifts[LOWEST], shift)
        found.shifts[HIGHEST] = max(found.shifts[HIGHEST], shift)
    came_a = load_f8(a, at + left.message_recv_time, left.swap)
    came_b = load_f8(b, bt + right.message_recv_time, right.swap)
    largest = max(abs(sent_a), abs(sent_b), abs(came_a), abs(came_b))
    if abs((came_b - sent_b) - (came_a - sent_a)) > _ROUNDING * largest:
        found.common[_UNDER_WAY] += 1


@inner
def compare_messages(
    a: Bytes, at: int, b: Bytes, bt: int, left: KernelLayout, right: KernelLayout, how: Rules,
    start_a: float, start_b: float, found: Found, piece: int, seb: int,
) -> None:  # fmt: skip
    """Compare the messages counted at `at` and `bt`, in their order."""
    count_a, count_b = load_i4(a, at, left.swap), load_i4(b, bt, right.swap)
    if count_a != count_b:
        note(found, _F_MESSAGES, piece, seb, -1, at, bt)
    still = how.alike and start_a == start_b
    for k in range(min(count_a, count_b)):
        here = at + left.count_bytes + k * left.message_bytes
        there = bt + right.count_bytes + k * right.message_bytes
        found.common[_MESSAGES] += 1
        if still and same_bytes(a, here, b, there, left.message_bytes):
            continue
        compare_record(a, here, b, there, how, how.messages, found, piece, seb, k)
        note_shift(a, here, b, there, left, right, start_a, start_b, found)


@inner
def compare_texts(
    a: Bytes, at: int, b: Bytes, bt: int, left: KernelLayout, right: KernelLayout
) -> bool:
    """Return whether the texts whose lengths stand at `at` and `bt` are the same."""
    length = load_i4(a, at, left.swap)
    if length != load_i4(b, bt, right.swap):
        return False
    return same_bytes(a, at + left.count_bytes, b, bt + right.count_bytes, length)


@inner
def compare_events(
    a: Bytes, at: int, b: Bytes, bt: int, left: KernelLayout, right: KernelLayout, reverse: bool,
    found: Found, piece: int, seb: int,
) -> None:  # fmt: skip
    """Compare the events counted at `at` and `bt`, in their order."""
    count_a, count_b = load_i4(a, at, left.swap), load_i4(b, bt, right.swap)
    if count_a != count_b:
        note(found, _F_EVENTS, piece, seb, -1, at, bt)
    here, there = at + left.count_bytes, bt + right.count_bytes
    for k in range(min(count_a, count_b)):
        found.common[_EVENTS] += 1
        time_a, time_b = here + left.event_r_time, there + right.event_r_time
        if not same_number(a, time_a, b, time_b, 8, reverse):
            note(found, _F_EVENT_TIME, piece, seb, k, time_a, time_b)
        after_a, after_b = here + left.event_bytes, there + right.event_bytes
        if a[here] != b[there]:
            note(found, _F_EVENT_TYPE, piece, seb, k, here, there)
        elif a[here] == PROJECTIONS:
            if not same_number(a, after_a, b, after_b, left.index_bytes, reverse):
                note(found, _F_EVENT_INDEX, piece, seb, k, after_a, after_b)
        elif not compare_texts(a, after_a, b, after_b, left, right):
            note(found, _F_EVENT_TEXT, piece, seb, k, after_a, after_b)
        here, there = after_event(a, here, left), after_event(b, there, right)


@inner
def compare_seb(
    a: Side, at: int, parts_a: tuple[int, int, int], b: Side, bt: int,
    parts_b: tuple[int, int, int], how: Rules, found: Found, piece: int, seb: int,
    start_a: float, start_b: float,
) -> None:  # fmt: skip
    """Compare all that a SEB holds."""
    left, right = a.lay, b.lay
    if not (how.alike and same_bytes(a.buf, at, b.buf, bt, left.seb_bytes)):
        compare_record(a.buf, at, b.buf, bt, how, how.sebs, found, piece, seb, -1)
        compare_names(
            a.buf, at + left.seb_name, b.buf, bt + right.seb_name, left.name_bytes, found, piece,
            seb,
        )  # fmt: skip
    compare_messages(
        a.buf, at + left.seb_bytes, b.buf, bt + right.seb_bytes, left, right, how, start_a, start_b,
        found, piece, seb,
    )  # fmt: skip
    compare_events(
        a.buf, parts_a[0], b.buf, parts_b[0], left, right, how.reverse, found, piece, seb
    )
    compare_list(a.buf, parts_a[1], b.buf, parts_b[1], left, right, found, _F_BACKWARD, piece, seb)
    links_a = load_i4(a.buf, parts_a[1], left.swap)
    links_b = load_i4(b.buf, parts_b[1], right.swap)
    compare_list(
        a.buf, parts_a[1] + left.count_bytes + links_a * left.dependency_bytes,
        b.buf, parts_b[1] + right.count_bytes + links_b * right.dependency_bytes,
        left, right, found, _F_FORWARD, piece, seb,
    )  # fmt: skip
