"""Param records: the events and parameters of brackets, read from files, and paired."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from rewritelog.arrays import Columns, Flags, Floats, Ints, joined_texts, spans
from rewritelog.errors import RewriteLogError, TimingError
from rewritelog.formats import NO_RECORDS, ParamRecords
from rewritelog.formats.bgtrace.blocks import LoadedBlock
from rewritelog.formats.bgtrace.records import BlockRecords
from rewritelog.formats.files import InputFile
from rewritelog.text import FAULTS_SHOWN, bytes_text, count_text, fault_text
from tracebigsim.errors import TraceFileError
from tracebigsim.files import compression_of, read_text_chunks
from tracebigsim.lines import LineTable, scan

if TYPE_CHECKING:
    from rewritelog.formats.bgtrace.logset import LogSet
    from rewritelog.formats.traces import AnyTraces

SMALL_BYTES = 1 << 20
"""Param files up to this size are read as a whole and scanned together."""

SPAN_BYTES = 1 << 20
"""Larger param files are read in spans of about this size."""

_MOST_SMALL_BYTES = 16 << 20
"""Small files are scanned together up to this total size."""

MOST_RECORD_BYTES = 256 << 20
"""The most memory for the records of a block. Those of a SEB take a few hundred bytes, and a block
of 16 MB has about a hundred thousand SEBs."""

_NEWLINE = np.frombuffer(b"\n", dtype=np.uint8)


def about_malformed(lines: int) -> Iterator[str]:
    """Yield the warning of jobs that count malformed param lines, if there are any."""
    if lines:
        yield f"{count_text(lines, 'malformed param line')} not used; `rewritelog check` says which"


def about_none(params: ParamFolder, logs: LogSet) -> Iterator[str]:
    """Yield the warning of a folder other than that of the logs, if it has no param files."""
    if params.folder != logs.folder and not params.pes:
        yield f"{params.folder} has no param files"


class ParamNotes(Struct):
    """Irregularities in the param files of a block, for warnings."""

    malformed: int = 0
    malformed_examples: list[str] = []
    seqno_differs: int = 0
    seqno_examples: list[str] = []
    unreadable: list[tuple[int, RewriteLogError]] = []
    """The PEs whose files were left out, each with the reason."""


class ParamFolder(Struct, frozen=True):
    """A folder with `param.P` files, listed once."""

    folder: Path
    pes: frozenset[int]

    def path(self, pe: int) -> Path:
        """Return the path of a PE's param file."""
        return self.folder / f"param.{pe}"


def list_params(folder: Path) -> ParamFolder:
    """List the `param.P` files of a folder; raise `RewriteLogError` if it cannot be read."""
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


def params_folder(logs: LogSet, other: AnyTraces) -> Path:
    """Return the folder with the params of `logs`: its own, or that of `other` if that has any.

    A rewrite keeps the sizes of all files, and leaves the params in the folder of its input.
    """
    sizes, others = ([file.size_bytes for file in of.files] for of in (logs, other))
    if sizes != others or list_params(logs.folder).pes:
        return logs.folder
    return other.folder if list_params(other.folder).pes else logs.folder


SebRange: TypeAlias = tuple[int, float]
"""A range of SEBs of a timeline: the first, and the first after them, or inf for no limit."""

ALL_SEBS: SebRange = (0, math.inf)


def read_params(
    source: ParamFolder,
    loaded: LoadedBlock,
    *,
    strict: bool,
    columns: Columns = "params",
    leave_out: bool = False,
) -> tuple[ParamRecords, ParamNotes]:
    """Read the param records of a block's SEBs, and of SEBs beyond the end of their timelines.

    Raise as `read_records` does.
    """
    pes, sebs = loaded.pes.tolist(), loaded.seb_range
    return read_records(source, pes, sebs, strict=strict, columns=columns, leave_out=leave_out)


def read_records(
    source: ParamFolder,
    pes: Sequence[int],
    sebs: SebRange = ALL_SEBS,
    *,
    strict: bool,
    columns: Columns = "params",
    leave_out: bool = False,
) -> tuple[ParamRecords, ParamNotes]:
    """Read the param records of PEs, the i-th being piece i, or of a range of SEBs of a single PE.

    Raise `RewriteLogError` for a file that cannot be read; with `leave_out`, it is left out and
    noted. Raise `TimingError` for too many records and, if `strict`, for a malformed line.
    """
    notes = ParamNotes()
    parts = []
    kept_bytes = 0
    for scanned in _scan_files(source, pes, sebs, notes if leave_out else None):
        if sebs[0] == 0:  # only once for a timeline that is read in parts
            _note_malformed(scanned, notes, strict=strict)
        parts.append(_records_in_range(scanned, sebs, notes, columns))
        kept_bytes += parts[-1].size_bytes
        if kept_bytes > MOST_RECORD_BYTES:
            raise TimingError(
                f"{scanned.paths[-1]}: the records of some SEBs take more than "
                f"{bytes_text(MOST_RECORD_BYTES)}: the params are damaged, or belong to other logs"
            )
    return join_records(parts), notes


