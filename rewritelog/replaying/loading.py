"""Loading of a log set into the arrays of a replay: blocks in parallel, then assembled by PE."""

from __future__ import annotations

import mmap
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from rewritelog.arrays import Floats, Ints
from rewritelog.cores import cores, in_order
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
from rewritelog.progress import report_progress
from rewritelog.replaying.kernels import links
from rewritelog.replaying.kernels.extract import extract
from rewritelog.replaying.kernels.interface import (
    MESSAGE_ROW,
    NOT_SENT,
    SEB_ROW,
    Dependents,
    MessageColumns,
    Numbers,
    Program,
    RegionColumns,
    SebColumns,
    Sebs,
    messages_of,
    sebs_of,
)
from rewritelog.replaying.workload import LinkFaults, Workload
from rewritelog.rewriting.predicting import Predictor

_MOST = np.iinfo(np.int32).max
_AHEAD = 2
_LEVELS = 4
_SEBS, _MESSAGES, _LINKS, _REGIONS = range(_LEVELS)

Name = TypeVar("Name", str, bytes)


@dataclass(frozen=True)
class _BlockColumns:
    """The columns of a block or part; assembling removes them one by one to save memory."""

    columns: dict[str, Any]
    """The columns of all levels by name, such as `sebs.name`."""
    pes: Ints
    """The PE of each piece."""
    firsts: Ints
    """The index of each piece's first SEB in its timeline."""
    bounds: Ints
    """The first SEB, message, dependency and region of each piece, shape (pieces + 1, 4)."""
    latest_s: float
    names: tuple[bytes, ...]
    events: tuple[str, ...]


@dataclass(frozen=True)
class LoadTask:
    """What is needed to load any block."""

    logs: LogSet
    params: ParamFolder
    predictor: Predictor
    predicts: bool
    """Whether the model predicts from param records."""
    strict: bool


def load_workload(
    logs: LogSet,
    predictor: Predictor,
    *,
    predicts: bool,
    params: Path | None = None,
    strict: bool = False,
    jobs: int = 0,
) -> Workload:
    """Load a log set for replays, with a model's durations for bracketed regions.

    Raise `DamagedLogError` with its location, `TimingError` for param records that cannot be used,
    or `ModelError`.
    """
    task = LoadTask(logs, list_params(params or logs.folder), predictor, predicts, strict)
    workers = cores(jobs)
    total = logs.timelines_bytes
    parts: list[_BlockColumns] = []
    with ThreadPoolExecutor(workers) as executor:
        done = 0
        blocks = plan_in_turn(logs.files)
        for block, found in in_order(executor, partial(_load, task), blocks, _AHEAD * workers):
            parts += found
            done += block.size_bytes
            report_progress("reading", done, total, "bytes")
    return _Assembly(logs, parts).workload()


def _load(task: LoadTask, block: Block) -> tuple[Block, list[_BlockColumns]]:
    """Return the columns of a block, or of each of its parts."""
    file = task.logs.files[block.file]
    with InputFile(file.path) as source:
        loaded = load_blocks(source, file, block, task.logs.layout, Buffer())
        return block, [_extract(task, part) for part in loaded]


def _extract(task: LoadTask, loaded: LoadedBlock) -> _BlockColumns:
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
    dependencies = _mapped_zeros(links_, np.int32)
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
    regions = _first_rows(regions, found)
    bounds = np.zeros((len(pieces.counts) + 1, _LEVELS), dtype=np.int64)
    bounds[1:, :_REGIONS] = np.cumsum(sizes, axis=0)
    bounds[:, _REGIONS] = np.searchsorted(regions.seb, bounds[:, _SEBS])
    levels: dict[str, Any] = {"sebs": seb_columns, "messages": message_columns, "regions": regions}
    taken = {
        f"{level}.{name}": column
        for level, found_columns in levels.items()
        for name, column in found_columns._asdict().items()
    }
    taken["dependencies"] = dependencies
    firsts = pieces.firsts.copy()
    texts = tuple(names_of(names))
    return _BlockColumns(taken, loaded.pes.copy(), firsts, bounds, latest_s, texts, records.events)


def _mapped_zeros(count: int, kind: type[np.generic]) -> Any:
    """Return an array of zeros in its own memory mapping, which is returned to the system with it.

    Memory freed to the heap usually is not, and the columns of a log set take as much as the
    assembled arrays.
    """
    size = count * np.dtype(kind).itemsize
    if size < mmap.PAGESIZE:
        return np.zeros(count, dtype=kind)
    return np.frombuffer(mmap.mmap(-1, size), dtype=kind)


