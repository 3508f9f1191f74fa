"""A log set as the arrays of a replay: blocks are read on all cores, and put together by PE."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from rewritelog.arrays import Ints
from rewritelog.errors import RewriteLogError
from rewritelog.kernels.names import names_of, names_of_block
from rewritelog.kernels.walk import FAULT_SIZE, tally
from rewritelog.logs.blocks import (
    Block,
    Buffer,
    LoadedBlock,
    load_blocks,
    plan_in_turn,
    raise_fault,
)
from rewritelog.logs.files import InputFile
from rewritelog.logs.logset import LogSet
from rewritelog.logs.params import ParamFolder, list_params, read_params
from rewritelog.logs.work import in_order
from rewritelog.replaying.kernels import links
from rewritelog.replaying.kernels.extract import extract
from rewritelog.replaying.kernels.interface import (
    NOT_SENT,
    Dependents,
    MessageColumns,
    Messages,
    Numbers,
    Program,
    RegionColumns,
    SebColumns,
    Sebs,
)
from rewritelog.replaying.workload import LinkFaults, Workload
from rewritelog.rewriting.predicting import Predictor

Progress = Callable[[str, int, int], Any]
"""Called with the stage, what was done of it, and what there is to do."""

_MOST = np.iinfo(np.int32).max
_AHEAD = 2
_LEVELS = 4
_SEBS, _MESSAGES, _LINKS, _REGIONS = range(_LEVELS)

Name = TypeVar("Name", str, bytes)


class _Part(NamedTuple):
    """The columns of a block, or of a part of one."""

    sebs: SebColumns
    messages: MessageColumns
    dependencies: Numbers
    regions: RegionColumns
    pes: Ints
    """The PE of each piece."""
    firsts: Ints
    """The index of each piece's first SEB in its timeline."""
    bounds: Ints
    """Where each piece's SEBs, messages, dependencies and regions begin; shape (pieces + 1, 4)."""
    latest_s: float
    names: tuple[bytes, ...]
    events: tuple[str, ...]


@dataclass(frozen=True)
class LoadTask:
    """What the loading of any block needs."""

    logs: LogSet
    params: ParamFolder
    predictor: Predictor
    predicts: bool
    """Whether the predictor can give any duration."""
    strict: bool


def load_workload(
    logs: LogSet,
    predictor: Predictor,
    *,
    predicts: bool,
    params: Path | None = None,
    strict: bool = False,
    jobs: int = 0,
    progress: Progress | None = None,
) -> Workload:
    """Load a log set for replays, its bracketed regions with the durations of a model.

    Raise `DamagedLogError` with its place, `TimingError` or `ModelError` for what cannot be used.
    """
    task = LoadTask(logs, list_params(params or logs.folder), predictor, predicts, strict)
    workers = jobs or len(os.sched_getaffinity(0))
    total = logs.size_bytes - sum(file.head_bytes for file in logs.files)
    parts: list[_Part] = []
    with ThreadPoolExecutor(workers) as executor:
        done = 0
        blocks = plan_in_turn(logs.files)
        for block, found in in_order(executor, partial(_load, task), blocks, _AHEAD * workers):
            parts += found
            done += block.size_bytes
            if progress is not None:
                progress("reading", done, total)
    return _Assembly(logs, parts).workload()


def _load(task: LoadTask, block: Block) -> tuple[Block, list[_Part]]:
    """Return the columns of a block, or of its parts one by one."""
    file = task.logs.files[block.file]
    with InputFile(file.path) as source:
        loaded = load_blocks(source, file, block, task.logs.layout, Buffer())
        return block, [_extract(task, part) for part in loaded]


def _extract(task: LoadTask, loaded: LoadedBlock) -> _Part:
    lay = task.logs.layout.kernel
    pieces = loaded.pieces
    fault = np.zeros(FAULT_SIZE, dtype=np.int64)
    totals = tally(loaded.buffer, pieces.starts, pieces.ends, pieces.counts, lay, fault)
    raise_fault(fault, loaded)
    columns = task.predictor.columns
    records, _ = read_params(task.params, loaded, strict=task.strict, columns=columns)
    predicted = task.predictor.predict(records, loaded.pes)
    begins = np.searchsorted(records.piece, np.arange(len(loaded.pes) + 1))
    names = names_of_block(loaded.buffer, loaded.pieces, task.logs.layout.kernel)
    sizes = np.column_stack([pieces.counts, totals[:, 0], totals[:, 2]])
    sebs, messages, links_ = (int(n) for n in sizes.sum(axis=0))
    seb_columns = _seb_columns(sebs, fixed=task.predicts)
    message_columns = _message_columns(messages, fixed=task.predicts)
    dependencies = np.empty(links_, dtype=np.int32)
    regions = _region_columns(len(records.seb))
    found, latest_s = extract(
        loaded.buffer,
        pieces,
        lay,
        names,
        begins,
        predicted.kernel,
        records.event,
        seb_columns,
        message_columns,
        dependencies,
        regions,
        fault,
    )
    raise_fault(fault, loaded)
    regions = _cut(regions, found)
    bounds = np.zeros((len(pieces.counts) + 1, _LEVELS), dtype=np.int64)
    bounds[1:, :_REGIONS] = np.cumsum(sizes, axis=0)
    bounds[:, _REGIONS] = np.searchsorted(regions.seb, bounds[:, _SEBS])
    return _Part(
        seb_columns,
        message_columns,
        dependencies,
        regions,
        loaded.pes.copy(),
        pieces.firsts.copy(),
        bounds,
        latest_s,
        tuple(names_of(names)),
        records.events,
    )


