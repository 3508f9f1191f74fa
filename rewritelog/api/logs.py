"""Log sets, open or by their paths, and the param records of a run."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from rewritelog import formats, units
from rewritelog.arrays import Columns, Floats, Ints, Table, check_columns, columns_of, new_frame
from rewritelog.errors import UsageError, UsageTypeError
from rewritelog.formats import is_log_set, open_event_traces
from rewritelog.formats.bgtrace.logset import LogSet
from rewritelog.formats.bgtrace.params import list_params
from rewritelog.formats.traces import AnyTraces, Opened, Traces
from rewritelog.models.base import entry_of
from rewritelog.options import PathLike
from rewritelog.paths import to_input, to_path
from rewritelog.sampling.records import RunRecords, read_folder
from rewritelog.text import TextTable, count_text, events_text

LogsLike: TypeAlias = LogSet | PathLike
TracesLike: TypeAlias = LogSet | Traces | PathLike
"""Logs, or logs and traces in any format, open or by their paths."""


def open_logs(path: TracesLike) -> LogSet:
    """Open a log set, given its folder or its `bgTrace` file.

    Raise `MissingFileError` if it does not exist, and `DamagedLogError` with file and offset if the
    summary or the head of a timeline file is damaged.

    >>> logs = rewritelog.open_logs("sample_logs/cells")
    >>> logs
    <LogSet sample_logs/cells: 16 PEs in 2 files, log version 6>
    >>> len(logs.sebs())
    676
    """
    return to_logs(path, "the logs")


def open_traces(path: TracesLike) -> LogSet | Traces:
    """Open logs or traces in any format: bgTrace logs as `open_logs` does, or Chakra traces.

    Chakra traces are given by their folder, one file, or the beginning of their names before the
    rank. Raise as `open_logs` does.

    >>> rewritelog.open_traces("sample_logs/transformer/training")
    <Traces sample_logs/transformer/training: Chakra execution traces, 2 ranks, 9.4 kB>
    """
    return to_traces(path, "the traces")


def to_logs(logs: TracesLike, what: str) -> LogSet:
    """Return an open log set; raise `UsageError` for traces of another format."""
    opened = to_traces(logs, what)
    if not isinstance(opened, LogSet):
        raise UsageError(f"{opened.path}: has {opened.title}, but this works on bgTrace logs")
    return opened


def to_traces(logs: TracesLike, what: str) -> AnyTraces:
    """Return open logs or traces."""
    return formats.open_traces(logs if isinstance(logs, Opened) else to_path(logs, what))


def to_many_traces(sets: TracesLike | Iterable[TracesLike], what: str) -> tuple[AnyTraces, ...]:
    """Return open logs or traces; raise `UsageError` for none.

    A folder that has log sets in its folders stands for all of these.
    """
    named = [sets] if isinstance(sets, str | os.PathLike | Opened) else units.items_of(sets)
    if named is None:
        raise UsageTypeError(f"{what} must be a path or several, not {type(sets).__name__}")
    listed = [logs for path in named for logs in _sets_in(path, what)]
    opened_sets = tuple(to_traces(logs, what) for logs in listed)
    if not opened_sets:
        raise UsageError(f"{what}: no log set is given")
    return opened_sets


def _sets_in(logs: TracesLike, what: str) -> Sequence[TracesLike]:
    """Return the log sets in the folders of a folder, run2 before run10, or else the logs."""
    if isinstance(logs, Opened):
        return [logs]
    path = to_path(logs, what)
    # before `is_dir`, whose error does not name a path that cannot be looked at
    if is_log_set(path) or not path.is_dir() or open_event_traces(path):
        return [logs]
    sets = sorted(filter(is_log_set, path.iterdir()), key=_by_numbers)
    return sets or [logs]


def _by_numbers(path: Path) -> list[tuple[str, int]]:
    """Return a key by which names with numbers are in the order of the numbers."""
    parts = re.findall(r"(\D*)([0-9]*)", path.name)
    return [(text, int(number or 0)) for text, number in parts]


def to_unchecked(logs: TracesLike, what: str) -> Path | Traces:
    """Return open traces, or the path of a log set that may be too damaged to open."""
    if isinstance(logs, Opened):
        return logs.folder if isinstance(logs, LogSet) else logs
    path = to_path(logs, what)
    return open_event_traces(path) or (path if is_log_set(path) else to_input(path, what))


def to_pandas(table: Table) -> Any:
    """Return a table of `LogSet` as a pandas DataFrame, with the columns of `rewritelog export`.

    Names become `str`, array fields one column for each element, such as `obj_id_0` to `obj_id_3`;
    units are in the names of the columns. Raise `UsageTypeError` for what is no such table, and
    `RewriteLogError` if pandas is not installed.

    >>> logs = rewritelog.open_logs("sample_logs/cells")
    >>> list(rewritelog.to_pandas(logs.log_events([0])).columns)
    ['pe', 'seb', 'log_event', 'offset_bytes', 'type', 'r_time_s', 'index', 'text']
    """
    if getattr(getattr(table, "dtype", None), "names", None) is None:
        raise UsageTypeError(f"expected a table of a log set, not {type(table).__name__}")
    return new_frame(columns_of(np.atleast_1d(np.asarray(table))))


@dataclass(frozen=True, repr=False, eq=False)
class Params:
    """The param records of a run, sorted by PE and SEB.

    >>> params = rewritelog.read_params("sample_logs/cells")
    >>> pe, seb, X = params.table("Cell::pairForces")
    """

    records: RunRecords

    @property
    def events(self) -> tuple[str, ...]:
        """The names of the events."""
        return self.records.events

    @property
    def warnings(self) -> tuple[str, ...]:
        """Irregularities of the files, one sentence each."""
        return self.records.warnings

    def table(self, event: str, parameters: int | None = None) -> tuple[Ints, Ints, Floats]:
        """Return PEs, SEBs and parameters of an event's records, the latter of shape (records, p).

        Raise `UsageError` for an event without records, and for one with records of different
        numbers of parameters unless `parameters` is one of them.

        >>> pe, seb, X = rewritelog.read_params("sample_logs/cells").table("Cell::pairForces")
        >>> X.shape
        (56, 2)
        """
        records = self.records
        kinds, kind = records.kinds()
        numbers = {key: number for number, key in enumerate(kinds)}
        number = entry_of(numbers, event, parameters, "record of")
        rows = np.flatnonzero(kind == number)
        return records.pe[rows], records.seb[rows], records.table(rows, kinds[number][1])

    def to_pandas(self, rows: Ints | None = None) -> Any:
        """Return a DataFrame with the columns `pe`, `seb`, `event`, `p1`, `p2`, ….

        Parameters that an event does not have are NaN; `rows` selects some of the records, by their
        indices or as flags. Raise `UsageError` for others.

        >>> rewritelog.read_params("sample_logs/cells").to_pandas([0]).values.tolist()
        [[0, 19, 'Cell::pairForces', 53.0, 11.0]]
        """
        records = self.records
        try:
            chosen = np.ravel(np.arange(len(self))[slice(None) if rows is None else rows])
        except IndexError as error:
            raise UsageError(f"rows: {error}") from error
        columns: dict[str, Any] = {
            "pe": records.pe[chosen],
            "seb": records.seb[chosen],
            "event": np.array([*records.events, ""], dtype=object)[records.event[chosen]],
        }
        counts = records.param_count[chosen]
        padded = np.append(records.params, np.nan)
        for k in range(int(counts.max(initial=0))):
            indices = np.where(k < counts, records.param_start[chosen] + k, len(padded) - 1)
            columns[f"p{k + 1}"] = padded[indices]
        return new_frame(columns)

    def __len__(self) -> int:
        return len(self.records)

    def __repr__(self) -> str:
        return f"<Params: {count_text(len(self), 'record')} of {events_text(self.events)}>"

    def _repr_html_(self) -> str:
        counts = np.bincount(self.records.event, minlength=len(self.events)).tolist()
        rows = [(name, f"{n:,}") for name, n in zip(self.events, counts, strict=False)]
        return TextTable(("event", "records"), rows, most_rows=100).html()


def read_params(
    folder: PathLike,
    pes: str | Iterable[int] | None = None,
    *,
    strict: bool = False,
    columns: Columns = "params",
) -> Params:
    """Read the `param.P` files of a folder, for all or some PEs, or one such file.

    With `strict` a malformed line is an error; `columns="counters"` reads performance counters.
    Raise `MissingFileError` if the folder does not exist, `UsageError` for a PE without a file, and
    `TimingError` for a malformed line with `strict`.

    >>> rewritelog.read_params("sample_logs/cells").events
    ('Cell::pairForces', 'Cell::bonded')
    """
    check_columns(columns)
    path = to_input(folder, "the folder of params")
    source = list_params(path if path.is_dir() else path.parent)
    own = [pe for pe in source.pes if path.name == f"param.{pe}"]
    numbers = own or source.pes if pes is None else units.pes(pes, "pes")
    if isinstance(numbers, str):
        numbers = units.parse_pes(numbers, max(source.pes, default=-1) + 1)
    chosen = sorted(set(numbers))
    missing = [pe for pe in chosen if pe not in source.pes]
    if missing:
        raise UsageError(f"{source.folder}: there is no param.{missing[0]}")
    return Params(read_folder(source, chosen, strict=strict, columns=columns))
