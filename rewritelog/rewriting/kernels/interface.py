"""What the rewrite of a block takes and gives: records, dilations, counts and sums."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rewritelog.arrays import Bytes, Floats, Ints


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


class Sum(IntEnum):
    """The columns of a piece's sums of durations, in seconds; each is a high and a low part."""

    OLD = 0
    NEW = 2
    BRACKETED_OLD = 4
    BRACKETED_NEW = 6
    AROUND_OLD = 8
    """In SEBs with brackets, the time outside of them."""
    AROUND_NEW = 10
    WITHOUT_OLD = 12
    """SEBs without a bracket, or with none that is certain."""
    WITHOUT_NEW = 14


class RecordState(IntEnum):
    """What became of a param record."""

    NO_SEB = 0
    PREDICTED = 1
    NOT_COVERED = 2
    NOT_PAIRED = 3
    SEB_LEFT_ALONE = 4


WITH_PLACES = (
    BlockCount.MARKS_IRREGULAR,
    BlockCount.RECORDS_MISMATCHED,
    BlockCount.UNMARKED_WITH_RECORD,
)
"""The figures whose first few places are remembered."""

FIGURES = len(BlockCount)
SUMS = 2 * len(Sum)
EXAMPLES = 5
"""How many places of each figure a block remembers."""


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
"""A param record of a piece, in rising order of the SEB's index in its timeline.

`seconds` is the model's duration, NaN where it has none, and `exact` whether it is that of
identical samples. The rewrite fills in `state`, a `RecordState`, and the bracket's `old` and `new`
length in seconds.
"""


class Dilation(NamedTuple):
    """The factor of what no model covers: one for all, or one for each SEB name."""

    factor: float
    names: Bytes
    """Known names, padded with NULs, shape (names, 20); none where one factor holds for all."""
    slots: NDArray[np.int32]
    factors: Floats
    """The factor of each name, shape (names,)."""


class Account(NamedTuple):
    """What a block adds up."""

    figures: Ints
    """Shape (FIGURES,)."""
    sums: Floats
    """Shape (pieces, SUMS)."""
    examples: Ints
    """Piece and SEB of the first few of each figure, shape (FIGURES, EXAMPLES, 2)."""
