"""The threads of OpenBLAS, which numpy computes matrix products and decompositions with.

Matrices of fits are small: more than one thread makes them slower, many times slower on a busy
machine, and their last bits would depend on the number of threads. The command line sets the
environment variables that BLAS libraries read when they are loaded; a program that uses the Python
interface has loaded numpy before.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from itertools import product
from typing import Any

import numpy as np


class _Blocks:
    """The `with` blocks of `one_blas_thread` in all threads."""

    lock = threading.Lock()
    running = 0
    threads_before = 1


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let numpy use one thread in the `with` block, if it uses OpenBLAS.

    The number of threads is that of the process: the last of several such blocks restores it.
    """
    threads, set_threads = openblas_functions()
    with _Blocks.lock:
        if not _Blocks.running:
            _Blocks.threads_before = threads()
            set_threads(1)
        _Blocks.running += 1
    try:
        yield
    finally:
        with _Blocks.lock:
            _Blocks.running -= 1
            if not _Blocks.running:
                set_threads(_Blocks.threads_before)


@cache
def openblas_functions() -> tuple[Callable[[], int], Callable[[int], Any]]:
    """Return the functions that return and set the number of threads; without OpenBLAS, idle ones.

    They are looked up in the library that numpy's linear algebra is linked with.
    """
    linked = ctypes.CDLL(np.linalg._umath_linalg.__file__)  # noqa: SLF001 - which is all of it
    for prefix, suffix in product(("scipy_", ""), ("64_", "", "_64")):
        names = (f"{prefix}openblas_{verb}_num_threads{suffix}" for verb in ("get", "set"))
        found: list[Any] = [getattr(linked, name, None) for name in names]
        if all(found):
            return found[0], found[1]
    return lambda: 1, lambda _: None
