"""The coefficients model: what a file of coefficients gives, and how a wrong one is refused."""

from __future__ import annotations

import json
import math
import os
import pickle
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import rewritelog
from hypothesis import given
from hypothesis import strategies as st
from logbuilder import bracket, seb, write_logs, write_params
from numpy.typing import ArrayLike

from rewritelog.errors import ModelError, UsageError
from rewritelog.models.base import ModelText
from rewritelog.models.coefficients import parse_coefficients
from rewritelog.models.fitted import Fitted
from rewritelog.models.registry import load_model

FILE = """\
# event, factors, constant
Cell::pairForces   1e-9 2E-8  5.e-6
Cell::bonded 1e-7 +.5 -1
  void run(int, char**) 3 2 1 \t
only a constant 0.25\r
#Cell::bonded 1 2
"""


def fitted(text: str, **options: Any) -> Any:
    model = load_model("coefficients", options, {"coefficients": ModelText("c.txt", text)})
    return Fitted.of(model, "coefficients", ()).raw


def seconds(fit: Any, event: str, params: ArrayLike) -> Any:
    rows = np.array(params, dtype=np.float64)
    return Fitted("coefficients", fit).prediction(event, rows).seconds.tolist()


def test_factors_stand_in_the_parameters_order_and_the_constant_last() -> None:
    fit = fitted(FILE)
    assert seconds(fit, "Cell::pairForces", [[10, 100], [0, 0]]) == pytest.approx([7.01e-6, 5e-6])
    assert seconds(fit, "only a constant", np.empty((2, 0))) == [0.25, 0.25]


def test_twice_as_many_factors_are_those_of_each_parameter_and_its_square() -> None:
    fit = fitted("kernel 2 3 5 7 11\n")
    assert seconds(fit, "kernel", [[10, 100]]) == [2 * 10 + 3 * 100 + 5 * 100 + 7 * 10_000 + 11]
    assert seconds(fit, "kernel", [[1, 10, 100, 1000]]) == [2 + 30 + 500 + 7000 + 11]
    assert np.isnan(seconds(fit, "kernel", [[1.0, 2, 3]])).all()


def test_an_event_s_name_is_all_before_the_trailing_numbers() -> None:
    fit = fitted(FILE)
    assert seconds(fit, "void run(int, char**)", [[10, 100]]) == [231]
    assert seconds(fit, "void run(int, char**)", [[5]]) == [3 * 5 + 2 * 25 + 1]


def test_nothing_is_said_of_other_events() -> None:
    assert np.isnan(seconds(fitted(FILE), "other", [[1, 2]])).all()


def test_coefficients_in_cycles_are_told_by_their_unit() -> None:
    fit = fitted("kernel 300 600\n", unit_s="1e-9")
    assert seconds(fit, "kernel", [[2]]) == pytest.approx([1.2e-6])
    with pytest.raises(UsageError, match=r"'unit_s': 0\.0 is not a finite number above 0"):
        fitted(FILE, unit_s=0)


def test_what_overflows_is_not_covered() -> None:
    fit = fitted("kernel 1e300 0\n")
    assert np.isnan(seconds(fit, "kernel", [[1e300], [np.nan]])).all()
    assert seconds(fit, "kernel", [[2]]) == [2e300]


def test_the_report_says_how_each_line_is_understood() -> None:
    fit = fitted(FILE + "many " + "1 " * 25 + "\n")
    assert fit.summary() == (
        "Cell::pairForces: a constant and 2 factors",
        "Cell::bonded: a constant and 2 factors",
        "void run(int, char**): a constant and 2 factors",
        "only a constant: a constant and 0 factors",
        "many: a constant and 24 factors",
    )
    described = json.loads(json.dumps(fit.describe(), allow_nan=False))
    assert described["file"] == "c.txt"
    assert described["events"][0] == {
        "event": "Cell::pairForces",
        "factors": [1e-9, 2e-8],
        "constant": 5e-6,
    }
    again = pickle.loads(pickle.dumps(fit))  # noqa: S301 - just made
    assert again == fit


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "^c.txt: contains no coefficients"),
        ("# only this\n\n", "^c.txt: contains no coefficients"),
        ("a 1\n\nkernel\n", "^c.txt:3: the line does not end in a number: 'kernel'"),
        ("kernel 1 2 x", "^c.txt:1: the line does not end in a number"),
        ("kernel 1 2,3", "^c.txt:1: the line does not end in a number"),
        ("kernel nan", "does not end in a number"),
        ("kernel 1_0", "does not end in a number"),
        ("1 2 3", "^c.txt:1: there is no event before the numbers: '1 2 3'"),
        ("a 1\nb 2\na 3", "^c.txt:3: event 'a' is already in a line above"),
        ("kernel 1 1e999", "^c.txt:1: a number is larger than any float64"),
        ("kernel" + " 1" * 42, "^c.txt:1: 42 coefficients; at most 41"),
        ("\x1b[31mkernel", r"does not end in a number: '\\\\x1b\[31mkernel'"),
    ],
)
def test_a_wrong_line_is_named(text: str, problem: str) -> None:
    with pytest.raises(ModelError, match=problem):
        fitted(text)


