"""Which messages were sent, and which ones SEBs wait for: one flag for each, found by a hash.

Messages may share a flag, so that one that was never sent may go unnoticed; one that was sent is
never taken for missing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rewritelog.arrays import Flags, Ints
from rewritelog.formats.bgtrace.records import BlockRecords
from rewritelog.hashing import mix

_FEWEST_FLAGS, _MOST_FLAGS = 1 << 10, 1 << 25
_BYTES_A_FLAG = 32


class NeverSent(NamedTuple):
    """The flags of messages that are awaited but never sent."""

    flags: Ints
    size: int
    """The number of flags, a power of two."""

    def has(self, pe: Ints, number: Ints) -> Flags:
        """Return whether each message is one of them."""
        return np.isin(_flags(pe, number, self.size), self.flags)


class MessageFlags:
    """The flags of all messages of a log set, which threads may set concurrently.

    Sent to another process, it begins there with none set.
    """

    def __init__(self, size_bytes: int) -> None:
        """Have as many flags as files of this size may contain messages, up to a limit."""
        fitting = 1 << (size_bytes // _BYTES_A_FLAG).bit_length()
        flags = min(max(_FEWEST_FLAGS, fitting), _MOST_FLAGS)
        self._size_bytes = size_bytes
        self._sent = np.zeros(flags, dtype=np.bool_)
        self._awaited = np.zeros(flags, dtype=np.bool_)

    def __reduce__(self) -> tuple[Any, ...]:
        """Leave out what is set."""
        return MessageFlags, (self._size_bytes,)

    def add(self, block: BlockRecords, pes: int) -> None:
        """Set the flags of the messages that SEBs of a block send, and of those that start them."""
        number, sender = block.messages["msg_id"], block.pe[block.messages.seb]
        self._sent[_flags(sender[number >= 0], number[number >= 0], len(self._sent))] = True
        source, number = block.sebs["src_pe"], block.sebs["msg_id"]
        named = names_message(block, pes)
        self._awaited[_flags(source[named], number[named], len(self._awaited))] = True

    @property
    def state(self) -> tuple[Flags, Flags]:
        """All flags."""
        return self._sent, self._awaited

    def add_state(self, state: tuple[Flags, Flags]) -> None:
        """Set the flags that are set in another process."""
        self._sent |= state[0]
        self._awaited |= state[1]

    def never_sent(self) -> NeverSent:
        """Return the flags of messages that are awaited but not sent."""
        return NeverSent(np.flatnonzero(self._awaited > self._sent), len(self._sent))


def names_message(block: BlockRecords, pes: int) -> Flags:
    """Return whether each SEB names a message that starts it, of one of the PEs."""
    source = block.sebs["src_pe"]
    return np.asarray((block.sebs["msg_id"] >= 0) & (source >= 0) & (source < pes))


def _flags(pe: Ints, number: Ints, size: int) -> Ints:
    """Return the index of the flag of each message, given the sender and its number for it."""
    messages = pe.astype(np.uint64) << np.uint64(32) | number.astype(np.uint64)
    return (mix(messages) & np.uint64(size - 1)).astype(np.int64)
