"""Engines, which map a function over blocks: threads of this process, or ranks of an MPI job.

A job opens its logs, and then calls `map_blocks` as often as it has passes over them. `lead` runs a
job on an engine: in an MPI job all ranks call it, rank 0 runs the job, and the others serve its
passes. Results come in the order of the blocks, so that sums and reports do not depend on the
engine or on the number of workers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from contextvars import ContextVar
from typing import Any, Generic, Literal, Protocol, TypeAlias, TypeVar, overload

from rewritelog.cores import cores, in_order, limited_to
from rewritelog.errors import UsageError
from rewritelog.progress import report_progress
from rewritelog.running import EngineName

AHEAD = 4
"""The number of items in progress per worker."""

Item = TypeVar("Item")
Result = TypeVar("Result")
Results: TypeAlias = Generator[Result, None, None]
Input = TypeVar("Input", contravariant=True)  # noqa: PLC0105 - only the first is exported
Output = TypeVar("Output", covariant=True)  # noqa: PLC0105


class Work(Protocol[Input, Output]):
    """The function for one block. It is pickled for other processes, once for each pass."""

    def __call__(self, block: Input, /) -> Output:
        """Return the result of one block."""


class Gathered(ABC, Generic[Item, Result]):
    """Work with a state in each process, which the leading process gathers in the end."""

    @abstractmethod
    def __call__(self, block: Item, /) -> Result:
        """Return the result of one block."""

    @abstractmethod
    def state(self) -> Any:
        """Return the state of a process that has no more blocks; it is pickled."""

    @abstractmethod
    def gather(self, state: Any) -> None:
        """Add the state of another process, in the leading one."""


class Engine(ABC):
    """The workers of one job."""

    name: EngineName
    leads = True
    """False in a process that only works for the leading one, by calling `serve`."""
    workers: int
    """The number of blocks that are processed at a time."""

    def __enter__(self) -> Engine:
        return self

    def __exit__(  # noqa: B027 - not every engine has anything to clean up
        self, kind: type[BaseException] | None, error: BaseException | None, *_: object
    ) -> None:
        """End the workers."""

    @abstractmethod
    def map(self, work: Work[Item, Result], items: Iterable[Item]) -> Results[Result]:
        """Yield the results in the order of the items; the first error ends the pass."""

    def serve(self) -> None:  # noqa: B027 - not every engine has further processes
        """Work for the leading process until its job is done."""


class Sized(Protocol):
    """A block, or a pair of blocks, whose size tells how much of a pass it is."""

    @property
    def size_bytes(self) -> int:
        """The size in bytes."""


Piece = TypeVar("Piece", bound=Sized)


class ThreadEngine(Engine):
    """Threads of this process; the compiled core releases the interpreter lock."""

    name = "threads"

    def __init__(self, jobs: int = 0) -> None:
        self.workers = cores(jobs)

    def map(self, work: Work[Item, Result], items: Iterable[Item]) -> Results[Result]:
        """Yield the results in the order of the items."""
        with ThreadPoolExecutor(self.workers) as executor:
            yield from in_order(executor, work, items, AHEAD * self.workers)


_engine: ContextVar[Engine | None] = ContextVar("rewritelog_engine", default=None)


def engine_of(name: EngineName, jobs: int = 0) -> Engine:
    """Return an engine by its name.

    Raise `UsageError` for an unknown one, and `RewriteLogError` if it is not available.
    """
    if name == "threads":
        return ThreadEngine(jobs)
    if name == "mpi":
        from rewritelog.running.mpi import MpiEngine  # noqa: PLC0415 - only some users need it

        return MpiEngine(jobs)
    raise UsageError(f"the engine must be 'threads' or 'mpi', not {name!r}")


@overload
def lead(name: Literal["threads"], jobs: int, job: Callable[[], Result]) -> Result: ...


@overload
def lead(name: EngineName, jobs: int, job: Callable[[], Result]) -> Result | None: ...


def lead(name: EngineName, jobs: int, job: Callable[[], Result]) -> Result | None:
    """Return the result of a job whose passes run on an engine; within another job, on its engine.

    In an MPI job, all ranks call this: rank 0 runs the job, the others work for it, and get None
    when it is done or has failed.
    """
    if _engine.get() is not None:
        with limited_to(jobs):
            return job()
    with engine_of(name, jobs) as engine:
        if not engine.leads:
            engine.serve()
            return None
        with limited_to(jobs), _running_on(engine):
            return job()


@contextmanager
def _running_on(engine: Engine) -> Iterator[None]:
    token = _engine.set(engine)
    try:
        yield
    finally:
        _engine.reset(token)


def engine_name() -> EngineName:
    """Return the name of the engine of the surrounding `lead`."""
    engine = _engine.get()
    return "threads" if engine is None else engine.name


def workers() -> int:
    """Return how many blocks the engine of the surrounding `lead` processes at a time."""
    engine = _engine.get()
    return cores() if engine is None else engine.workers


def map_over(work: Work[Item, Result], items: Iterable[Item]) -> Results[Result]:
    """Yield the results in the order of the items, on the engine of the surrounding `lead`.

    Without one, threads of this process do the work, as many as `cores` allows. If `work` is
    `Gathered`, its states have been gathered when all results have been yielded.
    """
    return (_engine.get() or ThreadEngine()).map(work, items)


def map_blocks(
    work: Work[Piece, Result], blocks: Iterable[Piece], stage: str, total_bytes: int
) -> Iterator[tuple[Piece, Result]]:
    """Yield each block with its result, in order, and report the progress of the stage."""
    planned = deque[Piece]()
    done_bytes = 0

    def plan() -> Iterator[Piece]:
        for block in blocks:
            planned.append(block)
            yield block

    report_progress(stage, 0, total_bytes, "bytes")
    with closing(map_over(work, plan())) as results:
        for result in results:
            block = planned.popleft()
            done_bytes += block.size_bytes
            yield block, result
            report_progress(stage, done_bytes, total_bytes, "bytes")