@given(st.text(alphabet="ab 12.-+eE#\n\t\r:", max_size=60))
def test_any_text_is_coefficients_or_a_model_error(text: str) -> None:
    try:
        events = parse_coefficients(ModelText("c.txt", text))
    except ModelError:
        return
    for event, coefficients in events.items():
        assert event == event.strip() != ""
        assert all(map(math.isfinite, coefficients))


def test_the_model_needs_its_file_and_others_take_none() -> None:
    with pytest.raises(UsageError, match="needs a file of coefficients: coefficients='FILE'"):
        load_model("coefficients", {})
    text = {"coefficients": ModelText("c.txt", FILE)}
    with pytest.raises(UsageError, match="the model 'constant' takes no file of coefficients"):
        load_model("constant", {}, text)


rewrite = partial(rewritelog, "rewrite")


def test_the_command_line_reads_the_file(sample_logs: Path, tmp_path: Path) -> None:
    logs, report = sample_logs / "cells", tmp_path / "report.json"
    (tmp_path / "c.txt").write_text("\ufeffCell::pairForces 1e-9 2e-8 5e-6\n")
    options = ("--model", "coefficients", "--coefficients", tmp_path / "c.txt", "--report", report)
    done = rewrite(logs, tmp_path / "out", *options)
    assert done.returncode == 0, done.stderr
    events = {event["event"]: event for event in json.loads(report.read_text())["events"]}
    expected, records = _pair_forces(logs)
    assert events["Cell::pairForces"]["by_model"] == records
    assert events["Cell::pairForces"]["new_s"] == pytest.approx(expected)
    assert events["Cell::bonded"]["by_model"] == 0


def _pair_forces(logs: Path) -> tuple[float, int]:
    """Sum up what the records' lines say, by hand."""
    lines = [line for path in logs.glob("param.*") for line in path.read_text().splitlines()]
    calls = [line.split("params:{")[1].split() for line in lines if "pairForces" in line]
    return sum(1e-9 * float(n) + 2e-8 * float(c) + 5e-6 for n, c, _ in calls), len(calls)


def test_a_file_that_cannot_be_read_is_named(sample_logs: Path, tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"kernel 1\xff\n")
    os.mkfifo(tmp_path / "fifo")
    wrong = {
        "none": "does not exist",
        ".": "it is a folder, not a file",
        "fifo": "not a regular file",
        "binary": "is not a text file: byte 8 is not UTF-8",
    }
    for name, problem in wrong.items():
        file = tmp_path / name
        done = rewrite(
            sample_logs / "cells", "--dry-run", "--model", "coefficients", "--coefficients", file
        )
        assert done.returncode == 1
        assert problem in done.stderr
        assert str(file) in done.stderr


def test_coefficients_of_an_event_that_the_logs_lack_are_told(tmp_path: Path) -> None:
    logs = write_logs(tmp_path / "logs", [[seb(0, 2, name=b"main", events=bracket(0.5, 1.5))]])
    write_params(logs, 0, (0, "kernel", 3))
    (tmp_path / "c.txt").write_text("kernel 0.1 0\nKernel 0.1 0\n")
    words = ("--model", "coefficients", "--coefficients", tmp_path / "c.txt", "--dilation", 1)
    for command in (("rewrite", logs, "--dry-run"), ("replay", logs)):
        (warning,) = rewritelog(*command, *words, "-q").stderr.splitlines()[:1]
        assert "coefficients for 'Kernel' were not used: no bracket has such a name" in warning
