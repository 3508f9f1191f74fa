"""The threads of OpenBLAS, which numpy computes matrix products and decompositions with.

Matrices of fits are small: more than one thread makes them slower, many times slower on a busy
machine, and their last bits would depend on the number of threads. The command line sets the
environment variables that BLAS libraries read when they are loaded; a program that uses the Python
interface has loaded numpy before.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import product
from pathlib import Path
from typing import Any

_MAPPED_FILES = Path("/proc/self/maps")
_NAMES = tuple(
    (f"{prefix}openblas_get_num_threads{suffix}", f"{prefix}openblas_set_num_threads{suffix}")
    for prefix, suffix in product(("scipy_", ""), ("64_", "", "_64"))
)
"""The names of two functions, as builds of OpenBLAS spell them."""


class _Blocks:
    """The `with` blocks of `one_blas_thread` in all threads."""

    lock = threading.Lock()
    running = 0
    restore = ExitStack()
    """What the last of them does when it ends."""


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let OpenBLAS use one thread in the `with` block; elsewhere than on Linux nothing happens.

    The number of threads is that of the process: the last of several such blocks restores it.
    """
    with _Blocks.lock:
        _Blocks.running += 1
        for threads, set_threads in _openblas_functions():
            before = threads()
            if before > 1:
                set_threads(1)
                _Blocks.restore.callback(set_threads, before)
    try:
        yield
    finally:
        with _Blocks.lock:
            _Blocks.running -= 1
            if not _Blocks.running:
                _Blocks.restore.close()


def _openblas_functions() -> Iterator[tuple[Callable[[], int], Callable[[int], Any]]]:
    """Yield the functions that return and set the number of threads, for each OpenBLAS loaded."""
    for path in _openblas_files():
        try:
            library = ctypes.CDLL(path, mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
        except OSError:  # the file was replaced since
            continue
        for name, set_name in _NAMES:
            if hasattr(library, name) and hasattr(library, set_name):
                yield getattr(library, name), getattr(library, set_name)
                break


def _openblas_files() -> list[str]:
    """Return the paths of the OpenBLAS libraries that this process has loaded."""
    try:
        lines = _MAPPED_FILES.read_text(errors="surrogateescape").splitlines()
    except OSError:
        return []
    paths = {line.split(maxsplit=5)[5] for line in lines if "openblas" in line}
    return sorted(path for path in paths if "openblas" in Path(path).name)
