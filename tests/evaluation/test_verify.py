"""A model file against timing lines: the figures against ones that are reckoned by hand."""

import json
from pathlib import Path

import numpy as np
import pytest
from logbuilder import write_timings

import rewritelog
from rewritelog.commands.fits import CompareCommand, FitCommand
from rewritelog.errors import TimingError, UsageError
from rewritelog.evaluation import verify as job
from rewritelog.evaluation.compare import compare
from rewritelog.evaluation.fit import fit
from rewritelog.evaluation.verify import VerifyReport
from rewritelog.text import json_text
from rewritelog.timings.read import read_model_file, read_timings
from tracebigsim.writing import format_line


def verify(
    model: Path, timings: list[Path], clock_hz: float | None = None, *, worst: int = 10
) -> VerifyReport:
    read = read_timings(timings, clock_hz=clock_hz)
    return job.verify(read_model_file(model), read, worst=worst)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """Return a model file of k(p1) = p1 µs."""
    lines = [("k", 1e-6 * n, float(n)) for n in range(1, 21)]
    timings = write_timings(tmp_path / "fit.txt", *lines)
    options = {"exact_match": "never"}
    fit(FitCommand((timings,), "least-squares", model_options=options, output=tmp_path / "m.json"))
    return tmp_path / "m.json"


def test_figures_by_hand(model: Path, tmp_path: Path) -> None:
    lines = [("k", 2e-6, 1.0), ("k", 4e-6, 4.0), ("k", 5e-6, 4.0), ("k", 8e-6, 10.0)]
    path = write_timings(tmp_path / "t.txt", *lines)
    report = verify(model, [path])
    score = report.overall
    assert (score.lines, score.predicted) == (4, 4)
    assert score.mean_relative_error == pytest.approx((0.5 + 0 + 0.2 + 0.25) / 4)
    assert score.median_relative_error == pytest.approx(0.225)
    assert score.sum_error == pytest.approx(19 / 19 - 1)
    assert score.later_sum_error == pytest.approx(18 / 17 - 1)
    mean = 19 / 4
    variation = sum((time - mean) ** 2 for time in (2, 4, 5, 8))
    assert score.r2 == pytest.approx(1 - (1 + 0 + 1 + 4) / variation)
    assert [line.where for line in report.worst][:3] == [f"{path}:1", f"{path}:4", f"{path}:3"]
    assert report.worst[0].measured_s == 2e-6
    assert report.worst[0].predicted_s == pytest.approx(1e-6)


def test_lines_without_an_interval_do_not_count_in_the_share_within(tmp_path: Path) -> None:
    lines = [("k", 1e-6 * n, float(n)) for n in range(1, 21)]
    few = [("few", 1e-6 * n, float(n)) for n in (1, 2)]
    fitted = rewritelog.fit(write_timings(tmp_path / "fit.txt", *lines, *few))
    report = rewritelog.verify(
        fitted, write_timings(tmp_path / "t.txt", *lines, ("few", 9e-6, 3.0))
    )
    assert (report.overall.intervals, report.overall.coverage) == (20, 1.0)
    assert "of the 20 that have one" in " ".join(report.text().split())
    of_all = rewritelog.verify(fitted, write_timings(tmp_path / "k.txt", *lines))
    assert "that have one" not in " ".join(of_all.text().split())


def test_worst_calls_have_the_names_of_their_parameters(model: Path, tmp_path: Path) -> None:
    lines = write_timings(tmp_path / "t.txt", ("k", 4e-6, 2.0))
    assert "k(2)" in rewritelog.verify(model, lines).text()
    names = tmp_path / "names.toml"
    names.write_text('k = ["atoms"]\nnobody = ["x", "y"]\n')
    report = rewritelog.verify(model, lines, param_names=names)
    assert "k(atoms=2)" in report.text()
    assert report.to_json()["worst"][0]["names"] == ("atoms",)
    assert report.warnings == ()


def test_equal_calls_have_one_worst_line(tmp_path: Path) -> None:
    """Ten equal lines of an event without parameters were the worst."""
    lines = [("start", 1e-6 * (1 + (n > 7))) for n in range(20)]
    path = write_timings(tmp_path / "t.txt", *lines)
    fit(FitCommand((path,), "least-squares", output=tmp_path / "m.json"))
    worst = verify(tmp_path / "m.json", [path]).worst
    assert sorted(line.where for line in worst) == [f"{path}:1", f"{path}:9"]


