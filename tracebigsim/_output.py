"""Output of a process's timing lines: whole lines, each in one write, or buffered."""

from __future__ import annotations

import atexit
import os
import sys
import threading
from pathlib import Path
from typing import Final, TextIO

from tracebigsim.errors import TraceFileError

OUTPUT_VARIABLE: Final = "TRACEBIGSIM_OUTPUT"
"""Names the file that lines are appended to; %p in it is the process id, %h the host's name."""
BUFFER_VARIABLE: Final = "TRACEBIGSIM_BUFFER_BYTES"
"""Size of the buffer for lines, in bytes; without it, lines are not buffered."""
MOST_BUFFERED: Final = 65536
MOST_BUFFERED_FOR_PIPE: Final = 4096
"""Bytes that a pipe takes in one piece (PIPE_BUF of Linux)."""

Target = TextIO | Path


class Output:
    """The target of lines and their buffer; one for the process."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._target: Target | None = None
        self._gathered: list[str] = []
        self._gathered_bytes = 0

    def set(self, target: str | os.PathLike[str] | TextIO | None) -> None:
        """Send further lines to a file, a stream, or (None) the default target."""
        self.flush()
        with self._lock:
            is_path = isinstance(target, str | os.PathLike)
            self._target = Path(target) if is_path else target  # type: ignore[arg-type,assignment]

    def write(self, line: str) -> None:
        """Write a whole line at once, or buffer it."""
        with self._lock:
            target = self._target or _default_target()
            limit = _buffer_limit(target)
            size = len(line.encode())
            if self._gathered_bytes and self._gathered_bytes + size > limit:
                self._write_gathered(target)
            if size > limit:
                _write(target, line)
            else:
                self._gathered.append(line)
                self._gathered_bytes += size

    def flush(self) -> None:
        """Write the buffered lines."""
        with self._lock:
            if self._gathered:
                self._write_gathered(self._target or _default_target())

    def _write_gathered(self, target: Target) -> None:
        """Write the buffered lines and empty the buffer, also if they cannot be written."""
        text = "".join(self._gathered)
        self._gathered.clear()
        self._gathered_bytes = 0
        _write(target, text)


def _default_target() -> Target:
    """Return the file that the environment variable names, or standard output."""
    named = os.environ.get(OUTPUT_VARIABLE)
    if not named:
        return sys.stdout
    if "%" in named:
        named = named.replace("%p", str(os.getpid())).replace("%h", os.uname().nodename)
    return Path(named)


def _buffer_limit(target: Target) -> int:
    """Return how many bytes may be buffered for this target."""
    text = os.environ.get(BUFFER_VARIABLE, "")
    limit = int(text) if text.isascii() and text.isdigit() and len(text) < 20 else 0
    return min(limit, MOST_BUFFERED if isinstance(target, Path) else MOST_BUFFERED_FOR_PIPE)


def _write(target: Target, text: str) -> None:
    """Write whole lines in one write."""
    if isinstance(target, Path):
        _append(target, text)
    else:
        target.flush()
        target.write(text)
        target.flush()


def _append(path: Path, text: str) -> None:
    """Append to a file with a single system call."""
    data = text.encode()
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            written = os.write(descriptor, data)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise TraceFileError(path, error.strerror or str(error)) from error
    if written != len(data):
        raise TraceFileError(path, f"only {written} of {len(data)} bytes of lines were written")


OUTPUT: Final = Output()
atexit.register(OUTPUT.flush)
os.register_at_fork(before=OUTPUT.flush)
