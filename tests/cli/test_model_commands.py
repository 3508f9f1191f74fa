"""`rewritelog fit`, `predict`, `verify`, `compare` and `rewrite --fitted` as a user runs them."""

import json
from pathlib import Path

import pytest
from commands import rewritelog as run


@pytest.fixture
def timings(sample_logs: Path, tmp_path: Path) -> Path:
    """Return every fifth of the real timing lines of the cells."""
    lines = (sample_logs / "cells" / "timings.txt").read_text().splitlines(keepends=True)
    path = tmp_path / "timings.txt"
    path.write_text("".join(lines[::5]))
    return path


def test_from_timings_to_a_rewrite(timings: Path, sample_logs: Path, tmp_path: Path) -> None:
    model = tmp_path / "model.json"
    done = run("fit", timings, "-o", model)
    assert done.returncode == 0
    assert done.stderr.startswith("warning: Cell::pairForces(p1, p2): predictions are off by")
    assert "Cell::pairForces " in done.stdout
    assert f"written: {model}" in done.stdout

    done = run("verify", model, timings, "--worst", "1")
    assert (done.returncode, done.stderr) == (0, "")
    assert "Cell::bonded" in done.stdout
    assert "measured  predicted" in done.stdout
    done = run("verify", model, timings, "--json")
    assert json.loads(done.stdout)["overall"]["mean_relative_error"] < 0.1
    assert json.loads(done.stdout)["worst"][0]["where"].startswith(f"{timings}:")

    cells = sample_logs / "cells"
    done = run("predict", model, cells / "param.0", cells / "param.1")
    assert (done.returncode, done.stderr) == (0, "")
    head, *lines = done.stdout.splitlines()
    assert head == ("file,line,seb,event,params,measured_s,predicted_s,determined_by,low_s,high_s")
    records = sum(len((cells / f"param.{pe}").read_text().splitlines()) for pe in (0, 1))
    assert len(lines) == records
    done = run("predict", model, cells / "param.0", "--json")
    assert json.loads(done.stdout.splitlines()[0])["event"] == "Cell::pairForces"

    done = run("rewrite", cells, "--dry-run", "--fitted", model, "-v")
    assert done.returncode == 0
    assert "made-by auto" in done.stdout
    done = run("rewrite", cells, "--dry-run", "--fitted", model, "--weights", "uniform")
    assert done.returncode == 2
    assert done.stderr.endswith("--fitted cannot be combined with model options\n")
    done = run("rewrite", cells, "--dry-run", "--timings", timings, "--verbose")
    assert "weights relative, loss huber, exact-match auto" in done.stdout


def test_models_side_by_side(timings: Path) -> None:
    done = run("compare", timings, "--models", "least-squares, constant", "--folds", "4")
    assert (done.returncode, done.stderr) == (0, "")
    assert "least-squares" in done.stdout
    done = run(
        "compare",
        timings,
        "--models",
        "least-squares",
        "--fraction",
        "0.3",
        "--json",
        "--basis",
        "linear",
        "--exact-match",
        "never",
        "--weights",
        "uniform",
    )
    report = json.loads(done.stdout)
    assert report["options"] == {"basis": "linear", "exact_match": "never", "weights": "uniform"}
    assert report["models"][0]["fits"] == 1


def test_options_of_a_fit(timings: Path) -> None:
    done = run(
        "fit",
        timings,
        "--model",
        "least-squares",
        "--loss",
        "huber",
        "--weights",
        "uniform",
        "--exact-match",
        "always",
        "--json",
    )
    assert done.returncode == 0
    model = json.loads(done.stdout)["model"]
    assert model["options"] == {
        "weights": "uniform",
        "loss": "huber",
        "exact_match": "always",
        "basis": "quadratic",
    }


@pytest.mark.slow
def test_how_many_lines_were_drawn_is_said_where_all_were(timings: Path, sample_logs: Path) -> None:
    """`fit --model sampled` said that it was fitted to all lines."""
    done = run("fit", timings, "--model", "sampled")
    assert done.stdout.startswith("sampled, fitted to 16 of 120 timing lines of")
    cells = sample_logs / "cells"
    done = run("rewrite", cells, "--timings", timings, "--model", "sampled", "--dry-run", "-v")
    assert "model: sampled, fitted to 16 of 120 timing lines\n" in done.stdout
    assert run("fit", timings).stdout.startswith("auto, fitted to 120 timing lines of")


