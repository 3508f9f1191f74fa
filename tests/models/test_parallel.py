"""Fits in processes of their own."""

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from types import FrameType
from typing import NoReturn

import numpy as np
import pytest
from building import forks
from threadpoolctl import threadpool_info, threadpool_limits

from rewritelog.errors import ModelError
from rewritelog.models.base import EventTimings
from rewritelog.models.fitting.pipeline import FitConfig, fit_event
from rewritelog.models.model_file import event_in_file
from rewritelog.models.parallel import map_in_processes, one_blas_thread
from rewritelog.running.engines import limited_to


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
        results = list(threads.map(doubled, range(0, 400, 100)))
    assert results == [[2 * n for n in range(first, first + 9)] for first in range(0, 400, 100)]


def test_one_job_is_this_process() -> None:
    with limited_to(1):
        assert set(map_in_processes(lambda _: os.getpid(), range(20))) == {os.getpid()}


def test_trials_in_processes_give_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(8)
    params = rng.integers(1, 100, (30, 2)).astype(np.float64)
    seconds = 1e-6 * params.prod(axis=1) * np.exp(0.05 * rng.normal(size=30))
    timings = EventTimings("kernel", params, seconds)

    def fitted(jobs: int) -> object:
        with limited_to(jobs):
            return event_in_file(fit_event(timings, FitConfig()))

    alone = fitted(1)
    monkeypatch.setattr("rewritelog.models.fitting.validation.LARGE_TRIAL", 1)
    assert fitted(2) == alone


def test_a_library_that_a_fit_would_load_later_has_one_thread_too() -> None:
    script = (
        "from rewritelog.models.parallel import one_blas_thread\n"
        "from threadpoolctl import threadpool_info\n"
        "with one_blas_thread():\n"
        "    import scipy.linalg\n"
        "    print({one['num_threads'] for one in threadpool_info() if one['user_api'] == 'blas'})"
    )
    env = {name: value for name, value in os.environ.items() if not name.endswith("NUM_THREADS")}
    done = subprocess.run(
        [sys.executable, "-c", script], env=env, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() in ("{1}", "set()")


def test_one_thread_of_linear_algebra_within_the_block_and_as_many_as_before_after_it() -> None:
    def threads() -> set[int]:
        libraries = [library for library in threadpool_info() if library["user_api"] == "blas"]
        return {library["num_threads"] for library in libraries}

    with threadpool_limits(2, user_api="blas"):
        if threads() != {2}:
            pytest.skip("needs a numpy whose threads can be set")
        with one_blas_thread():
            assert threads() == {1}
        assert threads() == {2}
        first, second = one_blas_thread(), one_blas_thread()  # as of two threads
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert threads() == {1}
        second.__exit__(None, None, None)
        assert threads() == {2}


@pytest.mark.slow
def test_a_process_forked_during_a_fit_of_another_thread_fits_as_well() -> None:
    """It waited for a lock of that thread, which is not in it."""
    forks("""import threadpoolctl
class Slow(threadpoolctl.threadpool_limits):
    def __init__(self, *limits, **more):
        begun.set()
        time.sleep(0.2)
        super().__init__(*limits, **more)
begun, threadpoolctl.threadpool_limits = threading.Event(), Slow
import rewritelog
def work():
    rewritelog.fit({"work": ([[1], [2]], [1, 2])})
work()  # Python's locks of modules that a thread imports would stop a child, too
begun.clear()
threading.Thread(target=work).start()
begun.wait()
""")


@pytest.mark.slow
def test_a_fit_in_processes_ends_while_another_thread_fits() -> None:
    """Properties of Python 3.11 have locks, and the other thread held one that processes need."""
    program = """import os, signal, threading
import rewritelog
from rewritelog.models.fitting import samples
range_of = samples.column_range
def column_range(rows):
    if threading.current_thread() is other:
        begun.set()
        forked.wait()
    return range_of(rows)
samples.column_range = column_range
begun, forked = threading.Event(), threading.Event()
os.register_at_fork(after_in_child=lambda: signal.alarm(600))
timings = {f"event{number}": ([[1], [2], [4]], [1, 2, 4]) for number in range(9)}
other = threading.Thread(target=rewritelog.fit, args=[{"other": timings["event0"]}], daemon=True)
other.start()
begun.wait()
print(rewritelog.fit(timings, jobs=2))
forked.set()
other.join()
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "<FittedModel auto: 9 events (event0, event1, …) of 27 samples>\n"


@pytest.mark.slow
def test_processes_do_not_wait_for_a_library_that_another_thread_imports() -> None:
    program = """import os, signal, sys, threading
from importlib.abc import MetaPathFinder
from rewritelog.models.parallel import map_in_processes
from rewritelog.running.engines import limited_to
class Slow(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "scipy.optimize" and threading.current_thread() is other:
            begun.set()
            forked.wait(1)
def work(number):
    import scipy.optimize
    return number
def load():
    import scipy.optimize
sys.meta_path.insert(0, Slow())
begun, forked = threading.Event(), threading.Event()
os.register_at_fork(after_in_parent=forked.set, after_in_child=lambda: signal.alarm(600))
other = threading.Thread(target=load)
other.start()
begun.wait()
with limited_to(2):
    print(list(map_in_processes(work, range(9))))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[0, 1, 2, 3, 4, 5, 6, 7, 8]\n"


def test_a_process_that_is_killed_ends_the_fit_with_an_error() -> None:
    """The pool would wait for ever, as when the system's memory ends."""

    def killed(number: int) -> int:
        if number == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return number

    with limited_to(2), pytest.raises(ModelError, match="was killed"):
        list(map_in_processes(killed, range(10)))
