"""Blocks: runs of whole timelines of one file; a long timeline is a block, loaded in parts.

Blocks are independent of each other, so that any number of threads or machines can process them.
Parts end where SEBs end, which only a walk can find; the worker that processes the block walks it.
"""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from rewritelog.arrays import Bytes, Flags, Ints, Table
from rewritelog.core import core
from rewritelog.errors import DamagedLogError, Location
from rewritelog.formats.bgtrace.declaration import (
    COUNT_BYTES,
    FAULTS,
    FaultHandler,
    Layout,
    raise_first,
)
from rewritelog.formats.bgtrace.heads import TimelineFile
from rewritelog.formats.files import InputFile
from rewritelog.text import bytes_text

BLOCK_BYTES = 16 << 20
"""The largest size of a block of several timelines, and of a part."""

MOST_SEB_BYTES = 1 << 27
"""A larger SEB counts as damage; otherwise a crafted log could take any amount of memory."""

_FILES_IN_TURN = 8
"""The number of files whose blocks are taken in turn: fixed, so that reports do not depend on the
number of workers."""


class Block(Struct, frozen=True):
    """A range of bytes of one timeline file."""

    file: int
    offset: int
    """The file offset of its start: of a timeline, or of a SEB in a later part of a long one."""
    end: int
    first_timeline: int
    timelines: int

    @property
    def size_bytes(self) -> int:
        """The size of the block."""
        return self.end - self.offset


class Pieces(NamedTuple):
    """Runs of whole SEBs of one timeline each; arrays of equal length."""

    starts: Ints
    """Byte offset in the buffer of the first SEB."""
    ends: Ints
    """Byte offset in the buffer where the last SEB ends."""
    counts: Ints
    """Number of SEBs."""
    firsts: Ints
    """Index of the first SEB in its timeline."""

    @property
    def first_rows(self) -> Ints:
        """The first SEB of each piece, counted over all pieces."""
        return np.asarray(np.cumsum(self.counts) - self.counts)

    def rows(self, piece: Ints, index: Ints) -> Ints:
        """Return rows, counted over all pieces, of SEBs by index in timelines; −1 if not there."""
        inside = index - self.firsts[piece]
        known = (inside >= 0) & (inside < self.counts[piece])
        return np.where(known, self.first_rows[piece] + inside, -1)


