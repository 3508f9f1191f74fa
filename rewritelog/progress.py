"""What a long job is doing, for whoever shows it; without a listener it costs nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Literal, TypeAlias

Unit: TypeAlias = Literal["", "bytes"]
Listener: TypeAlias = Callable[[str, int, int, Unit], Any]
"""Called with the stage in words, how much of it is done, how much there is (0: unknown), and what
both are counted in."""

_listener: ContextVar[Listener | None] = ContextVar("rewritelog_progress", default=None)


@contextmanager
def listening(listener: Listener | None) -> Iterator[None]:
    """Have the listener called while the block runs, by this thread."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def report_progress(stage: str, done: int = 0, total: int = 0, unit: Unit = "") -> None:
    """Say what is being done."""
    listener = _listener.get()
    if listener is not None:
        listener(stage, done, total, unit)
