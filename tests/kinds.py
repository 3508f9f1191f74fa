"""Types of what fixtures hand to tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol, TypeAlias

from rewritelog.models.base import EventTimings


class MakeTimings(Protocol):
    """Makes the samples of an event: columns of parameters, then seconds."""

    def __call__(self, *columns: object, seconds: object, name: str = "kernel") -> EventTimings: ...


ReferenceTimings: TypeAlias = Callable[[str], list[EventTimings]]
"""Reads the timings of a reference set, by its folder's name."""


class Install(Protocol):
    """Installs a distribution with models: its entry points, and its modules or their texts."""

    def __call__(self, name: str, entries: dict[str, str], *sources: Path | str) -> None: ...
