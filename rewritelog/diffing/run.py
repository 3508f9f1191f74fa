"""The complete comparison of two log sets: heads, then pairs of blocks in parallel.

Pairs are blocks with the same timelines, or the same SEBs of one. The number of files and the log
version may differ, so that the two sides of a pair may be at different offsets in their files.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from zlib import crc32

import numpy as np
from msgspec import Struct
from msgspec.structs import asdict, replace

from rewritelog.commands.logs import DiffCommand
from rewritelog.diffing.records import Totals, compare_loaded
from rewritelog.diffing.report import Comparison, HeadDifference, SideName
from rewritelog.errors import UsageError
from rewritelog.formats.bgtrace.blocks import (
    Block,
    LoadedBlock,
    LongTimeline,
    fitting,
    read_block,
    thread_buffers,
    timelines_of,
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


class Pair(Struct, frozen=True):
    """A run of timelines of both sides."""

    blocks: dict[int, Block]
    """The block of A under 0, the block of B under 1; a side without these PEs has none."""

    @property
    def size_bytes(self) -> int:
        """The size of both sides."""
        return sum(block.size_bytes for block in self.blocks.values())


def plan_pairs(a: LogSet, b: LogSet) -> Iterator[Pair]:
    """Yield pairs that cover all timelines, those that only B has last; nothing is read.

    A pair is contiguous in a file of each side, and on each side no larger than the blocks of A.
    """
    known = a.summary.total_pes
    of_b_alone = (file.pes[file.pes >= known] for file in b.files)
    pes = np.concatenate([*(file.pes for file in a.files), *of_b_alone])
    sides = [
        (logs.files, *np.where(pes < logs.summary.total_pes, logs.summary.timeline_of(pes), -1))
        for logs in (a, b)
    ]
    follows = np.ones(len(pes) - 1, dtype=np.bool_)
    for _, file, index in sides:
        follows &= (np.diff(file) == 0) & ((np.diff(index) == 1) | (index[1:] < 0))
    begin = 0
    for end in (*(np.flatnonzero(~follows) + 1).tolist(), len(pes)):
        while begin < end:
            firsts = {
                k: (files[file[begin]], int(index[begin]))
                for k, (files, file, index) in enumerate(sides)
                if file[begin] >= 0
            }
            rooms = (fitting(file, first, a.block_bytes) for file, first in firsts.values())
            count = min(end - begin, *rooms)
            yield Pair({k: timelines_of(*at, at[1] + count) for k, at in firsts.items()})
            begin += count


def _compare_pair(
    a: LogSet, b: LogSet, params: tuple[ParamFolder, ParamFolder], pair: Pair
) -> Totals:
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
    layouts, buffers = (a.layout, b.layout), thread_buffers()
    sides = {
        k: ((a, b)[k].files[block.file], block, layouts[k]) for k, block in pair.blocks.items()
    }
    long = any(
        block.timelines == 1 and block.size_bytes > a.block_bytes for block in pair.blocks.values()
    )
    if not long:
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
    unread = sides
    while unread:
        sebs = min(side.look() for side in unread.values())
        yield {k: side.take(sebs) for k, side in unread.items()}
        unread = {k: side for k, side in sides.items() if side.left}


def _both(
    loaded: dict[int, LoadedBlock], layouts: tuple[Layout, Layout]
) -> tuple[LoadedBlock, LoadedBlock]:
    """Return both sides; one that is missing has the pieces of the other, without SEBs."""
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
    """Compare two log sets by meaning; `params` is the folder of param files that name events.

    By default each side has its own, and one without any takes those of the other. Memory is needed
    for two blocks per thread, whatever the size of the logs. Raise `DamagedLogError` if a side is
    damaged, and `RewriteLogError` if a file cannot be read.
    """
    folders, without_params = _params(a, b, params)
    work = partial(_compare_pair, a, b, folders)
    total_bytes = a.units_bytes + b.units_bytes
    totals = Totals()
    for _, of_pair in map_blocks(work, plan_pairs(a, b), "comparing", total_bytes):
        totals.add(of_pair)
    (old_machine, old), (new_machine, new) = map(_facts, (a, b))
    representation, machine = _changes(old, new), _changes(old_machine, new_machine)
    return Comparison((a, b), totals, representation, machine, without_params)


def _params(
    a: LogSet, b: LogSet, params: Path | None
) -> tuple[tuple[ParamFolder, ParamFolder], SideName | None]:
    """Return the params for each side, and the side without params of its own, if only one."""
    folders = [params or logs.folder for logs in (a, b)]
    listed = {folder: list_params(folder) for folder in folders}
    of_a, of_b = (listed[folder] for folder in folders)
    if bool(of_a.pes) == bool(of_b.pes):
        return (of_a, of_b), None
    return ((of_a, of_a), "B") if of_a.pes else ((of_b, of_b), "A")


def _facts(logs: LogSet) -> tuple[dict[str, str], dict[str, str]]:
    """Return facts of the emulated machine, and of its representation, even ones without effect."""
    summary = asdict(logs.summary)
    machine = {n: str(summary[k]) for k, n in format_names("summary").items() if k in summary}
    facts = {
        "log version": machine.pop("log version"),
        "byte order": logs.summary.order,
        "header version": str(logs.summary.header_version),
        "timeline files": machine.pop("timeline files"),
    }
    with InputFile(logs.summary_path) as file:
        facts["bytes of the summary"] = str(file.size_bytes)
        header = file.read(0, MACHINE_HEADER_BYTES).tobytes()
    for name, value in MachineHeader.parse(header).sizes.items():
        if isinstance(value, int) and not name.endswith("_format"):
            facts[f"{name.replace('_', ' ')} in the header"] = str(value)
    others = (file for file in logs.files if file.machine != header)
    odd = [f"{file.path.name} {file.machine.hex(' ')}" for file in others]
    more = f" and {len(odd) - 2:,} more ({crc32(' '.join(odd).encode()):08x})" if odd[2:] else ""
    facts["headers of timeline files"] = f"{', '.join(odd[:2])}{more}" or "that of the summary"
    return machine, facts


def _changes(old: dict[str, str], new: dict[str, str]) -> tuple[HeadDifference, ...]:
    return tuple(
        HeadDifference(name, old.get(name, "absent"), new.get(name, "absent"))
        for name in {**old, **new}
        if old.get(name) != new.get(name)
    )


def compare_opened(command: DiffCommand) -> Comparison:
    """Compare two log sets, or two sets of traces.

    Raise `UsageError` for different formats or ranks, `DamagedLogError` for damage.
    """
    a, b = command.a, command.b
    if isinstance(a, LogSet) and isinstance(b, LogSet):
        return compare_logs(a, b, command.params)
    if isinstance(a, LogSet) or isinstance(b, LogSet) or a.title != b.title:
        raise UsageError(f"{a.path} has {a.title}, {b.path} has {b.title}")
    from rewritelog.diffing.traces import compare_traces  # noqa: PLC0415 - not of logs

    return compare_traces(a, b)
