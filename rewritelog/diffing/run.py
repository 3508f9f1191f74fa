"""The complete comparison of two log sets: heads, then pairs of blocks in parallel; and of traces.

Pairs are blocks with the same timelines, or the same SEBs of one. The number of files and the log
version may differ, so that the two sides of a pair may be at different offsets in their files.
Nodes of traces are paired by their ids.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from rewritelog.arrays import Ints, Texts, paired
from rewritelog.diffing.durations import Timed, rows_of
from rewritelog.diffing.records import (
    ABSENT,
    Change,
    FieldKind,
    FirstDifference,
    Totals,
    compare_loaded,
    list_text,
)
from rewritelog.diffing.report import Comparison, HeadDifference
from rewritelog.errors import NotComparableError
from rewritelog.formats.bgtrace.blocks import (
    BLOCK_BYTES,
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
from rewritelog.formats.traces import COMMUNICATION, Events, Traces, Unit
from rewritelog.hashing import mix
from rewritelog.running.engines import map_blocks
from rewritelog.text import printable, some_text

COMPARED = ("start_s", "lane", "rest", *COMMUNICATION)
"""The columns of nodes that are compared, besides those that are always loaded."""

_REST = "other fields, or their order"
_BESIDES = ("place among the nodes", "duration", "start")
"""What `_REST` does not contain."""


def _compare_rank(a: Traces, b: Traces, others: dict[int, Unit], unit: Unit) -> Totals:
    """Compare a unit of A with that of B; raise `DamagedLogError` if a side is damaged."""
    return compare_units(
        a, unit.rank, (a.load(unit, COMPARED), b.load(others[unit.rank], COMPARED))
    )


def compare_units(traces: Traces, rank: int, sides: tuple[Events, Events]) -> Totals:
    """Compare the nodes of a rank, those of the same id in their order."""
    totals, (a, b) = Totals(), sides
    _, number = np.unique(np.concatenate([a["id"], b["id"]]), return_inverse=True)
    rows, others = paired(*np.split(number, [len(a)]))
    order = np.argsort(rows)
    pairs = rows[order], others[order]
    totals.common.update({"SEBs": len(rows), "nodes of A": len(a), "nodes of B": len(b)})

    def note(name: str, of: str, at: Ints, texts: Iterable[str]) -> None:
        kind = FieldKind.TIME if name in ("duration", "start") else FieldKind.CONTENT
        first = FirstDifference(rank, int(at[0]), None, *texts) if len(at) else None
        totals.compared[name] = Change(of, kind, len(at), first)

    for which, events in enumerate(sides):
        totals.sides[which]["SEBs"] = len(events)
        alone = np.setdiff1d(np.arange(len(events)), pairs[which])
        texts = [f"id {events['id'][row]}" for row in alone[:1].tolist()]
        texts.insert(1 - which, ABSENT)
        note(f"only in {'AB'[which]}", f"nodes of {'AB'[which]}", alone, texts)
    columns = [_columns(traces, events, own) for events, own in zip(sides, pairs, strict=True)]
    named = np.zeros(len(rows), dtype=np.bool_)
    for name, old in columns[0].items():
        new = columns[1][name]
        both_unknown = (old != old) & (new != new)  # noqa: PLR0124 - NaN, but not of texts
        differ = (old != new) & ~both_unknown
        if name == _REST:
            differ &= ~named
        elif name not in _BESIDES:
            named |= differ
        at = np.flatnonzero(differ)
        values = (
            _value_text(name, events, own[at[0]], column[name][at[0]])
            for events, own, column in zip(sides, pairs, columns, strict=True)
        )
        note(name, "SEBs", pairs[0][at], values)
    names = Texts.joined([a["name"], b["name"]])
    numbers = np.split(names.number, [len(a)])
    timed = [Timed(own, e["duration_s"]) for own, e in zip(numbers, sides, strict=True)]
    both = [each.take(own) for each, own in zip(timed, pairs, strict=True)]
    totals.by_name = rows_of(list(map(printable, names.distinct)), timed, both)
    return totals


def _value_text(name: str, events: Events, row: int, value: Any) -> str:
    if name == "dependencies":
        return list_text(events["waited_for"][events.waiting == row])
    if name == _REST:
        return f"{value:016x}"
    return repr(printable(value)) if isinstance(value, str) else f"{value:.17g}"


def _columns(traces: Traces, events: Events, rows: Ints) -> dict[str, np.ndarray]:
    """Return what is compared of some nodes, in the order of reports."""
    waits, ends = events["waits"], np.concatenate([[0], np.cumsum(events["waits"])])
    mixed = np.concatenate([np.zeros(1, np.uint64), np.cumsum(mix(events["waited_for"]))])
    waited_for = mixed[ends[1:]] - mixed[ends[:-1]] + waits.astype(np.uint64)
    return {
        "place among the nodes": np.argsort(np.argsort(rows)),
        "duration": events["duration_s"][rows],
        "start": events["start_s"][rows],
        "type": np.array(traces.types, dtype=object)[events["type"][rows]],
        "name": np.array(events["name"].distinct, dtype=object)[events["name"].number[rows]],
        "dependencies": waited_for[rows],  # the same sum for the same ids in any order
        "CPU or device": np.where(events["on_host"][rows], "CPU", "device"),
        "thread or stream": events["lane"][rows],
        **{name: events[name][rows] for name in COMMUNICATION},
        _REST: events["rest"][rows],
    }


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


def plan_pairs(a: LogSet, b: LogSet, block_bytes: int = BLOCK_BYTES) -> Iterator[Pair]:
    """Yield pairs of all timelines, those that only B has last; nothing is read."""
    for file in a.files:
        others = np.stack(b.summary.timeline_of(file.pes), axis=1)
        others[file.pes >= b.summary.total_pes] = -1
        for begin, end in _runs(others):
            sides = [(a, file.index, begin)]
            if others[begin, 0] >= 0:
                sides.append((b, *others[begin].tolist()))
            for pes, blocks in _cut(file.pes[begin:end], sides, block_bytes):
                yield Pair(pes, blocks[0], blocks[1] if len(blocks) > 1 else None)
    for file in b.files:
        known = int(np.searchsorted(file.pes, a.summary.total_pes))
        for pes, blocks in _cut(file.pes[known:], [(b, file.index, known)], block_bytes):
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
    done = 0
    while done < len(pes):
        number = len(pes) - done
        for bounds in borders:
            room = int(np.searchsorted(bounds, bounds[done] + block_bytes, side="right"))
            number = min(number, max(1, room - 1 - done))
        yield (
            pes[done : done + number],
            [
                Block(file, int(bounds[done]), int(bounds[done + number]), first + done, number)
                for (_, file, first), bounds in zip(sides, borders, strict=True)
            ],
        )
        done += number


def _compare_pair(
    a: LogSet, b: LogSet, params: ParamFolder | None, block_bytes: int, pair: Pair
) -> Totals:
    """Compare a pair of blocks; raise `DamagedLogError` if a side is damaged."""
    totals = Totals()
    for loaded in _load(a, b, block_bytes, pair):
        totals.add(compare_loaded(loaded, params))
    return totals


def _load(
    a: LogSet, b: LogSet, block_bytes: int, pair: Pair
) -> Iterator[tuple[LoadedBlock, LoadedBlock]]:
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
    long = any(block.size_bytes > block_bytes for _, block, _ in sides.values())
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
            timelines[k] = LongTimeline(source, *side, buffers[k], block_bytes)
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
    some = next(iter(loaded.values()))
    none = np.zeros(len(some.pes), dtype=np.int64)
    pieces = some.pieces._replace(starts=none, ends=none, counts=none)
    buffer = np.zeros(0, dtype=np.uint8)
    a, b = (
        loaded.get(k) or replace(some, buffer=buffer, pieces=pieces, layout=lay)
        for k, lay in enumerate(layouts)
    )
    return a, b


def compare_logs(
    a: LogSet,
    b: LogSet,
    params: Path | None = None,
    *,
    block_bytes: int = BLOCK_BYTES,
) -> Comparison:
    """Compare two log sets by meaning; `params` is the folder of param files with events' names.

    By default that is the folder of A, or else that of B. Memory is needed for two blocks per
    thread, whatever the size of the logs. Raise `DamagedLogError` if a side is damaged, and
    `RewriteLogError` if a file cannot be read.
    """
    source = _params(a, b, params)
    work = partial(_compare_pair, a, b, source, block_bytes)
    pairs = plan_pairs(a, b, block_bytes)
    total_bytes = a.timelines_bytes + b.timelines_bytes
    totals = Totals()
    for _, of_pair in map_blocks(work, pairs, "comparing", total_bytes):
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


def compare_opened(
    a: LogSet | Traces, b: LogSet | Traces, params: Path | None = None
) -> Comparison:
    """Compare two log sets, or the ranks of two sets of traces with two ranks per thread in memory.

    Raise `NotComparableError` for different formats or ranks, `DamagedLogError` for damage.
    """
    if isinstance(a, LogSet) and isinstance(b, LogSet):
        return compare_logs(a, b, params)
    if isinstance(a, LogSet) or isinstance(b, LogSet) or a.title != b.title:
        raise NotComparableError(f"{a.path} has {a.title}, {b.path} has {b.title}")
    if params is not None:
        raise NotComparableError(f"--params is for bgTrace logs: {a.path} has {a.title}")
    if [unit.rank for unit in a.units] != [unit.rank for unit in b.units]:
        ranks = (some_text([str(unit.rank) for unit in each.units], 5) for each in (a, b))
        raise NotComparableError("A has the ranks {}, B the ranks {}".format(*ranks))
    totals = Totals()
    work = partial(_compare_rank, a, b, {unit.rank: unit for unit in b.units})
    for _, of_rank in map_blocks(work, a.units, "comparing", a.size_bytes):
        totals.add(of_rank)
    return Comparison((a, b), totals)