def _seb_columns(count: int, *, fixed: bool) -> SebColumns:
    whole = (np.empty(count, dtype=np.int32) for _ in range(5))
    name, source, number, messages, dependencies = whole
    return SebColumns(
        np.empty(count),
        np.zeros(count if fixed else 0),
        name,
        np.empty(count, dtype=np.uint8),
        source,
        number,
        messages,
        dependencies,
    )


def _message_columns(count: int, *, fixed: bool) -> MessageColumns:
    size, number, node = (np.empty(count, dtype=np.int32) for _ in range(3))
    return MessageColumns(
        np.empty(count),
        np.zeros(count if fixed else 0),
        np.empty(count),
        size,
        number,
        node,
        np.empty(count, dtype=np.int16),
    )


def _cut(regions: RegionColumns, count: int) -> RegionColumns:
    """Return the first rows, without the memory of the others."""
    columns: Any = (column[:count].copy() for column in regions)
    return RegionColumns(*columns)


def _region_columns(count: int) -> RegionColumns:
    seb, event = (np.empty(count, dtype=np.int32) for _ in range(2))
    return RegionColumns(seb, event, *(np.empty(count) for _ in range(4)))


class _Assembly:
    """Puts the parts of all blocks together in the order of the PEs."""

    def __init__(self, logs: LogSet, parts: list[_Part]) -> None:
        self._logs = logs
        self._parts = parts
        pieces = [
            (int(pe), int(first), part, piece)
            for part, found in enumerate(parts)
            for piece, (pe, first) in enumerate(zip(found.pes, found.firsts, strict=True))
        ]
        pieces.sort()
        self._runs = _runs([(part, piece) for _, _, part, piece in pieces])
        """Pieces that follow one another in a part: the part, the first and after the last."""

    def workload(self) -> Workload:
        """Return all that the parts hold; they are empty afterwards."""
        names, name_codes = _numbered([part.names for part in self._parts])
        events, event_codes = _numbered([part.events for part in self._parts])
        sizes = np.sum([part.bounds[-1] for part in self._parts], axis=0)
        if sizes.max(initial=0) > _MOST:
            raise RewriteLogError(
                f"{self._logs.folder}: a replay takes at most {_MOST:,} SEBs, messages and "
                f"dependencies; the log set has {int(sizes.max()):,}"
            )
        first_of_pe = self._first_of_pe()
        pe = np.repeat(np.arange(len(first_of_pe) - 1, dtype=np.int32), np.diff(first_of_pe))
        regions = self._regions(event_codes)
        sebs = self._joined("sebs", _SEBS, {"name": name_codes})
        messages = self._joined("messages", _MESSAGES, {})
        dependencies = np.concatenate(
            [np.empty(0, np.int32), *self._slices(_LINKS, [p.dependencies for p in self._parts])]
        )
        latest_s = max((part.latest_s for part in self._parts), default=0.0)
        self._parts = []
        program, faults = _linked(
            SebColumns(**sebs),
            MessageColumns(**messages),
            dependencies,
            pe,
            first_of_pe,
            self._logs.summary.num_wth,
        )
        return Workload(
            program=program,
            names=tuple(name.decode("utf-8", "backslashreplace") for name in names),
            events=tuple(events),
            regions=regions,
            pes=self._logs.summary.total_pes,
            workers=self._logs.summary.num_wth,
            recorded_s=latest_s,
            faults=faults,
        )

    def _first_of_pe(self) -> Numbers:
        counts = np.zeros(self._logs.summary.total_pes + 1, dtype=np.int64)
        for part in self._parts:
            np.add.at(counts, part.pes + 1, np.diff(part.bounds[:, _SEBS]))
        return np.cumsum(counts).astype(np.int32)

    def _slices(self, level: int, columns: list[Any]) -> Iterator[Any]:
        for part, first, last in self._runs:
            bounds = self._parts[part].bounds
            yield columns[part][bounds[first, level] : bounds[last, level]]

    def _joined(self, level_name: str, level: int, codes: dict[str, list[Numbers]]) -> Any:
        """Return the columns of a level, each in one piece; those of the parts are let go."""
        columns = {}
        kinds = [getattr(part, level_name) for part in self._parts]
        emptied: Any = {level_name: None}
        self._parts = [part._replace(**emptied) for part in self._parts]
        for field in kinds[0]._fields:
            of_parts = [getattr(kind, field) for kind in kinds]
            if field in codes:
                of_parts = [code[one] for code, one in zip(codes[field], of_parts, strict=True)]
            if all(len(one) == 0 for one in of_parts):
                columns[field] = of_parts[0]
            else:
                columns[field] = np.concatenate(list(self._slices(level, of_parts)))
            kinds = [kind._replace(**{field: None}) for kind in kinds]
        return columns

    def _regions(self, codes: list[Numbers]) -> RegionColumns:
        """Return the middle regions with the numbers of their SEBs in the log set."""
        begins = self._first_of_pe()
        for number, part in enumerate(self._parts):
            shift = begins[part.pes] + part.firsts - part.bounds[:-1, _SEBS]
            by_row = np.repeat(shift, np.diff(part.bounds[:, _REGIONS]))
            seb = (part.regions.seb + by_row).astype(np.int32)
            self._parts[number] = part._replace(regions=part.regions._replace(seb=seb))
        return RegionColumns(**self._joined("regions", _REGIONS, {"event": codes}))


