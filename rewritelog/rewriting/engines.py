"""Where blocks are worked through: on threads of this process, or on the ranks of an MPI job.

An engine hands out a `concurrent.futures.Executor` and the function that it runs on each block.
Another one is a class with the same few methods, and its name in `ENGINES`.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from types import TracebackType
from typing import Any

from rewritelog.errors import RewriteLogError, UsageError
from rewritelog.logs.blocks import Block
from rewritelog.output import flush_files
from rewritelog.rewriting.block import RewriteTask, rewrite_block
from rewritelog.rewriting.statistics import BlockFigures

Work = Callable[[Block], BlockFigures]


class Engine(ABC):
    """Workers for one rewrite."""

    leads = True
    """False in a process that only serves the leading one; it calls `serve` and is done."""
    workers: int
    """How many blocks are worked on at a time."""

    def __enter__(self) -> Engine:
        return self

    def __exit__(  # noqa: B027 - not every engine has something to end
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
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
        self.workers = jobs or len(os.sched_getaffinity(0))

    @contextmanager
    def start(self, task: RewriteTask) -> Iterator[tuple[Executor, Work]]:
        """Yield a pool of threads."""
        with ThreadPoolExecutor(self.workers) as executor:
            yield executor, partial(rewrite_block, task)


class MpiEngine(Engine):
    """The ranks of `mpiexec -n N`: rank 0 leads, the others work; a lone rank does both."""

    def __init__(self, jobs: int) -> None:
        if jobs:
            raise UsageError("--jobs is for threads: mpiexec -n says how many ranks there are")
        try:
            from mpi4py import MPI  # noqa: PLC0415 - only some users need it
        except ImportError as error:
            raise RewriteLogError(
                f"the engine mpi needs mpi4py and an MPI library ({error}): "
                "pip install 'rewritelog[mpi]'"
            ) from error
        self._comm = MPI.COMM_WORLD
        self.leads = self._comm.Get_rank() == 0
        self.workers = max(1, self._comm.Get_size() - 1)
        self._given = False

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Tell the other ranks that there is nothing to do, where nothing was given to them."""
        if self.leads and not self._given:
            self._share(None)

    def _share(self, task: RewriteTask | None) -> RewriteTask | None:
        global _task  # noqa: PLW0603 - a rank works on one task
        _task = self._comm.bcast(task, root=0)
        self._given = True
        return _task

    @contextmanager
    def start(self, task: RewriteTask) -> Iterator[tuple[Executor, Work]]:
        """Send the task to all ranks, once; yield the executor that sends them blocks.

        When it is left each rank has flushed what it wrote; raise `OSError` where one could not.
        """
        from mpi4py.futures import MPICommExecutor  # noqa: PLC0415

        self._share(task)
        try:
            with MPICommExecutor(self._comm, root=0) as given:
                executor: Any = given  # None on the other ranks, which never come here
                yield executor, _rewrite_shared
        finally:
            failures = self._comm.gather(None, root=0) or []
        for failure in failures:
            if failure is not None:
                raise failure

    def serve(self) -> None:
        """Work on blocks that rank 0 sends, until it has no more."""
        from mpi4py.futures import MPICommExecutor  # noqa: PLC0415

        task = self._share(None)
        if task is not None:
            with MPICommExecutor(self._comm, root=0):
                pass
            self._comm.gather(_flush_written(task), root=0)


_task: RewriteTask | None = None
_written: set[int] = set()
"""The timeline files that this rank has written to."""


def _rewrite_shared(block: Block) -> BlockFigures:
    if _task is None:
        raise RewriteLogError("a rank was sent a block, but no task")
    _written.add(block.file)
    return rewrite_block(_task, block)


def _flush_written(task: RewriteTask) -> OSError | None:
    """Bring what this rank wrote to the disk, as no other host can; return what went wrong."""
    if task.output is None or not task.flush:
        return None
    try:
        flush_files(task.output / task.logs.files[index].path.name for index in sorted(_written))
    except OSError as error:
        return error
    return None


ENGINES: dict[str, Any] = {"threads": ThreadEngine, "mpi": MpiEngine}


def engine_of(name: str, jobs: int) -> Engine:
    """Return the engine of that name; raise `RewriteLogError` where it cannot be had."""
    engine: Engine = ENGINES[name](jobs)
    return engine
