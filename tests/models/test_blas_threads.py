"""Fits use one BLAS thread."""

import sys

import pytest

from rewritelog.models import blas_threads
from rewritelog.models.blas_threads import one_blas_thread


def threads() -> list[int]:
    return [get() for get, _ in blas_threads._openblas_functions()]


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_one_thread_within_the_block_and_as_many_as_before_after_it() -> None:
    if not threads():
        pytest.skip("needs a numpy that uses OpenBLAS")
    for _, set_threads in blas_threads._openblas_functions():
        set_threads(2)
    with one_blas_thread():
        assert set(threads()) == {1}
    assert set(threads()) == {2}
    first, second = one_blas_thread(), one_blas_thread()  # as of two threads
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert set(threads()) == {1}
    second.__exit__(None, None, None)
    assert set(threads()) == {2}
    for _, set_threads in blas_threads._openblas_functions():
        set_threads(1)