class _Scanned(Struct, frozen=True):
    """Several param files scanned as one text, or a part of one file."""

    table: LineTable
    texts: list[NDArray[np.uint8]]
    """The text of each file; empty if lines and offsets of the table are those of a single file."""
    pieces: Ints
    """The piece of each file."""
    paths: list[Path]
    lines_before: int = 0
    """The number of lines in the file before the scanned part."""

    def file_of(self, offsets: Ints) -> Ints:
        """Return the index of the file of each offset."""
        ends = np.cumsum([len(text) + 1 for text in self.texts[:-1]], dtype=np.int64)
        return np.searchsorted(ends, offsets, side="right").astype(np.int64)

    def where(self, offset: int, line: int) -> tuple[Path, int]:
        """Return path and line in the file for an offset and line of the scanned text."""
        file = int(self.file_of(np.array([offset]))[0])
        before = sum(1 + int(np.count_nonzero(text == _NEWLINE)) for text in self.texts[:file])
        return self.paths[file], line - before + self.lines_before


def _scan_files(
    source: ParamFolder, pes: Sequence[int], sebs: SebRange, notes: ParamNotes | None
) -> Iterator[_Scanned]:
    """Scan the param files of PEs: small ones as one text, which is faster, large ones in parts.

    Those that cannot be read are noted in any `notes`, and else raised.
    """
    small: list[tuple[int, Path, NDArray[np.uint8]]] = []
    small_bytes = 0

    def small_files() -> Iterator[_Scanned]:
        if small:
            pieces, paths, texts = zip(*small, strict=True)
            joined = np.concatenate([part for text in texts for part in (text, _NEWLINE)])
            yield _Scanned(scan(joined), list(texts), np.array(pieces), list(paths))
            small.clear()

    for piece, pe in enumerate(pes):
        if pe not in source.pes:
            continue
        path = source.path(pe)
        try:
            with InputFile(path) as file:
                text = file.read(0, min(file.size_bytes, SMALL_BYTES))
            is_packed = compression_of(text[:8].tobytes()) is not None
            if len(text) < file.size_bytes or is_packed:
                for lines_before, table in _scan_large(path, sebs, is_packed=is_packed):
                    yield _Scanned(table, [], np.array([piece]), [path], lines_before)
                continue
        except RewriteLogError as error:
            if notes is None:
                raise
            notes.unreadable.append((pe, error))
            continue
        small.append((piece, path, text))
        small_bytes += len(text)
        if small_bytes >= _MOST_SMALL_BYTES:
            yield from small_files()
            small_bytes = 0
    yield from small_files()


class _Span(Struct, frozen=True):
    """A part of a large param file, with the lowest and highest SEB in it."""

    offset: int
    size_bytes: int
    lines_before: int
    lowest: int
    highest: int


_thread_local = threading.local()
"""The spans of the last large file of each worker, which processes its timeline part by part."""


def _scan_large(path: Path, sebs: SebRange, *, is_packed: bool) -> Iterator[tuple[int, LineTable]]:
    """Scan a large or packed file; for a later part of its timeline, only spans with SEBs of it."""
    known: dict[Path, list[_Span]] = getattr(_thread_local, "spans", {})
    first, end = sebs
    if first > 0 and path in known:
        with InputFile(path) as file:
            for span in known[path]:
                if span.lowest < end and span.highest >= first:
                    yield span.lines_before, scan(file.read(span.offset, span.size_bytes))
        return
    spans = []
    try:
        for chunk in read_text_chunks(path, SPAN_BYTES):
            table = scan(chunk.text)
            seb = _sebs_of_lines(table)
            lowest, highest = (int(seb.min()), int(seb.max())) if len(seb) else (0, -1)
            before = chunk.first_line - 1
            spans.append(_Span(chunk.offset_bytes, len(chunk.text), before, lowest, highest))
            yield before, table
    except TraceFileError as error:
        raise TimingError(str(error)) from error
    _thread_local.spans = {} if is_packed else {path: spans}


def _sebs_of_lines(table: LineTable) -> Ints:
    """Return the SEB of each line: its leading number, else its seqno, else −1."""
    return np.where(table.seb >= 0, table.seb, table.seqno)


def _note_malformed(scanned: _Scanned, notes: ParamNotes, *, strict: bool) -> None:
    """Note malformed lines and lines without a SEB."""
    table = scanned.table
    notes.malformed += table.fault_count
    for fault in table.faults[: FAULTS_SHOWN - len(notes.malformed_examples)]:
        path, line = scanned.where(fault.offset_bytes, fault.line)
        notes.malformed_examples.append(fault_text(path, line, fault.problem, fault.text))
    unplaced = np.flatnonzero((table.seb < 0) & (table.seqno < 0))
    notes.malformed += len(unplaced)
    for row in unplaced[: FAULTS_SHOWN - len(notes.malformed_examples)]:
        path, line = scanned.where(int(table.offset[row]), int(table.line[row]))
        notes.malformed_examples.append(f"{path}:{line}: a timing line, without a SEB number")
    if strict and notes.malformed_examples:
        raise TimingError(notes.malformed_examples[0])


