"""Blocks: runs of whole timelines of one file, or a part of a long one cut at SEB borders.

A block needs nothing of any other, so any number of threads or machines can work through a list
of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rewritelog.errors import DamagedLogError, Place
from rewritelog.format import Layout
from rewritelog.format.declaration import PRIMITIVES
from rewritelog.kernels import walk
from rewritelog.logs.files import Bytes, InputFile
from rewritelog.logs.timelines import TimelineFile

BLOCK_BYTES = 16 << 20
"""The size that blocks are made up to."""

_COUNT_BYTES = PRIMITIVES["little"].i4.sizeof()


@dataclass(frozen=True)
class Cut:
    """Which SEBs of its one timeline a block holds."""

    first_seb: int
    sebs: int
    last: bool
    """Whether the timeline ends with this block."""


@dataclass(frozen=True)
class Block:
    """A run of bytes of one timeline file."""

    file: int
    offset: int
    """Where the block begins in the file: at a timeline, or at a SEB where it is cut."""
    end: int
    first_timeline: int
    timelines: int
    cut: Cut | None = None

    @property
    def size_bytes(self) -> int:
        """How many bytes the block has."""
        return self.end - self.offset


@dataclass(frozen=True)
class LoadedBlock:
    """A block's bytes, and where the SEBs of each of its pieces stand in them."""

    block: Block
    file: TimelineFile
    buffer: Bytes
    pieces: walk.Pieces
    pes: NDArray[np.int64]
    """The PE of each piece."""


class Buffer:
    """Memory that one worker reads its blocks into, one after the other."""

    def __init__(self) -> None:
        self._bytes = np.empty(0, dtype=np.uint8)

    def take(self, size_bytes: int) -> Bytes:
        """Return an array of the size asked for; it holds what the last one held."""
        if len(self._bytes) < size_bytes:
            self._bytes = np.empty(size_bytes, dtype=np.uint8)
        return self._bytes[:size_bytes]


def plan_blocks(
    file: TimelineFile, layout: Layout, block_bytes: int = BLOCK_BYTES
) -> Iterator[Block]:
    """Yield the blocks of a file, in order and without a gap.

    A timeline that is larger than `block_bytes` is walked to find where it can be cut; nothing
    else of the file is read.
    """
    borders = file.borders
    first = 0
    while first < len(file.pes):
        fitting = int(np.searchsorted(borders, borders[first] + block_bytes, side="right")) - 1
        last = min(max(fitting, first + 1), len(file.pes))
        block = Block(file.index, int(borders[first]), int(borders[last]), first, last - first)
        if block.size_bytes > block_bytes:
            yield from _cut_timeline(file, layout, block, block_bytes)
        else:
            yield block
        first = last


def _cut_timeline(
    file: TimelineFile, layout: Layout, whole: Block, block_bytes: int
) -> Iterator[Block]:
    pe = file.pes[whole.first_timeline : whole.first_timeline + 1]
    with InputFile(file.path) as source:
        total = _claimed_sebs(source, file, layout, whole)
        window = np.empty(block_bytes, dtype=np.uint8)
        begin, at, seb = whole.offset, whole.offset + _COUNT_BYTES, 0
        while begin < whole.end:
            fault = np.zeros(walk.FAULT_SIZE, dtype=np.int64)
            size = min(len(window), whole.end - at)
            source.read_into(window[:size], at)
            sebs, used = walk.advance(window, 0, size, total - seb, layout.kernel, fault)
            goes_on = fault_kind(fault).cut and at + size < whole.end
            if not goes_on:
                raise_fault(fault, file, at, pe, np.array([seb]))
            elif sebs == 0:
                window = np.empty(2 * len(window), dtype=np.uint8)
                continue
            at += used
            last = seb + sebs == total
            if last and at != whole.end:
                problem = walk.FAULTS[walk.BYTES_LEFT_OVER].problem.format(whole.end - at)
                raise DamagedLogError(Place(file.path, at, int(pe[0]), total, "count"), problem)
            yield Block(file.index, begin, at, whole.first_timeline, 1, Cut(seb, sebs, last))
            begin, seb = at, seb + sebs


def _claimed_sebs(source: InputFile, file: TimelineFile, layout: Layout, whole: Block) -> int:
    fault = np.zeros(walk.FAULT_SIZE, dtype=np.int64)
    start = np.zeros(1, dtype=np.int64)
    head = source.read(whole.offset, _COUNT_BYTES)
    counts = walk.count_sebs(head, start, start + whole.size_bytes, layout.kernel, fault)
    raise_fault(fault, file, whole.offset, file.pes[whole.first_timeline :])
    return int(counts[0])


def load_block(
    source: InputFile, file: TimelineFile, block: Block, layout: Layout, buffer: Bytes
) -> LoadedBlock:
    """Read a block's bytes into `buffer`, which has its size, and find the pieces in it.

    Raise `DamagedLogError` where a timeline's count cannot be.
    """
    source.read_into(buffer, block.offset)
    inside = slice(block.first_timeline, block.first_timeline + block.timelines)
    pes = file.pes[inside]
    if block.cut is not None:
        skip = _COUNT_BYTES if block.cut.first_seb == 0 else 0
        pieces = walk.Pieces(
            *(np.array([n]) for n in (skip, block.size_bytes, block.cut.sebs, block.cut.first_seb))
        )
        return LoadedBlock(block, file, buffer, pieces, pes)
    starts = file.borders[:-1][inside] - block.offset
    ends = file.borders[1:][inside] - block.offset
    fault = np.zeros(walk.FAULT_SIZE, dtype=np.int64)
    counts = walk.count_sebs(buffer, starts, ends, layout.kernel, fault)
    raise_fault(fault, file, block.offset, pes)
    pieces = walk.Pieces(starts + _COUNT_BYTES, ends, counts, np.zeros_like(counts))
    return LoadedBlock(block, file, buffer, pieces, pes)


def fault_kind(fault: NDArray[np.int64]) -> walk.FaultKind:
    """Return what kind of damage a kernel's fault is."""
    return walk.FAULTS.get(int(fault[walk.FAULT_CODE]), walk.FaultKind("", ""))


def raise_fault(
    fault: NDArray[np.int64],
    file: TimelineFile,
    base: int,
    pes: NDArray[np.int64],
    firsts: NDArray[np.int64] | None = None,
) -> None:
    """Raise `DamagedLogError` where a kernel noted a fault.

    `base` is the file offset of the kernel's buffer, `pes` the PE of each piece, and `firsts` what
    is to be added to the SEB index of each piece; a fault without it is one of the whole timeline.
    """
    if fault[walk.FAULT_CODE] == walk.OK:
        return
    kind = fault_kind(fault)
    piece = int(fault[walk.FAULT_PIECE])
    seb = None if firsts is None else int(fault[walk.FAULT_SEB] + firsts[piece])
    place = Place(file.path, base + int(fault[walk.FAULT_AT]), int(pes[piece]), seb, kind.field)
    raise DamagedLogError(place, kind.problem.format(int(fault[walk.FAULT_VALUE])))
