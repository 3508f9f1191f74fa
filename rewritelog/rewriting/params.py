"""The param records of a block: which SEB ran which event with which parameters."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rewritelog.errors import RewriteLogError, TimingError
from rewritelog.logs.blocks import LoadedBlock
from rewritelog.logs.files import InputFile
from rewritelog.models.base import Floats
from rewritelog.rewriting.timings import FAULTS_SHOWN, fault_text
from tracebigsim.errors import TraceFileError
from tracebigsim.files import scan_file
from tracebigsim.lines import LineTable, scan

Ints = NDArray[np.int64]

SMALL_BYTES = 1 << 20
"""Param files up to this size are read whole and scanned together."""

_NEWLINE = np.frombuffer(b"\n", dtype=np.uint8)


@dataclass(frozen=True)
class ParamRecords:
    """The records of a block in rising order of piece and SEB, as they stand in the files."""

    events: tuple[str, ...]
    event: Ints
    """Index into `events`."""
    piece: Ints
    seb: Ints
    """Index of the SEB in its timeline."""
    param_start: Ints
    param_count: Ints
    params: Floats
    """Record i has `param_count[i]` of these from `param_start[i]`."""

    def table(self, rows: Ints, count: int) -> Floats:
        """Return the parameters of rows that have `count` of them, shape (rows, count)."""
        chosen: Floats = self.params[self.param_start[rows][:, None] + np.arange(count)]
        return chosen


_NONE = np.zeros(0, dtype=np.int64)

NO_RECORDS = ParamRecords((), _NONE, _NONE, _NONE, _NONE, _NONE, np.zeros(0))


@dataclass
class ParamNotes:
    """What is odd about the param files of a block."""

    faulty: int = 0
    faults: list[str] = field(default_factory=list)
    seqno_differs: int = 0
    seqno_examples: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class ParamFolder:
    """A folder with `param.P` files, listed once."""

    folder: Path
    pes: frozenset[int]

    def path(self, pe: int) -> Path:
        """Return the file of a PE."""
        return self.folder / f"param.{pe}"


def list_params(folder: Path) -> ParamFolder:
    """List the `param.P` files of a folder; raise `RewriteLogError` where it cannot be read."""
    pes = set()
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                number = entry.name.removeprefix("param.")
                if number.isdecimal() and entry.name == f"param.{int(number)}":
                    pes.add(int(number))
    except OSError as error:
        raise RewriteLogError(f"{folder}: cannot be read: {error.strerror}") from error
    return ParamFolder(folder, frozenset(pes))


def read_params(
    source: ParamFolder, loaded: LoadedBlock, *, strict: bool
) -> tuple[ParamRecords, ParamNotes]:
    """Read the records of a block's SEBs, and those for SEBs that their timeline does not have.

    Raise `TimingError` for a file that cannot be read and, with `strict`, for a malformed line.
    """
    notes = ParamNotes()
    parts = []
    for scanned in _scan_files(source, loaded):
        _note_faults(scanned, notes, loaded, strict=strict)
        parts.append(_rows(scanned, loaded, notes))
    return _joined(parts), notes


@dataclass(frozen=True)
class _Scanned:
    """Param files that were scanned as one text, or a part of a file."""

    table: LineTable
    texts: list[NDArray[np.uint8]]
    """The text of each file; none where the table's lines and offsets are those of one file."""
    pieces: Ints
    """The piece of each file."""
    paths: list[Path]

    def file_of(self, offsets: Ints) -> Ints:
        """Return which of the files the lines at the offsets stand in."""
        ends = np.cumsum([len(text) + 1 for text in self.texts[:-1]], dtype=np.int64)
        return np.searchsorted(ends, offsets, side="right").astype(np.int64)

    def where(self, offset: int, line: int) -> tuple[Path, int]:
        """Return the file and the line in it of what stands at a line and offset of the scan."""
        file = int(self.file_of(np.array([offset]))[0])
        before = sum(1 + int(np.count_nonzero(text == _NEWLINE)) for text in self.texts[:file])
        return self.paths[file], line - before