def _records_of_rows(
    table: LineTable, rows: Ints, piece: Ints, seb: Ints, columns: Columns
) -> ParamRecords:
    """Return some rows of a table as records, with only the numbers of these rows."""
    if columns == "counters":
        start, numbers = table.counter_start, table.counters.astype(np.float64)
    else:
        start, numbers = table.param_start, table.params
    counts = np.diff(start)[rows]
    begins = start[rows]
    if len(rows) < len(table):
        numbers = numbers[spans(begins, counts)]
        begins = np.cumsum(counts) - counts
    event = table.event[rows].astype(np.int64)
    return ParamRecords(tuple(table.events), event, piece[rows], seb[rows], begins, counts, numbers)


def _records_in_range(
    scanned: _Scanned, sebs: SebRange, notes: ParamNotes, columns: Columns
) -> ParamRecords:
    table = scanned.table
    seb = _sebs_of_lines(table)
    piece = scanned.pieces[scanned.file_of(table.offset)]
    chosen = (seb >= sebs[0]) & (seb < sebs[1])
    differs = chosen & (table.seb >= 0) & (table.seqno >= 0) & (table.seb != table.seqno)
    if differs.any():
        first = int(np.argmax(differs))
        path, line = scanned.where(int(table.offset[first]), int(table.line[first]))
        notes.seqno_differs += int(np.count_nonzero(differs))
        notes.seqno_examples.append(
            f"{path}:{line}: SEB {table.seb[first]}, but seqno {table.seqno[first]}"
        )
    rows = np.flatnonzero(chosen)
    return _records_of_rows(table, rows, piece, seb, columns)


def _sorting_order(piece: Ints, seb: Ints) -> Ints | slice:
    """Return the permutation that sorts rows by piece and SEB; most files are sorted already."""
    later = np.diff(piece)
    if np.all((later > 0) | ((later == 0) & (np.diff(seb) >= 0))):
        return slice(None)
    return np.lexsort((seb, piece)).astype(np.int64)


def join_records(parts: Sequence[ParamRecords]) -> ParamRecords:
    """Return the records of all parts, sorted by piece and SEB with a stable sort."""
    parts = [NO_RECORDS, *parts]
    events, event = joined_texts((part.events, part.event) for part in parts)
    bases = np.cumsum([0, *(len(part.params) for part in parts[:-1])])
    starts = [part.param_start + base for part, base in zip(parts, bases, strict=True)]
    piece, seb, counts, params = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("piece", "seb", "param_count", "params")
    )
    order = _sorting_order(piece, seb)
    return ParamRecords(
        events=events,
        event=event[order],
        piece=piece[order],
        seb=seb[order],
        param_start=np.concatenate(starts)[order],
        param_count=counts[order],
        params=params,
    )


class Paired(Struct, frozen=True):
    """Brackets with the param records that they are paired with, in the order of the SEBs.

    A SEB without marks and with one record is a bracket from start to end.
    """

    seb: Ints
    """The SEB of each bracket, counted over the whole block."""
    record: Ints
    bracket: Ints
    """The index of each in the block's `brackets`; −1 in a SEB without marks."""
    unpaired: int
    """The number of other records, not counting those of unusable SEBs."""
    of_no_length: int
    """The number of records of SEBs of length 0."""

    @classmethod
    def of(cls, block: BlockRecords, params: ParamRecords, usable: Flags | None = None) -> Paired:
        """Pair the brackets of each SEB with its records if it has as many of both.

        SEBs are left out unless they are usable; by default, unless their duration is positive.
        """
        if usable is None:
            usable = block.sebs["end_time"] > block.sebs["start_time"]
        rows, brackets = block.pieces.rows(params.piece, params.seb), block.brackets
        known = np.flatnonzero(rows >= 0)
        rows = rows[known]
        records = np.bincount(rows, minlength=len(block.sebs))
        marked = usable & (records > 0) & (brackets.counts == records)
        chosen = (marked | usable & (brackets.counts == 0) & (records == 1))[rows]
        unpaired = len(params.seb) - int(np.count_nonzero(chosen | ~usable[rows]))
        seb = rows[chosen]
        bracket = np.full(len(seb), -1)
        bracket[marked[seb]] = np.flatnonzero(marked[brackets.seb])
        has_no_length = block.sebs["end_time"] == block.sebs["start_time"]
        of_no_length = int(np.count_nonzero(has_no_length[rows]))
        return cls(seb, known[chosen], bracket, unpaired, of_no_length)

    def times(self, block: BlockRecords) -> Floats:
        """Return start and end of each bracket in seconds since its SEB's start, shape (…, 2).

        `block` is the one that was paired, or its copy with other durations.
        """
        with np.errstate(over="ignore"):
            whole_s = (block.sebs["end_time"] - block.sebs["start_time"])[self.seb]
        times_s = np.column_stack([np.zeros(len(self.seb)), whole_s])
        marked = self.bracket >= 0
        times_s[marked] = block.brackets.times[self.bracket[marked]]
        return times_s
