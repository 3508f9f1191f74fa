"""The complete comparison of two log sets: heads, then pairs of blocks in parallel; and of traces.

Pairs are blocks with the same timelines, or the same SEBs of one. The number of files and the log
version may differ, so that the two sides of a pair may be at different offsets in their files.
Nodes of traces are paired by their ids.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np

from rewritelog.arrays import Ints, Keys
from rewritelog.cores import cores, limited_to
from rewritelog.diffing.durations import MOST_ROWS, Timed, named_rows, rows_of
from rewritelog.diffing.records import (
    ABSENT,
    NODE_FIELDS,
    Change,
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
from rewritelog.formats.bgtrace.declaration import MACHINE_HEADER_BYTES, Layout, MachineHeader
from rewritelog.formats.bgtrace.logset import LogSet
from rewritelog.formats.bgtrace.params import ParamFolder, list_params
from rewritelog.formats.files import InputFile
from rewritelog.formats.traces import Traces, Unit, UnitEvents, load_unit
from rewritelog.running.engines import map_blocks
from rewritelog.text import count_text, printable


def _compare_rank(a: Traces, b: Traces, unit: Unit) -> Totals:
    """Compare a unit of A with that of B; raise `DamagedLogError` if a side is damaged."""
    other = next(other for other in b.units if other.rank == unit.rank)
    return compare_units(a, load_unit(a, unit), load_unit(b, other))


def compare_units(traces: Traces, a: UnitEvents, b: UnitEvents) -> Totals:
    """Compare the nodes of two units; memory is needed for both."""
    totals, sides = Totals(), (a, b)
    _, rows, others = np.intersect1d(a.ids, b.ids, return_indices=True)
    order = np.argsort(rows)
    pairs = rows[order], others[order]
    for counts, events in zip(totals.sides, sides, strict=True):
        counts["SEBs"] = len(events)
    totals.common["SEBs"] = len(rows)
    for name, which, at in (("only in A", 0, pairs[0]), ("only in B", 1, pairs[1])):
        alone = np.setdiff1d(np.arange(len(sides[which])), at)
        if len(alone):
            texts = [ABSENT, ABSENT]
            texts[which] = f"id {sides[which].ids[alone[0]]}"
            _note(totals, name, a.unit.rank, alone, texts)
    values = [_values(traces, events, own) for events, own in zip(sides, pairs, strict=True)]
    values[0]["place among the nodes"] = np.arange(len(rows))
    values[1]["place among the nodes"] = np.argsort(np.argsort(pairs[1]))
    for name, left in values[0].items():
        right = values[1][name]
        both_unknown = (left != left) & (right != right)  # noqa: PLR0124 - NaN, but not of texts
        at = np.flatnonzero((left != right) & ~both_unknown)
        if len(at):
            texts = [
                list_text(events.dep_ids[events.waiting == own[at[0]]])
                if name == "dependencies"
                else _text(of_side[name][at[0]])
                for events, own, of_side in zip(sides, pairs, values, strict=True)
            ]
            _note(totals, name, a.unit.rank, pairs[0][at], texts)
    _add_durations(totals, sides, pairs)
    return totals


def _note(totals: Totals, name: str, rank: int, rows: Ints, texts: list[str]) -> None:
    """Note that nodes differ in a field; `texts` are the values of the first."""
    first = FirstDifference(rank, int(rows[0]), None, *texts)
    totals.changed[NODE_FIELDS[name]] = Change(len(rows), first)


def _values(traces: Traces, events: UnitEvents, rows: Ints) -> dict[str, np.ndarray]:
    """Return what is compared of some nodes."""
    columns = {
        "duration": events.duration_s,
        "start": events.start_s,
        "type": np.array(traces.types, dtype=object)[events.type],
        "name": np.array([*events.names, ""], dtype=object)[events.name],
        "dependencies": _waits(events),
        "CPU or device": np.where(events.on_host, "CPU", "device"),
        "thread or stream": events.lane,
        **events.numbers,
    }
    return {name: column[rows] for name, column in columns.items()}


def _text(value: object) -> str:
    return repr(printable(value)) if isinstance(value, str) else f"{value:.17g}"


def _waits(events: UnitEvents) -> Keys:
    """Return a number for each event that depends on the ids it waits for, in any order."""
    ends = np.concatenate([[0], np.cumsum(events.dep_counts)])
    mixed = events.dep_ids * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(29)
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(mixed, dtype=np.uint64)])
    all_of_each: Keys = sums[ends[1:]] - sums[ends[:-1]] + events.dep_counts.astype(np.uint64)
    return all_of_each


def _add_durations(
    totals: Totals, sides: tuple[UnitEvents, UnitEvents], pairs: tuple[Ints, Ints]
) -> None:
    """Add the durations by name: of all nodes of each side, and of those that both have."""
    known: dict[str, int] = {}
    timed = []
    for events in sides:
        numbers = [known.setdefault(name, len(known)) for name in events.names]
        number = np.array([*numbers, 0])[events.name]
        timed.append(Timed(np.minimum(number, MOST_ROWS), events.duration_s))
    both = [each.take(own) for each, own in zip(timed, pairs, strict=True)]
    names = named_rows(list(map(printable, known)))
    totals.by_name = rows_of(names, [each.rows for each in timed], timed, both)


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


_MACHINE = {
    "total_pes": "total PEs",
    "x": "x",
    "y": "y",
    "z": "z",
    "num_cth": "communication threads per node",
    "num_wth": "worker threads per node",
    "stack_size": "stack size",
    "timing_method": "timing method",
    "thread_entry_point": "thread entry point",
}
_REPRESENTATION = {
    "log_version": "log version",
    "order": "byte order",
    "header_version": "header version",
    "files": "timeline files",
}


def compare_logs(
    a: LogSet,
    b: LogSet,
    params: Path | None = None,
    *,
    jobs: int = 0,
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
    with limited_to(jobs or cores()):
        for _, of_pair in map_blocks(work, pairs, "comparing", total_bytes):
            totals.add(of_pair)
    return Comparison(
        sides=(a, b),
        totals=totals,
        representation=_changes(_representation(a), _representation(b)),
        machine=_changes(_summary_facts(a, _MACHINE), _summary_facts(b, _MACHINE)),
    )


def _params(a: LogSet, b: LogSet, params: Path | None) -> ParamFolder | None:
    if params is not None:
        return list_params(params)
    for folder in (a.folder, b.folder):
        source = list_params(folder)
        if source.pes:
            return source
    return None


def _summary_facts(logs: LogSet, names: dict[str, str]) -> dict[str, str]:
    return {label: str(getattr(logs.summary, name)) for name, label in names.items()}


def _representation(logs: LogSet) -> dict[str, str]:
    """Return the representation of logs: also the length of the summary, sizes without effect."""
    facts = _summary_facts(logs, _REPRESENTATION)
    with InputFile(logs.summary_path) as file:
        facts["bytes of the summary"] = str(file.size_bytes)
        sizes = MachineHeader.parse(file.read(0, MACHINE_HEADER_BYTES).tobytes()).sizes
    for name, value in sizes.items():
        if isinstance(value, int) and not name.endswith("_format"):
            facts[f"{name.replace('_', ' ')} in the header"] = str(value)
    return facts


def _changes(old: dict[str, str], new: dict[str, str]) -> tuple[HeadDifference, ...]:
    return tuple(
        HeadDifference(name, old.get(name, "absent"), new.get(name, "absent"))
        for name in {**old, **new}
        if old.get(name) != new.get(name)
    )


def compare_traces(a: Traces, b: Traces, *, jobs: int = 0) -> Comparison:
    """Compare two sets of traces; memory is needed for two ranks per thread.

    Raise `NotComparableError` for different ranks, `DamagedLogError` if a side is damaged.
    """
    ranks = [[unit.rank for unit in traces.units] for traces in (a, b)]
    if ranks[0] != ranks[1]:
        counts = " and ".join(count_text(len(each), "rank") for each in ranks)
        raise NotComparableError(f"A and B have {counts}, or different ones")
    totals = Totals()
    with limited_to(jobs):
        for _, of_rank in map_blocks(
            partial(_compare_rank, a, b), a.units, "comparing", a.size_bytes
        ):
            totals.add(of_rank)
    return Comparison((a, b), totals)


def compare_opened(
    a: LogSet | Traces, b: LogSet | Traces, params: Path | None = None, *, jobs: int = 0
) -> Comparison:
    """Compare two sets of the same format; raise `NotComparableError` for different ones."""
    if isinstance(a, LogSet) and isinstance(b, LogSet):
        return compare_logs(a, b, params, jobs=jobs)
    if isinstance(a, LogSet) or isinstance(b, LogSet) or a.title != b.title:
        raise NotComparableError(f"{a.path} has {a.title}, {b.path} has {b.title}")
    if params is not None:
        raise NotComparableError(f"--params is for bgTrace logs: {a.path} has {a.title}")
    return compare_traces(a, b, jobs=jobs)
