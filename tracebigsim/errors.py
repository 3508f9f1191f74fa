"""What this package raises; every exception's text says where and what."""

from __future__ import annotations

import os


class TraceBigSimError(Exception):
    """Root of all that this package raises on purpose."""


class TraceFileError(TraceBigSimError):
    """A file of timing or param lines cannot be read."""

    def __init__(self, path: str | os.PathLike[str], problem: str) -> None:
        super().__init__(f"{os.fspath(path)}: {problem}")
        self.path = os.fspath(path)
        self.problem = problem


class LineFormatError(TraceBigSimError, ValueError):
    """A record that no line of the grammar can hold."""


class BracketError(TraceBigSimError, ValueError):
    """`bracketed` cannot bracket this function with these arguments."""


class BracketWarning(UserWarning):
    """`start` and `end` do not pair up; the program goes on."""
