"""The data structures of the rewrite kernel: dilations, param records, counts and sums."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np

from rewritelog.arrays import Floats, Ints, Table
from rewritelog.kernels.names import NameTable


class BlockCount(IntEnum):
    """The counts of a block."""

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
    """SEBs with a predicted duration that TraceR ignores because of their names."""


class DurationSum(IntEnum):
    """The sums of durations of a piece, in seconds."""

    OLD = 0
    NEW = 1
    BRACKETED_OLD = 2
    BRACKETED_NEW = 3
    AROUND_OLD = 4
    """The time outside of brackets in SEBs that have any."""
    AROUND_NEW = 5
    WITHOUT_OLD = 6
    """SEBs without brackets, or with irregular marks."""
    WITHOUT_NEW = 7


class RecordState(IntEnum):
    """The state of a param record after the rewrite."""

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
"""The counts for which the first few SEBs are kept as examples."""

EXAMPLES = 5
"""The number of examples of each count in a block."""

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

`seconds` is the predicted duration, NaN if the model does not cover it, and `exact` whether it is
an exact match. The rewrite fills in `state`, a `RecordState`, and the `old` and `new` length of the
bracket in seconds.
"""


class BlockRecords(NamedTuple):
    """The param records of a block."""

    begins: Ints
    """The first record of each piece, shape (pieces + 1,)."""
    rows: Table
    """Records of dtype `RECORD`, with ascending SEB indices within a piece."""


class Dilation(NamedTuple):
    """The dilation factors: one for all SEBs, or one for each SEB name."""

    factor: float
    names: NameTable
    """Empty if there is one factor for all."""
    factors: Floats
    """The factor of each name, shape (names,)."""


class BlockTotals(NamedTuple):
    """The counts, sums and examples of a block."""

    counts: Ints
    """Shape (BlockCount,)."""
    sums: Floats
    """High and low part of each sum, shape (pieces, DurationSum, 2)."""
    examples: Ints
    """Piece and SEB of the first examples of each count, shape (BlockCount, EXAMPLES, 2)."""
