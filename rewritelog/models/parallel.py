"""Fits of many events at a time, one process for each core; what comes out is the same bits."""

from __future__ import annotations

import multiprocessing
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar

from rewritelog.cores import cores
from rewritelog.stopping import SIGNALS

Item = TypeVar("Item")
Result = TypeVar("Result")

FEWEST = 8
"""Fewer items than these are not worth the start of processes."""

_work: list[Callable[[], Any]] = []
"""What forked processes inherit."""


def map_in_processes(function: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
    """Yield the function's result for each item, in their order; what it raises is raised.

    Processes are forked, so that the function need not be picklable, only its results. Where that
    cannot be (no fork, an MPI job, a process that may have no children), all is done here.
    """
    processes = min(cores(), len(items))
    if len(items) < FEWEST or processes < 2 or not _may_fork():
        yield from map(function, items)
        return
    _work[:] = [partial(function, item) for item in items]
    try:
        with _pool(processes) as pool:
            yield from pool.imap(_run, range(len(items)), chunksize=4)
    finally:
        _work.clear()


def _pool(processes: int) -> Any:
    """Return a pool of processes that no signal ends before they take signals as they are to."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        return multiprocessing.get_context("fork").Pool(processes, _take_signals, (before,))
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _take_signals(mask: set[int]) -> None:
    """Let signals end a child at once: the parent's handlers would print where it was."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _run(place: int) -> Any:
    return _work[place]()


def _may_fork() -> bool:
    return (
        sys.platform == "linux"
        and multiprocessing.parent_process() is None
        and "mpi4py.MPI" not in sys.modules
    )
