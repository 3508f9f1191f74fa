"""Each kernel is compiled by one process, however many run the tests."""

from __future__ import annotations

import fcntl
import hashlib
from pathlib import Path
from typing import Any

from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher


def compile_each_kernel_once(locks: Path) -> None:
    """Have a process that needs a kernel wait for one that compiles it; then it finds it cached.

    The threads' lock is numba's own, and taken first: a thread that waits for another process
    holds nothing that this process needs.
    """
    dispatcher_class: Any = Dispatcher
    plain = dispatcher_class.compile

    def compile_or_wait(dispatcher: Any, signature: Any) -> Any:
        name = f"{dispatcher.py_func.__module__}.{dispatcher.py_func.__qualname__}"
        lock = locks / hashlib.sha256(name.encode()).hexdigest()
        with global_compiler_lock, lock.open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            return plain(dispatcher, signature)

    dispatcher_class.compile = compile_or_wait
