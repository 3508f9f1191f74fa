"""Which parameters of a test run always; the others run with the slow or the long tests."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def by_tier(values: Iterable[Any], quick: Collection[Any], slow: Collection[Any] = ()) -> list[Any]:
    """Mark values as slow or, where they are in neither of the two, as long.

    Raises ValueError for one that is chosen and not among the values.
    """
    values = list(values)
    for value in (*quick, *slow):
        if value not in values:
            raise ValueError(f"{value!r} is chosen for a tier and is no parameter")
    return [
        value if value in quick else _marked(value, "slow" if value in slow else "long")
        for value in values
    ]


def _marked(value: Any, tier: str) -> Any:
    parts = value if isinstance(value, tuple) else (value,)
    return pytest.param(*parts, marks=getattr(pytest.mark, tier))
