"""Progress of long jobs, reported to a listener if there is one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Literal, TypeAlias

Unit: TypeAlias = Literal["", "bytes"]
Listener: TypeAlias = Callable[[str, int, int, Unit], Any]
"""Called with the name of the stage, the amount done, the total (0: unknown), and their unit."""

_listener: ContextVar[Listener | None] = ContextVar("rewritelog_progress", default=None)


@contextmanager
def listening(listener: Listener | None) -> Iterator[None]:
    """Report the progress of the `with` block, in this thread, to the listener."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def report_progress(stage: str, done: int = 0, total: int = 0, unit: Unit = "") -> None:
    """Report the progress of a stage to the listener, if there is one."""
    listener = _listener.get()
    if listener is not None:
        listener(stage, done, total, unit)
