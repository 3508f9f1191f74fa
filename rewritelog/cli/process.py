"""The process of the command line: how it starts, its MPI job, and how it exits quickly."""

from __future__ import annotations

import atexit
import gc
import os
import resource
import signal
import sys
from pathlib import Path
from typing import NoReturn

from rewritelog.cli.streams import OutputLost, message_stream, occupy_closed, output_stream
from rewritelog.running import WRONG_USAGE, is_shared, this_job
from rewritelog.stopping import SIGNALS, Stopped, forget_frames, raise_if_stopped


def leave_unjoined(code: int) -> NoReturn:
    """Exit from a process that has not initialized MPI.

    A rank that fails ends by a signal, since launchers notice no other end of such a rank: those
    that wait for it in MPI_Init would do so forever.
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
    """Run the command line; exit with 0 (done), 1 (failed), 2 (wrong usage) or 128 + signal."""
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
    except SystemExit as left:  # of typer, which completes words
        return code_of(left)
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


def code_of(left: SystemExit) -> int:
    """Return the exit code that a `SystemExit` stands for."""
    return left.code if isinstance(left.code, int) else int(left.code is not None)


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