def _runs(pieces: list[tuple[int, int]]) -> list[tuple[int, int, int]]:
    runs: list[tuple[int, int, int]] = []
    for part, piece in pieces:
        if runs and runs[-1][0] == part and runs[-1][2] == piece:
            runs[-1] = (part, runs[-1][1], piece + 1)
        else:
            runs.append((part, piece, piece + 1))
    return runs


def _numbered(lists: list[tuple[Name, ...]]) -> tuple[list[Name], list[Numbers]]:
    """Return all distinct names sorted, and for each list their numbers among these."""
    every = sorted({name for names in lists for name in names})
    numbers = {name: number for number, name in enumerate(every)}
    codes = [np.array([numbers[name] for name in names], dtype=np.int32) for names in lists]
    return every, codes


def _linked(
    sebs: SebColumns,
    messages: MessageColumns,
    dependencies: Numbers,
    pe: Numbers,
    first_of_pe: Numbers,
    workers: int,
) -> tuple[Program, LinkFaults]:
    """Return the program with everybody who starts or awaits anybody, and what is odd about it."""
    first_message, first_dependency = (_begins(n) for n in (sebs.messages, sebs.dependencies))
    bounds = first_message[first_of_pe].astype(np.int64)
    rising, repeated = links.rises(messages.number, bounds)
    order = np.empty(0, dtype=np.int32)
    if not rising:
        sender = np.repeat(np.arange(len(bounds) - 1, dtype=np.int32), np.diff(bounds))
        order = np.lexsort((messages.number, sender)).astype(np.int32)
        _, repeated = links.rises(messages.number[order], bounds)
    starter = links.match_messages(sebs.source, sebs.number, messages.number, order, bounds)
    misaddressed, example = links.count_misaddressed(
        starter, pe, messages.node, messages.worker, workers
    )
    first_receiver, receivers = links.invert(starter, len(messages.number))
    dependents = Dependents(
        *links.invert_dependencies(first_dependency, dependencies, pe, first_of_pe)
    )
    program = Program(
        Sebs(
            sebs.scaled_s,
            sebs.fixed_s,
            sebs.name,
            pe,
            sebs.flags,
            starter,
            first_message,
            first_dependency,
            dependencies,
            first_of_pe,
        ),
        Messages(
            messages.scaled_s,
            messages.fixed_s,
            messages.transit_s,
            messages.size_bytes,
            first_receiver,
            receivers,
        ),
        dependents,
    )
    at = None if example < 0 else (int(pe[example]), int(example - first_of_pe[pe[example]]))
    not_sent = np.flatnonzero(starter == NOT_SENT).astype(np.int32)
    faults = LinkFaults(
        not_sent=not_sent,
        not_sent_ids=np.column_stack([sebs.source[not_sent], sebs.number[not_sent]]),
        misaddressed=misaddressed,
        misaddressed_example=at,
        repeated_numbers=repeated,
        negative_transit=int(np.count_nonzero(~(messages.transit_s >= 0))),
    )
    return program, faults


def _begins(counts: Numbers) -> Numbers:
    """Return where the items of each begin, given their counts."""
    begins = np.zeros(len(counts) + 1, dtype=np.int32)
    np.cumsum(counts, out=begins[1:])
    return begins
