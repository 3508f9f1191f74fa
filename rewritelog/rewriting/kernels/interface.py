"""The inputs and outputs of a block's rewrite: dilations, param records, counts and sums."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np

from rewritelog.arrays import Floats, Ints, Table
from rewritelog.kernels.names import NameTable


class BlockCount(IntEnum):
    """What a block counts."""

    SEBS = 0
    MESSAGES = 1
    BY_MODEL = 2
    BY_EXACT = 3
    BY_DILATION = 4
    UNCHANGED = 5
    UNCLOSED = 6
    ZERO_LENGTH = 7
    BRACKETS = 8
    BRACKETS_WITHOUT_RECORD = 9
    MARKS_IRREGULAR = 10
    RECORDS_MISMATCHED = 11
    UNMARKED_WITH_RECORD = 12
    MESSAGES_OUTSIDE = 13
    RECV_RAISED = 14
    TRACER_REPLACES = 15
    """SEBs with a predicted duration, which TraceR takes from elsewhere by their names."""


class DurationSum(IntEnum):
    """The sums of durations of a piece, in seconds."""

    OLD = 0
    NEW = 1
    BRACKETED_OLD = 2
    BRACKETED_NEW = 3
    AROUND_OLD = 4
    """In SEBs with brackets, the time outside of them."""
    AROUND_NEW = 5
    WITHOUT_OLD = 6
    """SEBs without a bracket, or without one that is certain."""
    WITHOUT_NEW = 7


class RecordState(IntEnum):
    """What became of a param record."""

    NO_SEB = 0
    PREDICTED = 1
    NOT_COVERED = 2
    NOT_PAIRED = 3
    SEB_LEFT_ALONE = 4


WITH_EXAMPLES = (
    BlockCount.MARKS_IRREGULAR,
    BlockCount.RECORDS_MISMATCHED,
    BlockCount.UNMARKED_WITH_RECORD,
)
"""The counts that the first few SEBs are noted of."""

EXAMPLES = 5
"""How many SEBs a block notes for each count."""

RECORD = np.dtype(
    [
        ("seb", np.int64),
        ("seconds", np.float64),
        ("old", np.float64),
        ("new", np.float64),
        ("exact", np.uint8),
        ("state", np.uint8),
    ],
    align=True,
)
"""A param record.

`seconds` is the model's duration, NaN where it has none, and `exact` whether it is that of
identical samples. The rewrite fills in `state`, a `RecordState`, and the bracket's `old` and `new`
length in seconds.
"""


class BlockRecords(NamedTuple):
    """The param records of a block."""

    begins: Ints
    """Where each piece's records begin, shape (pieces + 1,)."""
    rows: Table
    """Of dtype `RECORD`; in a piece, the indices of the SEBs rise."""


class Dilation(NamedTuple):
    """The factor of what no model covers: one for all, or one for each SEB name."""

    factor: float
    names: NameTable
    """Empty where one factor holds for all."""
    factors: Floats
    """The factor of each name, shape (names,)."""


class BlockTotals(NamedTuple):
    """What a block counts and sums."""

    counts: Ints
    """Shape (BlockCount,)."""
    sums: Floats
    """High and low part of each sum, shape (pieces, DurationSum, 2)."""
    examples: Ints
    """Piece and SEB of the first few of each count, shape (BlockCount, EXAMPLES, 2)."""
