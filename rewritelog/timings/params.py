"""The param records of a run, read for all PEs or for some."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np
from msgspec.structs import asdict, replace

from rewritelog import units
from rewritelog.arrays import Columns, Floats, Ints, check_columns, new_frame
from rewritelog.errors import DamagedLogError, Location, UsageError
from rewritelog.formats import ParamRecords
from rewritelog.formats.bgtrace.heads import SUMMARY_NAME
from rewritelog.formats.bgtrace.logset import LogSet
from rewritelog.formats.bgtrace.params import (
    ParamFolder,
    ParamNotes,
    join_records,
    list_params,
    read_records,
)
from rewritelog.formats.files import InputFile
from rewritelog.models.base import entry_of
from rewritelog.options import PathLike, flag
from rewritelog.paths import to_input
from rewritelog.progress import report_progress
from rewritelog.running.engines import cores, in_threads
from rewritelog.text import FAULTS_SHOWN, TextTable, count_text, events_text, warnings_html

PES_AT_A_TIME = 64
"""Param files that are read and scanned together."""


class Params(ParamRecords, frozen=True, eq=False):
    """The param records of a run, sorted by PE and SEB.

    >>> params = rewritelog.read_params("sample_logs/cells")
    >>> pe, seb, X = params.table("Cell::pairForces")
    """

    warnings: tuple[str, ...]
    """Irregularities of the files, one sentence each."""

    @property
    def pe(self) -> Ints:
        """The PE of each record."""
        return self.piece

    def table(self, event: str, parameters: int | None = None) -> tuple[Ints, Ints, Floats]:
        """Return PEs, SEBs and parameters, shape (records, p), of an event's records.

        Raise `UsageError` for an event without records, and for one with records of different
        numbers of parameters unless `parameters` is one of them.

        >>> pe, seb, X = rewritelog.read_params("sample_logs/cells").table("Cell::pairForces")
        >>> X.shape
        (56, 2)
        """
        keys, key_of_record = self.event_keys()
        numbers = {key: number for number, key in enumerate(keys)}
        number = entry_of(numbers, event, parameters, "record of")
        rows = np.flatnonzero(key_of_record == number)
        return self.pe[rows], self.seb[rows], self.params_of(rows, keys[number][1])

    def to_frame(self, rows: Ints | None = None) -> Any:
        """Return a DataFrame with the columns `pe`, `seb`, `event`, `p1`, `p2`, ….

        Parameters that an event does not have are NaN; `rows` selects some of the records, by their
        indices or as flags. Raise `UsageError` for other rows.

        >>> rewritelog.read_params("sample_logs/cells").to_frame([0]).values.tolist()
        [[0, 19, 'Cell::pairForces', 53.0, 11.0]]
        """
        try:
            chosen = np.ravel(np.arange(len(self))[slice(None) if rows is None else rows])
        except IndexError as error:
            raise UsageError(f"rows: {error}") from error
        columns: dict[str, Any] = {
            "pe": self.pe[chosen],
            "seb": self.seb[chosen],
            "event": np.array([*self.events, ""], dtype=object)[self.event[chosen]],
        }
        counts = self.param_count[chosen]
        padded = np.append(self.params, np.nan)
        for k in range(int(counts.max(initial=0))):
            indices = np.where(k < counts, self.param_start[chosen] + k, len(padded) - 1)
            columns[f"p{k + 1}"] = padded[indices]
        return new_frame(columns)

    def __repr__(self) -> str:
        return f"<Params: {count_text(len(self), 'record')} of {events_text(self.events)}>"

    def _repr_html_(self) -> str:
        counts = np.bincount(self.event, minlength=len(self.events)).tolist()
        rows = [(name, f"{n:,}") for name, n in zip(self.events, counts, strict=False)]
        table = TextTable(("event", "records"), rows, most_rows=100)
        return table.html() + warnings_html(self.warnings)


def read_params(
    folder: PathLike,
    pes: str | Iterable[int] | None = None,
    *,
    strict: bool = False,
    columns: Columns = "params",
) -> Params:
    """Read the `param.P` files of a folder, for all or some PEs, or one such file.

    The `bgTrace` file of a log set stands for its folder.

    With `strict` a malformed line is an error; `columns="counters"` reads performance counters.
    Raise `MissingFileError` if the folder does not exist, `UsageError` for any other file and for a
    PE without a file, and `TimingError` for a malformed line with `strict`.

    >>> rewritelog.read_params("sample_logs/cells").events
    ('Cell::pairForces', 'Cell::bonded')
    """
    check_columns(columns)
    is_strict = flag(strict, "strict")
    path = to_input(folder, "the folder of params")
    source = list_params(path if path.is_dir() else path.parent)
    own = [pe for pe in source.pes if path.name == f"param.{pe}"]
    if not (own or path.is_dir() or path.name == SUMMARY_NAME):
        raise UsageError(f"{path}: is neither a folder of param files nor one of them, as param.0")
    numbers = own or source.pes if pes is None else units.pes(pes, "pes")
    if isinstance(numbers, str):
        numbers = units.parse_pes(numbers, max(source.pes, default=-1) + 1)
    chosen = sorted(set(numbers))
    missing = [pe for pe in chosen if pe not in source.pes]
    if missing:
        raise UsageError(f"{source.folder}: there is no param.{missing[0]}")
    return read_folder(source, chosen, strict=is_strict, columns=columns)


def read_folder(
    source: ParamFolder, pes: Iterable[int], *, strict: bool = False, columns: Columns = "params"
) -> Params:
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
    if malformed := sum(note.malformed for note in notes):
        shown = [fault for note in notes for fault in note.malformed_examples][:FAULTS_SHOWN]
        lines = count_text(malformed, "malformed param line")
        warnings.append(f"{lines} left out: {'; '.join(shown)}")
    if differs := sum(note.seqno_differs for note in notes):
        example = next(text for note in notes for text in note.seqno_examples)
        lines = count_text(differs, "param line")
        warnings.append(f"{lines} whose seqno is not the SEB, such as {example}")
    return Params(**asdict(join_records(parts)), warnings=tuple(warnings))


def read_run(logs: LogSet, source: ParamFolder, *, strict: bool = False) -> Params:
    """Read the records of all PEs of a log, without records of SEBs that the log does not have.

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
    if unknown_pes := sorted(source.pes.difference(logs.pes)):
        warnings.append(
            f"left out: {count_text(len(unknown_pes), 'param file')} of PEs that the log does not "
            f"have, such as {source.path(unknown_pes[0])}"
        )
    columns = ("event", "piece", "seb", "param_start", "param_count")
    of_known: dict[str, Any] = {name: getattr(all_records, name)[known] for name in columns}
    return replace(all_records, **of_known, warnings=tuple(warnings))


def _seb_counts(logs: LogSet) -> Ints:
    """Return the SEB count at the start of each PE's timeline."""
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
