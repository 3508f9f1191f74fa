"""The compiled cores under sanitizers: good inputs, and those that once broke something."""

from __future__ import annotations

import pytest

from fuzz.cores import TARGETS, compiler, fuzz_cores
from fuzz.corpus import CORPUS


@pytest.fixture(scope="module", autouse=True)
def _compiler() -> None:
    if compiler() is None:
        pytest.skip("neither clang nor gcc with their sanitizers is installed")


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_the_inputs_that_are_kept_break_nothing(target: str) -> None:
    assert fuzz_cores([target], 0, 1, CORPUS, jobs=1)
