"""A lock that is safe in processes that fork, and a cached property that needs none."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

Value = TypeVar("Value")


def process_lock() -> threading.RLock:
    """Return a lock that no other thread holds during a fork.

    Otherwise the child, which does not have that thread, would wait for ever.
    """
    lock = threading.RLock()
    os.register_at_fork(
        before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release
    )
    return lock


class cached_property(Generic[Value]):  # noqa: N801 - it is used as that of functools
    """A property computed at its first use, without a lock, as in `functools` since Python 3.12.

    In Python 3.11, `functools` has a lock for all objects of a class, and a process that is forked
    while another thread holds it would wait for ever. Here two threads may both compute.
    """

    def __init__(self, compute: Callable[[Any], Value]) -> None:
        self.__doc__ = compute.__doc__
        self._compute = compute
        self._name = compute.__name__

    @overload
    def __get__(self, owner: None, owner_type: type) -> Self: ...
    @overload
    def __get__(self, owner: object, owner_type: type) -> Value: ...
    def __get__(self, owner: object, owner_type: type) -> Self | Value:
        """Return the value, which hides the property from now on."""
        if owner is None:
            return self
        value = vars(owner)[self._name] = self._compute(owner)
        return value
