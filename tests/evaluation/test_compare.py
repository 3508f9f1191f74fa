"""Models on the same folds: each line predicted without itself, and failures counted."""

import json
import os
import re
import threading
from dataclasses import replace
from itertools import chain, repeat
from pathlib import Path

import numpy as np
import pytest
from commands import rewritelog as run
from logbuilder import write_timings

from rewritelog.commands.fits import CompareCommand
from rewritelog.errors import ModelError, UsageError
from rewritelog.evaluation.compare import compare, folds, fraction
from rewritelog.models.base import EventTimings
from rewritelog.text import json_text
from tracebigsim.writing import format_line

CUBIC = [("k", 1e-9 * n**3, float(n)) for n in range(1, 41)]


@pytest.fixture
def timings(tmp_path: Path) -> Path:
    return write_timings(tmp_path / "t.txt", *CUBIC, *[("few", 2e-6, float(n)) for n in range(3)])


def samples(*sizes: int) -> list[EventTimings]:
    return [
        EventTimings(f"e{size}", np.arange(float(size))[:, None], np.ones(size)) for size in sizes
    ]


def test_folds_leave_out_each_line_once_and_events_evenly() -> None:
    timings = samples(95, 7, 1)
    splits = list(folds(timings, 10, 3))
    for event, size in enumerate((95, 7, 1)):
        left_out = np.array([split[event] for split in splits])
        assert (left_out.sum(axis=0) == 1).all()
        assert left_out.sum(axis=1).max() - left_out.sum(axis=1).min() <= 1
        assert left_out.shape == (10, size)
    again = list(folds(timings, 10, 3))
    other = list(folds(timings, 10, 4))
    assert all(np.array_equal(a[0], b[0]) for a, b in zip(splits, again, strict=True))
    assert not np.array_equal(splits[0][0], other[0][0])


def test_a_fraction_keeps_its_share_and_one_line_at_least() -> None:
    split = fraction(samples(100, 7, 1), 0.1, 1)
    assert [int((~rows).sum()) for rows in split] == [10, 1, 1]
    split = fraction(samples(100, 4, 1), 0.99, 1)
    assert [int((~rows).sum()) for rows in split] == [99, 3, 1]


@pytest.mark.slow
def test_the_model_that_knows_the_law_wins(timings: Path) -> None:
    report = compare(CompareCommand((timings,), ("auto", "least-squares"), folds=5))
    auto, squares = report.tried
    assert auto.model == "auto"
    assert auto.overall.lines == 43
    assert auto.overall.mean_relative_error is not None
    assert squares.overall.mean_relative_error is not None
    assert auto.overall.mean_relative_error < 0.01 < squares.overall.mean_relative_error
    assert dict(auto.events)["k", 1].lines == 40
    assert "43 timing lines, 5 folds, seed 1" in report.text()


def test_there_are_no_more_folds_than_lines(timings: Path) -> None:
    report = compare(CompareCommand((timings,), ("least-squares",), folds=50))
    assert report.tried[0].fits == 40
    assert "40 folds" in report.text()
    report = compare(CompareCommand((write_timings(timings, *CUBIC[:6]),), ("least-squares",)))
    assert (report.to_json()["folds"], report.warnings) == (6, ())
    assert "6 folds" in report.text()
    assert compare(CompareCommand((timings,), ("least-squares",), folds=4)).warnings == ()


def test_a_comparison_without_any_prediction_fails(tmp_path: Path) -> None:
    """It ended with exit code 0, and nothing but dashes. A fraction of one line is that line."""
    path = write_timings(tmp_path / "t.txt", ("k", 1.0, 2.0))
    for how, share in (((), "100.00 %"), (("--fraction", 0.5), "–")):
        done = run("compare", path, *how)
        assert (done.returncode, "no model has a prediction" in done.stderr) == (1, True)
        assert re.search(rf"auto( +–){{4}} +{share}", done.stdout)


