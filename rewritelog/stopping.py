"""Signals that end a run: an exception that third-party code does not take for its own error."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM)
"""The signals that end a run. `_raise_again` sends the last one; nobody else does."""

_SAME_S = 2.0
"""Signals within this time count as one. Batch systems send a signal to a process and then to its
group, and the second one must not interrupt the cleaning up that the first one has started."""

_AGAIN_S = 0.01
"""The time after which a request that a finaliser has lost is repeated; finalisers are short."""


class Stopped(BaseException):
    """A signal ends the run; `with` and `finally` blocks clean up."""

    def __init__(self, number: int, rank: int | None = None) -> None:
        super().__init__(number, rank)
        self.number = number
        self.rank = rank
        """The rank of an MPI job that received the signal, if it was another one."""

    @property
    def exit_code(self) -> int:
        """The exit code that shells report for a process ended by the signal."""
        return 128 + self.number

    def __str__(self) -> str:
        """Return what happened, for messages."""
        name = signal.Signals(self.number).name
        what = "interrupted" if self.number == signal.SIGINT else f"ended by {name}"
        return what if self.rank is None else f"rank {self.rank} was {what}"


class _Request:
    """The state of this process's request to stop."""

    raised: Stopped | None = None
    raised_at_s = 0.0
    requested: Stopped | None = None
    """The request of another thread."""
    process: int | None = None
    """The process in which signals raise `Stopped`; processes that it forks have defaults."""


_request = _Request()


def stop_on_signals() -> None:
    """Raise `Stopped` in the main thread on a signal; signals that are ignored stay ignored."""
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _stop)
    _request.process = os.getpid()
    sys.unraisablehook = _raise_again
    os.register_at_fork(after_in_child=_leave_to_defaults)


def take_signals_back() -> None:
    """Raise `Stopped` again on signals that a library has taken, if `stop_on_signals` was called.

    UCX, which MPI libraries use, takes SIGHUP as it is loaded, to print its debug messages from
    then on.
    """
    for number in SIGNALS:
        if signal.getsignal(number) is _stop:  # as far as Python knows
            signal.signal(number, _stop)


def _leave_to_defaults() -> None:
    """Let signals end a process that third-party code has forked, as they end any other one."""
    for number in SIGNALS:
        if signal.getsignal(number) is _stop:
            default = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
            signal.signal(number, default)


def _raise_again(lost: sys.UnraisableHookArgs) -> None:
    """Stop a moment later if Python drops the exception, as in finalisers during imports."""
    if isinstance(lost.exc_value, Stopped):
        _request.raised, _request.requested = None, lost.exc_value
        signal.setitimer(signal.ITIMER_REAL, _AGAIN_S)  # which sends SIGALRM
    else:
        sys.__unraisablehook__(lost)


def _stop(number: int, _frame: FrameType | None) -> None:
    if _request.process != os.getpid():  # it has just been forked
        _leave_to_defaults()
        os.kill(os.getpid(), number)
        return
    now_s = time.monotonic()
    if _request.raised is not None and now_s - _request.raised_at_s < _SAME_S:
        return
    _request.raised = _request.requested or Stopped(number)
    _request.raised_at_s = now_s
    raise _request.raised


def stop_from_thread(reason: Stopped) -> None:
    """Raise `reason` in the main thread, or `KeyboardInterrupt` without `stop_on_signals`."""
    _request.requested = reason
    main = threading.main_thread().ident
    caught = [number for number in SIGNALS if signal.getsignal(number) is _stop]
    if not caught and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        caught = [signal.SIGINT]
    if caught and main is not None:
        signal.pthread_kill(main, caught[0])


def stopped() -> Stopped | None:
    """Return the request to stop that has been raised in this process."""
    return _request.raised


def raise_if_stopped() -> None:
    """Raise `Stopped` again if third-party code may have swallowed it."""
    if _request.raised is not None:
        raise _request.raised


def in_steps(count: int, size: int = 1 << 20) -> Iterator[slice]:
    """Yield slices of a long loop's indices; raise `Stopped` between them on a signal."""
    for first in range(0, count, size):
        raise_if_stopped()
        yield slice(first, min(first + size, count))


def forget_frames() -> None:
    """Drop the frames in which a request was raised, so that generators suspended in them clean up.

    A signal may come between the `yield` of a context manager and the block of its `with`.
    """
    if _request.raised is not None:
        _request.raised.__traceback__ = _request.raised.__context__ = None
        gc.collect()


def is_stop(error: BaseException) -> bool:
    """Return whether an exception is a request of the user, not one that other code raised."""
    return isinstance(error, Stopped) or (
        isinstance(error, KeyboardInterrupt) and _request.process is None
    )
