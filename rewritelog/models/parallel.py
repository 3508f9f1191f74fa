"""Many fits in several processes, with the same results as in one process."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

from threadpoolctl import threadpool_limits

from rewritelog.errors import ModelError, spelled
from rewritelog.progress import listening
from rewritelog.running.engines import cores, limited_to
from rewritelog.running.locks import process_lock
from rewritelog.stopping import SIGNALS

if TYPE_CHECKING:
    from multiprocessing.pool import Pool
    from multiprocessing.process import BaseProcess

Item = TypeVar("Item")
Result = TypeVar("Result")

FEWEST = 8
"""With fewer items starting processes does not pay, unless items are known to take long."""

_LIBRARIES = ("scipy.linalg", "scipy.optimize", "scipy.spatial.distance")
"""Libraries that fits import only when they need them."""

_ALIVE_S = 1.0
"""How long to wait for a result before checking that all processes are alive."""

_limits: list[threadpool_limits] = []
_limits_lock = process_lock()
"""Held while `_limits` changes: the `with` blocks of `one_blas_thread` in all threads share it."""

_forking = process_lock()
"""Held while processes are forked: `warnings.catch_warnings` acts on all threads."""

_work: list[Callable[[], Any]] = []
"""The calls that a forked process may be asked to make, by index."""


def map_in_processes(
    function: Callable[[Item], Result],
    items: Sequence[Item],
    *,
    takes_long: bool | None = None,
) -> Iterator[Result]:
    """Yield the function's result for each item, in order; exceptions are passed on.

    Processes are forked, so that only results, not the function, have to be picklable. Items are
    processed in this process where forking is impossible (not Linux, an MPI job, a child process),
    and unless each `takes_long` or, if that is None, there are at least `FEWEST` items.
    """
    processes = min(cores(), len(items))
    may_fork = sys.platform == "linux" and "mpi4py.MPI" not in sys.modules
    may_fork = may_fork and multiprocessing.parent_process() is None
    pays = len(items) >= FEWEST if takes_long is None else takes_long
    if not may_fork or not pays or processes < 2:
        yield from map(function, items)
        return
    pool, children = _pool(processes, [partial(function, item) for item in items])
    with pool:
        results = pool.imap(_run, range(len(items)))
        for _ in items:
            yield _next(results, children)


def _next(results: Any, children: Sequence[BaseProcess]) -> Any:
    """Return the next result; raise `ModelError` if a process has ended, whose work is lost."""
    while True:
        try:
            return results.next(_ALIVE_S)
        except multiprocessing.TimeoutError:
            if not all(child.is_alive() for child in children):
                raise ModelError(
                    "a process that fits was killed, perhaps for want of memory; fewer workers "
                    f"({spelled('jobs')}) need less"
                ) from None


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let the linear algebra of numpy and scipy use one thread in the `with` block.

    Matrices of fits are small: more threads make them slower, many times slower on a busy machine,
    and last bits would depend on the number of threads. The limit holds for the whole process: the
    last of several such blocks lifts it. The command line sets environment variables, which the
    libraries read when they are loaded, but a Python program may have loaded numpy before.
    """
    if os.environ.get("OPENBLAS_NUM_THREADS") != "1":
        import scipy.linalg  # noqa: F401, PLC0415 - it loads a library of its own
    with _limits_lock:
        _limits.append(threadpool_limits(1, user_api="blas"))
    try:
        yield
    finally:
        with _limits_lock:
            if len(_limits) == 1:
                _limits[0].restore_original_limits()
            _limits.pop()


@contextmanager
def forking() -> Iterator[None]:
    """Block signals while processes are forked, until these have set up their handlers.

    Python's warning of other threads is suppressed: one could hold a lock that a child needs, but
    the child's work is arithmetic, and takes none.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        with _forking, warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*multi-threaded, use of fork", DeprecationWarning)
            yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def take_signals(ctrl_c: signal.Handlers = signal.SIG_DFL) -> None:
    """Let signals end this forked process at once; `ctrl_c` is the handler of Ctrl-C."""
    for number in SIGNALS:
        signal.signal(number, ctrl_c if number == signal.SIGINT else signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)


def _pool(processes: int, work: Sequence[Callable[[], Any]]) -> tuple[Pool, list[BaseProcess]]:
    """Return a pool of processes, and the processes."""
    if threading.active_count() > 1:  # else a child may wait for an import of another thread
        for library in _LIBRARIES:
            import_module(library)
    with forking():
        others = multiprocessing.active_children()
        pool = multiprocessing.get_context("fork").Pool(processes, _set_up, (work,))
        children = [each for each in multiprocessing.active_children() if each not in others]
    return pool, children


def _set_up(work: Sequence[Callable[[], Any]]) -> None:
    """Prepare a child process.

    Signals end it at once, without the parent's handlers and traceback. It inherits the work, which
    is not pickled; all threads of the parent would share a variable set there.
    """
    _work[:] = work
    take_signals()


def _run(index: int) -> Any:
    with limited_to(1), listening(None):  # progress is reported by the parent alone
        return _work[index]()
