"""Fits written to model files, and rewrites with such a file in the place of the timings."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chosen import by_tier
from logbuilder import bracket, seb, write_logs, write_params, write_timings

import rewritelog
from rewritelog.commands.durations import RewriteOptions
from rewritelog.commands.fits import FitCommand
from rewritelog.errors import ModelError, OutputError, TimingError, UsageError
from rewritelog.evaluation.fit import fit
from rewritelog.rewriting.run import rewrite
from rewritelog.text import json_text
from rewritelog.timings.read import read_model_file
from tracebigsim.writing import format_line


@pytest.fixture
def timings(tmp_path: Path) -> Path:
    lines = [("k", 2e-6 * n + 1e-6 * (n % 2), float(n)) for n in range(1, 30)]
    return write_timings(tmp_path / "timings.txt", *lines)


def bytes_of(folder: Path) -> dict[str, bytes]:
    paths = (path for path in sorted(folder.iterdir()) if path.name != "rewritelog.json")
    return {path.name: path.read_bytes() for path in paths}


@pytest.mark.parametrize(
    "model", by_tier(["auto", "least-squares", "sampled"], ["least-squares"], ["auto", "sampled"])
)
def test_a_rewrite_with_the_file_is_one_with_the_timings(
    model: str, sample_logs: Path, tmp_path: Path
) -> None:
    cells = sample_logs / "cells"
    timings = tmp_path / "timings.txt"
    lines = (cells / "timings.txt").read_text().splitlines(keepends=True)
    timings.write_text("".join(lines[::4]))
    written = tmp_path / "m.json"
    fit(FitCommand((timings,), model, output=written))
    options = RewriteOptions(model=model, timings=(timings,), dilation=0.5)
    first = rewrite(cells, tmp_path / "fitted", options)
    second = rewrite(cells, tmp_path / "read", RewriteOptions(fitted=written, dilation=0.5))
    assert bytes_of(tmp_path / "fitted") == bytes_of(tmp_path / "read")
    assert second.events == first.events
    of_model = {warning for warning in first.warnings if not warning.startswith("timing")}
    assert of_model <= set(second.warnings)
    described = second.to_json()["model"]
    assert described["name"] == str(written)
    assert described["options"]["made_by"] == model
    shown = " ".join(second.details().split())
    assert f"model: {written} made-by {model}," in shown


def test_what_the_file_tells_of_its_making(timings: Path, tmp_path: Path) -> None:
    report = fit(
        FitCommand((timings,), model_options={"loss": "squares"}, output=tmp_path / "m.json")
    )
    document = json.loads((tmp_path / "m.json").read_text())
    assert document["format"] == "rewritelog model"
    assert document["source"]["files"] == ["timings.txt"]
    assert document["source"]["lines"] == 29
    assert document["source"]["sha256"] == report.fitted.source.sha256
    assert document["model"] == "auto"
    assert document["options"]["loss"] == "squares"
    assert read_model_file(tmp_path / "m.json").source.lines == 29
    assert "fitted to 29 timing lines" in report.text()
    assert f"written: {tmp_path / 'm.json'}" in report.text()
    machine = json.loads(json_text(report.to_json()))
    assert machine["timing_lines"] == 29
    assert machine["model"]["fit"]["events"][0]["event"] == "k"


def test_the_digest_is_of_the_samples_and_not_of_the_file(timings: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.txt"
    other.write_text("output\n" + timings.read_text() + "# more\n")
    changed = tmp_path / "changed.txt"
    changed.write_text(timings.read_text().replace("28.0", "28.5"))
    first, same, different = (
        fit(FitCommand((path,), "least-squares")).fitted.source.sha256
        for path in (timings, other, changed)
    )
    assert first == same != different


def test_without_an_output_nothing_is_written(timings: Path, tmp_path: Path) -> None:
    before = set(tmp_path.iterdir())
    assert "not written" in fit(FitCommand((timings,), "least-squares")).text()
    assert set(tmp_path.iterdir()) == before


def test_no_output_goes_over_an_input(timings: Path, tmp_path: Path) -> None:
    text = timings.read_text()
    link = tmp_path / "link"
    link.symlink_to(timings)
    for out in (timings, link):
        with pytest.raises(OutputError, match="would replace an input"):
            fit(FitCommand((timings,), output=out))
    with pytest.raises(OutputError, match="is a folder"):
        fit(FitCommand((timings,), output=tmp_path))
    assert timings.read_text() == text


def test_a_failure_leaves_the_file_as_it_was(timings: Path, tmp_path: Path) -> None:
    out = tmp_path / "m.json"
    out.write_text("before")
    empty = tmp_path / "empty.txt"
    empty.write_text("kernel,size,seconds\nrelax,8,0.25\n")
    with pytest.raises(
        TimingError, match=r"no timing line found; one is like TRACE.* for tables see"
    ):
        fit(FitCommand((empty,), output=out))
    with pytest.raises(OutputError, match="No such file"):
        fit(FitCommand((timings,), "least-squares", output=tmp_path / "none" / "m.json"))
    assert out.read_text() == "before"
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "empty.txt",
        "m.json",
        "timings.txt",
    ]


def test_a_file_that_could_not_be_read_back_is_not_written(
    timings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rewritelog.evaluation.fit.MAX_MODEL_BYTES", 1000)
    with pytest.raises(OutputError, match="exact_match='never'"):
        fit(FitCommand((timings,), "least-squares", output=tmp_path / "m.json"))
    assert not (tmp_path / "m.json").exists()


def test_models_that_are_no_fit_are_refused(timings: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"'constant' is not fitted.*model='constant'"):
        fit(FitCommand((timings,), "constant", output=tmp_path / "m.json"))
    file = tmp_path / "c.txt"
    file.write_text("k 1.0 2.0\n")
    with pytest.raises(UsageError, match=r"'coefficients' is not fitted.*model='coefficients'"):
        fit(FitCommand((timings,), "coefficients", coefficients=file, output=tmp_path / "m.json"))


def test_a_regressor_from_outside_is_refused_by_name(
    timings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parents[1] / "models")
    with pytest.raises(ModelError, match="'regressors:Plane' cannot be written to a model file"):
        fit(FitCommand((timings,), "regressors:Plane", output=tmp_path / "m.json"))
    assert not (tmp_path / "m.json").exists()


def counted(path: Path, **more: Any) -> Path:
    """Write lines whose times follow their counters, not their parameters."""
    path.write_text(
        "".join(
            format_line("k", [1.0], time_s=1e-9 * n, counters=[n, 7], **more)
            for n in range(100, 2000, 100)
        )
    )
    return path


def test_counters_are_read_and_remembered(tmp_path: Path) -> None:
    path = counted(tmp_path / "t.txt")
    fit(FitCommand((path,), "counters", output=tmp_path / "m.json"))
    file = read_model_file(tmp_path / "m.json")
    assert file.columns == "counters"
    assert list(file.fits) == [("k", 2)]
    folder = write_logs(tmp_path / "in", [[seb(1, 2, events=bracket(0.25, 0.75))]])
    (folder / "param.0").write_text(format_line("k", [1.0], seb=0, counters=[500, 7]))
    report = rewrite(folder, None, RewriteOptions(fitted=tmp_path / "m.json"))
    assert report.events[0].new_s == pytest.approx(5e-7)


def test_a_model_file_stands_alone(timings: Path, tmp_path: Path) -> None:
    for options in (
        {"model": "auto"},
        {"timings": (timings,)},
        {"formulas": timings},
        {"clock_hz": 1e9},
        {"coefficients": timings},
        {"model_options": {"loss": "huber"}},
    ):
        with pytest.raises(UsageError, match="fitted cannot be combined"):
            RewriteOptions(fitted=tmp_path / "m.json", **options)
        if "model" not in options:
            with pytest.raises(UsageError, match=r"^a fitted model cannot be combined"):
                RewriteOptions(model=rewritelog.fit(timings), **options)


def test_the_model_that_is_not_named(timings: Path, tmp_path: Path) -> None:
    assert RewriteOptions().model_name == "constant"
    assert RewriteOptions(timings=(timings,)).model_name == "auto"
    assert RewriteOptions(model="sampled", timings=(timings,)).model_name == "sampled"
    folder = write_logs(tmp_path / "in", [[seb(1, 2, events=bracket(0.25, 0.75))]])
    write_params(folder, 0, (0, "k", 4.0))
    fitted = rewrite(folder, None, RewriteOptions(timings=(timings,)))
    assert "model: auto, fitted to" in fitted.details()
    assert "model: constant" in rewrite(folder, None).details()


def test_a_damaged_model_file_stops_a_rewrite(tmp_path: Path) -> None:
    folder = write_logs(tmp_path / "in", [[seb(1, 2)]])
    (tmp_path / "m.json").write_text("{}")
    with pytest.raises(ModelError, match=r"m\.json: \$: is not a model file"):
        rewrite(folder, tmp_path / "out", RewriteOptions(fitted=tmp_path / "m.json"))
    (tmp_path / "m.json").write_bytes(b"a\xff")
    with pytest.raises(ModelError, match=r"m\.json: is not a model file: byte 1 is not UTF-8"):
        rewrite(folder, tmp_path / "out", RewriteOptions(fitted=tmp_path / "m.json"))
    with pytest.raises(FileNotFoundError, match=r"none\.json: does not exist"):
        rewrite(folder, tmp_path / "out", RewriteOptions(fitted=tmp_path / "none.json"))
    assert not (tmp_path / "out").exists()


def noisy(tmp_path: Path) -> Path:
    """Timing lines of four events: a good one, noise, one interrupted call, and two lines."""
    rng = np.random.default_rng(5)
    work = rng.integers(10, 100, 60).astype(float)
    good = 1e-6 * work * np.exp(rng.normal(0, 0.02, 60))
    noise = 1e-6 * np.exp(rng.normal(0, 1.5, 60))
    one_long = good.copy()
    one_long[30] = 0.2
    lines = [
        (event, float(time_s), float(n))
        for event, times in (("good", good), ("noise", noise), ("one", one_long))
        for n, time_s in zip(work, times, strict=True)
    ]
    return write_timings(tmp_path / "noisy.txt", *lines, ("few", 1e-6, 1.0), ("few", 2e-6, 2.0))


def test_a_fit_has_a_line_for_each_event_worst_first(tmp_path: Path) -> None:
    report = fit(FitCommand((noisy(tmp_path),)))
    rows = [line.split() for line in report.text().partition("verdict")[2].splitlines()[1:5]]
    assert [row[0] for row in rows] == ["few", "noise", "one", "good"]
    assert [row[-1] for row in rows] == ["lines", "poor", "call", "good"]
    assert "seconds =" not in report.text()
    assert report.details().count("seconds =") == 4


def test_an_event_that_no_parameter_changes_is_as_good_as_its_predictions(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    times = (1e-3 * np.exp(rng.normal(0, 0.01, 200))).tolist()
    lines = [("flat", time_s, float(n % 17), float(n % 5)) for n, time_s in enumerate(times)]
    for model in ("auto", "least-squares"):
        report = fit(FitCommand((write_timings(tmp_path / "t.txt", *lines),), model=model))
        (row,) = (line for line in report.text().splitlines() if line.startswith("  flat"))
        assert row.endswith("good")
        assert report.warnings == ()


def test_calls_that_vary_are_not_said_to_be_long_ones(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    work = rng.integers(10, 100, 400).astype(float)
    varied = 1e-6 * work * np.exp(0.15 * rng.standard_t(3, 400))
    stalled = 1e-6 * work * np.where(np.arange(400) % 40 == 7, 5.0, 1.0)
    lines = [
        (event, float(time_s), float(n))
        for event, times in (("varied", varied), ("stalled", stalled))
        for n, time_s in zip(work, times, strict=True)
    ]
    warnings = fit(FitCommand((write_timings(tmp_path / "t.txt", *lines),))).warnings
    (of_varied,) = (text for text in warnings if text.startswith("varied"))
    assert "missing parameter" in of_varied
    (of_stalled,) = (text for text in warnings if text.startswith("stalled"))
    assert "2.5 % of the calls took more than twice as long as predicted" in of_stalled


def test_long_calls_whose_repeats_are_as_long_were_not_disturbed(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    sizes = np.repeat(np.arange(1.0, 41.0), 6)
    times = 1e-5 * sizes * np.where(np.isin(sizes, [7, 19, 31]), 3.2, 1) * rng.normal(1, 0.01, 240)
    lines = [("k", t, n) for n, t in zip(sizes.tolist(), times.tolist(), strict=True)]
    (warning,) = fit(FitCommand((write_timings(tmp_path / "t.txt", *lines),))).warnings
    assert "so did their repeats" in warning
    assert "disturbed" not in warning


def test_a_warning_for_each_event_and_cause_says_what_to_do(tmp_path: Path) -> None:
    warnings = fit(FitCommand((noisy(tmp_path),))).warnings
    assert sum("noise" in text for text in warnings) == 1
    (warning,) = (text for text in warnings if text.startswith("one("))
    assert "one call" in warning
    assert "time the event again on an idle machine" in warning
    assert not any(text.startswith("good") for text in warnings)


@pytest.mark.slow
def test_a_trace_of_hundreds_of_events_ends_in_a_screen_and_few_warnings(tmp_path: Path) -> None:
    lines = [(f"kernel{number}", 1e-6 * (number + 1), 64.0) for number in range(200)]
    timed = write_timings(tmp_path / "many.txt", *lines)
    report = fit(FitCommand((timed,)))
    assert len(report.text().splitlines()) < 50
    assert "and 160 more with 64.1 % of the measured time" in report.text()  # 1 to 160 of 1 to 200
    assert len(report.warnings) == 2
    assert report.warnings[0].startswith("200 events, the largest being kernel199(p1): ")
    assert "kernel199" in report.text()
    file = tmp_path / "m.json"
    fit(FitCommand((timed,), output=file))
    verified = rewritelog.verify(file, timed, worst=0)
    assert "and 160 more" in verified.text()
    assert len(verified.text().splitlines()) < 100


def test_a_call_that_was_interrupted_does_not_decide_a_rewrite(tmp_path: Path) -> None:
    logs = write_logs(tmp_path / "in", [[seb(0, 1e-3, events=bracket(0, 50e-6))]])
    write_params(logs, 0, (0, "one", 50))
    report = rewrite(logs, None, RewriteOptions(timings=(noisy(tmp_path),), dilation=1))
    assert report.events[0].new_s == pytest.approx(50e-6, rel=0.05)
    (warning,) = [text for text in report.warnings if text.startswith("one(p1): ")]
    assert "one call took 2479 times as long as predicted" in warning


def test_the_whole_fit_of_an_event_by_its_name(tmp_path: Path) -> None:
    """It came with the warnings of all other events."""
    lines = (noisy(tmp_path),)
    report = FitCommand.of_shell({"timings": lines, "event": "go*"}).run()
    asked = report.text()
    assert "good(p1): " in asked
    assert "seconds =" in asked
    assert "noise" not in asked
    assert report.warnings == ()
    (warning,) = FitCommand.of_shell({"timings": lines, "event": "noise"}).run().warnings
    assert warning.startswith("noise(p1): ")
    with pytest.raises(UsageError, match=r"event='other': .*events: good, noise, one, few"):
        FitCommand.of_shell({"timings": lines, "event": "other"}).run()
