"""The cores that a job may use, and engines, which map a function over blocks on them.

Engines are the threads of this process, or the ranks of an MPI job.

A job opens its logs, and then calls `map_blocks` once for each pass over them. In an MPI job all
ranks call `lead`: rank 0 runs the job, and the others serve its passes. Results come in the order
of the blocks, so that sums and reports do not depend on the engine or on the number of workers.
"""

from __future__ import annotations

import math
import os
import sys
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from contextvars import ContextVar
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, Protocol, TypeAlias, TypeVar

from rewritelog.errors import RewriteLogError
from rewritelog.progress import report_progress
from rewritelog.running import EngineName
from rewritelog.stopping import raise_if_stopped

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future

AHEAD = 4
"""The number of items in progress per worker."""

Item = TypeVar("Item")
Result = TypeVar("Result")
Arguments = ParamSpec("Arguments")
Results: TypeAlias = Generator[Result, None, None]

_jobs: ContextVar[int] = ContextVar("rewritelog_jobs", default=0)


@contextmanager
def limited_to(jobs: int) -> Iterator[None]:
    """Limit the `with` block to this many cores; 0 keeps the limit that surrounds it."""
    token = _jobs.set(jobs or _jobs.get())
    try:
        yield
    finally:
        _jobs.reset(token)


def cores() -> int:
    """Return how many cores to use: the limit of the surrounding `limited_to`, or else all.

    All are the cores that this process may run on, but no more than the quota of its container.
    """
    limit = _jobs.get()
    if sys.platform == "linux":
        return limit or min(len(os.sched_getaffinity(0)), _quota())
    else:  # noqa: RET505 - for mypy, which reads one of the branches
        return limit or os.cpu_count() or 1


_SYSTEM = Path("/")

_QUOTAS = {"": ("", "cpu.max"), "cpu": ("cpu", "cpu.cfs_quota_us", "cpu.cfs_period_us")}
"""The folder and the files of quotas, for version 2 and 1 of control groups, by controller."""


def _quota() -> int:
    """Return how many cores the control groups of this process may keep busy (cgroups(7)).

    The limit of a group holds for all groups in it.
    """
    quotas = [sys.maxsize]
    with suppress(OSError):  # a system without them
        for line in (_SYSTEM / "proc/self/cgroup").read_text().splitlines():
            _, controllers, name = line.split(":", 2)
            for controller in _QUOTAS.keys() & controllers.split(","):
                folder, *files = _QUOTAS[controller]
                group = _SYSTEM / "sys/fs/cgroup" / folder / name.lstrip("/")
                quotas += [_quota_of(place, files) for place in (group, *group.parents)]
    return min(quotas)


def _quota_of(group: Path, files: Sequence[str]) -> int:
    """Return the quota of one group; none without such files, as outside of a container."""
    try:
        share, period = "".join((group / file).read_text() for file in files).split()
        limited = share not in ("max", "-1")
        return max(1, math.ceil(int(share) / int(period))) if limited else sys.maxsize
    except (OSError, ValueError):  # a sandbox may have empty files
        return sys.maxsize


class Threads(ThreadPoolExecutor):
    """Threads of this process, which are started when there is work for them."""

    def submit(
        self,
        work: Callable[Arguments, Result],
        /,
        *arguments: Arguments.args,
        **named: Arguments.kwargs,
    ) -> Future[Result]:
        """Return the future result; raise `RewriteLogError` if the system denies a thread."""
        try:
            return super().submit(work, *arguments, **named)
        except RuntimeError as error:
            reasons = "too many threads and processes, or too little memory"
            raise RewriteLogError(f"a thread could not be started: {reasons}") from error


def in_threads(
    work: Callable[[Item], Result], items: Iterable[Item], threads: int, ahead: int = 1
) -> Iterator[Result]:
    """Yield the results as `in_order` does, with `ahead` items in progress per thread."""
    with Threads(threads) as executor:
        yield from in_order(executor, work, items, ahead * threads)


def in_order(
    executor: Executor, work: Callable[[Item], Result], items: Iterable[Item], ahead: int
) -> Iterator[Result]:
    """Yield the results in the order of the items, with at most `ahead` items in progress.

    If the work on an item raises, waiting items are cancelled and the error is raised. A request to
    stop that third-party code has swallowed is raised, too.
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


class Engine:
    """The workers of one job: threads, as the compiled core releases the interpreter lock."""

    name: EngineName = "threads"

    def __init__(self) -> None:
        self.workers = cores()
        """The number of blocks that are processed at a time."""

    def map(self, work: Callable[[Item], Result], items: Iterable[Item]) -> Results[Result]:
        """Yield the results in the order of the items; the first error ends the pass.

        The function is pickled for other processes, once for each pass. If it is `Gathered`, its
        states have been gathered when all results have been yielded.
        """
        yield from in_threads(work, items, self.workers, AHEAD)


class Sized(Protocol):
    """A block or a pair of blocks; its size measures progress."""

    @property
    def size_bytes(self) -> int:
        """The size in bytes."""


Piece = TypeVar("Piece", bound=Sized)

_engine: ContextVar[Engine | None] = ContextVar("rewritelog_engine", default=None)


@contextmanager
def running_on(engine: Engine) -> Iterator[None]:
    """Run the passes of the `with` block on an engine."""
    token = _engine.set(engine)
    try:
        yield
    finally:
        _engine.reset(token)


def engine() -> Engine:
    """Return the engine of the surrounding `lead`; without one, threads as `cores` allows."""
    return _engine.get() or Engine()


def map_blocks(
    work: Callable[[Piece], Result], blocks: Iterable[Piece], stage: str, total_bytes: int
) -> Iterator[tuple[Piece, Result]]:
    """Yield each block with its result, in order, and report the progress of the stage."""
    planned = deque[Piece]()
    done_bytes = 0

    def plan() -> Iterator[Piece]:
        for block in blocks:
            planned.append(block)
            yield block

    report_progress(stage, 0, total_bytes, "bytes")
    with closing(engine().map(work, plan())) as results:
        for result in results:
            block = planned.popleft()
            done_bytes += block.size_bytes
            yield block, result
            report_progress(stage, done_bytes, total_bytes, "bytes")
