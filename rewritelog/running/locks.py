"""Locks of a process that others may be forked from."""

from __future__ import annotations

import os
import threading


def process_lock() -> threading.RLock:
    """Return a lock that no other thread holds during a fork.

    The child would wait for ever: the thread is not in it.
    """
    lock = threading.RLock()
    os.register_at_fork(
        before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release
    )
    return lock
