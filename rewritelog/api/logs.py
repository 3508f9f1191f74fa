"""Log sets, open or by their paths."""

from __future__ import annotations

from pathlib import Path

from rewritelog.api.arguments import LogsLike, to_input, to_path
from rewritelog.formats.bgtrace import logset
from rewritelog.formats.bgtrace.logset import LogSet


def open_logs(path: LogsLike) -> LogSet:
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


def to_logs(given: LogsLike, what: str) -> LogSet:
    """Return an open log set."""
    return given if isinstance(given, LogSet) else logset.open_logs(to_path(given, what))


def to_folder(given: LogsLike, what: str) -> Path:
    """Return the path of a log set that may be too damaged to open."""
    return given.folder if isinstance(given, LogSet) else to_input(given, what)
