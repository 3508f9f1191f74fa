"""A study: logs of several sizes, their lost cycles fitted, and a larger run predicted."""

from __future__ import annotations

import gzip
import io
import json
import math
import os
import re
import resource
import subprocess
import sys
import threading
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chosen import by_tier
from commands import rewritelog as run
from logbuilder import write_timings
from oracle import SAMPLE_LOGS

import rewritelog
from rewritelog.commands.fits import FitCommand
from rewritelog.errors import ModelError, OutputError
from rewritelog.evaluation.fit import fit
from rewritelog.evaluation.totals import CategoryTotal, RunPrediction
from rewritelog.models.base import EventTimings
from rewritelog.models.registry import load_model
from rewritelog.replaying.network import Network
from rewritelog.replaying.study import StudyRun
from rewritelog.text import time_text
from tracebigsim.files import scan_file

NETWORK = Network(latency=2e-6, bandwidth=1e9)
FORMULAS = Path(__file__).parents[2] / "docs" / "lost-cycles.toml"


def study_run(
    folder: Path, pes: int, size: int, timings_out: Path | None = None, sebs: int = 1500
) -> StudyRun:
    logs = folder / f"{pes}-{size}"
    rewritelog.synth(logs, pes=pes, sebs=sebs, size=size, seed=pes + size, timings=0)
    variables = {"D": float(size)}
    return rewritelog.lost_cycles(
        logs, network=NETWORK, variables=variables, timings_out=timings_out
    )


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("study")
    for pes in (8, 16, 32, 64):
        for size in (16_000, 32_000, 64_000, 128_000):
            study_run(folder, pes, size, folder / "study.txt")
    return folder


