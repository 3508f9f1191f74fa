"""Trace formats: a folder for each, and what jobs know of those with events."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rewritelog.formats.bgtrace.logset import LogSet
    from rewritelog.formats.traces import Traces


def open_traces(path: Path) -> LogSet | Traces:
    """Open the logs or traces that a path names, in whatever format they are.

    Raise `MissingFileError` if nothing is there, `DamagedLogError` for damaged logs.
    """
    from rewritelog.formats.bgtrace.logset import open_logs  # noqa: PLC0415 - a circle
    from rewritelog.formats.chakra.traces import open_chakra  # noqa: PLC0415

    return open_logs(path) if is_log_set(path) else open_chakra(path) or open_logs(path)


def is_log_set(path: Path) -> bool:
    """Return whether a path is that of bgTrace logs."""
    from rewritelog.formats.bgtrace.logset import SUMMARY_NAME  # noqa: PLC0415 - a circle

    return path.name == SUMMARY_NAME or (path / SUMMARY_NAME).exists()
