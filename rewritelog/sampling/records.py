"""The param records of a whole run as columns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from rewritelog.arrays import Columns, Ints
from rewritelog.errors import DamagedLogError, Location
from rewritelog.formats import ParamRecords
from rewritelog.formats.bgtrace.logset import LogSet
from rewritelog.formats.bgtrace.params import ParamFolder, ParamNotes, join_records, read_records
from rewritelog.formats.files import InputFile
from rewritelog.progress import report_progress
from rewritelog.running.engines import cores, in_threads
from rewritelog.text import FAULTS_SHOWN, count_text

PES_AT_A_TIME = 64
"""Param files that are read and scanned together."""


@dataclass(frozen=True)
class RunRecords(ParamRecords):
    """All records of a run; a PE's number is its piece."""

    warnings: tuple[str, ...]
    """What is odd about the files, a sentence each."""

    @property
    def pe(self) -> Ints:
        """The PE of each record."""
        return self.piece


def read_folder(
    source: ParamFolder, pes: Iterable[int], *, strict: bool = False, columns: Columns = "params"
) -> RunRecords:
    """Read the records of some PEs, some files at a time.

    Raise `TimingError` for a file that cannot be read and, with `strict`, for a malformed line.
    """
    named = [pe for pe in pes if pe in source.pes]
    groups = [named[at : at + PES_AT_A_TIME] for at in range(0, len(named), PES_AT_A_TIME)]
    read = partial(read_records, source, strict=strict, columns=columns)
    parts, notes = list[ParamRecords](), list[ParamNotes]()
    results = in_threads(read, groups, cores(), ahead=2)
    for group, (records, noted) in zip(groups, results, strict=True):
        parts.append(replace(records, piece=np.array(group)[records.piece]))
        notes.append(noted)
        pes_read = min(len(parts) * PES_AT_A_TIME, len(named))
        report_progress("reading params, PE", pes_read, len(named))
    warnings = []
    if faulty := sum(note.faulty for note in notes):
        shown = [fault for note in notes for fault in note.faults][:FAULTS_SHOWN]
        lines = count_text(faulty, "malformed param line")
        warnings.append(f"{lines} left out: {'; '.join(shown)}")
    if differs := sum(note.seqno_differs for note in notes):
        example = next(text for note in notes for text in note.seqno_examples)
        lines = count_text(differs, "param line")
        warnings.append(f"{lines} whose seqno is not the SEB, such as {example}")
    return RunRecords(**vars(join_records(parts)), warnings=tuple(warnings))


def read_run(logs: LogSet, source: ParamFolder, *, strict: bool = False) -> RunRecords:
    """Read the records of all PEs of a log; those of SEBs that the log does not have are left out.

    Raise `TimingError` as `read_folder` does.
    """
    all_records = read_folder(source, logs.pes, strict=strict)
    known = all_records.seb < _seb_counts(logs)[all_records.pe]
    warnings = list(all_records.warnings)
    if not known.all():
        first = int(np.argmin(known))
        records = count_text(int(np.count_nonzero(~known)), "param record")
        warnings.append(
            f"left out: {records} of SEBs that the log does not have, such as "
            f"{source.path(int(all_records.pe[first]))}, SEB {all_records.seb[first]}; the params "
            "may belong to other logs"
        )
    if strange := sorted(source.pes.difference(logs.pes)):
        warnings.append(
            f"left out: {count_text(len(strange), 'param file')} of PEs that the log does not "
            f"have, such as {source.path(strange[0])}"
        )
    columns = ("event", "piece", "seb", "param_start", "param_count")
    of_known: dict[str, Any] = {name: getattr(all_records, name)[known] for name in columns}
    return replace(all_records, **of_known, warnings=tuple(warnings))


def _seb_counts(logs: LogSet) -> Ints:
    """Return how many SEBs the timeline of each PE says that it has."""
    number = np.dtype("<i4" if logs.summary.order == "little" else ">i4")
    counts = np.zeros(len(logs.pes), dtype=np.int64)
    for timelines in logs.files:
        with InputFile(timelines.path) as file:
            for pe, at in zip(timelines.pes, timelines.borders[:-1].tolist(), strict=True):
                counts[pe] = file.read(at, number.itemsize).view(number)[0]
                if counts[pe] < 0:
                    place = Location(timelines.path, at, pe=int(pe), field="count")
                    raise DamagedLogError(place, f"negative SEB count {counts[pe]}")
    return counts
