"""Log sets, open or by their paths."""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike
from pathlib import Path

from rewritelog import formats
from rewritelog.errors import UsageError
from rewritelog.formats import is_log_set
from rewritelog.formats.bgtrace.logset import LogSet
from rewritelog.formats.chakra.traces import open_chakra
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


def to_logs(given: TracesLike, what: str) -> LogSet:
    """Return an open log set; raise `UsageError` for traces of another format."""
    opened = to_traces(given, what)
    if isinstance(opened, Traces):
        raise UsageError(f"{opened.path}: has {opened.title}, but this works on bgTrace logs")
    return opened


def to_traces(given: TracesLike, what: str) -> LogSet | Traces:
    """Return open logs or traces."""
    if isinstance(given, LogSet | Traces):
        return given
    return formats.open_traces(to_path(given, what))


def to_many_traces(
    given: TracesLike | Iterable[TracesLike], what: str
) -> tuple[LogSet | Traces, ...]:
    """Return open logs or traces, or several log sets; raise `UsageError` for none."""
    several = [given] if isinstance(given, str | PathLike | LogSet | Traces) else list(given)
    opened = to_traces if len(several) == 1 else to_logs
    sets = tuple(opened(logs, what) for logs in several)
    if not sets:
        raise UsageError(f"{what}: no log set is given")
    return sets


def to_folder(given: TracesLike, what: str) -> Path:
    """Return the path of a log set that may be too damaged to open."""
    path = given.folder if isinstance(given, LogSet | Traces) else to_input(given, what)
    if not is_log_set(path) and open_chakra(path) is not None:
        return to_logs(path, what).folder
    return path


def to_unchecked(given: TracesLike, what: str) -> Path | Traces:
    """Return open traces, or the path of a log set that may be too damaged to open."""
    if isinstance(given, LogSet | Traces):
        return given.folder if isinstance(given, LogSet) else given
    path = to_path(given, what)
    return path if is_log_set(path) else open_chakra(path) or to_input(path, what)
