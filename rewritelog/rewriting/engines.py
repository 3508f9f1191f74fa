"""Engines, which process the blocks: threads of this process, or the ranks of an MPI job.

An engine provides a `concurrent.futures.Executor` and the function to run on each block. A new one
is a class with the same methods, and an entry in `ENGINES`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial

from rewritelog.cores import cores
from rewritelog.logs.blocks import Block
from rewritelog.rewriting.block import RewriteTask, rewrite_block
from rewritelog.rewriting.statistics import BlockStatistics

Work = Callable[[Block], BlockStatistics]


class Engine(ABC):
    """The workers of one rewrite."""

    leads = True
    """False in a process that only works for the leading one, by calling `serve`."""
    workers: int
    """The number of blocks that are processed at a time."""

    def __enter__(self) -> Engine:
        return self

    def __exit__(  # noqa: B027 - not every engine has anything to clean up
        self, kind: type[BaseException] | None, error: BaseException | None, *_: object
    ) -> None:
        """End the workers; threads end with their executor."""

    @abstractmethod
    @contextmanager
    def start(self, task: RewriteTask) -> Iterator[tuple[Executor, Work]]:
        """Send the task to all workers; yield the executor, and the function for one block."""

    def serve(self) -> None:  # noqa: B027 - not every engine has further processes
        """Work for the leading process until it is done."""


class ThreadEngine(Engine):
    """Threads of this process; kernels release the interpreter lock."""

    def __init__(self, jobs: int) -> None:
        self.workers = cores(jobs)

    @contextmanager
    def start(self, task: RewriteTask) -> Iterator[tuple[Executor, Work]]:
        """Yield a pool of threads."""
        with ThreadPoolExecutor(self.workers) as executor:
            yield executor, partial(rewrite_block, task)


def _mpi_engine(jobs: int) -> Engine:
    from rewritelog.rewriting.mpi import MpiEngine  # noqa: PLC0415 - only some users need it

    return MpiEngine(jobs)


ENGINES: dict[str, Callable[[int], Engine]] = {"threads": ThreadEngine, "mpi": _mpi_engine}


def engine_of(name: str, jobs: int) -> Engine:
    """Return the engine with this name; raise `RewriteLogError` if it is not available."""
    return ENGINES[name](jobs)
