"""Predictions of a model file: one line for each record, in the files' order."""

import csv
import gzip
import io
import json
from pathlib import Path
from typing import Any

import commands
import numpy as np
import pytest
from logbuilder import write_timings

from rewritelog.commands.fits import FitCommand, SampleCommand
from rewritelog.errors import ModelError, TimingError
from rewritelog.evaluation.fit import fit
from rewritelog.evaluation.predict import Predictions
from rewritelog.sampling.sample import sample
from rewritelog.timings.read import MalformedLines, read_model_file


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """Return a model file of k(p1) = p1 µs, with exact matches, fitted for p1 from 1 to 20."""
    lines = [("k", 1e-6 * n * (1 if n != 7 else 1.5), float(n)) for n in range(1, 21)]
    timings = write_timings(tmp_path / "timings.txt", *lines)
    options = {"exact_match": "always"}
    fit(FitCommand((timings,), "least-squares", model_options=options, output=tmp_path / "m.json"))
    return tmp_path / "m.json"


@pytest.fixture
def never(model: Path, tmp_path: Path) -> Path:
    """Return the same without exact matches."""
    options = {"exact_match": "never"}
    timings, written = tmp_path / "timings.txt", tmp_path / "n.json"
    fit(FitCommand((timings,), "least-squares", model_options=options, output=written))
    return tmp_path / "n.json"


def rows(model: Path, *files: Path, **options: Any) -> list[dict[str, Any]]:
    faults = options.pop("faults", MalformedLines())
    predictions = Predictions(read_model_file(model), files, None, malformed=faults, **options)
    text = "".join(predictions.pieces(as_json=True))
    return [json.loads(line) for line in text.splitlines()]


def test_each_line_says_what_determined_it(model: Path, tmp_path: Path) -> None:
    lines = [("k", 1.0, 7.0), ("k", 1.0, 7.5), ("k", 1.0, 21.0), ("k", 1.0), ("other", 1.0, 7.0)]
    predicted = rows(model, write_timings(tmp_path / "t.txt", *lines))
    assert [row["determined_by"] for row in predicted] == [
        "exact",
        "fit",
        "out of range",
        "no model",
        "no model",
    ]
    assert predicted[0]["predicted_s"] == 1.05e-5
    assert predicted[2]["params"] == [21.0]
    assert predicted[2]["measured_s"] == 1.0
    assert predicted[3]["predicted_s"] is None
    assert [row["line"] for row in predicted] == [1, 2, 3, 4, 5]


def test_the_interval_holds_the_prediction_and_widens_beyond_the_range(tmp_path: Path) -> None:
    noisy = [1e-6 * n * factor for n in range(1, 21) for factor in (0.9, 1.0, 1.1, 1.3)]
    lines = [("k", seconds, float(4 + index) / 4) for index, seconds in enumerate(noisy)]
    timings = write_timings(tmp_path / "t.txt", *lines)
    fit(FitCommand((timings,), output=tmp_path / "m.json"))
    beyond = [("k", 1.0, size) for size in (10.0, 21.0, 84.0, 1e4, 1e300)]
    predicted = rows(tmp_path / "m.json", timings, write_timings(tmp_path / "far.txt", *beyond))
    inside, further = predicted[: len(lines)], predicted[len(lines) :]
    assert all(row["low_s"] <= row["predicted_s"] <= row["high_s"] for row in predicted[:-1])
    held = sum(row["low_s"] <= row["measured_s"] <= row["high_s"] for row in inside)
    assert 0.8 < held / len(inside) < 1
    widths = [row["high_s"] / row["low_s"] for row in further[:-1]]
    assert widths == sorted(widths)
    assert widths[-1] > 2 * widths[0]


def test_the_interval_of_an_exact_match_holds_it(tmp_path: Path) -> None:
    modes = [(n, (n * n) % 7 + 1) for n in range(1, 41)]  # no function of n explains these
    lines = [
        ("k", 1e-6 * factor * (1 + 0.01 * again), float(n))
        for again in range(4)
        for n, factor in modes
    ]
    timings = write_timings(tmp_path / "t.txt", *lines)
    options = {"exact_match": "always"}
    fit(FitCommand((timings,), model_options=options, output=tmp_path / "m.json"))
    predicted = rows(tmp_path / "m.json", timings)
    assert {row["determined_by"] for row in predicted} == {"exact"}
    assert all(row["low_s"] <= row["predicted_s"] <= row["high_s"] for row in predicted)