def test_a_worst_sample_is_counted_among_those_of_its_event_also_after_others_left_out() -> None:
    """It was `sample 3` of no event, which is not row 3 of a table, and missing times moved it."""
    sizes = [[1.0], [2], [4], [8]]
    fitted = rewritelog.fit({"k": (sizes, [1e-6, 2e-6, 4e-6, 8e-6])}, "least-squares")
    for first in (1e-6, np.nan):
        times = {"other": ([[1.0]], [1.0]), "k": (sizes, [first, 2e-6, 4e-5, 8e-6])}
        assert rewritelog.verify(fitted, times, worst=1).worst[0].where == "sample 3 of k"


def test_lost_cycles_have_no_slow_first_call_to_leave_out(tmp_path: Path) -> None:
    for event, left_out in (("kernel", True), ("lost::communication", False)):
        lines = [(event, n * (9.0 if n == 1 else 1.0), float(n)) for n in range(1, 9)]
        path = write_timings(tmp_path / "t.txt", *lines)
        fit(FitCommand((path,), "least-squares", output=tmp_path / "m.json"))
        score = verify(tmp_path / "m.json", [path]).overall
        assert (score.later_sum_error != score.sum_error) is left_out
        request = CompareCommand((path,), ("least-squares",), folds=4)
        (row,) = compare(request).tried
        assert (row.overall.later_sum_error != row.overall.sum_error) is left_out


def test_an_event_has_one_first_line_whatever_its_numbers_of_parameters(tmp_path: Path) -> None:
    lines = [("k", 1e-6), ("k", 1e-6), *[("k", 1e-6 * n, float(n)) for n in range(1, 9)]]
    path = write_timings(tmp_path / "fit.txt", *lines)
    fit(FitCommand((path,), "least-squares", output=tmp_path / "m.json"))
    path = write_timings(tmp_path / "t.txt", ("k", 3e-6, 2.0), ("k", 4e-6))
    score = verify(tmp_path / "m.json", [path]).overall
    assert score.sum_error == pytest.approx(3 / 7 - 1)
    assert score.later_sum_error == pytest.approx(1 / 4 - 1)


def test_each_file_has_a_first_line_of_an_event_that_totals_leave_out(tmp_path: Path) -> None:
    """Of four ranks' slow first calls only one was left out: totals were a third larger."""
    lines = [[("k", 1e-6 * n, float(n)) for n in range(1, 26)] for _ in range(4)]
    usual = write_timings(tmp_path / "usual.txt", *lines[0])
    for rank, of_rank in enumerate(lines):
        event, seconds, n = of_rank[3 * rank]
        of_rank.insert(0, (event, 60 * seconds, n))
        write_timings(tmp_path / f"{rank}.txt", *of_rank)
    files = [tmp_path / f"{rank}.txt" for rank in range(4)]
    fit(FitCommand(tuple(files), output=tmp_path / "m.json"))
    assert verify(tmp_path / "m.json", [usual]).overall.sum_error == pytest.approx(0, abs=0.02)
    assert verify(tmp_path / "m.json", files).overall.later_sum_error == pytest.approx(0, abs=0.02)


def test_by_event_and_without_a_model(model: Path, tmp_path: Path) -> None:
    lines = [("other", 1.0, 3.0), ("k", 2e-6, 2.0), ("k", 3e-6), ("k", 5e-6, 4.0)]
    report = verify(model, [write_timings(tmp_path / "t.txt", *lines)])
    events = dict(report.events)
    assert list(events) == [("other", 1), ("k", 1), ("k", 0)]
    assert (events["other", 1].predicted, events["other", 1].mean_relative_error) == (0, None)
    assert (events["k", 1].lines, events["k", 1].predicted) == (2, 2)
    assert events["k", 1].mean_relative_error == pytest.approx(0.1)
    missing = "1 of 1 line of 'other', 1 of 1 line of 'k()'; it has fits for k(p1)"
    assert f"the model has no fit for {missing}" in report.warnings


