"""The brackets of a block's SEBs: the pairs of start and end marks among their log events."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rewritelog.arrays import Floats, Ints
from rewritelog.core import core
from rewritelog.formats.bgtrace.records import BlockRecords

IRREGULAR: int = core.IRREGULAR
"""The number of brackets of a SEB whose marks do not pair up in order within the SEB."""


@dataclass(frozen=True)
class Brackets:
    """The brackets of SEBs, in the order of the buffer; times in seconds since the SEB's start."""

    counts: Ints
    """The number of brackets of each SEB, or `IRREGULAR`."""
    seb: Ints
    """The SEB of each bracket, counted over the whole block."""
    times: Floats
    """The start and the end of each bracket, shape (brackets, 2)."""

    def __len__(self) -> int:
        return len(self.seb)

    @property
    def starts(self) -> Floats:
        """The start of each bracket."""
        return self.times[:, 0]

    @property
    def ends(self) -> Floats:
        """The end of each bracket."""
        return self.times[:, 1]

    @property
    def number(self) -> Ints:
        """The index of each bracket in its SEB."""
        counts = np.maximum(self.counts, 0)
        first = np.cumsum(counts) - counts
        return np.asarray(np.arange(len(self)) - first[self.seb])


def brackets_of(block: BlockRecords) -> Brackets:
    """Return the brackets of a block.

    A time that rounding puts behind the end of its SEB is the SEB's duration. In a SEB that ends
    before it starts, or has no times, marks are only checked for their order.
    """
    counts = np.empty(len(block.sebs), dtype=np.int64)
    times = np.empty(len(block.events))
    buffer, starts, lay = block.loaded.buffer, block.loaded.pieces.starts, block.loaded.layout.core
    closed = core.find_brackets(buffer, starts, block.walked, lay, counts, times)
    sebs = np.repeat(np.arange(len(counts)), np.maximum(counts, 0))
    return Brackets(counts, sebs, times[: 2 * closed].reshape(-1, 2))
