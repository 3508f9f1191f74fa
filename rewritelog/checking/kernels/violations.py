"""The inputs and outputs of a block's check: the rules that a SEB can violate, counts, examples."""

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
"""How many examples a block notes of each kind."""

PIECE, SEB, AT, ITEM = range(4)
"""What is noted of an example. `ITEM` counts messages, log events or backward dependencies; forward
ones, and log events whose times are not finite, are `OTHER` less their count. Of `PARAM_RECORDS` it
is the number of records, shifted by 32 bits, and that of brackets."""

SEB_ITSELF, OTHER = -1, -2

MOST_LINKS = 1 << 20
"""The sums of dependencies that are kept of a timeline: one of each SEB, or of some neighbours."""


class Violations(NamedTuple):
    """The violations found in a block."""

    counts: Ints
    """Shape (Violation,)."""
    examples: Ints
    """The first few of each, shape (Violation, EXAMPLES, 4)."""
    disordered: NDArray[np.bool_]
    """Pieces in which a SEB depends on itself or a later one; shape (pieces,)."""
    waits: Ints
    """How often a SEB of each piece depends on one of its timeline; shape (pieces,)."""


class Machine(NamedTuple):
    """The size of the emulated machine."""

    pes: int
    nodes: int
    workers: int


class Timelines(NamedTuple):
    """The pieces of a block, and what is known of their timelines."""

    pieces: Pieces
    pes: Ints
    totals: Ints
    """SEBs of the whole timeline."""
    closed: NDArray[np.bool_]
    """Whether the timeline must end where the piece does."""


class CarriedState(NamedTuple):
    """The state carried from one SEB of a timeline to the next, and from part to part."""

    links: Keys
    """Hash sums of forward less backward dependencies by SEB depended on; 0 where both agree."""
    shift: int
    """How many SEBs share a sum, as a power of 2."""
    key: np.uint64
    """A random key, so that no log can be made whose sums cancel."""
    number: Ints
    """The number of the last message sent; shape (1,)."""


class MessageFlags(NamedTuple):
    """Which messages were sent and which are awaited: flags, indexed by a hash; 2^n long.

    Any thread may write to them, since all write the same value.
    """

    sent: Bytes
    awaited: Bytes


class RecordedSebs(NamedTuple):
    """The SEBs that have param records."""

    wanted: bool
    """Whether there are params at all."""
    begins: Ints
    """Where the records of each piece begin; shape (pieces + 1,)."""
    sebs: Ints
    """The SEB of each record, rising within a piece."""


@inner
def note(found: Violations, rule: int, piece: int, seb: int, at: int, item: int) -> None:
    """Count a violation, and note it as an example while there is room."""
    known = found.counts[rule]
    if known < found.examples.shape[1]:
        found.examples[rule, known, 0] = piece
        found.examples[rule, known, 1] = seb
        found.examples[rule, known, 2] = at
        found.examples[rule, known, 3] = item
    found.counts[rule] = known + 1


@inner
def hash_pair(high: int, low: int, key: np.uint64) -> np.uint64:
    """Return a hash of two numbers of 31 bits."""
    return mix((np.uint64(high) << np.uint64(32) | np.uint64(low)) + key)


@inner
def flag_of(pe: int, number: int, flags: Bytes) -> int:
    """Return the index of the flag of a message."""
    return int(hash_pair(pe, number, np.uint64(0)) & np.uint64(len(flags) - 1))
