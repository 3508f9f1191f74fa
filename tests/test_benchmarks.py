"""The benchmarks know the code that they measure: each module imports, each stage is there."""

import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
NOT_FOR_TESTS = ("matplotlib", "pytest_benchmark")
MODULES = sorted(path.stem for path in (ROOT / "benchmarks").glob("*.py"))


@pytest.fixture(autouse=True)
def _found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the benchmarks found, which are not installed."""
    monkeypatch.syspath_prepend(ROOT)


@pytest.mark.parametrize("name", MODULES)
def test_a_module_imports(name: str) -> None:
    try:
        importlib.import_module(f"benchmarks.{name}")
    except ModuleNotFoundError as error:
        if error.name not in NOT_FOR_TESTS:
            raise
        pytest.skip(f"{error.name} is not installed")


def test_the_stages_of_a_rewrite_are_functions_of_it() -> None:
    stages = importlib.import_module("benchmarks.child_stages").STAGES
    for owner, name, stage in stages:
        assert callable(getattr(owner, name)), stage
