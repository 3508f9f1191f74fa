"""Two log sets side by side: blocks that hold the same timelines, or the same SEBs of one.

Neither the number of files nor the log version need be the same, so the two sides of a block lie
anywhere in their files and differ in size.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from rewritelog.arrays import Ints
from rewritelog.errors import DamagedLogError, Location
from rewritelog.format.declaration import PRIMITIVES
from rewritelog.kernels import walk
from rewritelog.logs.blocks import (
    BLOCK_BYTES,
    MOST_SEB_BYTES,
    Block,
    Buffer,
    Cut,
    LoadedBlock,
    check_size,
    fault_kind,
    load_blocks,
    oversized,
    raise_fault,
)
from rewritelog.logs.files import InputFile
from rewritelog.logs.logset import LogSet

_COUNT_BYTES = PRIMITIVES["little"].i4.sizeof()


@dataclass(frozen=True)
class Pair:
    """A run of timelines on either side; `None` where a side has none of these PEs."""

    pes: Ints
    a: Block | None
    b: Block | None


@dataclass(frozen=True)
class LoadedPair:
    """The bytes of both sides, with the same pieces; a side may have no SEBs in them."""

    pes: Ints
    a: LoadedBlock | None
    b: LoadedBlock | None


def plan_pairs(a: LogSet, b: LogSet, block_bytes: int = BLOCK_BYTES) -> Iterator[Pair]:
    """Yield all timelines of both, those that B alone has last; nothing is read."""
    for file in a.files:
        places = _places(b, file.pes)
        for begin, end in _runs(places):
            other = int(places[begin, 0])
            if other < 0:
                yield from _cut(file.pes, [(a, file.index, begin)], end - begin, block_bytes)
            else:
                sides = [(a, file.index, begin), (b, other, int(places[begin, 1]))]
                yield from _cut(file.pes, sides, end - begin, block_bytes)
    for file in b.files:
        known = int(np.searchsorted(file.pes, a.summary.total_pes))
        for pair in _cut(file.pes, [(b, file.index, known)], len(file.pes) - known, block_bytes):
            yield Pair(pair.pes, None, pair.a)


def _places(logs: LogSet, pes: Ints) -> Ints:
    """Return the file and the place in it of each PE's timeline, −1 where there is none."""
    node, worker = np.divmod(pes, logs.summary.num_wth)
    slot = node // logs.summary.files * logs.summary.num_wth + worker
    places = np.stack([node % logs.summary.files, slot], axis=1)
    places[pes >= logs.summary.total_pes] = -1
    return places


def _runs(places: Ints) -> Iterator[tuple[int, int]]:
    """Yield the runs of timelines that stand one after the other in one file of the other side."""
    steps = np.diff(places, axis=0)
    missing = places[1:, 0] < 0
    follows = (steps[:, 0] == 0) & ((steps[:, 1] == 1) | missing)
    borders = [0, *(np.flatnonzero(~follows) + 1).tolist(), len(places)]
    for begin, end in pairwise(borders):
        if end > begin:
            yield begin, end


def _cut(
    pes: Ints, sides: list[tuple[LogSet, int, int]], count: int, block_bytes: int
) -> Iterator[Pair]:
    """Yield a run of timelines in blocks that are small enough on all sides."""
    begin = sides[0][2]
    done = 0
    while done < count:
        many = count - done
        for logs, file, first in sides:
            borders = logs.files[file].borders[first + done :]
            room = int(np.searchsorted(borders, borders[0] + block_bytes, side="right")) - 1
            many = min(many, max(1, room))
        blocks = [_block(logs, file, first + done, many) for logs, file, first in sides]
        chosen = pes[begin + done : begin + done + many]
        yield Pair(chosen, blocks[0], blocks[1] if len(blocks) > 1 else None)
        done += many


def _block(logs: LogSet, file: int, first: int, many: int) -> Block:
    borders = logs.files[file].borders
    return Block(file, int(borders[first]), int(borders[first + many]), first, many)


class PairLoader:
    """Memory that one worker reads its pairs into, one after the other."""

    def __init__(self) -> None:
        self._buffers = (Buffer(), Buffer())

    def load(
        self, a: LogSet, b: LogSet, pair: Pair, block_bytes: int = BLOCK_BYTES
    ) -> Iterator[LoadedPair]:
        """Yield a pair with its bytes, or where it is a long timeline its parts, one by one.

        Both sides are cut at the same SEBs. Raise `DamagedLogError` where a timeline's count
        cannot be, or where a long timeline cannot be walked.
        """
        given = [
            (logs, block, buffer)
            for logs, block, buffer in zip((a, b), (pair.a, pair.b), self._buffers, strict=True)
            if block is not None
        ]
        if len(pair.pes) == 1 and any(block.size_bytes > block_bytes for _, block, _ in given):
            sides = [
                _LongTimeline(logs, block, buffer, block_bytes) for logs, block, buffer in given
            ]
            try:
                yield from _parts(pair, sides)
            finally:
                for side in sides:
                    side.close()
        else:
            loaded = iter([_whole(logs, block, buffer) for logs, block, buffer in given])
            yield _with_sides(pair, next(loaded), next(loaded, None))


