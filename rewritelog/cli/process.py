"""The process around the command line: how it starts, and how it ends at once."""

from __future__ import annotations

import atexit
import gc
import io
import os
import signal
import sys
from typing import NoReturn

from rewritelog.cli.app import run
from rewritelog.text import printable

_OBJECTS_A_COLLECTION = 100_000
"""New objects before the collector looks for garbage. With Python's 700 it goes through all modules
again and again while they are imported, a sixth of the time of a small rewrite."""


_TERMINATED = 128 + signal.SIGTERM


class _Harmless(io.TextIOWrapper):
    """A stream of messages in which nothing reaches a terminal that it might obey.

    Messages are made printable where they are written; this is for those of others, which repeat
    the names of files and whatever an exception says. A progress bar goes back to its line's start.
    """

    def write(self, text: str, /) -> int:
        """Write a text; return the length that it had. Raise `TypeError` for anything else."""
        if not isinstance(text, str):
            raise TypeError(f"messages are text, not {type(text).__name__}")
        super().write("".join(c if c in "\n\r" else printable(c) for c in text))
        return len(text)


_LINEAR_ALGEBRA_THREADS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")
"""numpy's libraries read these when they are loaded. Matrices are small here: threads of theirs
make a fit slower, and its last bits depend on how many there are."""


def main() -> NoReturn:
    """Run the command line; end with 0 done, 1 failed, 2 wrong usage, 130 interrupted."""
    gc.set_threshold(_OBJECTS_A_COLLECTION)
    for name in _LINEAR_ALGEBRA_THREADS:
        os.environ.setdefault(name, "1")
    signal.signal(signal.SIGTERM, lambda _signal, _frame: sys.exit(_TERMINATED))
    make_streams_safe()
    _leave(exit_code())


def exit_code() -> int:
    """Run the command line; return its exit code."""
    try:
        run()
    except SystemExit as left:
        return code_of(left)
    return 0


def code_of(left: SystemExit) -> int:
    """Return the exit code of a process that is left like this."""
    return left.code if isinstance(left.code, int) else int(left.code is not None)


def make_streams_safe() -> None:
    """Spell what the terminal's encoding lacks as an escape, and messages without control codes."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    if isinstance(sys.stderr, io.TextIOWrapper):
        sys.stderr = _Harmless(
            sys.stderr.detach(), sys.stderr.encoding, "backslashreplace", line_buffering=True
        )


def _leave(code: int) -> NoReturn:
    """End without taking every imported module to pieces, a quarter of a small rewrite's time.

    MPI has an end of its own, which the interpreter calls.
    """
    if "mpi4py.MPI" in sys.modules:
        sys.exit(code)
    atexit._run_exitfuncs()  # noqa: SLF001 - else what modules registered would be left out
    for stream in (sys.stdout, sys.stderr):
        code = code if _flushed(stream) else code or 1
    os._exit(code)


def _flushed(stream: object) -> bool:
    """Return whether all that was printed has gone out, as it does not to a full disk."""
    try:
        stream.flush()  # type: ignore[attr-defined] # None where the process has no such stream
    except AttributeError:
        return True
    except OSError as error:
        os.write(2, f"rewritelog: the output could not be written: {error.strerror}\n".encode())
        return False
    return True
