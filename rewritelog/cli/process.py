"""The process around the command line: how it starts, and how it ends at once."""

from __future__ import annotations

import atexit
import gc
import os
import sys
from typing import NoReturn

from rewritelog.cli.app import run

_OBJECTS_A_COLLECTION = 100_000
"""New objects before the collector looks for garbage. With Python's 700 it goes through all modules
again and again while they are imported, a sixth of the time of a small rewrite."""


def main() -> NoReturn:
    """Run the command line; end with 0 done, 1 failed, 2 wrong usage, 130 interrupted."""
    gc.set_threshold(_OBJECTS_A_COLLECTION)
    try:
        run()
        code = 0
    except SystemExit as left:
        code = left.code if isinstance(left.code, int) else int(left.code is not None)
    _leave(code)


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