def _seb_columns(count: int, *, fixed: bool) -> SebColumns:
    name, source, number, messages, dependencies = (
        _mapped_zeros(count, np.int32) for _ in range(5)
    )
    scaled_s, fixed_s = (
        _mapped_zeros(count, np.float64),
        _mapped_zeros(count if fixed else 0, np.float64),
    )
    flags = _mapped_zeros(count, np.uint8)
    return SebColumns(scaled_s, fixed_s, name, flags, source, number, messages, dependencies)


def _message_columns(count: int, *, fixed: bool) -> MessageColumns:
    size, number, node = (_mapped_zeros(count, np.int32) for _ in range(3))
    scaled_s, fixed_s = (
        _mapped_zeros(count, np.float64),
        _mapped_zeros(count if fixed else 0, np.float64),
    )
    transit_s, worker = _mapped_zeros(count, np.float64), _mapped_zeros(count, np.int16)
    return MessageColumns(scaled_s, fixed_s, transit_s, size, number, node, worker)


def _first_rows(regions: RegionColumns, count: int) -> RegionColumns:
    """Return copies of the first rows, so that the memory of the others is freed."""
    columns: Any = (column[:count].copy() for column in regions)
    return RegionColumns(*columns)


def _region_columns(count: int) -> RegionColumns:
    seb, event = (np.empty(count, dtype=np.int32) for _ in range(2))
    return RegionColumns(seb, event, *(np.empty(count) for _ in range(4)))


class _Assembly:
    """Assembles the parts of all blocks in the order of the PEs."""

    def __init__(self, logs: LogSet, parts: list[_BlockColumns]) -> None:
        self._logs = logs
        self._parts = parts
        pieces = [
            (int(pe), int(first), part, piece)
            for part, found in enumerate(parts)
            for piece, (pe, first) in enumerate(zip(found.pes, found.firsts, strict=True))
        ]
        pieces.sort()
        self._runs = _runs([(part, piece) for _, _, part, piece in pieces])
        """Runs of consecutive pieces: the part, the first piece, and the end of the run."""

    def workload(self) -> Workload:
        """Return the assembled workload; the parts have no columns afterwards."""
        names, name_codes = _numbered([part.names for part in self._parts])
        events, event_codes = _numbered([part.events for part in self._parts])
        sizes = [int(n) for n in np.sum([part.bounds[-1] for part in self._parts], axis=0)]
        if max(sizes) >= _MOST:
            raise RewriteLogError(
                f"{self._logs.folder}: a replay takes at most {_MOST:,} SEBs, messages and "
                f"dependencies; the log set has {max(sizes):,}"
            )
        first_of_pe = self._first_of_pe()
        regions = self._regions(event_codes)
        sebs = np.zeros(sizes[_SEBS] + 1, dtype=SEB_ROW)
        messages = np.zeros(sizes[_MESSAGES] + 1, dtype=MESSAGE_ROW)
        self._recode("sebs.name", name_codes)
        for name in ("scaled_s", "name", "flags"):
            self._fill(sebs[name], f"sebs.{name}", _SEBS)
        for name in ("scaled_s", "transit_s", "size_bytes"):
            self._fill(messages[name], f"messages.{name}", _MESSAGES)
        for first, counts in (("first_message", "messages"), ("first_dependency", "dependencies")):
            self._fill(sebs[first][1:], f"sebs.{counts}", _SEBS)
            np.cumsum(sebs[first], out=sebs[first])
        sebs["pe"][:-1] = np.repeat(
            np.arange(len(first_of_pe) - 1, dtype=np.int32), np.diff(first_of_pe)
        )
        program = Program(
            sebs_of(sebs, self._fixed("sebs"), self._array("dependencies", _LINKS), first_of_pe),
            messages_of(messages, self._fixed("messages"), np.empty(0, np.int32)),
            Dependents(sebs["first_dependent"], np.empty(0, np.int32)),
        )
        program, faults = self._with_links(program)
        return Workload(
            program=program,
            names=tuple(name.decode("utf-8", "backslashreplace") for name in names),
            events=tuple(events),
            regions=regions,
            pes=self._logs.summary.total_pes,
            workers=self._logs.summary.num_wth,
            recorded_s=max((part.latest_s for part in self._parts), default=0.0),
            faults=faults,
        )

    def _with_links(self, program: Program) -> tuple[Program, LinkFaults]:
        """Return the program with the links between SEBs and messages, and their irregularities."""
        sebs, messages = program.sebs, program.messages
        bounds = sebs.first_message[sebs.first_of_pe].astype(np.int64)
        source, number = (self._array(f"sebs.{name}", _SEBS) for name in ("source", "number"))
        repeated = _match_starters(
            sebs, source, number, self._array("messages.number", _MESSAGES), bounds
        )
        not_sent = np.flatnonzero(sebs.starter == NOT_SENT).astype(np.int32)
        not_sent_ids = np.column_stack([source[not_sent], number[not_sent]])
        del source, number
        misaddressed, example = links.count_misaddressed(
            sebs.starter,
            sebs.pe,
            self._array("messages.node", _MESSAGES),
            self._array("messages.worker", _MESSAGES),
            self._logs.summary.num_wth,
        )
        receivers = links.invert(sebs.starter, messages.first_receiver)
        dependents = links.invert_dependencies(sebs, program.dependents.first)
        at = None
        if example >= 0:
            pe = int(sebs.pe[example])
            at = pe, int(example - sebs.first_of_pe[pe])
        faults = LinkFaults(
            not_sent=not_sent,
            not_sent_ids=not_sent_ids,
            misaddressed=misaddressed,
            misaddressed_example=at,
            repeated_numbers=repeated,
            negative_transit=int(np.count_nonzero(~(messages.transit_s >= 0))),
        )
        whole = Program(
            sebs,
            messages._replace(receivers=receivers),
            program.dependents._replace(sebs=dependents),
        )
        return whole, faults

    def _first_of_pe(self) -> Numbers:
        counts = np.zeros(self._logs.summary.total_pes + 1, dtype=np.int64)
        for part in self._parts:
            np.add.at(counts, part.pes + 1, np.diff(part.bounds[:, _SEBS]))
        return np.cumsum(counts).astype(np.int32)

    def _recode(self, column: str, codes: list[Numbers]) -> None:
        """Replace the codes of names within each part by those in the log set."""
        for part, code in zip(self._parts, codes, strict=True):
            if len(code):
                part.columns[column] = code[part.columns[column]]

    def _fill(self, target: Any, column: str, level: int) -> None:
        """Fill an array with a column of all parts, and drop those of the parts."""
        of_parts = [part.columns.pop(column) for part in self._parts]
        done = 0
        for part, first, last in self._runs:
            bounds = self._parts[part].bounds
            low, high = int(bounds[first, level]), int(bounds[last, level])
            target[done : done + high - low] = of_parts[part][low:high]
            done += high - low

    def _array(self, column: str, level: int) -> Any:
        """Return a column of all parts as an array, and drop those of the parts."""
        kind = self._parts[0].columns[column].dtype
        target = np.empty(sum(int(part.bounds[-1, level]) for part in self._parts), dtype=kind)
        self._fill(target, column, level)
        return target

    def _fixed(self, level_name: str) -> Floats:
        """Return the fixed seconds of a level; an empty array if no part has any."""
        column = f"{level_name}.fixed_s"
        if all(len(part.columns[column]) == 0 for part in self._parts):
            return np.empty(0)
        fixed: Floats = self._array(column, _SEBS if level_name == "sebs" else _MESSAGES)
        return fixed

    def _regions(self, codes: list[Numbers]) -> RegionColumns:
        """Return the middle regions, with the numbers of their SEBs in the log set."""
        begins = self._first_of_pe()
        for part in self._parts:
            shift = begins[part.pes] + part.firsts - part.bounds[:-1, _SEBS]
            by_row = np.repeat(shift, np.diff(part.bounds[:, _REGIONS]))
            part.columns["regions.seb"] = (part.columns["regions.seb"] + by_row).astype(np.int32)
        self._recode("regions.event", codes)
        names = RegionColumns._fields
        return RegionColumns(*(self._array(f"regions.{name}", _REGIONS) for name in names))


