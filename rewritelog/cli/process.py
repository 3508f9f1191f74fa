"""The process of the command line: how it starts, its streams, its MPI job, and its quick exit.

A closed pipe (`| head`) ends it silently with the exit code 141, as SIGPIPE ends other programs; a
full disk or a closed stream, with a line on standard error. Messages that cannot be written are
dropped.
"""

from __future__ import annotations

import atexit
import gc
import io
import os
import re
import resource
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from rewritelog.running import WRONG_USAGE, is_shared, this_job
from rewritelog.stopping import (
    SIGNALS,
    Stopped,
    forget_frames,
    raise_if_stopped,
    stop_on_signals,
)

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


def leave_unjoined(code: int) -> NoReturn:
    """Exit from a process that has not initialized MPI.

    A rank that fails ends by a signal: launchers notice no other end before MPI_Init, where the
    other ranks would wait for it forever.
    """
    if code not in (0, WRONG_USAGE) and is_shared(sys.argv) and this_job().ranks > 1:
        number = code - 128 if code > 128 else signal.SIGTERM
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    os._exit(code)


_OBJECTS_A_COLLECTION = 100_000
"""New objects between garbage collections. With Python's default of 700, collections during imports
take a sixth of the time of a small rewrite."""


_LINEAR_ALGEBRA_THREADS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")
"""Environment variables that numpy's BLAS libraries read when they are loaded. Matrices are small
here: BLAS threads would make fits slower, and their last bits depend on the number of threads."""


def main() -> NoReturn:
    """Run the command line; exit with 0 (done), 1 (failed), 2 (wrong usage) or 128 + signal.

    From here on signals end it cleanly, even during imports.
    """
    stop_on_signals()
    try:
        gc.set_threshold(_OBJECTS_A_COLLECTION)
        for name in _LINEAR_ALGEBRA_THREADS:
            os.environ.setdefault(name, "1")
        occupy_closed()
        sys.stdout, sys.stderr = output_stream(), message_stream()
        code = exit_code()
    except Stopped as reason:
        sys.stderr.write(f"rewritelog: {reason}\n")
        code = reason.exit_code
    _leave(code)


_ADDRESS_SPACE_BYTES = 3 << 29
"""Address space that a run needs; libraries map 750 MB and use half of it."""


def exit_code() -> int:
    """Run the command line; return its exit code."""
    if problem := _missing():
        sys.stderr.write(f"rewritelog: error: {problem}\n")
        return 1
    try:
        from rewritelog.cli.app import run  # noqa: PLC0415 - signals are caught before its import

        return run()
    except SystemExit as left:  # from typer, which completes words
        return int(left.code or 0)
    except Exception:  # Python makes one of what a signal raises in the midst of a class or a text
        raise_if_stopped()
        raise


def _missing() -> str:
    """Return what a run lacks, empty if nothing; without this check libraries crash or hang."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY and limit < _ADDRESS_SPACE_BYTES:
        limit_gb, needed_gb = limit / 1e9, _ADDRESS_SPACE_BYTES / 1e9
        text = f"the limit (ulimit -v) is {limit_gb:.1f} GB; at least {needed_gb:.1f} GB are needed"
        return f"not enough address space: {text}"
    try:
        Path.cwd()
    except OSError:
        return "the current folder no longer exists"
    return ""


def _leave(code: int) -> NoReturn:
    """Exit without tearing down imported modules, which takes a quarter of a small rewrite's time.

    With MPI the interpreter exits normally, so that MPI is finalized.
    """
    forget_frames()
    for number in SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    atexit._run_exitfuncs()  # noqa: SLF001 - else what modules registered would be left out
    try:
        sys.stdout.flush()
    except OutputLost as lost:
        from rewritelog.cli import console  # noqa: PLC0415 - it is loaded

        code = code or console.lost_output(lost)
    sys.stderr.flush()
    if "mpi4py.MPI" in sys.modules:
        sys.exit(code)
    leave_unjoined(code)


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


_PASSED = re.compile(r"(\x1b\[(?:0|1|31|33)m|[\n\r])")


class EscapedMessages(io.TextIOWrapper):
    """A stream of messages that lets no control sequences through to a terminal.

    Our own messages are made printable where they are written; this is for those of libraries,
    which repeat file names and texts of exceptions. Carriage returns of progress bars and the
    colours of messages are passed on.
    """

    def write(self, text: str, /) -> int:
        """Write a text and return its length; raise `TypeError` for anything but text."""
        from rewritelog.text import printable  # noqa: PLC0415 - a run without messages needs none

        parts = _PASSED.split(text)
        parts[::2] = map(printable, parts[::2])  # those between what is passed on
        super().write("".join(parts))
        return len(text)


def output_stream() -> io.TextIOWrapper:
    """Return a new `sys.stdout`, which escapes characters that the terminal's encoding lacks."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    buffer = io.BufferedWriter(_Output(1, "wb", closefd=False))
    return io.TextIOWrapper(buffer, encoding, "backslashreplace", line_buffering=os.isatty(1))


def message_stream() -> io.TextIOWrapper:
    """Return a new `sys.stderr`, which also escapes control characters."""
    encoding = getattr(sys.stderr, "encoding", None) or "utf-8"
    buffer = io.BufferedWriter(_Messages(2, "wb", closefd=False))
    return EscapedMessages(buffer, encoding, "backslashreplace", line_buffering=True)