def _with_sides(pair: Pair, first: LoadedBlock | None, second: LoadedBlock | None) -> LoadedPair:
    """Return what was loaded for the sides that a pair has, in their order."""
    if pair.a is None:
        return LoadedPair(pair.pes, None, first)
    return LoadedPair(pair.pes, first, second)


def _whole(logs: LogSet, block: Block, buffer: Buffer) -> LoadedBlock:
    file = logs.files[block.file]
    with InputFile(file.path) as source:
        size = max(1, block.size_bytes)
        return next(load_blocks(source, file, block, logs.layout, buffer, size))


def _parts(pair: Pair, sides: list[_LongTimeline]) -> Iterator[LoadedPair]:
    """Yield the parts of a timeline; a side that has come to its end has no part."""
    while any(side.left for side in sides):
        sebs = min(side.look() for side in sides if side.left)
        loaded = [side.take(sebs) if side.left else None for side in sides]
        yield _with_sides(pair, loaded[0], loaded[1] if len(loaded) > 1 else None)


class _LongTimeline:
    """One side of a long timeline, which is walked to find how many SEBs a window holds."""

    def __init__(self, logs: LogSet, block: Block, buffer: Buffer, part_bytes: int) -> None:
        self._layout, self._block, self._buffer = logs.layout, block, buffer
        self._file = logs.files[block.file]
        self._pe = self._file.pes[block.first_timeline : block.first_timeline + 1]
        self._part_bytes = part_bytes
        self._source = InputFile(self._file.path)
        check_size(self._source, self._file)
        self._at, self._skip, self._seb = block.offset, _COUNT_BYTES, 0
        self._window = self._buffer.take(0)
        self._total = self._claimed()
        self._check_end(block.offset + _COUNT_BYTES)

    @property
    def left(self) -> int:
        """How many SEBs are still to come."""
        return self._total - self._seb

    def close(self) -> None:
        """Close the file."""
        self._source.close()

    def _claimed(self) -> int:
        fault = np.zeros(walk.FAULT_SIZE, dtype=np.int64)
        start = np.zeros(1, dtype=np.int64)
        head = self._source.read(self._block.offset, _COUNT_BYTES)
        ends = start + self._block.size_bytes
        counts = walk.count_sebs(head, start, ends, self._layout.kernel, fault)
        raise_fault(fault, self._file, self._block.offset, self._pe)
        return int(counts[0])

    def look(self) -> int:
        """Read the next window; return how many whole SEBs it holds, at least one."""
        while True:
            size = min(self._part_bytes, self._block.end - self._at)
            self._window = self._buffer.take(size)
            self._source.read_into(self._window, self._at)
            fault = np.zeros(walk.FAULT_SIZE, dtype=np.int64)
            sebs, _ = walk.advance(
                self._window, self._skip, size, self.left, self._layout.kernel, fault
            )
            if not (fault_kind(fault).cut and self._at + size < self._block.end):
                raise_fault(fault, self._file, self._at, self._pe, np.array([self._seb]))
            if sebs > 0:
                return int(sebs)
            if self._part_bytes >= MOST_SEB_BYTES:
                at = self._at + self._skip
                raise oversized(self._file, at, int(self._pe[0]), self._seb)
            self._part_bytes *= 2

    def take(self, sebs: int) -> LoadedBlock:
        """Return the first SEBs of the window, which holds as many, and go on behind them."""
        fault = np.zeros(walk.FAULT_SIZE, dtype=np.int64)
        _, used = walk.advance(
            self._window, self._skip, len(self._window), sebs, self._layout.kernel, fault
        )
        cut = Cut(self._seb, sebs, sebs == self.left)
        part = Block(
            self._block.file, self._at, self._at + used, self._block.first_timeline, 1, cut
        )
        pieces = walk.Pieces(*(np.array([n]) for n in (self._skip, used, sebs, self._seb)))
        self._at, self._skip, self._seb = part.end, 0, self._seb + sebs
        self._check_end(part.end)
        return LoadedBlock(part, self._file, self._window[:used], pieces, self._pe)

    def _check_end(self, at: int) -> None:
        """Raise where bytes are left over after the last SEB."""
        if self.left == 0 and at != self._block.end:
            place = Location(self._file.path, at, int(self._pe[0]), self._total, "count")
            problem = walk.FAULTS[walk.BYTES_LEFT_OVER].problem
            raise DamagedLogError(place, problem.format(self._block.end - at))
