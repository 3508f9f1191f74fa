"""The exceptions of this package; the text of each says what is wrong and where."""

from __future__ import annotations

import os


class TraceBigSimError(Exception):
    """Base class of all exceptions that this package raises deliberately."""


class TraceFileError(TraceBigSimError):
    """A file of timing or param lines, or a list of chosen SEBs, cannot be read."""

    def __init__(self, path: str | os.PathLike[str], problem: str) -> None:
        super().__init__(f"{os.fspath(path)}: {problem}")
        self.path = os.fspath(path)
        self.problem = problem


class LineFormatError(TraceBigSimError, ValueError):
    """A record that cannot be written as a line of the grammar."""


class BracketError(TraceBigSimError, ValueError):
    """`bracketed` cannot bracket this function with these parameters."""


class CoreError(TraceBigSimError, ImportError):
    """A compiled core is missing, or not built from its header."""


class BracketWarning(UserWarning):
    """Brackets do not pair up, or lines are not buffered or go elsewhere; the program goes on."""
