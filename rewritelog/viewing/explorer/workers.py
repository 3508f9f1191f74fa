"""Work in a separate process, so that the page stays responsive and the work can be stopped."""

from __future__ import annotations

import asyncio
import multiprocessing
import signal
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from rewritelog.errors import RewriteLogError
from rewritelog.progress import listening
from rewritelog.stopping import SIGNALS


async def in_process(work: Callable[[], Any]) -> Any:
    """Return the result of a piece of work, which ends at once if the task is cancelled.

    As the process is forked, only the result must be picklable, not the work. Raise the
    `RewriteLogError` that it raises.
    """
    context, ready = multiprocessing.get_context("fork"), asyncio.Event()
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_send_result, args=(work, sender), daemon=True)
    process.start()
    sender.close()
    loop, descriptor = asyncio.get_running_loop(), receiver.fileno()
    loop.add_reader(descriptor, ready.set)
    try:
        await ready.wait()
        result = receiver.recv()
    except (EOFError, OSError):  # the latter if it ended while it sent
        raise RewriteLogError("the fit's process ended without a result") from None
    finally:
        loop.remove_reader(descriptor)
        receiver.close()
        process.kill()
        process.join()
    if isinstance(result, RewriteLogError):
        raise result
    return result


def _send_result(work: Callable[[], Any], sender: Connection) -> None:
    """Send the result or the error; Ctrl-C and progress are the parent's."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN if number == signal.SIGINT else signal.SIG_DFL)
    try:
        with listening(None):
            sender.send(work())
    except RewriteLogError as error:
        sender.send(error)
