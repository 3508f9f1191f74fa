"""Standard streams of the commands: output that cannot be written ends a command properly.

A closed pipe (`| head`) ends it silently with the exit code 141, as SIGPIPE ends other programs;
a full disk or a closed stream, with a line on standard error. Messages that cannot be written are
dropped.
"""

from __future__ import annotations

import io
import os
import re
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

CLOSED_PIPE = 141
"""The exit code that shells report for a program ended by SIGPIPE (128 + 13)."""


class OutputLost(BaseException):
    """Standard output cannot be written; `strerror` is empty if a pipe's reader has gone.

    Not an `Exception`, so that no handler of file errors catches it.
    """

    def __init__(self, strerror: str = "") -> None:
        super().__init__(strerror)
        self.strerror = strerror


class _Output(io.FileIO):
    """Standard output, whose errors are not mistaken for those of a file."""

    def write(self, data: ReadableBuffer, /) -> int:
        """Write; raise `OutputLost` if that fails."""
        try:
            return super().write(data) or 0
        except BrokenPipeError:
            raise OutputLost from None
        except OSError as error:
            raise OutputLost(error.strerror or str(error)) from None


class _Messages(io.FileIO):
    """Standard error; there is nowhere to report that it cannot be written."""

    def write(self, data: ReadableBuffer, /) -> int:
        """Write, dropping what cannot be written."""
        with suppress(OSError):
            return super().write(data) or 0
        return len(memoryview(data))


def occupy_closed() -> None:
    """Occupy the descriptors of closed standard streams, or the next file opened would get them.

    Writes to a closed standard output still fail; messages to a closed standard error are dropped.
    """
    for number, flags in ((0, os.O_WRONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            with suppress(OSError):
                os.open(os.devnull, flags)


_COLOURS = re.compile(r"(\x1b\[(?:0|1|31|33)m)")


class EscapedMessages(io.TextIOWrapper):
    """A stream of messages that lets no control sequences through to a terminal.

    Our own messages are made printable where they are written; this is for those of libraries,
    which repeat file names and texts of exceptions. Carriage returns of progress bars and the
    colours of messages pass.
    """

    def write(self, text: str, /) -> int:
        """Write a text and return its length; raise `TypeError` for anything but text."""
        from rewritelog.text import printable  # noqa: PLC0415 - a run without messages needs none

        if not isinstance(text, str):
            raise TypeError(f"messages are text, not {type(text).__name__}")
        for part in _COLOURS.split(text):
            is_colour = _COLOURS.fullmatch(part)
            super().write(
                part if is_colour else "".join(c if c in "\n\r" else printable(c) for c in part)
            )
        return len(text)


def output_stream() -> io.TextIOWrapper:
    """Return a new `sys.stdout`, which escapes characters that the terminal's encoding lacks."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    buffer = io.BufferedWriter(_Output(1, "wb", closefd=False))
    return io.TextIOWrapper(buffer, encoding, "backslashreplace", line_buffering=os.isatty(1))


def message_stream() -> io.TextIOWrapper:
    """Return a new `sys.stderr`, which does so too, and escapes control characters."""
    encoding = getattr(sys.stderr, "encoding", None) or "utf-8"
    buffer = io.BufferedWriter(_Messages(2, "wb", closefd=False))
    return EscapedMessages(buffer, encoding, "backslashreplace", line_buffering=True)
