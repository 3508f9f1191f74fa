"""Parallel work on many items with the results in their order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future
from itertools import islice
from typing import TypeVar

from rewritelog.stopping import raise_if_stopped

Item = TypeVar("Item")
Result = TypeVar("Result")


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
