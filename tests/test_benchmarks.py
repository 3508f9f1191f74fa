"""The benchmarks know the code that they measure: each module imports, each stage is there."""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
NOT_FOR_TESTS = ("matplotlib", "pytest_benchmark")
MODULES = sorted(path.stem for path in (ROOT / "benchmarks").glob("*.py"))


@pytest.mark.parametrize("name", MODULES)
def test_a_module_imports(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", f"import benchmarks.{name}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    for needed in NOT_FOR_TESTS:
        if f"No module named '{needed}'" in done.stderr:
            pytest.skip(f"{needed} is not installed")
    assert done.returncode == 0, done.stderr


def test_the_stages_of_a_rewrite_are_functions_of_it() -> None:
    program = textwrap.dedent("""
        from benchmarks.child_stages import STAGES
        for owner, name, stage in STAGES:
            assert callable(getattr(owner, name)), stage
    """)
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True)
