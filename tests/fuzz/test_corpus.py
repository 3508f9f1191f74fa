"""Every input that is kept: a result or an error that names what is wrong, and nothing else."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from chosen import by_tier

from fuzz import plain
from fuzz.corpus import TARGET_NAMES, kept
from fuzz.readers import Check
from fuzz.targets import TARGETS

READ = [name for name in TARGET_NAMES if name != "timelines"]
"""The targets whose checks are not compiled, which takes a minute."""

NAMES = by_tier(TARGET_NAMES, READ)
KEPT = [path for name in TARGET_NAMES for path in kept(name)]
SLOW = {"10000-events"}
"""They take seconds."""

QUICK = [path for name in READ for path in kept(name) if path.name not in SLOW]


@cache
def check_of(name: str) -> Check:
    check, _ = plain.target(name)
    return check


@pytest.mark.parametrize(
    "path",
    by_tier(KEPT, QUICK),
    ids=lambda path: f"{path.parent.name}-{path.name}",
)
def test_an_input_that_is_kept_breaks_nothing(path: Path) -> None:
    check_of(path.parent.name)(path.read_bytes())


@pytest.mark.parametrize("name", NAMES)
def test_good_inputs_are_taken(name: str) -> None:
    check, seeds = plain.target(name)
    assert check(seeds[0])


def test_every_target_has_a_name() -> None:
    assert set(TARGETS) == set(TARGET_NAMES)
