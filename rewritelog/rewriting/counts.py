"""What a rewrite counts and adds up in a block, and the states of param records."""

from __future__ import annotations

from enum import IntEnum

from rewritelog.core import core


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

    OLD = core.SUM_OLD
    NEW = core.SUM_NEW
    BRACKETED_OLD = core.SUM_BRACKETED_OLD
    BRACKETED_NEW = core.SUM_BRACKETED_NEW
    AROUND_OLD = core.SUM_AROUND_OLD
    """The time outside of brackets in SEBs that have any."""
    AROUND_NEW = core.SUM_AROUND_NEW
    WITHOUT_OLD = core.SUM_WITHOUT_OLD
    """SEBs without brackets, or with irregular marks."""
    WITHOUT_NEW = core.SUM_WITHOUT_NEW


class RecordState(IntEnum):
    """The state of a param record after the rewrite."""

    NO_SEB = core.RECORD_NO_SEB
    PREDICTED = core.RECORD_PREDICTED
    NOT_COVERED = core.RECORD_NOT_COVERED
    NOT_PAIRED = core.RECORD_NOT_PAIRED
    SEB_LEFT_ALONE = core.RECORD_LEFT_ALONE


IRREGULAR: dict[BlockCount, int] = {
    BlockCount.MARKS_IRREGULAR: core.SEB_MARKS_IRREGULAR,
    BlockCount.RECORDS_MISMATCHED: core.SEB_RECORDS_MISMATCHED,
    BlockCount.UNMARKED_WITH_RECORD: core.SEB_UNMARKED_WITH_RECORD,
}
"""The counts for which the first few SEBs are kept as examples, and their flags in outcomes."""

EXAMPLES = 5
"""The number of examples of each count in a block."""
