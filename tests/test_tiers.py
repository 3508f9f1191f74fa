"""Which tests run when: the tiers, their markers, and what another run has shown already."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from chosen import by_tier

TESTS = Path(__file__).parent
SETTINGS = TESTS.parent / "pyproject.toml"
SOME = """
import pytest

@pytest.fixture
def faulty():
    yield
    raise ValueError

@pytest.mark.parametrize("text", ["plain", "two\\nlines", "[brackets]"])
def test_good(text):
    pass

def test_bad():
    assert False

def test_bad_in_the_end(faulty):
    pass

def test_skipped():
    pytest.skip("not today")

@pytest.mark.xfail(strict=True)
def test_that_fails_as_it_should():
    assert False
"""
GOOD = [
    "test_some.py::test_good[[brackets]]",
    "test_some.py::test_good[plain]",
    "test_some.py::test_good[two\\nlines]",
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a few tests that do not all pass."""
    (tmp_path / "test_some.py").write_text(SOME)
    (tmp_path / "pytest.ini").write_text(f"[pytest]\npythonpath = {TESTS}\n")
    return tmp_path


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run pytest over a folder, with the plugins that are named and no others."""
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words],
        cwd=folder,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("workers", by_tier([0, 2], [0], [2]))
def test_what_passed_in_one_run_is_left_out_of_another(workers: int, folder: Path) -> None:
    plugins = ["-p", "passed", *(["-p", "xdist.plugin", "-n", str(workers)] if workers else [])]
    first = run(folder, *plugins, "--passed-to", "passed.txt")
    assert "1 failed, 4 passed, 1 skipped, 1 xfailed, 1 error in" in first.stdout
    assert (folder / "passed.txt").read_text().splitlines() == GOOD
    second = run(folder, *plugins, "--not-passed-in", "passed.txt")
    assert second.returncode == pytest.ExitCode.TESTS_FAILED
    assert "1 failed, 1 passed, 1 skipped, " in second.stdout
    assert "1 xfailed, 1 error in" in second.stdout


@pytest.mark.slow
def test_a_list_that_is_not_there_ends_the_run(folder: Path) -> None:
    done = run(folder, "-p", "passed", "--not-passed-in", "nowhere.txt")
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "--not-passed-in: " in done.stderr
    assert "nowhere.txt" in done.stderr


@pytest.mark.slow
def test_a_marker_that_there_is_not_is_an_error(folder: Path) -> None:
    (folder / "test_some.py").write_text(SOME + "\n@pytest.mark.slwo\ndef test_more():\n    pass\n")
    done = run(folder, "-c", str(SETTINGS), "-p", "xdist.plugin", "-n", "0", "test_some.py")
    assert done.returncode == pytest.ExitCode.INTERRUPTED
    assert "'slwo' not found in `markers`" in done.stdout


def test_a_choice_that_is_no_parameter_is_an_error() -> None:
    for tiers in (((1, 4),), ((1,), (4,))):
        with pytest.raises(ValueError, match=r"^4 is chosen for a tier"):
            by_tier((1, 2, 3), *tiers)
    marks = [getattr(parameter, "marks", ()) for parameter in by_tier((1, 2, 3), (1,), (2,))]
    assert [[mark.name for mark in some] for some in marks] == [[], ["slow"], ["long"]]