def test_each_fit_of_an_event_has_a_row_of_its_own(tmp_path: Path) -> None:
    """A bad fit for one number of parameters was hidden by a good one for another."""
    good = [("k", 1e-6 * n, float(n)) for n in range(1, 41)]
    bad = [("k", 1e-6 * (1 + 9 * (n % 2)), float(n), 1.0) for n in range(1, 11)]
    path = write_timings(tmp_path / "t.txt", *good, *bad, ("other", 1e-6, 1.0))
    fitted = rewritelog.fit(path, "least-squares", model_options={"exact_match": "never"})
    report = rewritelog.verify(fitted, path)
    table = [line.split()[0] for line in report.text().splitlines()[2:6]]
    assert table == ["k(p1)", "k(p1,", "other", "all"]
    entries = report.to_json()["events"]
    counts = [(entry["event"], entry["parameters"], entry["lines"]) for entry in entries]
    assert counts == [("k", 1, 40), ("k", 2, 10), ("other", 1, 1)]
    assert entries[0]["mean_relative_error"] < 0.01 < 0.1 < entries[1]["mean_relative_error"]
    (trial,) = rewritelog.compare(path, "least-squares", folds=2).to_json()["models"]
    assert [(entry["event"], entry["parameters"]) for entry in trial["events"]] == [
        ("k", 1), ("k", 2), ("other", 1),
    ]  # fmt: skip


def test_the_real_fit_against_its_own_lines(sample_logs: Path, tmp_path: Path) -> None:
    path = sample_logs / "cells" / "timings.txt"
    fit(FitCommand((path,), "least-squares", output=tmp_path / "m.json"))
    report = verify(tmp_path / "m.json", [path], worst=3)
    fitted = read_model_file(tmp_path / "m.json").raw
    errors, measured, predicted = [], 0.0, 0.0
    for samples in read_timings([path]).timings:
        seconds = np.maximum(fitted.predict(samples.event, samples.params), 0)
        errors += (np.abs(seconds - samples.seconds) / samples.seconds).tolist()
        measured, predicted = measured + samples.seconds.sum(), predicted + seconds.sum()
    assert report.overall.mean_relative_error == pytest.approx(np.mean(errors))
    assert report.overall.median_relative_error == pytest.approx(np.median(errors))
    assert report.overall.sum_error == pytest.approx(predicted / measured - 1, abs=1e-12)
    assert len(report.worst) == 3
    assert report.worst[0].relative_error == pytest.approx(max(errors))
    number = int(report.worst[0].where.rpartition(":")[2])
    assert f"{report.worst[0].measured_s:.9f}" in path.read_text().splitlines()[number - 1]
    assert report.overall.coverage is not None
    assert 0.85 < report.overall.coverage < 0.97


def test_times_at_the_bounds_of_their_interval_are_within() -> None:
    timings = {"k": (np.arange(1.0, 21)[:, None], np.full(20, 0.25))}
    fitted = rewritelog.fit(timings)
    predicted = rewritelog.predict(fitted, ("k", "2"))
    assert "k(p1 = 2): 250.0 ms, 90 %: 250.0 to 250.0 ms; fit" in repr(predicted)
    assert rewritelog.verify(fitted, timings).overall.coverage == 1


def test_times_that_a_fit_gives_back_but_for_rounding_are_within_their_intervals() -> None:
    """Bounds of exact fits are equal: no time was within, or nine in ten of several terms."""
    n = np.arange(1.0, 31)
    several = np.column_stack([n, n * 7 % 11])
    for params, seconds in ((n[:, None], 1.1e-6 * n), (several, 0.7 * n + 2.1 * several[:, 1])):
        timings = {"k": (params, seconds)}
        assert rewritelog.verify(rewritelog.fit(timings), timings).overall.coverage == 1


def test_times_that_the_fit_puts_below_zero_are_in_no_interval(tmp_path: Path) -> None:
    timings = write_timings(
        tmp_path / "t.txt", *[("k", 1e-6 * (n - 5 + n % 2 / 5), float(n)) for n in range(6, 26)]
    )
    fit(FitCommand((timings,), "least-squares", output=tmp_path / "m.json"))
    halves = write_timings(tmp_path / "half.txt", ("k", 15e-6, 20.0), ("k", 1e-6, 1.0))
    report = verify(tmp_path / "m.json", [halves])
    assert report.overall.negative == 1
    assert report.overall.coverage == 0.5


def test_what_grows_from_the_edge_of_the_range_is_not_below_zero() -> None:
    """The terms are negative out there, but the prediction is not: each line counted as below 0."""
    sizes = np.arange(1.0, 41)
    params = np.column_stack((sizes, sizes * 7 % 11))
    timings = {"k": (params, 1e-6 * (100 - 2 * sizes + 3 * params[:, 1]))}
    fitted = rewritelog.fit(timings, model_options={"exact_match": "never", "correction": "none"})
    beyond = np.array([[60.0, 0], [80, 0], [200, 2], [500, 5]])
    seconds = fitted.predict("k", beyond)
    assert (seconds > 0).all()
    assert eval(fitted.formula("k", "python"), {"np": np, "p1": 80, "p2": 0}) < 0  # noqa: S307
    overall = rewritelog.verify(fitted, {"k": (beyond, seconds)}).overall
    assert (overall.negative, overall.coverage) == (0, 1.0)


