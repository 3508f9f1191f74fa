"""Brackets around regions of a Python program: each prints one timing line when it is closed.

Lines go to where `output` says, else to the file that the environment variable
TRACEBIGSIM_OUTPUT names, else to standard output. A line is one write, to a file one `write(2)` in
append mode, so that lines of threads and processes that share it do not tear.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Final, TextIO

from tracebigsim.errors import BracketError, TraceFileError
from tracebigsim.writing import format_line

OUTPUT_VARIABLE: Final = "TRACEBIGSIM_OUTPUT"


class _ThisThread(threading.local):
    """When the thread's open bracket began, in seconds of `perf_counter`; None if none is open."""

    began_s: float | None = None


class _Output:
    """Where lines go; one for the process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._target: TextIO | Path | None = None

    def set(self, target: str | os.PathLike[str] | TextIO | None) -> None:
        """Send further lines to a file, a stream, or (None) to the default place."""
        is_path = isinstance(target, str | os.PathLike)
        with self._lock:
            self._target = Path(target) if is_path else target  # type: ignore[arg-type,assignment]

    def write(self, line: str) -> None:
        """Write a whole line at once."""
        with self._lock:
            target = self._target or _default_target()
            if isinstance(target, Path):
                _append(target, line)
            else:
                target.flush()
                target.write(line)
                target.flush()


_this_thread = _ThisThread()
_output = _Output()


def _default_target() -> TextIO | Path:
    """Give the file of the environment variable, or standard output."""
    named = os.environ.get(OUTPUT_VARIABLE)
    return Path(named) if named else sys.stdout


def _append(path: Path, line: str) -> None:
    """Append a line to a file with a single system call."""
    data = line.encode()
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            written = os.write(descriptor, data)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise TraceFileError(path, error.strerror or str(error)) from error
    if written != len(data):
        raise TraceFileError(path, f"only {written} of a line's {len(data)} bytes were written")


def output(target: str | os.PathLike[str] | TextIO | None) -> None:
    """Send the lines of this process to a file (appended to), a text stream, or the default."""
    _output.set(target)


def start() -> None:
    """Open this thread's bracket. Raises BracketError if one is open: brackets do not nest."""
    if _this_thread.began_s is not None:
        raise BracketError("start() within an open bracket: call end() first")
    _this_thread.began_s = perf_counter()


def end(event: str, *params: float) -> None:
    """Close this thread's bracket and print its timing line.

    `params` are the 0 to 20 numbers that the time depends on. Raises BracketError if no bracket is
    open, LineFormatError for a name or numbers that no line can hold, TraceFileError if the line
    cannot be written; the bracket is closed all the same.
    """
    ended_s = perf_counter()
    began_s = _this_thread.began_s
    if began_s is None:
        raise BracketError(f"end({event!r}) without start()")
    _this_thread.began_s = None
    _output.write(format_line(event, params, time_s=ended_s - began_s))


@contextmanager
def bracket(event: str, *params: float) -> Iterator[None]:
    """Time a `with` block, as `start` and `end`; a block that raises prints no line."""
    start()
    try:
        yield
    except BaseException:
        _this_thread.began_s = None
        raise
    end(event, *params)
