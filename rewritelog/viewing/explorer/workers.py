"""Work in separate processes, so that the page stays responsive and the work can be stopped."""

from __future__ import annotations

import asyncio
import multiprocessing
import pickle
import signal
from collections.abc import Callable
from functools import partial
from multiprocessing.connection import Connection
from typing import Any

from rewritelog.cores import cores
from rewritelog.errors import RewriteLogError


class WorkStoppedError(Exception):
    """The work was stopped before it had finished."""


class Workers:
    """Runs many pieces of work, in as many processes as there are cores."""

    def __init__(self) -> None:
        self._processes: list[Any] = []

    def stop(self) -> None:
        """Stop the work in progress; results so far are kept."""
        for process in self._processes:
            process.kill()

    async def run(
        self, work: Callable[[int], Any], count: int, taken: Callable[[int, Any], None]
    ) -> None:
        """Call `work` with each number below `count`, and `taken` with each number and result.

        Raise the first error that `work` or `taken` raises, which ends the others.
        """
        processes = min(cores(), count)
        try:
            async with asyncio.TaskGroup() as group:
                for first in range(processes):
                    receiver = self._started(work, range(first, count, processes))
                    group.create_task(_followed(receiver, taken))
        except ExceptionGroup as failed:
            raise failed.exceptions[0] from None
        finally:
            self.stop()
            for process in self._processes:
                process.join()
            self._processes.clear()

    def _started(self, work: Callable[[int], Any], numbers: range) -> Connection:
        context = multiprocessing.get_context("fork")
        receiver, sender = context.Pipe(duplex=False)
        process = context.Process(target=_work_through, args=(work, numbers, sender), daemon=True)
        process.start()
        self._processes.append(process)
        sender.close()
        return receiver


class Worker:
    """Runs at most one piece of work at a time, in a forked process."""

    def __init__(self) -> None:
        self._workers: Workers | None = None
        self._stopped = False

    @property
    def busy(self) -> bool:
        """Return whether work is in progress."""
        return self._workers is not None

    def stop(self) -> None:
        """Stop the work in progress; its `run` raises `WorkStoppedError`."""
        if self._workers is not None:
            self._stopped = True
            self._workers.stop()

    async def run(self, work: Callable[[], Any]) -> Any:
        """Run `work` in a forked process and return its result.

        Raise the `RewriteLogError` that it raises, and `WorkStoppedError` if it is stopped. As the
        process is forked, only the result must be picklable, not the work.
        """
        self._workers, self._stopped = Workers(), False
        results: list[Any] = []
        try:
            await self._workers.run(lambda _: work(), 1, lambda _, result: results.append(result))
        finally:
            self._workers = None
        if results:
            return results[0]
        if self._stopped:
            raise WorkStoppedError
        raise RewriteLogError("the fit's process ended without a result")


async def _followed(receiver: Connection, taken: Callable[[int, Any], None]) -> None:
    """Pass what arrives through a pipe to `taken` until the pipe is closed."""
    with receiver:
        while (answer := await _received(receiver)) is not None:
            kind, value = answer
            if kind == "error":
                raise value
            taken(*value)


def _work_through(work: Callable[[int], Any], numbers: range, sender: Connection) -> None:
    """Send each number with the result of `work` for it."""
    for number in numbers:
        _work(partial(_numbered, work, number), sender)


def _numbered(work: Callable[[int], Any], number: int) -> tuple[int, Any]:
    return number, work(number)


async def _received(receiver: Connection) -> Any:
    """Return the next object from a pipe, None if the pipe is closed first."""
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()

    def readable() -> None:
        if not ready.done():
            ready.set_result(None)

    loop.add_reader(receiver.fileno(), readable)
    try:
        await ready
    finally:
        loop.remove_reader(receiver.fileno())
    try:
        return pickle.loads(receiver.recv_bytes())  # noqa: S301 - made by a process of our own
    except (EOFError, OSError):  # the latter if the process was stopped while sending
        return None


def _work(work: Callable[[], Any], sender: Connection) -> None:
    """Send the result of `work`, ignoring Ctrl-C, which the parent handles."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    try:
        answer = ("done", work())
    except RewriteLogError as error:
        answer = ("error", error)
    sender.send_bytes(pickle.dumps(answer))
