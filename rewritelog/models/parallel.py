"""Work on all cores: many fits in processes, many samples in threads, with the same results."""

from __future__ import annotations

import multiprocessing
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

import numpy as np

from rewritelog.cores import cores, in_order, limited_to
from rewritelog.stopping import SIGNALS

Item = TypeVar("Item")
Result = TypeVar("Result")

FEWEST = 8
"""With fewer items starting processes does not pay."""

MOST_AT_ONCE = 4
"""At most this many items are passed to a process at a time."""

_AHEAD = 2
"""Items in progress in threads, per thread, including results that wait for earlier ones."""

_work: list[Callable[[], Any]] = []
"""The calls that a forked process may be asked to make, by their numbers."""


def map_in_processes(
    function: Callable[[Item], Result], items: Sequence[Item], fewest: int = FEWEST
) -> Iterator[Result]:
    """Yield the function's result for each item, in order; exceptions are passed on.

    Processes are forked, so that only results, not the function, have to be picklable. Where
    forking is impossible (not Linux, an MPI job, a daemonic process), and with fewer than `fewest`
    items, the items are processed here.
    """
    processes = min(cores(), len(items))
    if len(items) < fewest or processes < 2 or not _may_fork():
        yield from map(function, items)
        return
    with _pool(processes, [partial(function, item) for item in items]) as pool:
        at_once = min(MOST_AT_ONCE, 1 + len(items) // (4 * processes))
        yield from pool.imap(_run, range(len(items)), chunksize=at_once)


def map_in_threads(function: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
    """Yield the function's result for each item, in order; exceptions are passed on.

    It pays where numpy works on long arrays, for which it releases Python's lock. The caller's
    handling of floating-point errors holds in the threads too. At most a few results wait.
    """
    threads = min(cores(), len(items))
    if threads < 2:
        yield from map(function, items)
        return
    handling = np.geterr()

    def handled(item: Item) -> Result:
        with np.errstate(**handling):
            return function(item)

    with ThreadPoolExecutor(threads) as executor:
        yield from in_order(executor, handled, items, _AHEAD * threads)


def _pool(processes: int, work: Sequence[Callable[[], Any]]) -> Any:
    """Return a pool of processes; signals are blocked until these have set up their handlers."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        return multiprocessing.get_context("fork").Pool(processes, _set_up, (before, work))
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _set_up(mask: set[int], work: Sequence[Callable[[], Any]]) -> None:
    """Prepare a child process.

    Signals end it at once, without the parent's handlers and traceback. It inherits the work, which
    is not pickled; a variable of the parent would be shared by all of its threads.
    """
    _work[:] = work
    for number in SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _run(index: int) -> Any:
    with limited_to(1):
        return _work[index]()


def _may_fork() -> bool:
    return (
        sys.platform == "linux"
        and multiprocessing.parent_process() is None
        and "mpi4py.MPI" not in sys.modules
    )