def walk(buffer: Bytes, pieces: Pieces, lay: Layout) -> tuple[Pieces, Table, Ints]:
    """Walk pieces of a buffer as far as they are whole, and check each count against the bytes.

    Return the pieces, reduced to their whole SEBs, a `walked_seb` of the core for each SEB, and the
    fault that ended each piece, shape (pieces, FAULT_SIZE).
    """
    starts, ends = pieces.starts, pieces.ends.copy()
    counts = np.minimum(pieces.counts, (ends - starts) // lay.least_seb_bytes + 1)
    sebs = np.empty(int(counts.sum()), dtype=core.structs["walked_seb"])
    faults = np.zeros((len(counts), core.FAULT_SIZE), dtype=np.int64)
    core.walk(buffer, starts, ends, counts, lay.core, sebs, faults)
    return pieces._replace(ends=ends, counts=counts), sebs[: counts.sum()], faults


class LoadedBlock(Struct, frozen=True):
    """The bytes of a block, and the pieces that its SEBs are in."""

    block: Block
    file: TimelineFile
    buffer: Bytes
    layout: Layout
    pieces: Pieces
    pes: Ints
    """The PE of each piece."""
    totals: Ints
    """The SEB count of the whole timeline of each piece, as recorded."""
    closed: Flags
    """Whether the timeline has to end where the piece ends."""

    @property
    def is_first(self) -> bool:
        """Whether its timelines begin in it: False for a later part of a long timeline."""
        return not self.pieces.firsts.any()

    @property
    def is_last(self) -> bool:
        """Whether its timelines end in it: False for a part of a long one that others follow."""
        return bool((self.pieces.firsts + self.pieces.counts == self.totals).all())

    @property
    def seb_range(self) -> tuple[int, float]:
        """The range of SEBs in it, by index in timelines; the end is inf if these end in it."""
        first, counts = self.pieces.firsts[:1].sum(), self.pieces.counts[:1].sum()
        return int(first), math.inf if self.is_last else int(first + counts)


class Buffer:
    """Memory that a worker reuses for one block after the other."""

    def __init__(self) -> None:
        self._bytes = np.empty(0, dtype=np.uint8)

    def take(self, size_bytes: int) -> Bytes:
        """Return an uninitialised array of this size, which overlaps with the previous one."""
        if len(self._bytes) < size_bytes:
            self._bytes = np.empty(size_bytes, dtype=np.uint8)
        return self._bytes[:size_bytes]


def timelines_of(file: TimelineFile, first: int, last: int) -> Block:
    """Return the timelines of a file from `first` to before `last` as a block."""
    begin, end = file.borders[[first, last]].tolist()
    return Block(file.index, begin, end, first, last - first)


def fitting(file: TimelineFile, first: int, block_bytes: int) -> int:
    """Return how many timelines from `first` on fit into a block, at least one."""
    most = file.borders[first] + block_bytes
    return max(1, int(np.searchsorted(file.borders, most, side="right")) - 1 - first)


def plan_blocks(file: TimelineFile, block_bytes: int = BLOCK_BYTES) -> Iterator[Block]:
    """Yield the blocks of a file, in order and without gaps; nothing is read.

    A timeline larger than `block_bytes` is a block of its own, which is loaded in parts.
    """
    first = 0
    while first < len(file.pes):
        last = min(first + fitting(file, first, block_bytes), len(file.pes))
        yield timelines_of(file, first, last)
        first = last


def plan_in_turn(files: Iterable[TimelineFile], block_bytes: int = BLOCK_BYTES) -> Iterator[Block]:
    """Yield the blocks of all files, alternating between a few files.

    Workers then seldom write to the same file at the same time, which most systems serialise.
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


_thread_local = threading.local()


def thread_buffers() -> tuple[Buffer, Buffer]:
    """Return this thread's memory for a block, and for one to compare it with."""
    if not hasattr(_thread_local, "buffers"):
        _thread_local.buffers = Buffer(), Buffer()
    buffers: tuple[Buffer, Buffer] = _thread_local.buffers
    return buffers


def read_block(
    file: TimelineFile,
    block: Block,
    layout: Layout,
    block_bytes: int = BLOCK_BYTES,
    on_faults: FaultHandler = raise_first,
    buffer: Buffer | None = None,
) -> Iterator[LoadedBlock]:
    """Yield a block of a file with its bytes; a timeline above `block_bytes` is yielded in parts.

    The bytes are valid until the next part or block is read into `buffer`, by default this thread's
    own. Faults are timelines too short for their SEB count, which are left out, and damage within a
    long timeline, which ends it. Raise `DamagedLogError` if the size of the file has changed since
    its head was read, and `RewriteLogError` if it cannot be read.
    """
    memory = thread_buffers()[0] if buffer is None else buffer
    with InputFile(file.path) as source:
        if block.timelines > 1 or block.size_bytes <= block_bytes:
            yield _load_whole(source, file, block, layout, memory, on_faults)
        else:
            timeline = LongTimeline(source, file, block, layout, memory, block_bytes, on_faults)
            yield from timeline.parts()


def _load_whole(
    source: InputFile,
    file: TimelineFile,
    block: Block,
    layout: Layout,
    buffer: Buffer,
    on_faults: FaultHandler,
) -> LoadedBlock:
    source.check_size(file.size_bytes)
    window = buffer.take(block.size_bytes)
    source.read_into(window, block.offset)
    inside = slice(block.first_timeline, block.first_timeline + block.timelines)
    starts = file.borders[:-1][inside] - block.offset
    ends = file.borders[1:][inside] - block.offset
    counts, valid = _count_sebs(window, starts, ends, layout)
    known = file.known[inside]
    invalid = np.flatnonzero(known & ~valid)
    first = block.first_timeline
    faults = (_count_fault(file, first + k, int(counts[k])) for k in invalid.tolist())
    on_faults(faults, len(invalid))
    usable = known & valid
    counts = counts[usable]
    pieces = Pieces(starts[usable] + COUNT_BYTES, ends[usable], counts, np.zeros_like(counts))
    pes, closed = file.pes[inside][usable], file.closed[inside][usable]
    return LoadedBlock(block, file, window, layout, pieces, pes, counts, closed)


def _count_sebs(window: Bytes, starts: Ints, ends: Ints, layout: Layout) -> tuple[Ints, Flags]:
    """Return the SEB count that each timeline records, and whether that many SEBs fit in it.

    Shapes: `starts` and `ends`, (timelines,), byte offsets of each timeline in the window. A
    timeline too short to hold a count has 0 SEBs, which do not fit.
    """
    room = ends - starts - COUNT_BYTES
    long_enough = np.flatnonzero(room >= 0)
    raw = window[starts[long_enough, np.newaxis] + np.arange(COUNT_BYTES)]
    counts = np.zeros(len(starts), dtype=np.int64)
    counts[long_enough] = raw.view(layout.count)[:, 0]
    return counts, (room >= 0) & (counts >= 0) & (counts * layout.least_seb_bytes <= room)


def _count_fault(file: TimelineFile, index: int, count: int) -> DamagedLogError:
    """Return the fault of a timeline that is too short for its SEB count."""
    begin, end = (int(border) for border in file.borders[index : index + 2])
    code = core.SEB_COUNT_NEGATIVE if count < 0 else core.SEB_COUNT_TOO_LARGE
    problem = FAULTS[code].problem.format(count)
    if end - begin < COUNT_BYTES:
        problem = f"the timeline has {end - begin} bytes, too few for a SEB count"
    location = Location(file.path, begin, int(file.pes[index]), field="count")
    return DamagedLogError(location, problem, "count")


class LongTimeline:
    """A timeline larger than a block, loaded in parts that end where SEBs end."""

    def __init__(
        self,
        source: InputFile,
        file: TimelineFile,
        block: Block,
        layout: Layout,
        buffer: Buffer,
        part_bytes: int,
        on_faults: FaultHandler = raise_first,
        *,
        fits: bool = True,
    ) -> None:
        """Read the SEB count; without `fits`, one too large for the timeline is no fault."""
        source.check_size(file.size_bytes)
        self._source, self._file, self._block = source, file, block
        self._layout, self._buffer, self._part_bytes = layout, buffer, part_bytes
        self._on_faults, self._damaged = on_faults, False
        self._pes = file.pes[block.first_timeline : block.first_timeline + 1]
        self._at, self._skip, self._seb = block.offset, COUNT_BYTES, 0
        begin = np.zeros(1, dtype=np.int64)
        self._totals, valid = _count_sebs(
            source.read(block.offset, COUNT_BYTES), begin, begin + block.size_bytes, layout
        )
        self.left = int(self._totals[0])
        """The number of SEBs not yet taken."""
        if not valid[0] and (fits or self.left <= 0):
            self._stop(_count_fault(file, block.first_timeline, self.left), 0)

    def parts(self) -> Iterator[LoadedBlock]:
        """Yield all parts, at least one unless the number of SEBs is invalid."""
        if not self._damaged:
            yield self.take(self.look())
        while self.left:
            yield self.take(self.look())

    def look(self) -> int:
        """Read the next window; return the number of whole SEBs in it.

        It is at least one, unless no SEB is left or the fault handler tolerates damage.
        """
        while True:
            size = min(max(self._part_bytes, self._skip), self._block.end - self._at)
            window = self._buffer.take(size)
            self._source.read_into(window, self._at)
            self._part = self._walked(window, self.left)
            part, fault = self._part
            sebs_in_window, code = int(part.pieces.counts[0]), int(fault[core.FAULT_CODE])
            is_fault = code not in (core.OK, core.BYTES_LEFT_OVER)
            truncated = is_fault and FAULTS[code].truncated and self._at + size < self._block.end
            if is_fault and not truncated:
                self._stop(fault_error(fault, part), sebs_in_window)
            elif truncated and sebs_in_window == 0:
                if self._part_bytes < MOST_SEB_BYTES:
                    self._part_bytes *= 2
                    continue
                problem = f"the SEB has more than {bytes_text(MOST_SEB_BYTES)}, the maximum"
                pe, at = int(self._pes[0]), self._at + self._skip
                location = Location(self._file.path, at, pe, self._seb)
                self._stop(DamagedLogError(location, problem, "count"), 0)
            return sebs_in_window

    def take(self, sebs: int) -> LoadedBlock:
        """Return the first `sebs` SEBs of the window as a part, and advance past them.

        The last part ends where the timeline does, so that a walk finds bytes that are left over.
        """
        part, _ = self._part
        if sebs < part.pieces.counts[0]:
            part, _ = self._walked(part.buffer, sebs)
        self._at, self._skip = part.block.end, 0
        self._seb += sebs
        self.left -= sebs
        if self.left or self._damaged:
            return part
        pieces = part.pieces._replace(ends=np.array([self._block.end - part.block.offset]))
        first = self._block.first_timeline
        return replace(part, pieces=pieces, closed=self._file.closed[first : first + 1])

    def _walked(self, window: Bytes, most: int) -> tuple[LoadedBlock, Ints]:
        """Return up to `most` whole SEBs of the window, and the fault that ended the walk."""
        bounds = Pieces(*(np.array([n]) for n in (self._skip, len(window), most, self._seb)))
        pieces, _, faults = walk(window, bounds, self._layout)
        used = int(pieces.ends[0])
        block = replace(self._block, offset=self._at, end=self._at + used)
        part = LoadedBlock(
            block=block,
            file=self._file,
            buffer=window[:used],
            layout=self._layout,
            pieces=pieces,
            pes=self._pes,
            totals=self._totals,
            closed=np.zeros(1, dtype=np.bool_),
        )
        return part, faults[0]

    def _stop(self, fault: DamagedLogError, left: int) -> None:
        """Report damage, and let the timeline end after the next `left` SEBs."""
        self._on_faults([fault])
        self.left, self._damaged = left, True


def fault_error(fault: Ints, loaded: LoadedBlock) -> DamagedLogError:
    """Return a fault of the core as an error; it counts SEBs from the start of its piece."""
    kind = FAULTS[int(fault[core.FAULT_CODE])]
    piece = int(fault[core.FAULT_PIECE])
    location = Location(
        loaded.file.path,
        loaded.block.offset + int(fault[core.FAULT_AT]),
        int(loaded.pes[piece]),
        int(loaded.pieces.firsts[piece]) + int(fault[core.FAULT_SEB]),
        kind.field,
    )
    return DamagedLogError(location, kind.problem.format(int(fault[core.FAULT_VALUE])), kind.rule)
