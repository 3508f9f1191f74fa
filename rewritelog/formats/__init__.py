"""Trace formats: a folder for each, and what jobs know of those with events."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rewritelog.errors import MissingFileError, RewriteLogError

if TYPE_CHECKING:
    from rewritelog.formats.bgtrace.logset import LogSet
    from rewritelog.formats.traces import Traces


def open_traces(path: Path) -> LogSet | Traces:
    """Open the logs or traces that a path names, in whatever format they are.

    Raise `MissingFileError` if nothing is there, `DamagedLogError` for damaged logs.
    """
    from rewritelog.formats.bgtrace.logset import SUMMARY_NAME, open_logs  # noqa: PLC0415 - a circle
    from rewritelog.formats.chakra.traces import open_chakra  # noqa: PLC0415

    if path.name != SUMMARY_NAME and not (path / SUMMARY_NAME).exists():
        found = open_chakra(path)
        if found is not None:
            return found
        if path.is_file():
            raise RewriteLogError(
                f"{path}: is neither a log folder, a bgTrace file nor a Chakra trace (.et)"
            )
        if path.is_dir():
            raise MissingFileError(
                f"{path}: no logs here: neither the file {SUMMARY_NAME} nor Chakra traces "
                "(NAME.RANK.et)"
            )
    return open_logs(path)
