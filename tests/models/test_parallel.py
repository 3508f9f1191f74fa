"""Fits in processes of their own."""

import os
import signal
from types import FrameType
from typing import NoReturn

import numpy as np
import pytest

from rewritelog.cores import limited_to
from rewritelog.errors import UsageError
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


def test_one_job_is_this_process() -> None:
    with limited_to(1):
        assert set(map_in_processes(lambda _: os.getpid(), range(20))) == {os.getpid()}
    with pytest.raises(UsageError, match="0 or more, not -1"), limited_to(-1):
        pass


def test_threads_return_results_in_order_and_handle_errors_as_their_caller_does() -> None:
    with limited_to(2), np.errstate(divide="raise"):
        assert map_in_threads(lambda number: number**2, range(9)) == [n**2 for n in range(9)]
        with pytest.raises(FloatingPointError):
            map_in_threads(lambda number: np.ones(1) / number, range(3))
