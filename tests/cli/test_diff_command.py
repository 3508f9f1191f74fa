"""`rewritelog diff` as a user runs it: exit codes as of diff(1), and what goes where."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import rewritelog as run
from logbuilder import seb, write_logs


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    a = write_logs(tmp_path / "a", [[seb(0, 1), seb(1, 2)]])
    b = write_logs(tmp_path / "b", [[seb(0, 1), seb(1, 3)]])
    return a, b


def test_exit_code_0_is_the_same_and_1_is_different(pair: tuple[Path, Path]) -> None:
    a, b = pair
    same, different = run("diff", a, a / "bgTrace"), run("diff", a, b)
    assert (same.returncode, different.returncode) == (0, 1)
    assert "the same" in same.stdout
    assert "only time fields" in " ".join(different.stdout.split())  # paths may break the line
    assert "endTime" in different.stdout
    assert same.stderr == different.stderr == ""


def test_json_is_for_machines(pair: tuple[Path, Path]) -> None:
    done = run("diff", *pair, "--json")
    assert done.returncode == 1
    report = json.loads(done.stdout)
    assert report["times_alone"] is True
    assert report["durations_by_name"][0]["seconds"] == [2.0, 3.0]


def test_exit_code_2_is_no_answer(pair: tuple[Path, Path], tmp_path: Path) -> None:
    a, b = pair
    (b / "bgTrace0").write_bytes((b / "bgTrace0").read_bytes()[:-1])
    for other in (b, tmp_path / "none"):
        done = run("diff", a, other)
        assert done.returncode == 2
        assert done.stdout == ""
        assert str(other) in done.stderr
        assert "Traceback" not in done.stderr
    assert run("diff", a, a, "--params", tmp_path / "none").returncode == 2
    assert run("diff", a).returncode == 2
