"""The number of cores that a job may use, and parallel work with its results in order."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from rewritelog.stopping import raise_if_stopped

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future

Item = TypeVar("Item")
Result = TypeVar("Result")

_jobs: ContextVar[int] = ContextVar("rewritelog_jobs", default=0)


@contextmanager
def limited_to(jobs: int) -> Iterator[None]:
    """Limit the `with` block to this many cores; 0 means all that the process may use."""
    token = _jobs.set(jobs)
    try:
        yield
    finally:
        _jobs.reset(token)


def cores(jobs: int = 0) -> int:
    """Return how many cores to use: `jobs`, or for 0 the limit of the surrounding `limited_to`."""
    return jobs or _jobs.get() or len(os.sched_getaffinity(0))


def in_threads(
    work: Callable[[Item], Result], items: Iterable[Item], threads: int, ahead: int = 1
) -> Iterator[Result]:
    """Yield the results as `in_order` does, with `ahead` items in progress per thread."""
    with ThreadPoolExecutor(threads) as executor:
        yield from in_order(executor, work, items, ahead * threads)


def in_order(
    executor: Executor, work: Callable[[Item], Result], items: Iterable[Item], ahead: int
) -> Iterator[Result]:
    """Yield the results in the order of the items, with at most `ahead` items in progress.

    If one raises, the waiting ones are cancelled and its error is raised. A request to stop that
    third-party code has swallowed is raised, too.
    """
    waiting: deque[Future[Result]] = deque()
    source = iter(items)
    try:
        waiting.extend(executor.submit(work, item) for item in islice(source, ahead))
        while waiting:
            raise_if_stopped()
            yield waiting.popleft().result()
            waiting.extend(executor.submit(work, item) for item in islice(source, 1))
    finally:
        for future in waiting:
            future.cancel()
