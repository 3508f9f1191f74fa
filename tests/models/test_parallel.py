"""Fits in processes of their own."""

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from types import FrameType
from typing import NoReturn

import numpy as np
import pytest

from rewritelog.arrays import Floats
from rewritelog.cores import limited_to
from rewritelog.errors import UsageError
from rewritelog.models.base import EventTimings
from rewritelog.models.fit_schema import event_in_file
from rewritelog.models.fitting.automatic import automatic_families
from rewritelog.models.fitting.extrapolation import _Trial
from rewritelog.models.fitting.families import Family
from rewritelog.models.fitting.pipeline import FitConfig, fit_event
from rewritelog.models.parallel import map_in_processes, map_in_threads


def test_children_that_are_done_print_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    """The pool ends them by SIGTERM, for which the parent may have a handler that raises."""

    def stop(number: int, frame: FrameType | None) -> NoReturn:
        raise KeyboardInterrupt(number)

    before = signal.signal(signal.SIGTERM, stop)
    try:
        for _ in range(5):
            assert list(map_in_processes(abs, range(-20, 0))) == list(range(20, 0, -1))
    finally:
        signal.signal(signal.SIGTERM, before)
    assert capfd.readouterr().err == ""


def test_threads_that_use_processes_at_once_get_their_own_results() -> None:
    def doubled(first: int) -> list[int]:
        return list(map_in_processes(lambda number: 2 * number, range(first, first + 9)))

    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(doubled, range(0, 400, 100)))
    assert found == [[2 * n for n in range(first, first + 9)] for first in range(0, 400, 100)]


def test_one_job_is_this_process() -> None:
    with limited_to(1):
        assert set(map_in_processes(lambda _: os.getpid(), range(20))) == {os.getpid()}
    with pytest.raises(UsageError, match="0 or more, not -1"), limited_to(-1):
        pass


def test_threads_return_results_in_order_and_handle_errors_as_their_caller_does() -> None:
    with limited_to(2), np.errstate(divide="raise"):
        squares = map_in_threads(lambda number: number**2, range(9))
        assert list(squares) == [number**2 for number in range(9)]
        with pytest.raises(FloatingPointError):
            list(map_in_threads(lambda number: np.ones(1) / number, range(3)))


def test_trials_in_processes_give_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """In one process families that cannot have a share any more are left out of the last trial."""
    rng = np.random.default_rng(8)
    tried: list[Family] = []
    logs = _Trial.logs

    def counted(trial: _Trial, family: Family) -> Floats:
        tried.append(family)
        return logs(trial, family)

    params = rng.integers(1, 100, (30, 2)).astype(np.float64)
    seconds = 1e-6 * params.prod(axis=1) * np.exp(0.05 * rng.normal(size=30))
    timings = EventTimings("kernel", params, seconds)

    def fitted(jobs: int) -> object:
        with limited_to(jobs):
            return event_in_file(fit_event(timings, FitConfig()))

    monkeypatch.setattr(_Trial, "logs", counted)
    alone = fitted(1)
    families = len(automatic_families(30))
    assert families < len(tried) < 2 * families
    monkeypatch.setattr("rewritelog.models.fitting.cross_validation.LARGE_TRIAL", 1)
    assert fitted(2) == alone
