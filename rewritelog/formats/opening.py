"""Opening of logs and traces in any format, which may be open already."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeAlias

from rewritelog import units
from rewritelog.errors import UsageError, UsageTypeError
from rewritelog.formats.bgtrace.heads import SUMMARY_NAME
from rewritelog.formats.bgtrace.logset import LogSet, open_log_set
from rewritelog.formats.files import paths_in
from rewritelog.formats.traces import AnyTraces, Opened, Traces
from rewritelog.options import PathLike
from rewritelog.paths import input_exists, to_input, to_path

LogsLike: TypeAlias = LogSet | PathLike
TracesLike: TypeAlias = LogSet | Traces | PathLike
"""Logs, or logs and traces in any format, open or given by their paths."""


def open_logs(path: TracesLike) -> LogSet:
    """Open a log set, given its folder or its `bgTrace` file.

    Timelines are read whenever they are needed, also for the page of a rewrite's report, so a
    program that changes its working folder has to give an absolute path.

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
    """Return open logs or traces; raise as `open_traces` does."""
    if isinstance(logs, Opened):
        return logs
    path = to_path(logs, what)
    return open_event_traces(path) or open_log_set(path)


def open_event_traces(path: Path) -> Traces | None:
    """Open the traces of events at a path; return None for bgTrace logs, or if there are none."""
    if is_log_set(path):
        return None
    from rewritelog.formats.chakra import open_chakra  # noqa: PLC0415 - of no use to bgTrace logs

    return open_chakra(path)


def is_log_set(path: Path) -> bool:
    """Return whether a path is that of bgTrace logs."""
    return path.name == SUMMARY_NAME or (input_exists(path) and input_exists(path / SUMMARY_NAME))


def to_many_traces(sets: TracesLike | Iterable[TracesLike], what: str) -> tuple[AnyTraces, ...]:
    """Return open logs or traces; raise `UsageError` for none.

    A folder of folders with log sets or traces stands for all of these.
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
    """Return the log sets or traces in a folder's folders, run2 before run10, or else `logs`."""
    if isinstance(logs, Opened):
        return [logs]
    path = to_path(logs, what)
    # before `is_dir`, whose error for an inaccessible path does not name it
    if is_log_set(path) or not path.is_dir():
        return [logs]
    if traces := open_event_traces(path):
        return [traces]
    paths = sorted((path for path in paths_in(path) if path.name[0] != "."), key=_by_numbers)
    return [found for path in paths if (found := _set_in(path))] or [logs]


def _set_in(path: Path) -> Path | Traces | None:
    """Return the log set or the traces in a folder; None for another folder, or a file."""
    if is_log_set(path):
        return path
    return open_event_traces(path) if path.is_dir() else None


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
