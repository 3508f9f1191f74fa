"""Work in separate processes, so that the page stays responsive and the work can be stopped."""

from __future__ import annotations

import asyncio
import multiprocessing
import signal
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from rewritelog.cores import cores
from rewritelog.errors import RewriteLogError
from rewritelog.progress import Listener, listening


class WorkStoppedError(Exception):
    """The work was stopped before it had finished."""


class Workers:
    """Runs many pieces of work, in as many processes as there are cores.

    As processes are forked, only results must be picklable, not the work.
    """

    def __init__(self) -> None:
        self._processes: list[Any] = []
        self._stopped = False

    @property
    def busy(self) -> bool:
        """Return whether work is in progress."""
        return bool(self._processes)

    def stop(self) -> None:
        """Stop the work in progress; results so far are kept."""
        self._stopped = True
        for process in self._processes:
            process.kill()

    async def run(
        self,
        work: Callable[[int], Any],
        count: int,
        taken: Callable[[int, Any], None],
        heard: Listener = lambda *_: None,
    ) -> None:
        """Call `work` with each number below `count`, and `taken` with each number and result.

        `heard` is called with the progress that `work` reports. Raise the first error that `work`
        or `taken` raises, which ends the others.
        """
        processes, self._stopped = min(cores(), count), False
        try:
            async with asyncio.TaskGroup() as group:
                for first in range(processes):
                    receiver = self._started(work, range(first, count, processes))
                    group.create_task(_follow(receiver, taken, heard))
        except ExceptionGroup as failed:
            raise failed.exceptions[0] from None
        finally:
            for process in self._processes:
                process.kill()
                process.join()
            self._processes.clear()

    async def run_one(self, work: Callable[[], Any]) -> Any:
        """Return the result of one piece of work.

        Raise the `RewriteLogError` that it raises, and `WorkStoppedError` if it is stopped.
        """
        results: list[Any] = []
        await self.run(lambda _: work(), 1, lambda _, result: results.append(result))
        if results:
            return results[0]
        if self._stopped:
            raise WorkStoppedError
        raise RewriteLogError("the fit's process ended without a result")

    def _started(self, work: Callable[[int], Any], numbers: range) -> Connection:
        context = multiprocessing.get_context("fork")
        receiver, sender = context.Pipe(duplex=False)
        process = context.Process(target=_work, args=(work, numbers, sender), daemon=True)
        process.start()
        self._processes.append(process)
        sender.close()
        return receiver


def _work(work: Callable[[int], Any], numbers: range, sender: Connection) -> None:
    """Send each number with its result or error, ignoring Ctrl-C, which the parent handles."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for ends in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(ends, signal.SIG_DFL)
    with listening(lambda *progress: sender.send((None, progress, None))):
        for number in numbers:
            try:
                sender.send((number, work(number), None))
            except RewriteLogError as error:
                sender.send((number, None, error))


async def _follow(receiver: Connection, taken: Callable[[int, Any], None], heard: Listener) -> None:
    """Pass results and progress that arrive through a pipe on until the pipe is closed."""
    loop, ready = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(receiver.fileno(), ready.set)
    try:
        while True:
            await ready.wait()
            ready.clear()
            try:
                number, result, error = receiver.recv()
            except (EOFError, OSError):  # the latter if the process was stopped while sending
                return
            if error is not None:
                raise error
            if number is None:
                heard(*result)
            else:
                taken(number, result)
    finally:
        loop.remove_reader(receiver.fileno())
        receiver.close()
