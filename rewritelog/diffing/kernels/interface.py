"""The inputs and outputs of a comparison of two blocks: sides, rules, records, differences."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from rewritelog.arrays import Bytes, Floats, Ints
from rewritelog.format.layout import KernelLayout
from rewritelog.kernels.names import NameTable
from rewritelog.kernels.walk import Pieces


class Field(IntEnum):
    """What may differ; of the lists and texts, each SEB or event counts once."""

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
    """The bytes after a name's NUL, which mean nothing."""
    MPI_SIZE_IDLE = 31
    """The `mpiSize` of a SEB without an MPI operation, which means nothing."""


class DiffCount(IntEnum):
    """What is counted, on both sides."""

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
    """What is counted of the SEBs that both sides have."""

    SEBS = 0
    MESSAGES = 1
    EVENTS = 2
    MOVED = 3
    """Messages sent at another time since the start of their SEB."""
    TRANSIT = 4
    """Messages with another transit time, by more than rounding."""
    UNPAIRED = 5
    """SEBs with another number of brackets on either side."""


OCTAVES, BINS_AN_OCTAVE = 20, 64
BINS = 2 * OCTAVES * BINS_AN_OCTAVE + 3
"""Bins of ratios, equally wide in the logarithm around 2⁻²⁰ to 2²⁰, so that 1 and 0.5 are in the
middle of theirs; the first and the last take what lies outside."""

MOST_NAMES = 1024
"""Names with a row of their own: a bound on the memory that a log of many names takes."""

IN_A, IN_B, SIZE, DEFAULT, FIELD, GUARD, IDLE = range(7)
"""The columns of a rule: offset of the field on either side (−1: absent), its size, the
place of its default, its `Field`, the rule of a field without which it means nothing (−1: none),
and what it counts as then (−1: nothing)."""

DONE, FAULTY = 0, -1
PIECE, SEB, AT_A, AT_B, RECORD, PAIRS, BRACKET_PAIRS = range(7)
STATE_SIZE = 7
"""How far a comparison has come; a new one has −1 for `AT_A`, and 0 for the rest."""

FIRST_PIECE, FIRST_SEB, FIRST_ITEM, FIRST_A, FIRST_B = range(5)
COUNT_A, COUNT_B, RATIOS = range(3)
LOWEST, HIGHEST = 0, 1


class Side(NamedTuple):
    """One of the two: a block's bytes, where its pieces are in them, and their layout."""

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
    """How the records of the two sides are compared."""

    alike: bool
    """Whether both have one layout, so that equal bytes are equal records."""
    reverse: bool
    """Whether the byte orders differ."""
    sebs: Ints
    messages: Ints
    """Shape (rules, 7)."""
    defaults_a: Bytes
    defaults_b: Bytes
    """What absent fields read as, in the order of the side that has them."""


class RecordedEvents(NamedTuple):
    """The param records of a block, in rising order of SEB for each piece."""

    begins: Ints
    """Where each piece's records begin, shape (pieces + 1,)."""
    seb: Ints
    event: Ints
    """From 1; 0 stands for brackets without a record."""


class Durations(NamedTuple):
    """Durations by SEB name or by event, a row each."""

    counts: Ints
    """On either side, and the pairs that have a ratio; shape (rows, 3)."""
    seconds: Floats
    """High and low part of either side's sum, shape (rows, 2, 2)."""
    extremes: Floats
    """The lowest and the highest ratio, shape (rows, 2)."""
    keys: Ints
    """row · BINS + bin of each ratio, in the order found."""


class Differences(NamedTuple):
    """What a comparison of a block has found."""

    changed: Ints
    """How often each field differs, shape (Field,)."""
    firsts: Ints
    """Where each first differs, shape (Field, 5): piece, SEB, message or log event, byte on
    either side (−1: absent)."""
    counts: Ints
    """Shape (2, DiffCount)."""
    common: Ints
    """Shape (CommonCount,)."""
    shifts: Floats
    """The furthest that a message moved towards its SEB's start and end, in seconds."""
    names: NameTable
    by_name: Durations
    """A row for each name, and after them one for the names that the table had no room for."""
    by_event: Durations
