"""Fits in processes of their own."""

import signal
from types import FrameType
from typing import NoReturn

import pytest

from rewritelog.models.parallel import map_in_processes


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
