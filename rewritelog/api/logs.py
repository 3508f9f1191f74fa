"""Log sets, open or by their paths."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from rewritelog import formats
from rewritelog.arrays import Table, columns_of, new_frame
from rewritelog.errors import UsageError, UsageTypeError
from rewritelog.formats import is_log_set, open_event_traces
from rewritelog.formats.bgtrace.logset import LogSet
from rewritelog.formats.traces import Traces, TracesLike
from rewritelog.paths import to_input, to_path


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
    """
    return to_traces(path, "the traces")


def to_logs(logs: TracesLike, what: str) -> LogSet:
    """Return an open log set; raise `UsageError` for traces of another format."""
    opened = to_traces(logs, what)
    if isinstance(opened, Traces):
        raise UsageError(f"{opened.path}: has {opened.title}, but this works on bgTrace logs")
    return opened


def to_traces(logs: TracesLike, what: str) -> LogSet | Traces:
    """Return open logs or traces."""
    if isinstance(logs, LogSet | Traces):
        return logs
    return formats.open_traces(to_path(logs, what))


def to_many_traces(
    sets: TracesLike | Iterable[TracesLike], what: str
) -> tuple[LogSet | Traces, ...]:
    """Return open logs or traces; raise `UsageError` for none.

    A folder that has log sets in its folders stands for all of these.
    """
    named = [sets] if isinstance(sets, str | PathLike | LogSet | Traces) else list(sets)
    listed = [logs for path in named for logs in _sets_in(path, what)]
    opened_sets = tuple(to_traces(logs, what) for logs in listed)
    if not opened_sets:
        raise UsageError(f"{what}: no log set is given")
    return opened_sets


def _sets_in(logs: TracesLike, what: str) -> Sequence[TracesLike]:
    """Return the log sets in the folders of a folder, run2 before run10, or else the logs."""
    if isinstance(logs, LogSet | Traces):
        return [logs]
    path = to_path(logs, what)
    if is_log_set(path) or not path.is_dir():
        return [logs]
    sets = sorted(filter(is_log_set, path.iterdir()), key=_by_numbers)
    return sets or [logs]


def _by_numbers(path: Path) -> list[tuple[str, int]]:
    """Return a key by which names with numbers are in the order of the numbers."""
    parts = re.findall(r"(\D*)([0-9]*)", path.name)
    return [(text, int(number or 0)) for text, number in parts]


def to_folder(logs: TracesLike, what: str) -> Path:
    """Return the path of a log set that may be too damaged to open."""
    path = logs.folder if isinstance(logs, LogSet | Traces) else to_input(logs, what)
    if open_event_traces(path) is not None:
        return to_logs(path, what).folder
    return path


def to_unchecked(logs: TracesLike, what: str) -> Path | Traces:
    """Return open traces, or the path of a log set that may be too damaged to open."""
    if isinstance(logs, LogSet | Traces):
        return logs.folder if isinstance(logs, LogSet) else logs
    path = to_path(logs, what)
    return open_event_traces(path) or (path if is_log_set(path) else to_input(path, what))


def to_pandas(table: Table) -> Any:
    """Return a table of `LogSet` as a pandas DataFrame, with the columns of `rewritelog export`.

    Names become `str`, array fields one column for each element, such as `obj_id_0` to `obj_id_3`;
    units are in the names of the columns. pandas has to be installed.

    >>> logs = rewritelog.open_logs("sample_logs/cells")
    >>> list(rewritelog.to_pandas(logs.log_events([0])).columns)
    ['pe', 'seb', 'log_event', 'offset_bytes', 'type', 'r_time_s', 'index', 'text']
    """
    if getattr(getattr(table, "dtype", None), "names", None) is None:
        raise UsageTypeError(f"expected a table of a log set, not {type(table).__name__}")
    return new_frame(columns_of(np.asarray(table)))
