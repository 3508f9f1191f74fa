"""The MPI engine: rank 0 leads a job, the other ranks work for it.

For each pass rank 0 broadcasts the work, hands out blocks with the executor of `mpi4py.futures`,
and collects the states of the ranks if the work has any (`Gathered`).

A rank that stops before the work is done must not simply exit: MPI_Finalize waits for all ranks,
and those waiting for this one would never get there. It notifies rank 0, which removes the output
and aborts the job; if rank 0 does not do so within `_GRACE_S`, the rank aborts the job itself.
A rank whose launcher is gone stops, too: nobody would tell it that another rank is gone.
"""

from __future__ import annotations

import atexit
import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from traceback import walk_tb
from typing import Any, TypeVar

import numpy as np

from rewritelog.errors import RewriteLogError, UsageError, spelled
from rewritelog.running.engines import AHEAD, Engine, Gathered, Results, in_order
from rewritelog.stopping import (
    Stopped,
    raise_if_stopped,
    stop_from_thread,
    stopped,
    take_signals_back,
)

_GRACE_S = 3.0
"""How long a rank that stops waits for rank 0 to end the job, which takes some milliseconds."""

_SHORT_S, _LONG_S = 0.0005, 0.05
"""The shortest and longest pause while polling, so that waiting ranks do not occupy processors."""

_STOPS, _STATE = 1, 2
"""Tags of messages to rank 0."""

Answer = TypeVar("Answer")
Item = TypeVar("Item")
Result = TypeVar("Result")


class MpiEngine(Engine):
    """The ranks of `mpiexec -n N`: rank 0 leads, the others work; a single rank does both."""

    name = "mpi"

    def __init__(self, jobs: int) -> None:
        """Join the job; raise `RewriteLogError` without MPI."""
        if jobs:
            raise UsageError(
                f"{spelled('jobs')} sets the number of threads; mpiexec -n sets the number of ranks"
            )
        self._end = _JobEnd()
        try:
            from mpi4py import MPI  # noqa: PLC0415 - only some users need it
        except (ImportError, RuntimeError) as error:  # mpi4py or the MPI library is missing
            first = str(error).partition("\n")[0]
            raise RewriteLogError(
                f"the engine mpi needs mpi4py and an MPI library ({first}): "
                "pip install 'rewritelog[mpi]'"
            ) from error
        take_signals_back()
        self._mpi: Any = MPI
        self._comm = self._mpi.COMM_WORLD.Dup()
        self._rank = self._comm.Get_rank()
        self.leads = self._rank == 0
        """Whether this process runs the job; the others call `serve`."""
        self.workers = max(1, self._comm.Get_size() - 1)
        self._watching = threading.Thread(target=self._watch, daemon=True)
        if self._comm.Get_size() > 1:
            self._watching.start()

    def __enter__(self) -> MpiEngine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, *_: object
    ) -> None:
        """End the job normally, or abort it if this rank stops, so that no other waits for it."""
        if error is not None and not (self.leads and isinstance(error, Exception)):
            if not self.leads:
                number = error.number if isinstance(error, Stopped) else signal.SIGTERM
                sent: list[Any] = [frame for frame, _ in walk_tb(error.__traceback__)]
                sent.append(self._comm.isend(Stopped(number, self._rank), dest=0, tag=_STOPS))
                # MPI goes on sending, also a result from one of these frames: they stay in memory
                self._end.abort_with(error, lambda: sent and self._comm.iprobe(), _GRACE_S)
            else:
                self._end.abort_with(error)
            return
        if self.leads:
            self._share(None)
        self._end.in_order.set()
        if self._watching.is_alive():
            self._watching.join()

    def _watch(self) -> None:
        """Stop this rank if the launcher is gone, and rank 0 if another one notifies it."""
        hears = self.leads and self._mpi.Query_thread() == self._mpi.THREAD_MULTIPLE
        while not (hears and self._comm.iprobe(source=self._mpi.ANY_SOURCE, tag=_STOPS)):
            if self._end.in_order.wait(_LONG_S):
                return
            if self._end.is_alone():
                self._end.abort_with(reason := Stopped(signal.SIGHUP))
                stop_from_thread(reason)
                return
        stop_from_thread(self._comm.recv(source=self._mpi.ANY_SOURCE, tag=_STOPS))

    def _share(self, work: Callable[[Any], Any] | None) -> Callable[[Any], Any] | None:
        """Send the work of rank 0 to all ranks; None ends the job.

        If rank 0 is alone, it works with its own object, whose state is not gathered.
        """
        global _work, _rank
        received = self._broadcast(work)
        _work, _rank = work if self.leads else received, self._rank
        return _work

    def _broadcast(self, value: Answer) -> Answer:
        """Return the value of rank 0 in all ranks; waiting can be interrupted by a signal."""
        data = np.frombuffer(pickle.dumps(value), dtype=np.uint8) if self.leads else None
        size = np.array([0 if data is None else len(data)], dtype=np.int64)
        _wait_until(self._comm.Ibcast(size, root=0).Test)
        if data is None:
            data = np.empty(int(size[0]), dtype=np.uint8)
        _wait_until(self._comm.Ibcast([data, self._mpi.BYTE], root=0).Test)
        received: Answer = pickle.loads(data.tobytes())  # noqa: S301 - from a rank of this job
        return received

    def map(self, work: Callable[[Item], Result], items: Iterable[Item]) -> Results[Result]:
        """Send the work to all ranks; yield the results in the order of the items."""
        from mpi4py.futures import MPICommExecutor  # noqa: PLC0415

        self._share(work)
        pool = MPICommExecutor(self._comm, root=0)
        executor: Any = pool.__enter__()  # None on the other ranks, which never come here
        try:
            yield from in_order(executor, _do_shared, items, AHEAD * self.workers)
        except (Exception, GeneratorExit):
            if stopped() is None:  # otherwise this rank aborts the job
                self._states(pool)
            raise
        for state in self._states(pool):
            if isinstance(work, Gathered):
                work.gather(state)

    def _states(self, pool: Any) -> list[Any]:
        """End a pass; return the states of the other ranks, None for work without states."""
        pool.__exit__(None, None, None)
        states = []
        for rank in range(1, self._comm.Get_size()):
            _wait_until(partial(self._comm.iprobe, source=rank, tag=_STATE))
            states.append(self._comm.recv(source=rank, tag=_STATE))
        return states

    def serve(self) -> None:
        """Work on the passes of rank 0 until the job ends."""
        from mpi4py.futures import MPICommExecutor  # noqa: PLC0415

        while (work := self._share(None)) is not None:
            with MPICommExecutor(self._comm, root=0):
                pass
            raise_if_stopped()  # the executor has sent the exception to rank 0
            state = work.state() if isinstance(work, Gathered) else None
            _wait_until(self._comm.isend(state, dest=0, tag=_STATE).Test)


