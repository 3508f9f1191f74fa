"""Every input that is kept: a result or an error that names what is wrong, and nothing else."""

from __future__ import annotations

from contextlib import ExitStack
from functools import cache
from pathlib import Path

import pytest
from chosen import by_tier

from fuzz.corpus import TARGET_NAMES, kept
from fuzz.readers import Check, workplace
from fuzz.targets import READERS, TARGETS

KEPT = [path for name in TARGET_NAMES for path in kept(name)]
SLOW = {"10000-events"}
"""They take seconds."""

QUICK = [path for path in KEPT if path.name not in SLOW]


_folders = ExitStack()


@cache
def target(name: str) -> tuple[Check, list[bytes]]:
    """The check of a target, and good inputs for it."""
    return READERS[name](_folders.enter_context(workplace()))


@pytest.mark.parametrize(
    "path",
    by_tier(KEPT, QUICK),
    ids=lambda path: f"{path.parent.name}-{path.name}",
)
def test_an_input_that_is_kept_breaks_nothing(path: Path) -> None:
    target(path.parent.name)[0](path.read_bytes())


@pytest.mark.parametrize("name", TARGET_NAMES)
def test_good_inputs_are_taken(name: str) -> None:
    check, seeds = target(name)
    assert check(seeds[0])


def test_every_target_has_a_name() -> None:
    assert set(TARGETS) == set(TARGET_NAMES)
