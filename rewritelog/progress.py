"""Progress of long jobs, reported to a listener if there is one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Literal, TypeAlias

from rewritelog.errors import UsageTypeError

Unit: TypeAlias = Literal["", "bytes"]
Listener: TypeAlias = Callable[[str, int, int, Unit], Any]
"""Called with the name of the stage, the amount done, the total (0: unknown), and their unit."""


def to_listener(value: object, what: str) -> object:
    """Return a listener; raise `UsageTypeError` for what cannot be called."""
    if not callable(value):
        raise UsageTypeError(f"{what} must be a function, not {type(value).__name__}")
    return value


_listener: ContextVar[Listener | None] = ContextVar("rewritelog_progress", default=None)


@contextmanager
def listening(listener: Listener | None) -> Iterator[None]:
    """Report the progress of the `with` block, in this thread, to the listener."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


@contextmanager
def part_of(whole: str, done: int, total: int, noun: str) -> Iterator[None]:
    """Report the progress of the `with` block as that of one part of a whole.

    The listener gets `WHOLE: STAGE 2 of 5, NOUNs done` and the number of parts that are done or,
    for a whole with a single part, `WHOLE: STAGE` and the amount done of the stage.
    """
    listener = _listener.get()
    if listener is None:
        yield
        return

    def hear(stage: str, of_stage: int, stage_total: int, unit: Unit) -> None:
        if total < 2:
            listener(f"{whole}: {stage}", of_stage, stage_total, unit)
        else:
            amount = f" {of_stage:,} of {stage_total:,}" if stage_total and not unit else ""
            listener(f"{whole}: {stage}{amount}, {noun}s done", done, total, "")

    listener(f"{whole}, {noun}s done" if total > 1 else whole, done, total if total > 1 else 0, "")
    with listening(hear):
        yield


def report_progress(stage: str, done: int = 0, total: int = 0, unit: Unit = "") -> None:
    """Report the progress of a stage to the listener, if there is one."""
    listener = _listener.get()
    if listener is not None:
        listener(stage, done, total, unit)