def test_held_out_lines_are_not_seen(tmp_path: Path) -> None:
    """Times without any law: a model that saw a line would know it, by its exact match."""
    noise = np.random.default_rng(3).uniform(1, 2, 60)
    path = write_timings(
        tmp_path / "t.txt", *[("k", float(time), float(n)) for n, time in enumerate(noise)]
    )
    options = {"exact_match": "always"}
    report = compare(CompareCommand((path,), ("least-squares",), model_options=options))
    assert (report.tried[0].overall.mean_relative_error or 0) > 0.1


def test_models_without_an_answer_are_told(timings: Path, tmp_path: Path) -> None:
    file = tmp_path / "c.txt"
    file.write_text("few 0.0 1e-6\n")
    models = ("constant", "coefficients")
    report = compare(CompareCommand((timings,), models, coefficients=file))
    constant, coefficients = report.tried
    assert constant.overall.predicted == 0
    assert coefficients.overall.predicted == 3
    assert coefficients.overall.mean_relative_error == pytest.approx(0.5)
    assert coefficients.overall.sum_error == pytest.approx(-0.5)
    assert "100.00 %" in report.text()


def test_malformed_lines_are_told_beside_formulas_without_use(tmp_path: Path) -> None:
    path = write_timings(tmp_path / "t.txt", *CUBIC[:6])
    path.write_text(path.read_text() + "TRACEBIGSIM: event:{ k } time:{ 1 } par\n")
    (tmp_path / "f.toml").write_text("[[formula]]\nevent = 'nobody'\nterms = ['1']\n")
    done = run("compare", path, "--formulas", tmp_path / "f.toml", "--folds", 2)
    assert "1 malformed timing line" in done.stderr
    assert "'nobody'" in done.stderr


def test_only_the_first_line_of_all_is_left_out_of_later_ones(tmp_path: Path) -> None:
    lines = write_timings(tmp_path / "t.txt", *[("k", 1e-6 * t, 1.0) for t in (8, 1, 2, 4)])
    (tmp_path / "c.txt").write_text("k 0.0 1e-6\n")
    command = CompareCommand((lines,), ("coefficients",), coefficients=tmp_path / "c.txt")
    (trial,) = compare(command).tried
    assert trial.overall.sum_error == pytest.approx(4 / 15 - 1)
    assert trial.overall.later_sum_error == pytest.approx(3 / 7 - 1)


def test_an_event_of_one_line_is_never_predicted(tmp_path: Path) -> None:
    path = write_timings(tmp_path / "t.txt", *CUBIC[:6], ("single", 1.0, 2.0))
    report = compare(CompareCommand((path,), ("least-squares",), folds=3))
    assert dict(report.tried[0].events)["single", 1].predicted == 0
    assert report.tried[0].failed_fits == 0


def test_failed_fits_are_counted(timings: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parents[1] / "models")
    report = compare(CompareCommand((timings,), ("regressors:Plane", "least-squares"), folds=4))
    plane = report.tried[0]
    assert (plane.fits, plane.failed_fits, plane.overall.predicted) == (4, 0, 43)

    reasons = chain(["it is Monday"], repeat("it is still Monday"))

    def fails(*_: object) -> None:
        raise ModelError(next(reasons))

    monkeypatch.setattr("rewritelog.models.least_squares.LeastSquares.fit", fails)
    report = compare(CompareCommand((timings,), ("least-squares",), folds=4))
    assert report.tried[0].failed_fits == 4
    assert report.tried[0].overall.predicted == 0
    assert any("4 of 4 fits failed: it is Monday" in text for text in report.warnings)
    monkeypatch.undo()
    monkeypatch.setattr("rewritelog.models.fitted_events.FittedEvents.predict_detailed", fails)
    report = compare(CompareCommand((timings,), ("least-squares", "constant"), folds=4))
    assert report.tried[0].failed_fits == 4, "it ended the comparison of all models"


