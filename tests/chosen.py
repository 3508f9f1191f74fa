"""Which of many parameters of a test run always; the others run with the long tests."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def mostly_long(values: Iterable[Any], always: Collection[Any]) -> list[Any]:
    """Mark all values as long but those that are to run always."""
    return [value if value in always else _long(value) for value in values]


def _long(value: Any) -> Any:
    parts = value if isinstance(value, tuple) else (value,)
    return pytest.param(*parts, marks=pytest.mark.long)