def _match_starters(
    sebs: Sebs, source: Numbers, number: Numbers, sent: Numbers, bounds: Ints
) -> int:
    """Fill in the starting message of each SEB; return how many messages repeat a number."""
    rising, repeated = links.rises(sent, bounds)
    order = np.empty(0, dtype=np.int32)
    if not rising:
        sender = np.repeat(np.arange(len(bounds) - 1, dtype=np.int32), np.diff(bounds))
        order = np.lexsort((sent, sender)).astype(np.int32)
        _, repeated = links.rises(sent[order], bounds)
    links.match_messages(source, number, sent, order, bounds, sebs.starter)
    return int(repeated)


def _runs(pieces: list[tuple[int, int]]) -> list[tuple[int, int, int]]:
    runs: list[tuple[int, int, int]] = []
    for part, piece in pieces:
        if runs and runs[-1][0] == part and runs[-1][2] == piece:
            runs[-1] = (part, runs[-1][1], piece + 1)
        else:
            runs.append((part, piece, piece + 1))
    return runs


def _numbered(lists: list[tuple[Name, ...]]) -> tuple[list[Name], list[Numbers]]:
    """Return all distinct names sorted, and for each list the index of each of its names."""
    every = sorted({name for names in lists for name in names})
    numbers = {name: number for number, name in enumerate(every)}
    codes = [np.array([numbers[name] for name in names], dtype=np.int32) for names in lists]
    return every, codes
