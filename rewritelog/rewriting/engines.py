"""Where blocks are worked through: on threads of this process, or on the ranks of an MPI job.

An engine hands out a `concurrent.futures.Executor` and the function that it runs on each block.
Another one is a class with the same few methods, and its name in `ENGINES`.
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
    """Workers for one rewrite."""

    leads = True
    """False in a process that only serves the leading one; it calls `serve` and is done."""
    workers: int
    """How many blocks are worked on at a time."""

    def __enter__(self) -> Engine:
        return self

    def __exit__(  # noqa: B027 - not every engine has something to end
        self, kind: type[BaseException] | None, error: BaseException | None, *_: object
    ) -> None:
        """Let the workers go; threads end with their executor."""

    @abstractmethod
    @contextmanager
    def start(self, task: RewriteTask) -> Iterator[tuple[Executor, Work]]:
        """Give the task to all workers; yield what runs blocks, and the work on one of them."""

    def serve(self) -> None:  # noqa: B027 - not every engine has processes that serve
        """Work for the leading process until it is done; of threads every process leads."""


class ThreadEngine(Engine):
    """Threads of this process; the kernels run without the interpreter's lock."""

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
    """Return the engine of that name; raise `RewriteLogError` where it is not available."""
    return ENGINES[name](jobs)
