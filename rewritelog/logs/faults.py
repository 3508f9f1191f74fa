"""Handling of the faults that readers find: most callers raise the first, `check` continues."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from rewritelog.errors import DamagedLogError


class FaultHandler(Protocol):
    """A function that takes the faults of a reader, which continues if the function returns."""

    def __call__(self, faults: Iterable[DamagedLogError], count: int = 1) -> None:
        """Take `count` faults of the same rule; errors are created during the iteration."""


def raise_first(faults: Iterable[DamagedLogError], count: int = 1) -> None:  # noqa: ARG001
    """Raise the first fault."""
    for fault in faults:
        raise fault
