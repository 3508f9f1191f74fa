"""Standard streams of the command lines: what cannot be written ends a command as it should.

A closed pipe (`| head`) ends it in silence with the exit code 141, as SIGPIPE ends other programs;
a full disk or a closed stream with a line on standard error. Messages never end anything.
"""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

CLOSED_PIPE = 141
"""The exit code that shells give to a program that SIGPIPE has ended."""


class OutputLost(BaseException):
    """Standard output cannot be written; `strerror` is empty where a pipe's reader has gone."""

    def __init__(self, strerror: str = "") -> None:
        super().__init__(strerror)
        self.strerror = strerror


class _Output(io.FileIO):
    """Standard output, whose errors no code takes for those of a file."""

    def write(self, data: ReadableBuffer, /) -> int:
        """Write; raise `OutputLost` where that cannot be."""
        try:
            return super().write(data) or 0
        except BrokenPipeError:
            raise OutputLost from None
        except OSError as error:
            raise OutputLost(error.strerror or str(error)) from None


class _Messages(io.FileIO):
    """Standard error; there is nowhere to say that it cannot be written."""

    def write(self, data: ReadableBuffer, /) -> int:
        """Write; what cannot be written is dropped."""
        with suppress(OSError):
            return super().write(data) or 0
        return len(memoryview(data))


def occupy_closed() -> None:
    """Put something into the places of closed standard streams, or a file would be opened there.

    A write to it fails where standard output is closed; messages go nowhere.
    """
    for number, flags in ((0, os.O_WRONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            with suppress(OSError):
                os.open(os.devnull, flags)


def output_stream() -> io.TextIOWrapper:
    """Return a new `sys.stdout`."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    buffer = io.BufferedWriter(_Output(1, "wb", closefd=False))
    return io.TextIOWrapper(buffer, encoding, line_buffering=os.isatty(1))


def message_stream() -> io.TextIOWrapper:
    """Return a new `sys.stderr`."""
    encoding = getattr(sys.stderr, "encoding", None) or "utf-8"
    buffer = io.BufferedWriter(_Messages(2, "wb", closefd=False))
    return io.TextIOWrapper(buffer, encoding, "backslashreplace", line_buffering=True)
