"""How a signal ends a run: as an exception that no code takes for an error of its own."""

from __future__ import annotations

import signal
import sys
import threading
import time
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

_SAME_S = 2.0
"""Batch systems send a signal to a process and again to its group: both are one request, and the
second must not interrupt the cleaning up that the first one began."""


_AGAIN_S = 0.01
"""How long a finaliser may take to be over."""


class Stopped(BaseException):
    """A signal ends the run; everything between leaves its place as it was."""

    def __init__(self, number: int, rank: int | None = None) -> None:
        super().__init__(number, rank)
        self.number = number
        self.rank = rank
        """The rank of an MPI job that had the signal, where it was another one."""

    @property
    def exit_code(self) -> int:
        """Return the exit code that shells give to a process that a signal has ended."""
        return 128 + self.number

    def __str__(self) -> str:
        """Say what happened."""
        name = signal.Signals(self.number).name
        what = "interrupted" if self.number == signal.SIGINT else f"ended by {name}"
        return what if self.rank is None else f"rank {self.rank} was {what}"


class _Request:
    """The first request of this process to stop."""

    raised: Stopped | None = None
    raised_at_s = 0.0
    told: Stopped | None = None
    """What another thread has asked for."""
    installed = False
    printing = False
    """Whether Python is about to say that it drops an exception; another one would be lost too."""


_request = _Request()


def stop_on_signals() -> None:
    """Raise `Stopped` in the main thread at a signal; what the caller ignores stays ignored."""
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _stop)
    _request.installed = True
    sys.unraisablehook = _raise_again


def _raise_again(lost: sys.UnraisableHookArgs) -> None:
    """Stop a moment later where Python drops what is raised: in a finaliser, as imports have."""
    if isinstance(lost.exc_value, Stopped):
        _request.printing, _request.raised = True, None
        threading.Thread(target=_insist, args=[lost.exc_value], daemon=True).start()
        _request.printing = False
    else:
        sys.__unraisablehook__(lost)


def _insist(reason: Stopped) -> None:
    """Ask the main thread to stop until it does."""
    while _request.raised is None:
        time.sleep(_AGAIN_S)
        stop_from_thread(reason)


def _stop(number: int, _frame: FrameType | None) -> None:
    if _request.printing:
        return
    now_s = time.monotonic()
    if _request.raised is not None and now_s - _request.raised_at_s < _SAME_S:
        return
    _request.raised = _request.told or Stopped(number)
    _request.raised_at_s = now_s
    raise _request.raised


def stop_from_thread(reason: Stopped) -> None:
    """Raise `reason` in the main thread soon; `KeyboardInterrupt` where signals are not caught."""
    _request.told = reason
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
    """Raise once more what the code of others may have caught and dropped."""
    if _request.raised is not None:
        raise _request.raised


def is_stop(error: BaseException) -> bool:
    """Return whether the user ends the run, rather than code that raises as if one had."""
    return isinstance(error, Stopped) or (
        isinstance(error, KeyboardInterrupt) and not _request.installed
    )