def test_malformed_lines_are_told_on_stderr(timings: Path, tmp_path: Path) -> None:
    assert (
        run("fit", timings, "-o", tmp_path / "m.json", "--model", "least-squares").returncode == 0
    )
    torn = tmp_path / "torn.txt"
    torn.write_text("TRACEBIGSIM: event:{ \x1b[31mk } time:{ x }\n")
    done = run("predict", tmp_path / "m.json", torn)
    assert done.returncode == 1
    assert "torn.txt: no timing or param line found" in done.stderr
    assert "1 malformed line left out" in done.stderr
    assert "\x1b" not in done.stderr
    assert run("predict", tmp_path / "m.json", torn, "--strict").returncode == 1


def test_names_in_a_model_file_are_harmless(timings: Path, tmp_path: Path) -> None:
    model = tmp_path / "m.json"
    assert run("fit", timings, "-o", model, "--model", "least-squares").returncode == 0
    model.write_text(model.read_text().replace("Cell::bonded", "\\u001b[31m"))
    done = run("verify", model, timings)
    assert done.returncode == 0
    assert "\x1b" not in done.stdout + done.stderr
    model.write_text(model.read_text().replace('"version"', '"\\u001b[31m"'))
    done = run("verify", model, timings)
    assert done.returncode == 1
    assert "\x1b" not in done.stderr


def test_wrong_usage(timings: Path, sample_logs: Path, tmp_path: Path) -> None:
    cells = sample_logs / "cells"
    for args, code, word in (
        (["fit", timings, "--model", "constant"], 2, "is not fitted"),
        (["fit", timings, "--model", "nonsense"], 2, "auto, coefficients, constant, counters"),
        (["fit", timings, "--basis", "linear"], 2, "no option '--basis'"),
        (["fit", timings, "-o", timings], 1, "would replace an input"),
        (["fit", timings, "-o", tmp_path / "x", "--report", tmp_path / "x"], 1, "two outputs"),
        (["fit", tmp_path / "none"], 1, "does not exist"),
        (["fit"], 2, "TIMINGS"),
        (["predict", timings, timings], 1, "JSON is malformed"),
        (["predict", timings], 2, "FILE"),
        (
            [
                "fit",
                timings,
                "--model",
                "least-squares",
                "--basis",
                "linear",
                "--model-option",
                "basis=linear",
            ],
            2,
            "--model-option basis is given more than once",
        ),
        (["verify", tmp_path / "none.json", timings], 1, "none.json: does not exist"),
        (
            ["compare", timings, "--models", "auto", "least-squares"],
            2,
            "least-squares is a model, not a file: write --models auto,least-squares",
        ),
        (
            ["compare", timings, "auto"],
            2,
            "auto is a model, not a file: write --models auto,least-squares\n",
        ),
        (["compare", timings, "none", "--models", "auto"], 1, "none: does not exist"),
        (["compare", timings, "--models", ""], 2, "at least one model"),
        (["compare", timings, "--models", "auto", "--folds", "1"], 2, "an integer of 2 or more"),
        (["compare", timings, "--folds", "3", "--fraction", "0.5"], 2, "--folds or --fraction"),
        (["rewrite", cells, "--dry-run", "--fitted", timings], 1, "JSON is malformed"),
        (["rewrite", cells, "--dry-run", "--fitted", "m", "--model", "auto"], 2, "with --model"),
    ):
        done = run(*args)
        assert done.returncode == code, done.stderr
        assert word in done.stderr
        assert "Traceback" not in done.stderr


@pytest.mark.parametrize("name", ["model.json", "model.toml"])
def test_a_model_file_in_place_of_timings_is_told(
    name: str, timings: Path, sample_logs: Path, tmp_path: Path
) -> None:
    model = tmp_path / name
    assert run("fit", timings, "-o", model, "--model", "least-squares").returncode == 0
    done = run("rewrite", sample_logs / "cells", "--dry-run", "--timings", model)
    assert done.stderr.endswith(
        f"{name}: no timing line found; a model file is given with --fitted\n"
    )
    assert run("fit", timings, model, "--model", "least-squares").returncode == 0


def test_cycles_of_no_length_that_a_number_holds(sample_logs: Path, tmp_path: Path) -> None:
    """Python's warning of the division was printed, with the line of code."""
    lines = tmp_path / "cycles.txt"
    lines.write_text("TRACEBIGSIM: event:{ k } time_in_cycles:{ 30180 } params:{ 4 }\n")
    done = run("fit", lines, "--clock-hz", "1e-320", "--model", "least-squares")
    assert "Warning" not in done.stderr
    assert "warning: k(p1): no usable timing sample" in done.stderr
