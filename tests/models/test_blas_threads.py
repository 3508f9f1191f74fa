"""Fits use one BLAS thread."""

import pytest

from rewritelog.models.blas_threads import one_blas_thread, openblas_functions


def test_one_thread_within_the_block_and_as_many_as_before_after_it() -> None:
    threads, set_threads = openblas_functions()
    set_threads(2)
    if threads() != 2:
        pytest.skip("needs a numpy that uses OpenBLAS")
    with one_blas_thread():
        assert threads() == 1
    assert threads() == 2
    first, second = one_blas_thread(), one_blas_thread()  # as of two threads
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert threads() == 1
    second.__exit__(None, None, None)
    assert threads() == 2
    set_threads(1)