@pytest.fixture(scope="module")
def small_study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a study whose times are too few to be right, but enough to fit."""
    folder = tmp_path_factory.mktemp("small")
    for pes in (2, 4, 8):
        for size in (16_000, 32_000, 64_000):
            study_run(folder, pes, size, folder / "study.txt", sebs=40)
    return folder


def test_lost_cycles_of_a_study_predict_a_larger_run(small_study: Path) -> None:
    fit(
        FitCommand(
            (small_study / "study.txt",), formulas=FORMULAS, output=small_study / "model.json"
        )
    )
    done = run("predict-run", small_study / "model.json", "--at", "P=16,D=128000", "--json")
    assert done.returncode == 0
    assert "extrapolated" in done.stderr
    predicted = json.loads(done.stdout)
    assert predicted["low_s"] <= predicted["predicted_s"] <= predicted["high_s"]
    assert math.isclose(sum(predicted["shares"].values()), 1, rel_tol=1e-9)
    truth_s = study_run(small_study, 16, 128_000, sebs=40).lost.predicted_s
    assert 0.3 < predicted["predicted_s"] / truth_s < 3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pes", "size"), by_tier([(128, 256_000), (128, 128_000)], [(128, 128_000)])
)
def test_a_larger_run_is_what_was_predicted(study: Path, pes: int, size: int) -> None:
    model = study / "model.json"
    fit(FitCommand((study / "study.txt",), formulas=FORMULAS, output=model))
    done = run("predict-run", model, "--at", f"P={pes},D={size}", "--json")
    assert done.returncode == 0
    assert "extrapolated" in done.stderr
    predicted = json.loads(done.stdout)
    truth = study_run(study, pes, size).lost
    assert math.isclose(predicted["predicted_s"], truth.predicted_s, rel_tol=0.05)
    assert predicted["low_s"] <= truth.predicted_s <= predicted["high_s"]
    pe_seconds = truth.pes * truth.predicted_s
    for category, seconds in truth.totals_s.items():
        if seconds > 0.05 * pe_seconds:
            predicted_s = predicted["categories_s"][category]
            assert math.isclose(predicted_s, seconds, rel_tol=0.15), category
    assert math.isclose(sum(predicted["shares"].values()), 1, rel_tol=1e-9)
    text = run("predict-run", model, "--at", f"D={size},P={pes}")
    assert text.stdout.startswith(
        f"Predicted run time: {time_text(predicted['predicted_s'])} at P = "
    )


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--at", "P=4"], 2, "its variables are P, D; --at has P"),
        (["--at", "P=4,D=9,N=2"], 2, "its variables are P, D; --at has P, D, N"),
        (["--at", "P=4,size=9"], 2, "its variables are P, D; --at has P, size"),
        (["--at", "D=4"], 2, "P, the number of PEs"),
        (["--at", "P=1.5,D=4"], 2, "a whole number above 0"),
        (["--at", "P=4,D=x"], 2, "--at D: 'x' is not a number"),
        (["--at", "P=6_4,D=9"], 2, "--at P: '6_4' is not a number"),
        ([], 2, "missing option"),
    ],
)
def test_wrong_use_of_at(small_study: Path, words: list[str], code: int, message: str) -> None:
    model = small_study / "plain.json"
    if not model.exists():
        fit(FitCommand((small_study / "study.txt",), "least-squares", output=model))
    done = run("predict-run", model, *words)
    assert done.returncode == code
    assert message in done.stderr


def test_variables_without_names_are_counted(small_study: Path, tmp_path: Path) -> None:
    """Lines without the comment at their head are those of a study all the same."""
    _, *lines = (small_study / "study.txt").read_text().splitlines(keepends=True)
    (tmp_path / "study.txt").write_text("".join(lines))
    model = tmp_path / "model.json"
    fit(FitCommand((tmp_path / "study.txt",), "least-squares", output=model))
    done = run("predict-run", model, "--at", "P=4")
    assert done.returncode == 2
    assert "the number of variables besides P is 1, but --at has 0" in done.stderr
    assert "at P = 4, size = 32000" in run("predict-run", model, "--at", "size=32000,P=4").stdout


def test_a_model_without_lost_cycles_is_refused(sample_logs: Path, tmp_path: Path) -> None:
    timings = sample_logs / "cells" / "timings.txt"
    fit(FitCommand((timings,), "least-squares", output=tmp_path / "model.json"))
    done = run("predict-run", tmp_path / "model.json", "--at", "P=4")
    assert done.returncode == 1
    assert "`lost-cycles` writes such timing lines with --timings-out" in done.stderr


def first_call(event: str) -> Any:
    """What is said of the first of ten samples, which took ten times as long as its law says."""
    sizes = np.arange(1.0, 11.0)[:, None]
    seconds = sizes[:, 0] * np.where(sizes[:, 0] == 1, 10.0, 1.0)
    fitted = load_model("auto", {}, None).fit([EventTimings(event, sizes, seconds)])
    return json.dumps(fitted.describe())


def test_runs_that_differ_are_not_put_down_to_a_busy_machine() -> None:
    """Lost cycles are those of replays: it said to time the event again on an idle machine."""
    params = np.array([[p, d] for p in (4, 8, 16, 32, 64) for d in (1, 2, 3, 4)], dtype=float)
    odd = params[:, 0] * np.where(np.arange(len(params)) == 9, 80, 1)
    (warning,) = (
        text
        for text in rewritelog.fit({"lost::communication": (params, odd)}).warnings
        if "predictions are off" in text
    )
    assert "idle machine" not in warning
    assert "see how the runs of these lines differ" in warning


def test_a_prediction_too_large_for_a_float_is_refused(tmp_path: Path) -> None:
    """The sum of its categories raised a bare OverflowError."""
    lines = [(f"lost::{c}", n * 1e99, float(n)) for c in "abc" for n in (1, 2, 4, 8)]
    timings = write_timings(tmp_path / "lost.txt", *lines)
    fitted = rewritelog.fit(timings, "least-squares")
    assert rewritelog.predict_run(fitted, {"P": 1e2}).predicted_s == pytest.approx(3e99)
    with pytest.raises(ModelError, match="exceeds the range of a double"):
        rewritelog.predict_run(fitted, {"P": 1e200})


@pytest.mark.parametrize("variable", ["event", "seconds"])
def test_no_variable_of_a_study_takes_the_place_of_a_column(variable: str, tmp_path: Path) -> None:
    """The frame of such timings had its values for the event, or the measured times for its own."""
    pytest.importorskip("pandas")
    lines, variables = tmp_path / "study.txt", {variable: 3.0}
    rewritelog.lost_cycles(SAMPLE_LOGS / "cells", variables=variables, timings_out=lines)
    with pytest.raises(
        rewritelog.UsageError, match=f"parameter '{variable}' of .* has the name of"
    ):
        rewritelog.read_timings(lines).to_frame()


def test_a_number_of_pes_is_shown_with_all_its_digits() -> None:
    """It was `P = 1.04858e+06`, in the text and in the warning."""
    pes = np.array([[2.0], [4.0], [8.0], [16.0]])
    fitted = rewritelog.fit({"lost::a": (pes, 1e-6 * pes[:, 0])})
    run = rewritelog.predict_run(fitted, {"P": 1048576})
    assert "at P = 1048576, 90 %" in run.text()
    assert "or as small as P=1048576" in run.warnings[0]


def test_a_category_without_a_prediction_is_not_called_a_time_too_large(tmp_path: Path) -> None:
    formulas = tmp_path / "f.toml"
    formulas.write_text('[[formula]]\nevent = "lost::a"\nterms = ["log(p2 - 3)"]\n')
    params = np.column_stack([2.0 ** np.arange(8), np.arange(5.0, 13)])
    fitted = rewritelog.fit({"lost::a": (params, params[:, 1])}, formulas=formulas)
    with pytest.raises(ModelError, match="a category has no prediction"):
        rewritelog.predict_run(fitted, {"P": 4, "D": 2})


def test_a_category_that_some_runs_lack_is_warned_of() -> None:
    """Its time was added without a word, and no run was said to have had so many PEs."""
    pes = 2.0 ** np.arange(1, 9)
    lines = {"lost::useful[k]": (pes, pes), "lost::useful[new]": (pes[4:], pes[4:])}
    fitted = rewritelog.fit({name: (p[:, None], s) for name, (p, s) in lines.items()})
    beyond, rare = rewritelog.predict_run(fitted, {"P": 8}).warnings
    assert beyond.startswith("1 of 2 categories extrapolated: no run with them was as large")
    assert rare.startswith("only some of the runs have lines of useful[new]: ")
    (beyond,) = rewritelog.predict_run(fitted, {"P": 512}).warnings[:-1]
    assert beyond.startswith("2 of 2 categories")
    whole = rewritelog.fit({"lost::useful[k]": (pes[:, None], pes)})
    assert rewritelog.predict_run(whole, {"P": 8}).warnings == ()
    for count in (1, 3):  # the numbers of PEs that no run had
        assert rewritelog.predict_run(whole, {"P": count}).predicted_s == pytest.approx(1, rel=0.02)


def test_errors_of_categories_add_up_as_those_of_independent_ones() -> None:
    """Deviations of 3 and 4 s below, and of 12 and 5 s above: 5 and 13 s of 12 PE-seconds."""
    categories = (
        CategoryTotal("useful[k]", 8.0, 5.0, 20.0, extrapolated=False, negative=False),
        CategoryTotal("communication", 4.0, 0.0, 9.0, extrapolated=True, negative=False),
        CategoryTotal("start", 0.0, math.nan, math.nan, extrapolated=False, negative=True),
    )
    run = RunPrediction("model.json", (("P", 4.0), ("D", 2.0)), categories)
    assert (run.predicted_s, run.interval_s) == (3.0, (7 / 4, 25 / 4))
    assert run.warnings[0].startswith("1 of 3 categories extrapolated")
    assert re.search(r"communication +4\.000 s +0 s +9\.00 s +33\.3 %", run.text())


@pytest.mark.parametrize("model", ["auto", "least-squares"])
def test_a_category_below_zero_is_not_said_to_be_certain(model: str, tmp_path: Path) -> None:
    """It had the interval from 0 to 0 s, as a category that no run ever had."""
    runs = np.array([(p, d) for p in (8, 16, 32, 64) for d in (16e3, 32e3, 64e3)])
    pes, size = runs.T
    noise = np.random.default_rng(1).normal(1, 0.02, (2, len(runs)))
    of_category = {
        "lost::useful[k]": size * 1e-6 * noise[0],
        "lost::insufficient parallelism": (pes - 1) * (1e-5 - 1.2e-10 * size) * noise[1],
        "lost::start": np.zeros(len(runs)),
    }
    formulas = tmp_path / "f.toml"
    kind = "[[formula]]\nevent = '{}'\nkind = '{}'\n"
    formulas.write_text(
        kind.format("lost::useful*", "lost-work")
        + kind.format("lost::insufficient parallelism", "lost-insufficient-parallelism")
    )
    timings = {event: (runs, seconds) for event, seconds in of_category.items()}
    fitted = rewritelog.fit(timings, model, formulas=formulas if model == "auto" else None)
    run = rewritelog.predict_run(fitted, {"P": 64, "D": 256000})
    report = run.to_json()
    assert report["categories_s"]["insufficient parallelism"] == 0
    assert report["intervals_s"]["insufficient parallelism"] == [None, None]
    assert report["intervals_s"]["start"] == [0, 0]
    assert 0 < report["low_s"] < report["predicted_s"] < report["high_s"]
    assert any("fit of insufficient parallelism is below zero" in text for text in run.warnings)


def test_a_replayed_time_is_no_slow_first_call() -> None:
    assert first_call("kernel") != first_call("lost::communication").replace("lost::communication",
                                                                             "kernel")  # fmt: skip


def test_a_size_scales_work_and_messages_and_none_leaves_logs_as_they_were(tmp_path: Path) -> None:
    for name, size in (("none", None), ("same", 16_000), ("double", 32_000)):
        rewritelog.synth(tmp_path / name, pes=16, sebs=200, size=size)
    plain, same = (tmp_path / name / "bgTrace0" for name in ("none", "same"))
    assert plain.read_bytes() == same.read_bytes()
    network = Network(latency=0.0)
    runs = [rewritelog.lost_cycles(tmp_path / name, network=network) for name in ("same", "double")]
    same_s, double_s = (run.lost.totals_s["useful[Cell::bonded]"] for run in runs)
    assert 1.8 < double_s / same_s < 2.1


def test_a_rewritten_run_without_params_is_not_taken_for_one_without_events(
    sample_logs: Path, tmp_path: Path
) -> None:
    """All work in brackets counted as other computation, and nothing was said."""
    cells, out = sample_logs / "cells", tmp_path / "out"
    run("rewrite", cells, out, "--dilation", "2")
    done = run("lost-cycles", out)
    assert "useful[" not in done.stdout
    assert "was rewritten without its param files" in done.stderr
    done = run("lost-cycles", out, "--params", cells)
    assert "useful[Cell::bonded]" in done.stdout
    assert not done.stderr


def test_a_run_is_appended_whole_or_not_at_all(sample_logs: Path, tmp_path: Path) -> None:
    """A part of its lines would be fitted as if the run had no other categories."""
    lines, soft_hard = tmp_path / "study.txt", resource.getrlimit(resource.RLIMIT_FSIZE)
    for runs in (0, 1):
        before = lines.read_bytes() if runs else None
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(before or b"") + 100, soft_hard[1]))
        try:
            with pytest.raises(OutputError, match="cannot be written: File too large"):
                rewritelog.lost_cycles(sample_logs / "cells", network=NETWORK, timings_out=lines)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, soft_hard)
        assert (lines.read_bytes() if lines.exists() else None) == before
        rewritelog.lost_cycles(sample_logs / "cells", network=NETWORK, timings_out=lines)


def test_the_number_of_pes_is_known_by_name(tmp_path: Path) -> None:
    """The first variable was taken for it."""
    pandas = pytest.importorskip("pandas")
    pes, size = np.repeat([1.0, 2.0, 4.0, 8.0], 4), np.tile([10.0, 20.0, 40.0, 80.0], 4)
    columns = {"event": "lost::a", "D": size, "P": pes, "seconds": 1e-3 * pes * size}
    predicted = rewritelog.predict_run(rewritelog.fit(pandas.DataFrame(columns)), {"P": 4, "D": 50})
    assert predicted.pes == 4
    assert predicted.predicted_s == pytest.approx(0.05)


def test_names_of_variables_that_no_formula_can_have_are_refused(sample_logs: Path) -> None:
    """They were written, and not read again, so that `predict-run` took any others."""
    for name in ("log", "p3", "x-y"):
        done = run("lost-cycles", sample_logs / "cells", "--var", f"{name}=3")
        assert (done.returncode, f"'{name}'" in done.stderr) == (2, True)


def test_studies_of_other_variables_are_not_mixed(tmp_path: Path) -> None:
    """The names of the last file were taken for those of all."""
    lines = write_timings(tmp_path / "lines", ("lost::a", 1.0, 1.0, 2.0)).read_text()
    for name in "DN":
        (tmp_path / name).write_text(f"# lost cycles; parameters: P, {name}\n{lines}")
    assert "names" not in run("fit", tmp_path / "lines").stderr  # there are none
    done = run("fit", tmp_path / "D", tmp_path / "N")
    assert done.returncode == 1
    refused = f"are P, N, but those of {tmp_path / 'D'} are P, D"
    assert refused in done.stderr
    merged = run("merge", tmp_path / "D", tmp_path / "N", "-o", tmp_path / "merged")
    assert (merged.returncode, refused in merged.stderr) == (1, True)


def test_runs_with_different_numbers_of_variables_are_no_study(tmp_path: Path) -> None:
    """Whatever the point was, it had too many variables or too few."""
    model = tmp_path / "model.json"
    lines = [("lost::a", 1.0, float(n)) for n in range(1, 5)]
    more = [("lost::a", 1.0, float(n), 2.0) for n in range(1, 5)]
    write_timings(tmp_path / "lines", *lines, *more)
    run("fit", tmp_path / "lines", "--model", "least-squares", "-o", model)
    for at in ("P=4", "P=4,D=2"):
        done = run("predict-run", model, "--at", at)
        assert done.returncode == 1
        assert "some of its runs have more variables than others" in done.stderr


def test_a_merge_keeps_the_names_of_a_study(small_study: Path, tmp_path: Path) -> None:
    """Without them any name was taken for that of a variable."""
    other = write_timings(tmp_path / "other", ("k", 1.0, 2.0))
    merged, model = tmp_path / "merged.txt", tmp_path / "model.json"
    assert run("merge", small_study / "study.txt", other, "-o", merged).returncode == 0
    assert run("fit", merged, "--model", "least-squares", "-o", model).returncode == 0
    done = run("predict-run", model, "--at", "P=4,size=9")
    assert "its variables are P, D" in done.stderr


@pytest.mark.parametrize("source", ["plain", "gzip", "stdin"])
def test_the_names_of_a_study_are_read_with_its_lines(
    small_study: Path, tmp_path: Path, source: str
) -> None:
    """Those of compressed files and of standard input were not."""
    file, model = small_study / "study.txt", tmp_path / "model.json"
    if source == "gzip":
        file = tmp_path / "study.txt.gz"
        file.write_bytes(gzip.compress((small_study / "study.txt").read_bytes()))
    with (small_study / "study.txt").open("rb") as stream:
        rewritelog_command = [sys.executable, "-m", "rewritelog", "fit", "--model", "least-squares"]
        words = ["-" if source == "stdin" else str(file), "-o", str(model), "-q"]
        subprocess.run([*rewritelog_command, *words], stdin=stream, check=True)
    done = run("predict-run", model, "--at", "P=4,size=9")
    assert "its variables are P, D" in done.stderr


def test_a_run_is_appended_after_a_line_without_its_end(sample_logs: Path, tmp_path: Path) -> None:
    """The first new line joined the last one, and both were lost."""
    lines, variables = tmp_path / "study.txt", {"D" * 900: 1, "E" * 200: 2}
    for run_number in (1, 2):
        rewritelog.lost_cycles(sample_logs / "cells", variables=variables, timings_out=lines)
        (table,) = scan_file(lines)
        assert table.fault_count == 0
        assert len(table) == run_number * len(set(table.events))
        lines.write_bytes(lines.read_bytes().rstrip(b"\n"))


def test_lines_of_a_run_go_through_a_pipe(sample_logs: Path, tmp_path: Path) -> None:
    """Its head was read first, which waited forever for what the command itself would write."""
    pipe, read = tmp_path / "pipe", list[str]()
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    rewritelog.lost_cycles(sample_logs / "cells", network=NETWORK, timings_out=pipe)
    reader.join()
    assert read[0].startswith("# lost cycles; parameters: P\nTRACEBIGSIM")


def test_lines_of_a_run_go_to_the_standard_output_of_python() -> None:
    """In a notebook they appeared in the terminal of its server."""
    shown = io.StringIO()
    with redirect_stdout(shown):
        run_of_study = rewritelog.lost_cycles(SAMPLE_LOGS / "cells", timings_out="-")
    assert shown.getvalue().count("TRACEBIGSIM:") == len(run_of_study.lost.categories)


def test_a_name_too_long_for_a_file_of_lines_is_an_error_in_words() -> None:
    with pytest.raises(OutputError, match=r"xxx: cannot be .*: File name too long"):
        rewritelog.lost_cycles(SAMPLE_LOGS / "cells", timings_out="x" * 300)
