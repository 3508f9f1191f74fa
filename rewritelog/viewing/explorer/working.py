"""Work in a process of its own, so that the page stays alive and the work can be stopped."""

from __future__ import annotations

import asyncio
import multiprocessing
import pickle
import signal
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

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
    except EOFError:
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
