"""Timelines that end anywhere, against a page that cannot be read: no byte beside them is read."""

from __future__ import annotations

from pathlib import Path

import pytest
from chosen import by_tier
from fuzz.timelines import timelines_check


@pytest.mark.parametrize("variant", by_tier(range(28), [0, 27], range(1, 27, 4)))
def test_a_timeline_that_ends_anywhere_is_refused(variant: int, tmp_path: Path) -> None:
    """In each log version and byte order, with receive times shifted or kept."""
    check, seeds = timelines_check(tmp_path)
    assert check(seeds[variant])
    for size in range(len(seeds[variant])):
        assert not check(seeds[variant][:size])
