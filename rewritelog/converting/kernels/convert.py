"""The conversion of SEBs to another log version or byte order, by moves of byte ranges.

Each move copies a range of fields of a record; `converting.convert` derives the moves from the
layouts. Nothing is checked here, since `walk.tally` has walked the same bytes before.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rewritelog.arrays import Bytes, Ints
from rewritelog.format.declaration import EventType
from rewritelog.format.layout import KernelLayout
from rewritelog.kernels.raw import load_i4
from rewritelog.kernels.walk import FAULT_SIZE, Pieces, seb_parts
from tracebigsim.compiled import inner, kernel

SOURCE, TARGET, LENGTH, WIDTH = range(4)
"""The columns of a move: source offset, target offset, length, and size of a number, in bytes.

Numbers of width 1 are copied as they are and others are reversed. A negative source takes the bytes
from the template, which has the defaults for fields that the source version lacks.
"""

AT, SIZE, DEFAULT, GUARD = range(4)
"""The columns of a loss rule: a field that the target lacks, its size, and its default's offset.

There is a loss if the field is not its default, and the rule `GUARD` (−1: none) has a loss too.
"""


class RecordConversion(NamedTuple):
    """The conversion of one kind of record: the fixed part of a SEB, or a message."""

    size: int
    """The size of a target record."""
    moves: Ints
    """Shape (moves, 4)."""
    template: Bytes
    """A target record with default values."""
    rules: Ints
    """Shape (rules, 4)."""
    defaults: Bytes
    """A source record with default values."""


class Losses(NamedTuple):
    """The losses: the number of records for each rule, and the first of them."""

    counts: Ints
    """Shape (rules,)."""
    firsts: Ints
    """Piece and SEB index in its timeline, shape (rules, 2)."""


@inner
def move(source: Bytes, at: int, target: Bytes, to: int, length: int, width: int) -> int:
    """Copy numbers, reversing each unless its width is 1; return their end in the target."""
    if width == 8:
        for k in range(0, length, 8):
            a, b, c, d = source[at + k], source[at + k + 1], source[at + k + 2], source[at + k + 3]
            e, f = source[at + k + 4], source[at + k + 5]
            g, h = source[at + k + 6], source[at + k + 7]
            target[to + k], target[to + k + 1], target[to + k + 2] = h, g, f
            target[to + k + 3], target[to + k + 4], target[to + k + 5] = e, d, c
            target[to + k + 6], target[to + k + 7] = b, a
    elif width == 4:
        for k in range(0, length, 4):
            a, b, c, d = source[at + k], source[at + k + 1], source[at + k + 2], source[at + k + 3]
            target[to + k], target[to + k + 1] = d, c
            target[to + k + 2], target[to + k + 3] = b, a
    elif width == 2:
        for k in range(0, length, 2):
            a, b = source[at + k], source[at + k + 1]
            target[to + k], target[to + k + 1] = b, a
    else:
        for k in range(length):
            target[to + k] = source[at + k]
    return to + length


@inner
def move_record(source: Bytes, at: int, target: Bytes, to: int, records: RecordConversion) -> None:
    """Write one record with bytes of the source and the template."""
    moves = records.moves
    for k in range(len(moves)):
        begin, offset = moves[k, SOURCE], to + moves[k, TARGET]
        if begin < 0:
            move(records.template, moves[k, TARGET], target, offset, moves[k, LENGTH], 1)
        else:
            move(source, at + begin, target, offset, moves[k, LENGTH], moves[k, WIDTH])


@inner
def count_losses(
    source: Bytes, at: int, records: RecordConversion, losses: Losses, piece: int, seb: int
) -> None:
    """Count the losses of one record."""
    rules, defaults = records.rules, records.defaults
    counted = 0
    for k in range(len(rules)):
        guard = rules[k, GUARD]
        if guard >= 0 and not counted >> guard & 1:
            continue
        for byte in range(rules[k, SIZE]):
            if source[at + rules[k, AT] + byte] != defaults[rules[k, DEFAULT] + byte]:
                if losses.counts[k] == 0:
                    losses.firsts[k, 0], losses.firsts[k, 1] = piece, seb
                losses.counts[k] += 1
                counted |= 1 << k
                break


@inner
def move_events(
    source: Bytes, at: int, target: Bytes, to: int, lay: KernelLayout, width4: int, width8: int
) -> tuple[int, int]:
    """Write the events whose count is at `at`; return their ends in source and target."""
    end = move(source, at, target, to, lay.count_bytes, width4)
    offset = at + lay.count_bytes
    for _ in range(load_i4(source, at, lay.swap)):
        after = offset + lay.event_bytes
        end = move(source, offset, target, end, lay.event_r_time, 1)
        end = move(
            source,
            offset + lay.event_r_time,
            target,
            end,
            lay.event_bytes - lay.event_r_time,
            width8,
        )
        end = move(source, after, target, end, lay.count_bytes, width4)
        length = 0 if source[offset] == EventType.PROJECTIONS else load_i4(source, after, lay.swap)
        offset = after + lay.count_bytes
        end = move(source, offset, target, end, length, 1)
        offset += length
    return offset, end


@inner
def move_seb(
    source: Bytes,
    at: int,
    events: int,
    following: int,
    target: Bytes,
    to: int,
    lay: KernelLayout,
    reverse: bool,
    messages: RecordConversion,
) -> int:
    """Write the lists after the fixed part of a SEB; return their end in the target.

    `at` is the offset of the number of messages, `events` that of the number of log events.
    """
    width4, width8 = (4, 8) if reverse else (1, 1)
    end = move(source, at, target, to, lay.count_bytes, width4)
    for offset in range(at + lay.count_bytes, events, lay.message_bytes):
        move_record(source, offset, target, end, messages)
        end += messages.size
    if not reverse:
        return move(source, events, target, end, following - events, 1)
    offset, end = move_events(source, events, target, end, lay, width4, width8)
    return move(source, offset, target, end, following - offset, width4)


@kernel(ns_per_byte=1000)
def convert(
    source: Bytes,
    pieces: Pieces,
    lay: KernelLayout,
    reverse: bool,
    sebs: RecordConversion,
    messages: RecordConversion,
    target: Bytes,
    seb_losses: Losses,
    message_losses: Losses,
) -> Ints:
    """Write the pieces one after the other into `target`; return the bytes of each.

    The SEB count precedes a piece that begins its timeline. `reverse` says that the byte orders
    differ. Losses are counted for each rule of both kinds of records.
    """
    sizes = np.zeros(len(pieces.starts), dtype=np.int64)
    fault = np.zeros(FAULT_SIZE, dtype=np.int64)
    to = 0
    for piece in range(len(pieces.starts)):
        begin, at = to, pieces.starts[piece]
        if pieces.firsts[piece] == 0:
            count_at = at - lay.count_bytes
            to = move(source, count_at, target, to, lay.count_bytes, 4 if reverse else 1)
        for index in range(pieces.counts[piece]):
            seb = pieces.firsts[piece] + index
            events, _, following = seb_parts(source, at, pieces.ends[piece], lay, fault)
            count_losses(source, at, sebs, seb_losses, piece, seb)
            if len(messages.rules) > 0:
                for offset in range(
                    at + lay.seb_bytes + lay.count_bytes, events, lay.message_bytes
                ):
                    count_losses(source, offset, messages, message_losses, piece, seb)
            move_record(source, at, target, to, sebs)
            rest, to = at + lay.seb_bytes, to + sebs.size
            to = move_seb(source, rest, events, following, target, to, lay, reverse, messages)
            at = following
        sizes[piece] = to - begin
    return sizes
