"""The complete comparison of two log sets: heads, then pairs of blocks in parallel.

Pairs are blocks with the same timelines, or the same SEBs of one. The number of files and the log
version may differ, so that the two sides of a pair may be at different offsets in their files.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np

from rewritelog.arrays import Ints
from rewritelog.commands.logs import DiffCommand
from rewritelog.diffing.records import Totals, compare_loaded
from rewritelog.diffing.report import Comparison, HeadDifference
from rewritelog.diffing.traces import compare_traces
from rewritelog.errors import NotComparableError
from rewritelog.formats.bgtrace.blocks import (
    Block,
    LoadedBlock,
    LongTimeline,
    read_block,
    thread_buffers,
)
from rewritelog.formats.bgtrace.declaration import (
    MACHINE_HEADER_BYTES,
    Layout,
    MachineHeader,
    format_names,
)
from rewritelog.formats.bgtrace.logset import LogSet
from rewritelog.formats.bgtrace.params import ParamFolder, list_params
from rewritelog.formats.files import InputFile
from rewritelog.running.engines import map_blocks


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


def plan_pairs(a: LogSet, b: LogSet) -> Iterator[Pair]:
    """Yield pairs of all timelines, those that only B has last; nothing is read."""
    for file in a.files:
        others = np.stack(b.summary.timeline_of(file.pes), axis=1)
        others[file.pes >= b.summary.total_pes] = -1
        for begin, end in _runs(others):
            sides = [(a, file.index, begin)]
            if others[begin, 0] >= 0:
                sides.append((b, *others[begin].tolist()))
            for pes, blocks in _cut(file.pes[begin:end], sides, a.block_bytes):
                yield Pair(pes, blocks[0], blocks[1] if len(blocks) > 1 else None)
    for file in b.files:
        known = int(np.searchsorted(file.pes, a.summary.total_pes))
        for pes, blocks in _cut(file.pes[known:], [(b, file.index, known)], a.block_bytes):
            yield Pair(pes, None, blocks[0])


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
    pes: Ints, sides: list[tuple[LogSet, int, int]], block_bytes: int
) -> Iterator[tuple[Ints, list[Block]]]:
    """Yield a run of timelines in blocks of at most `block_bytes` on all sides.

    A side is given by its logs, the index of the file, and that of the first timeline in it.
    """
    borders = [logs.files[file].borders[first:] for logs, file, first in sides]
    begin = 0
    while begin < len(pes):
        number = len(pes) - begin
        for bounds in borders:
            room = int(np.searchsorted(bounds, bounds[begin] + block_bytes, side="right"))
            number = min(number, max(1, room - 1 - begin))
        yield (
            pes[begin : begin + number],
            [
                Block(file, int(bounds[begin]), int(bounds[begin + number]), first + begin, number)
                for (_, file, first), bounds in zip(sides, borders, strict=True)
            ],
        )
        begin += number


def _compare_pair(a: LogSet, b: LogSet, params: ParamFolder | None, pair: Pair) -> Totals:
    """Compare a pair of blocks; raise `DamagedLogError` if a side is damaged."""
    totals = Totals()
    for loaded in _load(a, b, pair):
        totals.add(compare_loaded(loaded, params))
    return totals


def _load(a: LogSet, b: LogSet, pair: Pair) -> Iterator[tuple[LoadedBlock, LoadedBlock]]:
    """Yield both sides with the same pieces; parts of a long timeline end at the same SEBs.

    A side may have no SEBs in some pieces. Raise `DamagedLogError` if a timeline is too short for
    its SEB count, or if a long timeline is damaged.
    """
    layouts = a.layout, b.layout
    sides = {
        k: (logs.files[block.file], block, logs.layout)
        for k, (logs, block) in enumerate(((a, pair.a), (b, pair.b)))
        if block is not None
    }
    buffers = thread_buffers()
    long = any(block.size_bytes > a.block_bytes for _, block, _ in sides.values())
    if len(pair.pes) > 1 or not long:
        whole = {}
        for k, side in sides.items():
            (whole[k],) = read_block(*side, side[1].size_bytes, buffer=buffers[k])
        yield _both(whole, layouts)
        return
    with ExitStack() as stack:
        timelines = {}
        for k, side in sides.items():
            source = stack.enter_context(InputFile(side[0].path))
            timelines[k] = LongTimeline(source, *side, buffers[k], a.block_bytes)
        yield from (_both(part, layouts) for part in _parts(timelines))


def _parts(sides: dict[int, LongTimeline]) -> Iterator[dict[int, LoadedBlock]]:
    """Yield the parts of a timeline; a side that has ended has no part."""
    while any(side.left for side in sides.values()):
        sebs = min(side.look() for side in sides.values() if side.left)
        yield {k: side.take(sebs) for k, side in sides.items() if side.left}


def _both(
    loaded: dict[int, LoadedBlock], layouts: tuple[Layout, Layout]
) -> tuple[LoadedBlock, LoadedBlock]:
    """Return the sides that are there, and for a missing one the same pieces without SEBs."""
    present = next(iter(loaded.values()))
    none = np.zeros(len(present.pes), dtype=np.int64)
    pieces = present.pieces._replace(starts=none, ends=none, counts=none)
    buffer = np.zeros(0, dtype=np.uint8)
    a, b = (
        loaded.get(k) or replace(present, buffer=buffer, pieces=pieces, layout=lay)
        for k, lay in enumerate(layouts)
    )
    return a, b


def compare_logs(a: LogSet, b: LogSet, params: Path | None = None) -> Comparison:
    """Compare two log sets by meaning; `params` is the folder of param files with events' names.

    By default that is the folder of A, or else that of B. Memory is needed for two blocks per
    thread, whatever the size of the logs. Raise `DamagedLogError` if a side is damaged, and
    `RewriteLogError` if a file cannot be read.
    """
    work = partial(_compare_pair, a, b, _params(a, b, params))
    total_bytes = a.units_bytes + b.units_bytes
    totals = Totals()
    for _, of_pair in map_blocks(work, plan_pairs(a, b), "comparing", total_bytes):
        totals.add(of_pair)
    (old_machine, old), (new_machine, new) = map(_facts, (a, b))
    return Comparison((a, b), totals, _changes(old, new), _changes(old_machine, new_machine))


def _params(a: LogSet, b: LogSet, params: Path | None) -> ParamFolder | None:
    if params is not None:
        return list_params(params)
    for folder in (a.folder, b.folder):
        source = list_params(folder)
        if source.pes:
            return source
    return None


def _facts(logs: LogSet) -> tuple[dict[str, str], dict[str, str]]:
    """Return the emulated machine, and how it is written: sizes without effect too."""
    summary = vars(logs.summary)
    machine = {n: str(summary[k]) for k, n in format_names("summary").items() if k in summary}
    facts = {
        "log version": machine.pop("log version"),
        "byte order": logs.summary.order,
        "header version": str(logs.summary.header_version),
        "timeline files": machine.pop("timeline files"),
    }
    with InputFile(logs.summary_path) as file:
        facts["bytes of the summary"] = str(file.size_bytes)
        sizes = MachineHeader.parse(file.read(0, MACHINE_HEADER_BYTES).tobytes()).sizes
    for name, value in sizes.items():
        if isinstance(value, int) and not name.endswith("_format"):
            facts[f"{name.replace('_', ' ')} in the header"] = str(value)
    return machine, facts


def _changes(old: dict[str, str], new: dict[str, str]) -> tuple[HeadDifference, ...]:
    return tuple(
        HeadDifference(name, old.get(name, "absent"), new.get(name, "absent"))
        for name in {**old, **new}
        if old.get(name) != new.get(name)
    )


def compare_opened(command: DiffCommand) -> Comparison:
    """Compare two log sets, or two sets of traces.

    Raise `NotComparableError` for different formats or ranks, `DamagedLogError` for damage.
    """
    a, b = command.a, command.b
    if isinstance(a, LogSet) and isinstance(b, LogSet):
        return compare_logs(a, b, command.params)
    if isinstance(a, LogSet) or isinstance(b, LogSet) or a.title != b.title:
        raise NotComparableError(f"{a.path} has {a.title}, {b.path} has {b.title}")
    return compare_traces(a, b)