def test_repeats_and_fractions(timings: Path) -> None:
    command = CompareCommand((timings,), ("least-squares",), fraction=0.5, repeats=3)
    first, second = (compare(command).to_json() for _ in range(2))
    for report in (first, second):
        report["models"][0].pop("seconds")
    assert first == second
    assert first["models"][0]["fits"] == 3
    assert first["models"][0]["overall"]["lines"] == 3 * (20 + 1)
    of_seeds = [
        compare(replace(command, repeats=1, seed=seed)).tried[0].overall for seed in (1, 2, 3)
    ]
    for error in ("sum_error", "later_sum_error"):
        errors = [getattr(score, error) for score in of_seeds]
        assert min(errors) < 0 < max(errors)
        assert first["models"][0]["overall"][error] == pytest.approx(np.mean(np.abs(errors)))
    assert (
        json.loads(json_text(compare(command).to_json()), parse_constant=pytest.fail)["fraction"]
        == 0.5
    )
    assert "fits to 0.5 of each event's lines × 3, seed 1" in compare(command).text()
    assert "+" not in str(compare(command).table), "means of magnitudes have no sign"


def test_counters_and_parameters_get_the_same_lines(tmp_path: Path) -> None:
    path = tmp_path / "t.txt"
    path.write_text(
        "".join(
            format_line("k", [float(n)], time_s=1e-9 * n**2, counters=[n**2]) for n in range(1, 41)
        )
    )
    report = compare(CompareCommand((path,), ("least-squares", "counters")))
    squares, counters = report.tried
    assert squares.overall.lines == counters.overall.lines == 40
    assert counters.overall.mean_relative_error is not None
    assert counters.overall.mean_relative_error < 1e-6
    assert not report.warnings
    path.write_text(path.read_text() + format_line("k", [3.0], time_s=9e-9))
    report = compare(CompareCommand((path,), ("least-squares", "counters")))
    assert any("not all lines have counters" in text for text in report.warnings)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"models": ()}, "at least one model"),
        ({"models": ("auto", "auto")}, "each only once"),
        ({"models": ("auto",), "folds": 1}, "folds must be an integer of 2 or more"),
        ({"models": ("auto",), "repeats": 0}, "repeats must be an integer of 1 or more"),
        ({"models": ("auto",), "fraction": 1.0}, "above 0 and below 1"),
    ],
)
def test_wrong_requests(options: dict[str, object], word: str, timings: Path) -> None:
    with pytest.raises(UsageError, match=word):
        CompareCommand((timings,), **options)  # type: ignore[arg-type]


def test_a_hyphen_in_the_name_of_an_option_stands_for_an_underscore(timings: Path) -> None:
    options = {"exact-match": "never"}
    report = compare(CompareCommand((timings,), ("least-squares",), model_options=options))
    assert report.tried[0].failure is None
    twice = options | {"exact_match": "always"}
    with pytest.raises(UsageError, match="'exact_match' is given more than once"):
        compare(CompareCommand((timings,), ("least-squares",), model_options=twice))


def test_wrong_models_and_options(timings: Path) -> None:
    with pytest.raises(UsageError, match="unknown model 'nonsense'"):
        compare(CompareCommand((timings,), ("nonsense",)))
    with pytest.raises(UsageError, match="none of the models has the option 'basis'"):
        compare(CompareCommand((timings,), ("auto",), model_options={"basis": "linear"}))
    with pytest.raises(UsageError, match="needs a file of coefficients"):
        compare(CompareCommand((timings,), ("coefficients",)))


def test_a_pipe_is_read_once_for_parameters_and_counters(tmp_path: Path) -> None:
    """It cannot be read again; models of counters and of parameters share what was read."""
    text = "".join(
        format_line("k", (n,), time_s=1e-6 * n, counters=(10 * n,)) for n in range(1, 21)
    )
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=(text,))
    writer.start()
    report = compare(CompareCommand((pipe,), ("counters", "least-squares"), folds=3))
    writer.join()
    assert [model.overall.predicted for model in report.tried] == [20, 20]