@pytest.mark.parametrize("loss", ["huber", "squares"])
@pytest.mark.parametrize("model", ["auto", "least-squares"])
def test_sums_in_seconds_include_interrupted_calls(model: str, loss: str) -> None:
    """With uniform weights the factor for totals was 1, and sums were those of usual times."""
    draw = np.random.default_rng(2)
    calls = np.arange(400)
    sizes = draw.permutation(calls) % 100 + 1.0
    seconds = 1e-6 * sizes * np.where(calls % 20 == 7, 5, 1) * draw.uniform(0.95, 1.05, 400)
    timings = {"k": (sizes[:, None], seconds)}
    options = {"weights": "uniform", "loss": loss, "exact_match": "never"}
    fitted = rewritelog.fit(timings, model, model_options=options)
    overall = rewritelog.verify(fitted, timings).overall
    assert overall.sum_error == pytest.approx(0, abs=0.05)


def test_the_worst_of_several_files(model: Path, tmp_path: Path) -> None:
    files = [
        write_timings(tmp_path / f"{n}.txt", ("k", 1e-6 * n, float(n)), ("k", 1e-6 / n, 1.0))
        for n in range(2, 6)
    ]
    report = verify(model, files, worst=2)
    assert [line.where for line in report.worst] == [f"{files[3]}:2", f"{files[2]}:2"]
    assert report.overall.lines == 8
    assert not verify(model, files, worst=0).worst


def test_the_worst_of_several_events_come_first_also_among_equal_errors(tmp_path: Path) -> None:
    """The second event has the worst line, and three lines whose errors are the same."""
    right = [(event, 1e-6, 5.0) for event in ("a", "b") for _ in range(9)]
    fitted = write_timings(tmp_path / "fit.txt", *right)
    fit(FitCommand((fitted,), "least-squares", output=tmp_path / "m.json"))
    lines = [("a", 1.25e-6, 1.0), *[("b", 2e-6, float(n)) for n in (1, 2, 3)], ("b", 1e-5, 4.0)]
    path = write_timings(tmp_path / "t.txt", *lines)
    worst = verify(tmp_path / "m.json", [path], worst=2).worst
    assert [line.where for line in worst] == [f"{path}:5", f"{path}:2"]
    assert [line.relative_error for line in worst] == pytest.approx([0.9, 0.5])


def test_machine_and_person_read_the_same(model: Path, tmp_path: Path) -> None:
    path = write_timings(tmp_path / "t.txt", ("k", 2e-6, 1.0), ("k", 0.0, 4.0), ("k", 1e-6, 1e300))
    report = verify(model, [path])
    document = json.loads(json_text(report.to_json()), parse_constant=pytest.fail)
    assert document["overall"]["lines"] == 3
    assert document["events"][0]["event"] == "k"
    assert document["worst"][0]["where"].startswith(str(path))
    assert "3 timing lines" in report.text()


def test_cycles_need_a_clock(model: Path, tmp_path: Path) -> None:
    path = tmp_path / "t.txt"
    path.write_text(format_line("k", [3.0], time_cycles=6000.0))
    with pytest.raises(TimingError, match="clock_hz"):
        verify(model, [path])
    assert verify(model, [path], 2e9).overall.mean_relative_error == pytest.approx(0)


def test_what_cannot_be_verified(model: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty.txt"
    empty.write_text("19 TRACEBIGSIM: event:{ k } params:{ 1.0 }\n")
    with pytest.raises(TimingError, match="no timing line found"):
        verify(model, [empty])
    with pytest.raises(UsageError, match="0 or more, not -1"):
        rewritelog.verify(model, empty, worst=-1)


def test_a_file_without_a_line_beside_others_is_named(tmp_path: Path) -> None:
    """A model file or a page among the timings went unnoticed; empty files are as ranks leave."""
    lines = write_timings(tmp_path / "t.txt", ("k", 1e-6, 1.0))
    (tmp_path / "page.txt").write_text("no line\n")
    (tmp_path / "empty.txt").touch()
    read = read_timings([lines, tmp_path / "page.txt", tmp_path / "empty.txt"])
    (warning,) = read.warnings
    assert warning == f"1 file without a timing line: {tmp_path / 'page.txt'}"
    with pytest.raises(TimingError, match="no timing line found; one is like"):
        read_timings([tmp_path / "page.txt", tmp_path / "empty.txt"])
