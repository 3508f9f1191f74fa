"""Blocks: runs of whole timelines of one file; a long timeline is one, loaded in parts.

A block needs nothing of any other, so any number of threads or machines can work through a list
of them. Parts end at SEB borders, which only a walk can find: whoever works on the block walks.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from rewritelog.arrays import Bytes
from rewritelog.errors import DamagedLogError, Location
from rewritelog.format import Layout
from rewritelog.format.declaration import PRIMITIVES
from rewritelog.kernels import walk
from rewritelog.logs.files import InputFile
from rewritelog.logs.timelines import TimelineFile
from rewritelog.text import bytes_text

BLOCK_BYTES = 16 << 20
"""The size that blocks are made up to."""

MOST_SEB_BYTES = 1 << 27
"""A SEB that is larger is taken for damage: a made log could cost any amount of memory else."""

_FILES_IN_TURN = 8
"""The same for any number of workers, as is the order of what is reported."""

_COUNT_BYTES = PRIMITIVES["little"].i4.sizeof()


@dataclass(frozen=True)
class Cut:
    """Which SEBs of its one timeline a part of a block holds."""

    first_seb: int
    sebs: int
    last: bool
    """Whether the timeline ends with this part."""


@dataclass(frozen=True)
class Block:
    """A run of bytes of one timeline file."""

    file: int
    offset: int
    """Where the block begins in the file: at a timeline, or at a SEB where it is a part."""
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

    @property
    def begin(self) -> tuple[int, int]:
        """The file's number and the offset in it; blocks rise by it."""
        return self.block.file, self.block.offset


class Buffer:
    """Memory that one worker reads its blocks into, one after the other."""

    def __init__(self) -> None:
        self._bytes = np.empty(0, dtype=np.uint8)

    def take(self, size_bytes: int) -> Bytes:
        """Return an array of the size asked for; it holds what the last one held."""
        if len(self._bytes) < size_bytes:
            self._bytes = np.empty(size_bytes, dtype=np.uint8)
        return self._bytes[:size_bytes]


def plan_blocks(file: TimelineFile, block_bytes: int = BLOCK_BYTES) -> Iterator[Block]:
    """Yield the blocks of a file, in order and without a gap; nothing is read.

    A timeline that is larger than `block_bytes` is a block of its own: whoever loads it gets it
    in parts.
    """
    borders = file.borders
    first = 0
    while first < len(file.pes):
        fitting = int(np.searchsorted(borders, borders[first] + block_bytes, side="right")) - 1
        last = min(max(fitting, first + 1), len(file.pes))
        yield Block(file.index, int(borders[first]), int(borders[last]), first, last - first)
        first = last


def plan_in_turn(files: Iterable[TimelineFile], block_bytes: int = BLOCK_BYTES) -> Iterator[Block]:
    """Yield the blocks of all files, those of a few files in turn.

    Workers are then seldom at the same file, which most systems let but one of them write to.
    """
    waiting = (plan_blocks(file, block_bytes) for file in files)
    begun = deque(islice(waiting, _FILES_IN_TURN))
    while begun:
        blocks = begun.popleft()
        block = next(blocks, None)
        if block is None:
            begun.extend(islice(waiting, 1))
        else:
            begun.append(blocks)
            yield block


def load_blocks(
    source: InputFile,
    file: TimelineFile,
    block: Block,
    layout: Layout,
    buffer: Buffer,
    block_bytes: int = BLOCK_BYTES,
) -> Iterator[LoadedBlock]:
    """Yield a block with its bytes, or where it is a long timeline its parts, one by one.

    Each uses the buffer's memory anew. Raise `DamagedLogError` where a timeline's count cannot be,
    where a long timeline cannot be walked, or where the file has become another one meanwhile.
    """
    check_size(source, file)
    if block.timelines == 1 and block.size_bytes > block_bytes:
        yield from _load_parts(source, file, block, layout, buffer, block_bytes)
    else:
        yield _load_whole(source, file, block, layout, buffer.take(block.size_bytes))


