"""The data structures of the comparison kernel: sides, rules, records, differences."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from rewritelog.arrays import Bytes, Floats, Ints
from rewritelog.format.layout import KernelLayout
from rewritelog.kernels.names import NameTable
from rewritelog.kernels.walk import Pieces


class Field(IntEnum):
    """The fields that may differ; a list or text counts once per SEB or log event."""

    EP = 0
    SEQNO = 1
    SRC_PE = 2
    MSG_ID = 3
    MPI_OP = 4
    MPI_SIZE = 5
    CHARM_EP = 6
    RECV_TIME = 7
    EFF_RECV_TIME = 8
    START_TIME = 9
    EXEC_TIME = 10
    END_TIME = 11
    FLAG = 12
    NAME = 13
    OBJ_ID = 14
    MESSAGES = 15
    EVENTS = 16
    BACKWARD = 17
    FORWARD = 18
    MESSAGE_MSG_ID = 19
    MESSAGE_DST_NODE = 20
    MESSAGE_SEND_TIME = 21
    MESSAGE_RECV_TIME = 22
    MESSAGE_TID = 23
    MESSAGE_SIZE = 24
    MESSAGE_GROUP = 25
    EVENT_TYPE = 26
    EVENT_TIME = 27
    EVENT_INDEX = 28
    EVENT_TEXT = 29
    NAME_REST = 30
    """The bytes after the NUL of a name, which are meaningless."""
    MPI_SIZE_IDLE = 31
    """The `mpiSize` of a SEB without an MPI operation, which is meaningless."""


class DiffCount(IntEnum):
    """The counts of each side."""

    SEBS = 0
    MESSAGES = 1
    EVENTS = 2
    BACKWARD = 3
    FORWARD = 4
    UNCLOSED = 5
    """SEBs without a duration: the end is before the start, or one is not finite."""
    IRREGULAR = 6
    """SEBs with brackets that do not pair up on this side."""


class CommonCount(IntEnum):
    """The counts for SEBs that both sides have."""

    SEBS = 0
    MESSAGES = 1
    EVENTS = 2
    MOVED = 3
    """Messages with another send time relative to the start of their SEB."""
    TRANSIT = 4
    """Messages whose transit times differ by more than rounding."""
    UNPAIRED = 5
    """SEBs with different numbers of brackets."""


OCTAVES, BINS_AN_OCTAVE = 20, 64
BINS = 2 * OCTAVES * BINS_AN_OCTAVE + 3
"""Bins of ratios, of equal logarithmic width from 2⁻²⁰ to 2²⁰, with 1 and 0.5 in the middle of
bins; the first and the last bin contain all others."""

MOST_NAMES = 1024
"""The most names with their own rows, which bounds the memory for a log with many names."""

IN_A, IN_B, SIZE, DEFAULT, FIELD, GUARD, IDLE = range(7)
"""The columns of a rule: offset of the field on each side (−1: absent), its size, the offset of its
default, its `Field`, the rule of a field without which it is meaningless (−1: none), and the field
that it then counts as (−1: none)."""

DONE, FAULTY = 0, -1
PIECE, SEB, AT_A, AT_B, RECORD, PAIRS, BRACKET_PAIRS = range(7)
STATE_SIZE = 7
"""The state of a comparison; initially −1 for `AT_A` and 0 for the rest."""

FIRST_PIECE, FIRST_SEB, FIRST_ITEM, FIRST_A, FIRST_B = range(5)
COUNT_A, COUNT_B, RATIOS = range(3)
LOWEST, HIGHEST = 0, 1


class Side(NamedTuple):
    """One of the two sides: the bytes of a block, its pieces, and their layout."""

    buf: Bytes
    pieces: Pieces
    lay: KernelLayout


class SideSeb(NamedTuple):
    """A SEB of one side."""

    at: int
    events: int
    """Byte offset of the number of log events."""
    backward: int
    """Byte offset of the number of backward dependencies."""
    name: int
    start: float
    end: float
    closed: bool
    """Whether it has a duration."""


class Rules(NamedTuple):
    """The rules that compare records of the two sides."""

    alike: bool
    """Whether both have the same layout, so that equal bytes are equal records."""
    reverse: bool
    """Whether the byte orders differ."""
    sebs: Ints
    messages: Ints
    """Shape (rules, 7)."""
    defaults_a: Bytes
    defaults_b: Bytes
    """The defaults of absent fields, in the byte order of the other side."""


class RecordedEvents(NamedTuple):
    """The param records of a block, sorted by SEB within each piece."""

    begins: Ints
    """The first record of each piece, shape (pieces + 1,)."""
    seb: Ints
    event: Ints
    """The row of the event, from 1; 0 is that of brackets without a record."""


class Durations(NamedTuple):
    """Durations by SEB name or by event, one row for each."""

    counts: Ints
    """The numbers of durations on both sides, and of ratios; shape (rows, 3)."""
    seconds: Floats
    """High and low part of the sum of each side, shape (rows, 2, 2)."""
    extremes: Floats
    """The lowest and the highest ratio, shape (rows, 2)."""
    keys: Ints
    """row · BINS + bin of each ratio, in the order found."""


class Differences(NamedTuple):
    """The differences found in a block."""

    changed: Ints
    """The number of records in which each field differs, shape (Field,)."""
    firsts: Ints
    """The first difference of each, shape (Field, 5): piece, SEB, message or log event, offset on
    each side (−1: absent)."""
    counts: Ints
    """Shape (2, DiffCount)."""
    common: Ints
    """Shape (CommonCount,)."""
    shifts: Floats
    """The largest shifts of messages towards the start and end of their SEBs, in seconds."""
    names: NameTable
    by_name: Durations
    """A row for each name, and a last one for names beyond the capacity of the table."""
    by_event: Durations
