"""Alignment of two log sets: pairs of blocks with the same timelines, or the same SEBs of one.

The number of files and the log version may differ, so that the two sides of a pair may be at
different offsets in their files and have different sizes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from rewritelog.arrays import Ints
from rewritelog.formats.bgtrace.blocks import (
    BLOCK_BYTES,
    Block,
    Buffer,
    LoadedBlock,
    LongTimeline,
    read_block,
)
from rewritelog.formats.bgtrace.declaration import Layout
from rewritelog.formats.bgtrace.heads import TimelineFile
from rewritelog.formats.bgtrace.logset import LogSet
from rewritelog.formats.files import InputFile


@dataclass(frozen=True)
class Pair:
    """A run of timelines on both sides; None for a side without these PEs."""

    pes: Ints
    a: Block | None
    b: Block | None

    @property
    def size_bytes(self) -> int:
        """The size of both sides."""
        return sum(side.size_bytes for side in (self.a, self.b) if side is not None)


@dataclass(frozen=True)
class LoadedPair:
    """The bytes of both sides, with the same pieces; a side may have no SEBs in some."""

    a: LoadedBlock
    b: LoadedBlock


def plan_pairs(a: LogSet, b: LogSet, block_bytes: int = BLOCK_BYTES) -> Iterator[Pair]:
    """Yield pairs of all timelines, those that only B has last; nothing is read."""
    for file in a.files:
        others = _timelines_of(b, file.pes)
        for begin, end in _runs(others):
            other = int(others[begin, 0])
            if other < 0:
                yield from _cut(file.pes, [(a, file.index, begin)], end - begin, block_bytes)
            else:
                sides = [(a, file.index, begin), (b, other, int(others[begin, 1]))]
                yield from _cut(file.pes, sides, end - begin, block_bytes)
    for file in b.files:
        known = int(np.searchsorted(file.pes, a.summary.total_pes))
        for pair in _cut(file.pes, [(b, file.index, known)], len(file.pes) - known, block_bytes):
            yield Pair(pair.pes, None, pair.a)


def _timelines_of(logs: LogSet, pes: Ints) -> Ints:
    """Return file and index in it of each PE's timeline, −1 for none, shape (PEs, 2)."""
    timelines = np.stack(logs.summary.timeline_of(pes), axis=1)
    timelines[pes >= logs.summary.total_pes] = -1
    return timelines


def _runs(timelines: Ints) -> Iterator[tuple[int, int]]:
    """Yield the runs of timelines that are contiguous in one file of the other side."""
    steps = np.diff(timelines, axis=0)
    missing = timelines[1:, 0] < 0
    follows = (steps[:, 0] == 0) & ((steps[:, 1] == 1) | missing)
    borders = [0, *(np.flatnonzero(~follows) + 1).tolist(), len(timelines)]
    for begin, end in pairwise(borders):
        if end > begin:
            yield begin, end


def _cut(
    pes: Ints, sides: list[tuple[LogSet, int, int]], count: int, block_bytes: int
) -> Iterator[Pair]:
    """Yield a run of timelines in blocks of at most `block_bytes` on all sides."""
    begin = sides[0][2]
    done = 0
    while done < count:
        number = count - done
        for logs, file, first in sides:
            borders = logs.files[file].borders[first + done :]
            room = int(np.searchsorted(borders, borders[0] + block_bytes, side="right")) - 1
            number = min(number, max(1, room))
        blocks = [_block(logs, file, first + done, number) for logs, file, first in sides]
        chosen = pes[begin + done : begin + done + number]
        yield Pair(chosen, blocks[0], blocks[1] if len(blocks) > 1 else None)
        done += number


def _block(logs: LogSet, file: int, first: int, number: int) -> Block:
    borders = logs.files[file].borders
    return Block(file, int(borders[first]), int(borders[first + number]), first, number)


class PairLoader:
    """Loads pairs into buffers that a worker reuses."""

    def __init__(self) -> None:
        self._buffers = (Buffer(), Buffer())

    def load(
        self, a: LogSet, b: LogSet, pair: Pair, block_bytes: int = BLOCK_BYTES
    ) -> Iterator[LoadedPair]:
        """Yield a pair with its bytes, or the parts of a long timeline.

        Parts of both sides end at the same SEBs. Raise `DamagedLogError` if a timeline is too short
        for its SEB count, or if a long timeline is damaged.
        """
        layouts = a.layout, b.layout
        sides = {
            k: (logs.files[block.file], block, logs.layout)
            for k, (logs, block) in enumerate(((a, pair.a), (b, pair.b)))
            if block is not None
        }
        long = any(block.size_bytes > block_bytes for _, block, _ in sides.values())
        if len(pair.pes) > 1 or not long:
            yield _both({k: self._whole(k, *side) for k, side in sides.items()}, layouts)
            return
        with ExitStack() as stack:
            timelines = {}
            for k, side in sides.items():
                source = stack.enter_context(InputFile(side[0].path))
                timelines[k] = LongTimeline(source, *side, self._buffers[k], block_bytes)
            yield from (_both(part, layouts) for part in _parts(timelines))

    def _whole(self, side: int, file: TimelineFile, block: Block, lay: Layout) -> LoadedBlock:
        (loaded,) = read_block(file, block, lay, block.size_bytes, buffer=self._buffers[side])
        return loaded


def _parts(sides: dict[int, LongTimeline]) -> Iterator[dict[int, LoadedBlock]]:
    """Yield the parts of a timeline; a side that has ended has no part."""
    while any(side.left for side in sides.values()):
        sebs = min(side.look() for side in sides.values() if side.left)
        yield {k: side.take(sebs) for k, side in sides.items() if side.left}


def _both(loaded: dict[int, LoadedBlock], layouts: tuple[Layout, Layout]) -> LoadedPair:
    """Return the sides that are there, and for a missing one the same pieces without SEBs."""
    some = next(iter(loaded.values()))
    none = np.zeros(len(some.pes), dtype=np.int64)
    pieces = some.pieces._replace(starts=none, ends=none, counts=none)
    buffer = np.zeros(0, dtype=np.uint8)
    sides = (
        loaded.get(k) or replace(some, buffer=buffer, pieces=pieces, layout=lay)
        for k, lay in enumerate(layouts)
    )
    return LoadedPair(*sides)