def test_a_model_without_intervals_leaves_them_empty(tmp_path: Path) -> None:
    timings = write_timings(tmp_path / "t.txt", ("k", 1e-6, 1.0), ("k", 2e-6, 2.0))
    fit(FitCommand((timings,), output=tmp_path / "m.json"))
    (row, *_) = rows(tmp_path / "m.json", timings)
    assert (row["low_s"], row["high_s"]) == (None, None)
    predictions = Predictions(read_model_file(tmp_path / "m.json"), (timings,))
    text = "".join(predictions.pieces(as_json=False))
    assert text.endswith(",,\n")


def test_predictions_are_those_of_the_model(never: Path, tmp_path: Path) -> None:
    values = [1.0, 3.25, 8.0, 19.5, 300.0]
    path = write_timings(tmp_path / "t.txt", *[("k", 1.0, value) for value in values])
    expected = read_model_file(never).raw.predict("k", np.array(values)[:, None])
    expected = np.maximum(expected, 0)
    assert [row["predicted_s"] for row in rows(never, path)] == expected.tolist()


def test_both_forms_say_the_same(model: Path, tmp_path: Path) -> None:
    lines = [("k", 1.0, 7.1), ('an "event", with commas', 1.0, 7.0, 2.5), ("k", 1.0, 7.0)]
    path = write_timings(tmp_path / "t.txt", *lines)
    text = "".join(Predictions(read_model_file(model), (path,)).pieces(as_json=False))
    read = list(csv.DictReader(io.StringIO(text)))
    for row, json_row in zip(read, rows(model, path), strict=True):
        assert row["event"] == json_row["event"]
        assert [float(word) for word in row["params"].split()] == json_row["params"]
        seconds = json_row["predicted_s"]
        assert row["predicted_s"] == ("" if seconds is None else repr(seconds))
        for bound in ("low_s", "high_s"):
            assert row[bound] == ("" if json_row[bound] is None else repr(json_row[bound]))
        assert row["determined_by"] == json_row["determined_by"]
        assert int(row["line"]) == json_row["line"]


def test_param_files_and_lists_of_chosen_sebs(sample_logs: Path, tmp_path: Path) -> None:
    cells = sample_logs / "cells"
    fit(FitCommand((cells / "timings.txt",), "least-squares", output=tmp_path / "m.json"))
    chosen = tmp_path / "list.txt"
    sample(SampleCommand(cells, chosen, fraction=0.2))
    from_list = rows(tmp_path / "m.json", chosen)
    assert len(from_list) == 16
    known: dict[Any, Any] = {}
    for path in sorted(cells.glob("param.*")):
        predicted = rows(tmp_path / "m.json", path)
        lines = path.read_text().splitlines()
        assert [row["seb"] for row in predicted] == [int(line.split()[0]) for line in lines]
        known |= {(row["event"], *row["params"]): row["predicted_s"] for row in predicted}
    for row in from_list:
        assert row["predicted_s"] == known[row["event"], *row["params"]]
    chosen.write_text("TRACEBIGSIM: event:{ Cell::bonded } seqno:{ 6 } params:{ 58 }\n")
    assert [row["seb"] for row in rows(tmp_path / "m.json", chosen)] == [6], "without a SEB before"


def test_files_come_in_their_order_plain_or_gzip(model: Path, tmp_path: Path) -> None:
    first = write_timings(tmp_path / "a.txt", ("k", 1.0, 2.0), ("z", 1.0, 2.0), ("k", 1.0, 1.0))
    second = tmp_path / "b.gz"
    second.write_bytes(gzip.compress(first.read_bytes()))
    predicted = rows(model, second, first)
    assert [row["file"] for row in predicted] == [str(second)] * 3 + [str(first)] * 3
    assert [row["event"] for row in predicted] == ["k", "z", "k"] * 2