def _scan_files(source: ParamFolder, loaded: LoadedBlock) -> Iterator[_Scanned]:
    """Scan a block's param files: the small ones all together, the large ones in parts."""
    texts, pieces, paths = [], [], []
    for piece, pe in enumerate(loaded.pes.tolist()):
        if pe not in source.pes:
            continue
        path = source.path(pe)
        with InputFile(path) as file:
            if file.size_bytes <= SMALL_BYTES:
                texts.append(file.read(0, file.size_bytes))
                pieces.append(piece)
                paths.append(path)
                continue
        try:
            for table in scan_file(path):
                yield _Scanned(table, [], np.array([piece]), [path])
        except TraceFileError as error:
            raise TimingError(str(error)) from error
    if texts:
        joined = np.concatenate([part for text in texts for part in (text, _NEWLINE)])
        yield _Scanned(scan(joined), texts, np.array(pieces), paths)


def _note_faults(
    scanned: _Scanned, notes: ParamNotes, loaded: LoadedBlock, *, strict: bool
) -> None:
    """Note malformed lines and those of no SEB, once for a timeline that is cut into blocks."""
    if loaded.block.cut is not None and loaded.block.cut.first_seb > 0:
        return
    table = scanned.table
    notes.faulty += table.fault_count
    for fault in table.faults[: FAULTS_SHOWN - len(notes.faults)]:
        path, line = scanned.where(fault.offset_bytes, fault.line)
        notes.faults.append(fault_text(path, line, fault.problem, fault.text))
    nowhere = np.flatnonzero((table.seb < 0) & (table.seqno < 0))
    notes.faulty += len(nowhere)
    for row in nowhere[: FAULTS_SHOWN - len(notes.faults)]:
        path, line = scanned.where(int(table.offset[row]), int(table.line[row]))
        notes.faults.append(f"{path}:{line}: a timing line, without the number of a SEB")
    if strict and notes.faults:
        raise TimingError(notes.faults[0])


@dataclass(frozen=True)
class _Rows:
    """The lines of a scan that the block asked for."""

    table: LineTable
    rows: Ints
    piece: Ints
    seb: Ints


def _rows(scanned: _Scanned, loaded: LoadedBlock, notes: ParamNotes) -> _Rows:
    table = scanned.table
    seb = np.where(table.seb >= 0, table.seb, table.seqno)
    piece = scanned.pieces[scanned.file_of(table.offset)]
    wanted = np.ones(len(table), dtype=np.bool_)
    if loaded.block.cut is not None:
        cut = loaded.block.cut
        wanted = (seb >= cut.first_seb) & (cut.last | (seb < cut.first_seb + cut.sebs))
    wanted &= seb >= 0
    differs = wanted & (table.seb >= 0) & (table.seqno >= 0) & (table.seb != table.seqno)
    if differs.any():
        first = int(np.argmax(differs))
        path, line = scanned.where(int(table.offset[first]), int(table.line[first]))
        notes.seqno_differs += int(np.count_nonzero(differs))
        notes.seqno_examples.append(
            f"{path}:{line}: SEB {table.seb[first]}, but seqno {table.seqno[first]}"
        )
    rows = np.flatnonzero(wanted)
    return _Rows(table, rows, piece[rows], seb[rows])


def _joined(parts: list[_Rows]) -> ParamRecords:
    """Return the rows of all parts as one table, sorted by piece and SEB, in the files' order."""
    names: dict[str, int] = {}
    events, starts, counts, params = [], [], [], []
    base = 0
    for part in parts:
        numbers = [names.setdefault(name, len(names)) for name in part.table.events]
        events.append(np.array([*numbers, -1])[part.table.event[part.rows]])
        starts.append(part.table.param_start[part.rows] + base)
        counts.append(np.diff(part.table.param_start)[part.rows])
        params.append(part.table.params)
        base += len(part.table.params)
    none = [_NONE]
    piece = np.concatenate(none + [part.piece for part in parts])
    seb = np.concatenate(none + [part.seb for part in parts])
    order = np.lexsort((seb, piece))
    return ParamRecords(
        events=tuple(names),
        event=np.concatenate(none + events)[order],
        piece=piece[order],
        seb=seb[order],
        param_start=np.concatenate(none + starts)[order],
        param_count=np.concatenate(none + counts)[order],
        params=np.concatenate([np.zeros(0), *params]),
    )
