"""Work of the live page in other processes, so that it can be stopped."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable
from concurrent.futures import CancelledError
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

from rewritelog.errors import RewriteLogError
from rewritelog.models.parallel import forking, take_signals
from rewritelog.progress import listening


class Processes:
    """Processes that do work for the threads that wait for it."""

    def __init__(self) -> None:
        self.running: set[BaseProcess] = set()
        self._ended = False

    def result(self, work: Callable[[], Any]) -> Any:
        """Return the result of work in a process.

        As it is forked, only the result must be picklable, not the work. Raise the
        `RewriteLogError` that it raises, or `CancelledError` if it is stopped.
        """
        context = multiprocessing.get_context("fork")
        with forking():  # no other process inherits the sender, and so keeps it open
            if self._ended:
                raise CancelledError
            receiver, sender = context.Pipe(duplex=False)
            process = context.Process(target=_send_result, args=(work, sender), daemon=True)
            process.start()
            sender.close()
            self.running.add(process)
        try:
            result = receiver.recv()
        except (EOFError, OSError):  # OSError if it ended while sending
            if process not in self.running:
                raise CancelledError from None
            raise RewriteLogError("the fit's process ended without a result") from None
        finally:
            self.running.discard(process)
            receiver.close()
            process.kill()
            process.join()
        if isinstance(result, RewriteLogError):
            raise result
        return result

    def stop(self) -> None:
        """Stop all work in progress."""
        for process in [*self.running]:
            self.running.discard(process)
            process.kill()

    def end(self) -> None:
        """Stop all work in progress, and refuse further work."""
        with forking():
            self._ended = True
        self.stop()


def _send_result(work: Callable[[], Any], sender: Connection) -> None:
    """Send the result or the error; Ctrl-C and progress are the parent's."""
    take_signals(ctrl_c=signal.SIG_IGN)
    try:
        with listening(None):
            sender.send(work())
    except RewriteLogError as error:
        sender.send(error)