def test_a_time_is_never_below_zero(tmp_path: Path) -> None:
    timings = write_timings(
        tmp_path / "t.txt", *[("k", 1e-6 * (10 - n), float(n)) for n in range(1, 10)]
    )
    fit(FitCommand((timings,), "least-squares", output=tmp_path / "m.json"))
    far = write_timings(tmp_path / "far.txt", ("k", 1.0, 1000.0))
    (row,) = rows(tmp_path / "m.json", far)
    assert row["predicted_s"] == 0
    assert row["determined_by"] == "out of range"
    assert row["low_s"] is row["high_s"] is None  # not from 0 to 0


def test_malformed_lines_are_noted(model: Path, tmp_path: Path) -> None:
    path = write_timings(tmp_path / "t.txt", ("k", 1.0, 2.0))
    path.write_text(path.read_text() + "TRACEBIGSIM: event:{ k } time:{ x }\n")
    faults = MalformedLines()
    assert len(rows(model, path, faults=faults)) == 1
    (warning,) = faults.warnings("line")
    assert "1 malformed line left out" in warning
    assert "t.txt:2" in warning
    with pytest.raises(TimingError, match=r"t\.txt:2"):
        rows(model, path, strict=True)


def test_what_a_malformed_line_has_of_control_characters_is_spelled_once(
    model: Path, tmp_path: Path
) -> None:
    path = write_timings(tmp_path / "t.txt", ("k", 1.0, 2.0))
    path.write_text(path.read_text() + "TRACEBIGSIM:\tevent:{ k } time:{ x }\n")
    rows(model, path, faults=(faults := MalformedLines()))
    (warning,) = faults.warnings("line")
    assert r"'TRACEBIGSIM:\tevent:{ k } time:{ x }'" in warning


def test_what_cannot_be_read(model: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"none\.json: cannot be read"):
        rows(tmp_path / "none.json", model)
    with pytest.raises(TimingError, match="No such file"):
        rows(model, tmp_path / "none.txt")


def test_the_command_writes_a_file_that_is_none_of_its_inputs(model: Path, tmp_path: Path) -> None:
    timings, out = tmp_path / "timings.txt", tmp_path / "p.csv"
    printed = commands.rewritelog("predict", model, timings)
    assert commands.rewritelog("predict", model, timings, "-o", out).stdout == ""
    assert out.read_text() == printed.stdout
    done = commands.rewritelog("predict", model, timings, "-o", timings)
    assert (done.returncode, "would replace an input" in done.stderr) == (1, True)


@pytest.mark.parametrize("value", ["inf", "p1=1e400", "nan"])
def test_a_call_with_a_parameter_that_is_not_finite_is_refused(model: Path, value: str) -> None:
    """With `--json` it ended in a `ValueError`."""
    done = commands.rewritelog("predict", model, "k", value, "--json")
    assert (done.returncode, done.stdout) == (2, "")
    assert f"k: {value!r} is not a finite number" in done.stderr


def test_parameters_of_a_call_are_shown_as_they_are_given(model: Path) -> None:
    """Of 1048577 bytes the text was `p1 = 1.04858e+06`, and so it was of 1048580."""
    done = commands.rewritelog("predict", model, "k", "1048577")
    assert done.stdout.startswith("k(p1 = 1048577): ")
    done = commands.rewritelog("predict", model, "k", "0.1")
    assert done.stdout.startswith("k(p1 = 0.1): ")


def test_files_without_any_record_are_named(model: Path, tmp_path: Path) -> None:
    """The model was said to have no prediction for any record."""
    (tmp_path / "other").write_text("nothing\n")
    done = commands.rewritelog("predict", model, tmp_path / "other")
    assert (done.returncode, done.stderr) == (
        1, f"warning: {tmp_path / 'other'}: no timing or param line found\n",
    )  # fmt: skip


def test_a_folder_of_logs_is_answered_with_the_files_in_it(model: Path, tmp_path: Path) -> None:
    """The advice was to make timing lines, which a prediction does not need."""
    done = commands.rewritelog("predict", model, tmp_path)
    assert done.returncode == 1
    assert f"{tmp_path}: is a folder, not a file; name files of params" in done.stderr
