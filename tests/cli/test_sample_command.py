"""`rewritelog sample` as a user runs it."""

import json
from functools import partial
from pathlib import Path

import commands

run = partial(commands.rewritelog, "sample")


def test_a_list_and_its_report(sample_logs: Path, tmp_path: Path) -> None:
    out, report = tmp_path / "list.txt", tmp_path / "r.json"
    done = run(sample_logs / "cells", "--fraction", "0.25", "-o", out, "--report", report)
    assert done.returncode == 0
    assert "20 param records chosen of 80" in done.stdout
    assert "Cell::pairForces" in done.stdout
    lines = out.read_text().splitlines()
    assert lines[1] == "# method design, seed 1, fraction 0.25, floor 5"
    assert len([line for line in lines if not line.startswith("#")]) == 20
    assert json.loads(report.read_text())["chosen"] == 20
    again = run(sample_logs / "cells", "--fraction", "0.25", "-o", tmp_path / "again", "--quiet")
    assert (again.returncode, again.stdout) == (0, "")
    assert again.stderr == done.stderr  # warnings are no report
    assert (tmp_path / "again").read_bytes() == out.read_bytes()


def test_timings_and_methods(sample_logs: Path) -> None:
    cells = sample_logs / "cells"
    done = run(cells, "--timings", cells / "timings.txt", "--method", "random")
    assert done.returncode == 0
    assert "variation of Cell::bonded(p1)" in done.stdout
    assert "not written" in done.stdout


def test_wrong_usage(sample_logs: Path, tmp_path: Path) -> None:
    cells = sample_logs / "cells"
    for args, code, word in (
        ([tmp_path], 1, "no log set here"),
        ([cells, "--fraction", "2"], 2, "fraction"),
        ([cells, "--floor", "0"], 2, "floor"),
        ([cells, "--method", "guess"], 2, "--method"),
        ([cells, "--formulas", tmp_path / "none"], 1, "none: does not exist"),
        ([cells, "--timings", tmp_path / "none"], 1, "none: does not exist"),
        ([cells, "-o", cells / "timings.txt"], 1, "would replace an input"),
    ):
        done = run(*args)
        assert done.returncode == code, done.stderr
        assert word in done.stderr
        assert "Traceback" not in done.stderr