def _wait_until(ready: Callable[[], bool]) -> None:
    """Wait, and leave the processor to the ranks that work; signals are handled meanwhile."""
    pause_s = _SHORT_S
    while not ready():
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, _LONG_S)


class _JobEnd:
    """The exit of this process from the job: by abort, unless the job has ended normally."""

    def __init__(self) -> None:
        self.in_order = threading.Event()
        self._code = 1
        self._advance: Callable[[], object] = bool
        self._until = 0.0
        self._launcher = os.getppid()
        atexit.register(self._leave)

    def is_alone(self) -> bool:
        """Return whether the launcher is gone."""
        return os.getppid() != self._launcher

    def abort_with(
        self, error: BaseException, advance: Callable[[], object] = bool, grace_s: float = 0.0
    ) -> None:
        """Abort the job when this process exits, or after a while if it does not.

        Before that, `advance` is called for a time of grace: a message to another rank, which may
        be behind a large result, is only sent within calls of MPI.
        """
        self._code = error.exit_code if isinstance(error, Stopped) else 1
        self._advance, self._until = advance, time.monotonic() + grace_s
        threading.Thread(target=self._leave_late, daemon=True).start()

    def _leave_late(self) -> None:
        time.sleep(_GRACE_S)
        self._leave()

    def _leave(self) -> None:
        loaded = sys.modules.get("mpi4py.MPI")
        if self.in_order.is_set() or loaded is None:
            return
        if not loaded.Is_initialized() or loaded.Is_finalized():
            return
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, AttributeError):
                stream.flush()
        try:
            while time.monotonic() < self._until:
                if threading.current_thread() is threading.main_thread():
                    self._advance()
                time.sleep(_SHORT_S)
        finally:
            reason = stopped()
            code = self._code if reason is None else reason.exit_code
            if self.is_alone():
                os._exit(code)  # an abort asks the launcher, which is gone
            loaded.COMM_WORLD.Abort(code)


_work: Callable[[Any], Any] | None = None
_rank: int | None = None


def _do_shared(item: Any) -> Any:
    """Return the result of the shared work, in whichever rank the executor runs this."""
    if _work is None:
        raise RewriteLogError("a rank was sent a block, but no work")
    try:
        return _work(item)
    except Stopped as reason:
        raise Stopped(reason.number, _rank) from reason
