"""What becomes of the faults that a reader meets: sound logs raise the first, `check` reads on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from rewritelog.errors import DamagedLogError


class FaultHandler(Protocol):
    """Takes the faults that a reader meets; where it returns, the reader goes on."""

    def __call__(self, faults: Iterable[DamagedLogError], count: int = 1) -> None:
        """Take `count` faults that violate one rule; they are made as they are iterated over."""


def raise_first(faults: Iterable[DamagedLogError], count: int = 1) -> None:  # noqa: ARG001
    """Raise the first fault."""
    for fault in faults:
        raise fault
