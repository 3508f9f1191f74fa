"""The data structures of the check kernel: violations with counts and examples, carried state."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rewritelog.arrays import Bytes, Ints, Keys
from rewritelog.kernels.hashing import mix
from rewritelog.kernels.walk import Pieces
from tracebigsim.compiled import inner


class Violation(IntEnum):
    """The rules that a SEB can violate."""

    SEQNO = 0
    NOT_FINITE = 1
    EXEC_TIME = 2
    TWO_CAUSES = 3
    FLOATING = 4
    STARTING_MESSAGE = 5
    NOT_SENT = 6
    RECV_BEFORE_SEND = 7
    MESSAGE_SIZE = 8
    SEND_OUTSIDE = 9
    MESSAGE_TARGET = 10
    MESSAGE_NUMBER = 11
    MARKS = 12
    EVENT_OUTSIDE = 13
    DEPENDENCY_ORDER = 14
    DEPENDENCIES_DISAGREE = 15
    PARAM_RECORDS = 16


EXAMPLES = 5
"""The number of examples of each violation in a block."""

PIECE, SEB, AT, ITEM = range(4)
"""The columns of an example. `ITEM` is the index of a message, log event or backward dependency;
for forward dependencies, and log events with times that are not finite, it is `OTHER` minus the
index. For `PARAM_RECORDS` it is the number of records, shifted by 32 bits, and the number of
brackets."""

SEB_ITSELF, OTHER = -1, -2

MOST_LINKS = 1 << 20
"""The most sums of dependencies for a timeline: one for each SEB, or for several adjacent ones."""


class Violations(NamedTuple):
    """The violations found in a block."""

    counts: Ints
    """Shape (Violation,)."""
    examples: Ints
    """The first examples of each, shape (Violation, EXAMPLES, 4)."""
    disordered: NDArray[np.bool_]
    """Whether a SEB of the piece depends on itself or a later one; shape (pieces,)."""
    waits: Ints
    """The number of valid backward dependencies of each piece; shape (pieces,)."""


class Machine(NamedTuple):
    """The size of the emulated machine."""

    pes: int
    nodes: int
    workers: int


class Timelines(NamedTuple):
    """The pieces of a block, and data of their timelines."""

    pieces: Pieces
    pes: Ints
    totals: Ints
    """The number of SEBs of the whole timeline."""
    closed: NDArray[np.bool_]
    """Whether the timeline has to end where the piece ends."""


class CarriedState(NamedTuple):
    """The state carried from one SEB of a timeline to the next, and from part to part."""

    links: Keys
    """For each SEB the sum of hashes of forward minus backward dependencies on it; 0 if they
    agree."""
    shift: int
    """2^shift SEBs share a sum."""
    key: np.uint64
    """A random key, so that no log can be crafted whose sums cancel."""
    number: Ints
    """The number of the last message sent; shape (1,)."""


class MessageFlags(NamedTuple):
    """Flags of the messages that were sent or are awaited, indexed by a hash; of length 2^n.

    Threads may write to them concurrently, since all write the same value.
    """

    sent: Bytes
    awaited: Bytes


class RecordedSebs(NamedTuple):
    """The SEBs that have param records."""

    wanted: bool
    """Whether there are any params."""
    begins: Ints
    """The first record of each piece; shape (pieces + 1,)."""
    sebs: Ints
    """The SEB of each record, ascending within a piece."""


@inner
def note(found: Violations, rule: int, piece: int, seb: int, at: int, item: int) -> None:
    """Count a violation, and keep it as an example while there is room."""
    known = found.counts[rule]
    if known < found.examples.shape[1]:
        found.examples[rule, known, 0] = piece
        found.examples[rule, known, 1] = seb
        found.examples[rule, known, 2] = at
        found.examples[rule, known, 3] = item
    found.counts[rule] = known + 1


@inner
def hash_pair(high: int, low: int, key: np.uint64) -> np.uint64:
    """Return a hash of two 31-bit numbers."""
    return mix((np.uint64(high) << np.uint64(32) | np.uint64(low)) + key)


@inner
def flag_of(pe: int, number: int, flags: Bytes) -> int:
    """Return the index of the flag of a message."""
    return int(hash_pair(pe, number, np.uint64(0)) & np.uint64(len(flags) - 1))