def check_size(source: InputFile, file: TimelineFile) -> None:
    """Raise `DamagedLogError` where a file is not as long any more as when its head was read."""
    if source.size_bytes != file.size_bytes:
        problem = f"the file has {source.size_bytes} bytes now, and had {file.size_bytes} before"
        raise DamagedLogError(Location(file.path), problem)


def _load_whole(
    source: InputFile, file: TimelineFile, block: Block, layout: Layout, window: Bytes
) -> LoadedBlock:
    source.read_into(window, block.offset)
    inside = slice(block.first_timeline, block.first_timeline + block.timelines)
    pes = file.pes[inside]
    starts = file.borders[:-1][inside] - block.offset
    ends = file.borders[1:][inside] - block.offset
    fault = np.zeros(walk.FAULT_SIZE, dtype=np.int64)
    counts = walk.count_sebs(window, starts, ends, layout.kernel, fault)
    raise_fault(fault, file, block.offset, pes)
    pieces = walk.Pieces(starts + _COUNT_BYTES, ends, counts, np.zeros_like(counts))
    return LoadedBlock(block, file, window, pieces, pes)


def _load_parts(
    source: InputFile,
    file: TimelineFile,
    whole: Block,
    layout: Layout,
    buffer: Buffer,
    part_bytes: int,
) -> Iterator[LoadedBlock]:
    """Yield a timeline in parts that end at SEB borders; a SEB that is larger is one part."""
    pe = file.pes[whole.first_timeline : whole.first_timeline + 1]
    total = _claimed_sebs(source, file, layout, whole)
    begin, skip, seb = whole.offset, _COUNT_BYTES, 0
    while begin < whole.end:
        fault = np.zeros(walk.FAULT_SIZE, dtype=np.int64)
        window = buffer.take(min(max(part_bytes, skip), whole.end - begin))
        source.read_into(window, begin)
        sebs, used = walk.advance(window, skip, len(window), total - seb, layout.kernel, fault)
        if not (fault_kind(fault).cut and begin + len(window) < whole.end):
            raise_fault(fault, file, begin, pe, np.array([seb]))
        elif sebs == 0:
            if part_bytes >= MOST_SEB_BYTES:
                raise oversized(file, begin + skip, int(pe[0]), seb)
            part_bytes *= 2
            continue
        last = seb + sebs == total
        if last and begin + used != whole.end:
            left = whole.end - begin - used
            place = Location(file.path, begin + used, int(pe[0]), total, "count")
            raise DamagedLogError(place, walk.FAULTS[walk.BYTES_LEFT_OVER].problem.format(left))
        cut = Cut(seb, sebs, last)
        part = Block(file.index, begin, begin + used, whole.first_timeline, 1, cut)
        pieces = walk.Pieces(*(np.array([n]) for n in (skip, used, sebs, seb)))
        yield LoadedBlock(part, file, window[:used], pieces, pe)
        begin, skip, seb = part.end, 0, seb + sebs


def _claimed_sebs(source: InputFile, file: TimelineFile, layout: Layout, whole: Block) -> int:
    fault = np.zeros(walk.FAULT_SIZE, dtype=np.int64)
    start = np.zeros(1, dtype=np.int64)
    head = source.read(whole.offset, _COUNT_BYTES)
    counts = walk.count_sebs(head, start, start + whole.size_bytes, layout.kernel, fault)
    raise_fault(fault, file, whole.offset, file.pes[whole.first_timeline :])
    return int(counts[0])


def oversized(file: TimelineFile, offset: int, pe: int, seb: int) -> DamagedLogError:
    """Return the error of a SEB that is larger than any should be."""
    most = bytes_text(MOST_SEB_BYTES)
    problem = f"the SEB goes on for more than {most}, which is taken for damage"
    return DamagedLogError(Location(file.path, offset, pe, seb), problem)


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
    place = Location(file.path, base + int(fault[walk.FAULT_AT]), int(pes[piece]), seb, kind.field)
    raise DamagedLogError(place, kind.problem.format(int(fault[walk.FAULT_VALUE])))
