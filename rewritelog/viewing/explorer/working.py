"""Work in processes of its own, so that the page stays alive and the work can be stopped."""

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
    """The work was stopped before it was done."""


class Worker:
    """At most one piece of work at a time."""

    def __init__(self) -> None:
        self._process: Any = None
        self._stopped = False

    @property
    def busy(self) -> bool:
        """Return whether something is worked on."""
        return self._process is not None

    def stop(self) -> None:
        """End what is worked on; its `run` raises `WorkStoppedError`."""
        if self._process is not None:
            self._stopped = True
            self._process.kill()

    async def run(self, work: Callable[[], Any]) -> Any:
        """Return what the work returns.

        Raise what it raises where that is a `RewriteLogError`, and `WorkStoppedError` where it is
        stopped. The process is forked: the work need not be picklable, only its result.
        """
        context = multiprocessing.get_context("fork")
        receiver, sender = context.Pipe(duplex=False)
        self._stopped = False
        self._process = context.Process(target=_work, args=(work, sender), daemon=True)
        try:
            self._process.start()
            sender.close()
            answer = await _received(receiver)
        finally:
            receiver.close()
            self._process.kill()
            self._process.join()
            self._process = None
        if answer is None:
            if self._stopped:
                raise WorkStoppedError
            raise RewriteLogError("the fit's process ended without a result")
        kind, value = answer
        if kind == "error":
            raise value
        return value


class Crew:
    """Many pieces of work, in as many processes as there are cores."""

    def __init__(self) -> None:
        self._processes: list[Any] = []

    def stop(self) -> None:
        """End what is worked on; what is done is done."""
        for process in self._processes:
            process.kill()

    async def run(
        self, work: Callable[[int], Any], count: int, taken: Callable[[int, Any], None]
    ) -> None:
        """Work on the numbers below `count`; `taken` is called with each as it is done.

        Raise the first `RewriteLogError` that the work raises, which ends it.
        """
        many = min(cores(), count)
        try:
            async with asyncio.TaskGroup() as group:
                for first in range(many):
                    receiver = self._started(work, range(first, count, many))
                    group.create_task(_followed(receiver, taken))
        except* RewriteLogError as errors:
            raise errors.exceptions[0] from None
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


async def _followed(receiver: Connection, taken: Callable[[int, Any], None]) -> None:
    """Take what comes through a pipe until it is closed."""
    with receiver:
        while (answer := await _received(receiver)) is not None:
            kind, value = answer
            if kind == "error":
                raise value
            taken(*value)


def _work_through(work: Callable[[int], Any], numbers: range, sender: Connection) -> None:
    """Send each number with what the work gives for it."""
    for number in numbers:
        _work(partial(_numbered, work, number), sender)


def _numbered(work: Callable[[int], Any], number: int) -> tuple[int, Any]:
    return number, work(number)


async def _received(receiver: Connection) -> Any:
    """Return what comes through a pipe; None where it is closed before anything does."""
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
    except (EOFError, OSError):  # the latter where it was ended while it sent
        return None


def _work(work: Callable[[], Any], sender: Connection) -> None:
    """Send what the work gives; Ctrl-C is the parent's to act on."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    try:
        answer = ("done", work())
    except RewriteLogError as error:
        answer = ("error", error)
    sender.send_bytes(pickle.dumps(answer))
