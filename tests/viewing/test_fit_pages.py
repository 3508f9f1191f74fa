"""Pages of fits: what they hold is what was measured and fitted; they are found out of early."""

from __future__ import annotations

import base64
import re
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import pytest
from commands import rewritelog as run
from logbuilder import write_timings
from pages import data_of, points_of

import rewritelog
from rewritelog.models.base import EventTimings, NoOptions
from rewritelog.models.constant import Constant
from rewritelog.models.fitted import Fitted
from rewritelog.models.fitting.single_terms import SingleTermFunctions
from rewritelog.viewing.events import EventView, events_json, shown_counts, views_of
from rewritelog.viewing.fit_pages import _graphs, quality_lines
from rewritelog.viewing.page import json_of

pytest.importorskip("bokeh", reason="needs the extra [view]")

NAME = "Cell::<b>pair</b></script>&"
LINES = [(NAME, 1e-6 * (3 + n), float(n)) for n in range(1, 31)]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    outlier = (NAME, 9e-4, 12.0)
    timings = write_timings(folder / "timings.txt", *LINES, outlier, ("flat", 1e-6), ("flat", 2e-6))
    done = run("fit", timings, "--html", folder / "page.html")
    assert done.returncode == 0, done.stderr
    return folder / "page.html"


def test_a_page_holds_the_lines_and_what_is_predicted(page: Path) -> None:
    events = {event["event"]: event for event in data_of(page)["events"]}
    event = events[NAME]
    points = points_of(event)
    assert event["rows"] == list(range(31))
    assert points["measured"][:30] == pytest.approx([time for _, time, _ in LINES])
    assert points["predicted"][:30] == pytest.approx([time for _, time, _ in LINES], rel=0.05)
    assert points["outlier"].tolist() == [0] * 30 + [1]
    assert (points["low"] <= points["predicted"]).all()
    assert (points["predicted"] <= points["high"]).all()
    ((where, params, measured, predicted, ratio),) = event["outliers"]
    assert (where.rpartition("/")[2], params, measured) == ("timings.txt:31", "12", 9e-4)
    assert (predicted, ratio) == pytest.approx((15e-6, 60), rel=0.05)
    signs = {term[1]: re.findall(" ([+-]) ", term[4])[0] for term in event["singleTerms"]}
    assert (signs["p1"], signs["1/max(p1, 0.5)"]) == ("+", "-"), "the times rise with p1"
    assert {tuple(term[:2]) for term in event["singleTerms"]} >= {(1, "p1"), (1, "p1^2")}
    assert all(term[4].endswith(f"*{term[1]}") for term in event["singleTerms"])
    error = re.search(r"mean error ([\d.]+) %", " ".join(event["summary"]))
    row = re.search(r'<tr data-e="\d">\n<td data-v="Cell.*?</tr>', page.read_text(), re.DOTALL)
    assert error is not None
    assert row is not None
    assert f"{float(error[1]):.1f} %" in row[0]
    assert (events["flat"]["singleTerms"], events["flat"]["curves"]) == ([], [])


def test_exact_matches_do_not_hide_what_a_fit_leaves_unexplained(tmp_path: Path) -> None:
    """Residuals were 0, and no line was an outlier, where the fit was a constant."""
    lines = [("k", 1e-6 * n, float(n)) for n in range(1, 31) for _ in range(3)]
    (tmp_path / "f.toml").write_text('[[formula]]\nevent = "k"\nterms = ["1"]\n')
    words = ("--formulas", tmp_path / "f.toml", "--exact-match", "always")
    done = run(
        "fit", write_timings(tmp_path / "t.txt", *lines), *words, "--html", tmp_path / "p.html"
    )
    assert done.returncode == 0, done.stderr
    (event,) = data_of(tmp_path / "p.html")["events"]
    points = points_of(event)
    assert np.ptp(points["predicted"]) == 0
    assert points["outlier"].sum() > 20


def test_curves_have_the_time_of_each_code() -> None:
    """Of seven codes the curve had that of the first and the last."""
    rng = np.random.default_rng(5)
    seconds = np.array([3e-5, 4e-4, 1e-4, 9e-4, 2e-5, 6e-4, 5e-5])
    code = rng.integers(0, 7, 280)
    times = seconds[code] * np.exp(0.02 * rng.normal(size=280))
    fitted = rewritelog.fit({"phase": (code[:, None].astype(float), times)})
    assert fitted.timings is not None
    (event,) = events_json(views_of(fitted.timings, fitted))
    (curves,) = event["curves"]
    assert len(curves) == event["steps"]
    seconds_at = dict(curves[:, :2].tolist())
    assert [seconds_at.get(float(k)) for k in range(7)] == pytest.approx(seconds, rel=0.05)


def test_curves_are_of_a_code_that_the_lines_have(tmp_path: Path) -> None:
    """With two codes as often as each other, the curve was that of their mean, a third one."""
    size, code = np.tile(np.arange(1.0, 51.0), 2), np.repeat([3.0, 5.0], 50)
    formulas = tmp_path / "f.toml"
    formulas.write_text('[[formula]]\nevent = "k"\nterms = ["p1"]\ncategory = "p2"\n')
    lines = {"k": (np.column_stack([size, code]), 1e-6 * code * size)}
    fitted = rewritelog.fit(lines, formulas=formulas)
    assert fitted.timings is not None
    (event,) = events_json(views_of(fitted.timings, fitted))
    over_size, _ = event["curves"]
    assert over_size[:, 1] == pytest.approx(3e-6 * over_size[:, 0])


def test_a_page_says_of_which_class_the_r2_is(page: Path, tmp_path: Path) -> None:
    """Report and page have one class in their table, and only the report said so."""
    lines = [("k", 1e-6 * code * n, float(n), code) for n in range(1, 21) for code in (3.0, 5.0)]
    timings, formulas, own = (tmp_path / name for name in ("t.txt", "f.toml", "p.html"))
    formulas.write_text('[[formula]]\nevent = "k"\nterms = ["p1"]\ncategory = "p2"\n')
    done = run("fit", write_timings(timings, *lines), "--formulas", formulas, "--html", own)
    assert done.returncode == 0, done.stderr
    note = "of an event with classes it is that of the class from which most errors come"
    assert [note in text.lower() for text in (own.read_text(), page.read_text())] == [True, False]


def test_names_from_files_are_no_html(page: Path) -> None:
    text = page.read_text()
    assert "<b>pair" not in text
    assert "Cell::&lt;b&gt;pair" in text


def test_a_page_asks_no_network_for_anything(page: Path) -> None:
    text = page.read_text()
    assert "default-src 'none'" in text
    markup = re.sub("<script.*?</script>", "", text, flags=re.DOTALL)
    assert "://" not in markup
    assert "<script src" not in text


def test_sentences_tell_of_the_median_event_and_of_those_far_off() -> None:
    views: Any = [
        SimpleNamespace(quality=(None, error), label=label)
        for label, error in (("a", 0.02), ("b", 0.04), ("c", 0.9), ("d", None))
    ]
    assert quality_lines(views, views) == [
        "The median event has a mean error of 4.00 %.",
        "The mean error is over 20 % for 1 of 4 events: c.",
        "1 event without a known error.",
    ]


def test_each_graph_says_what_is_on_its_axes() -> None:
    graphs = _graphs(editable=False)
    labels = {
        name: (plot.xaxis[0].axis_label, plot.yaxis[0].axis_label, plot.xaxis[0].tags)
        for name, plot in graphs.items()
    }
    assert labels["predicted"] == ("predicted time", "measured time", ["seconds"])
    assert labels["residual"][1] == labels["order"][1] == "(measured − predicted) / predicted, %"
    marks = graphs["predicted"].x_range.renderers
    assert [(mark.glyph.x, mark.glyph.y) for mark in marks] == [("predicted", "measured")] * 2


def test_the_verdict_comes_first(page: Path) -> None:
    body = page.read_text().partition("<body>")[2]
    assert 0 < body.index("fitted to 33 timing lines") < body.index('id="overview"')


def test_verify_and_compare_make_pages(tmp_path: Path) -> None:
    timings, model = write_timings(tmp_path / "t.txt", *LINES), tmp_path / "m.json"
    assert run("fit", timings, "-o", model, "--model=least-squares", "-q").returncode == 0
    slower = write_timings(tmp_path / "s.txt", *((e, 2 * t, n) for e, t, n in LINES))
    done = run("verify", model, slower, "--html", tmp_path / "v.html")
    assert done.returncode == 0, done.stderr
    assert "mean relative error of 50.00 %" in (tmp_path / "v.html").read_text()
    html = rewritelog.page(rewritelog.verify(model, slower))
    assert "mean relative error of 50.00 %; the sum is off by -50.00 %" in html
    assert "<p>0.0 % of the times lie within their 90 % interval.</p>" in html
    (event,) = data_of(tmp_path / "v.html")["events"]
    points = points_of(event)
    assert points["measured"] == pytest.approx(2 * points["predicted"], rel=1e-5)
    done = run("compare", timings, "--models=least-squares", "--html", tmp_path / "c.html")
    assert done.returncode == 0, done.stderr
    assert "least-squares is best" in (tmp_path / "c.html").read_text()
    repeated = rewritelog.compare(timings, models=["least-squares"], fraction=0.5, repeats=2)
    for report, ending in (
        (repeated, "of the first repeat"),
        (replace(repeated, request=replace(repeated.request, repeats=1)), "of held-out lines"),
    ):
        assert f"{ending}</h2>" in rewritelog.page(report)


MEAN = """
class Mean:
    def fit(self, params, seconds):
        self.mean_s = seconds.mean()
        return self

    def predict(self, params):
        return [self.mean_s] * len(params)
"""


def test_a_page_says_of_which_lines_the_r2_of_a_model_is(page: Path, tmp_path: Path) -> None:
    """The R² of regressors, which nothing validates, was called that of held-out lines."""
    (tmp_path / "mean.py").write_text(MEAN)
    timings, other = write_timings(tmp_path / "t.txt", *LINES), tmp_path / "p.html"
    done = run("fit", timings, "--model", f"{tmp_path / 'mean.py'}:Mean", "--html", other)
    assert done.returncode == 0, done.stderr
    assert "The column of the fit shows its R² on held-out lines." in page.read_text()
    assert "of the fit shows its R² on the lines that it was fitted to." in other.read_text()


def test_the_error_of_a_fit_to_some_lines_is_that_of_the_others(tmp_path: Path) -> None:
    """The page had that of the few lines drawn, and said that the model was fitted to all."""
    lines = [("k", 1e-6 * n * (1 + n % 7 / 10), float(n)) for n in range(1, 201)]
    timings, page = write_timings(tmp_path / "t.txt", *lines), tmp_path / "p.html"
    done = run("fit", timings, "--model", "sampled", "--html", page)
    assert done.returncode == 0, done.stderr
    (error,) = re.findall(r"k +8 of 200 +1 +([\d.]+ %)", done.stdout)
    text = page.read_text()
    assert "<p>Model sampled, fitted to 8 of 200 timing lines.</p>" in text
    (row,) = re.findall(r'<tr data-e="0">.*?</tr>', text, re.DOTALL)
    assert f">{error}<" in row


@pytest.mark.slow
def test_the_page_of_a_comparison_begins_with_what_is_hard_for_all(tmp_path: Path) -> None:
    """A line fits easy without an error, and hard hardly; the coefficients are 1 µs for all."""
    sizes = range(1, 21)
    lines = [("easy", 1e-6 * n, float(n)) for n in sizes]
    lines += [("hard", 1e-6 * (2 + 7 * n % 13), float(n)) for n in sizes]
    lines += [("near", 1.25e-6, float(n)) for n in sizes]
    (tmp_path / "c.txt").write_text("".join(f"{e} 0.0 1e-6\n" for e in ("easy", "hard", "near")))
    report = rewritelog.compare(
        write_timings(tmp_path / "t.txt", *lines),
        models=("coefficients", "least-squares"),
        coefficients=tmp_path / "c.txt",
    )
    html = rewritelog.page(report)
    (tmp_path / "c.html").write_text(html)
    errors = [trial.overall.mean_relative_error or 0 for trial in report.tried]
    best = f"{100 * errors[1]:.2f} %, coefficients&#39;s {100 * errors[0]:.2f} %."
    assert f"least-squares is best: its mean relative error is {best}" in html
    rows = re.findall(r'<tr data-e="\d">\n<td data-v="(\w+)">(.*?)</tr>', html, re.DOTALL)
    grades = {event: re.findall(r'class="(\w+)" data-v', row) for event, row in rows}
    assert grades == {"hard": ["poor", "poor"], "easy": ["poor", "good"], "near": ["fair", "good"]}
    hard, *others = data_of(tmp_path / "c.html", "swap-data")["options"]
    assert hard["label"] == rows[0][0] == "hard"
    (easy,) = (option for option in others if option["label"] == "easy")
    drawn = {
        name: np.frombuffer(base64.b64decode(column), "<f4")
        for name, column in easy["sources"]["model-0"].items()
    }
    assert drawn["x"] == pytest.approx(1e-6), "predicted"
    assert sorted(drawn["y"]) == pytest.approx([1e-6 * n for n in sizes]), "measured"
    line = np.frombuffer(base64.b64decode(easy["sources"]["same"]["x"]), "<f4")
    assert line == pytest.approx([1e-6, 2e-5])


def test_a_page_that_cannot_be_is_found_out_before_the_work(tmp_path: Path) -> None:
    timings = write_timings(tmp_path / "t.txt", *LINES)
    done = run("fit", timings, "-o", tmp_path / "m.json", "--html", tmp_path / "no/page.html")
    assert (done.returncode, (tmp_path / "m.json").exists()) == (1, False)
    done = run("fit", timings, "-o", tmp_path / "m.json", "--html", timings)
    assert (done.returncode, (tmp_path / "m.json").exists()) == (1, False)
    with mock.patch.dict(sys.modules, {"bokeh": None}):
        done = run("fit", timings, "-o", tmp_path / "m.json", "--html", tmp_path / "p.html")
    assert (done.returncode, (tmp_path / "m.json").exists()) == (2, False)
    assert "pip install 'rewritelog[view]'" in done.stderr


BROKEN = """
from rewritelog.models.base import Model, ModelFit, NoOptions

class Fit(ModelFit):
    def predict(self, event, params):
        raise ArithmeticError("no idea")

    def summary(self):
        return []

    def describe(self):
        return {}

class Broken(Model):
    Options = NoOptions

    def fit(self, timings):
        return Fit()
"""


def test_a_model_that_fails_on_the_page_is_named(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text(BROKEN)
    timings = write_timings(tmp_path / "t.txt", *LINES)
    model = f"{tmp_path / 'broken.py'}:Broken"
    done = run("fit", timings, "--model", model, "--html", tmp_path / "p.html")
    assert done.returncode == 1
    assert "ArithmeticError: no idea" in done.stderr
    assert "broken.py:Broken', event 'Cell::<b>" in done.stderr


def bare_view(lines: int, parameters: int = 3) -> EventView:
    """An event with lines and no functions of one term."""
    timings = EventTimings("k", np.ones((lines, parameters)), np.ones(lines))
    fitted = Fitted.of(Constant(NoOptions()), "constant", ())
    return EventView(timings, fitted, SingleTermFunctions((), {}), str)


def test_points_are_limited_by_event_and_by_page() -> None:
    large, small = bare_view(9_000), bare_view(10)
    assert shown_counts([large, small]) == [5_000, 10]
    counts = shown_counts([large] * 40 + [small])
    assert sum(counts) <= 60_000
    assert min(counts[:-1]) == max(counts)
    assert sum(shown_counts([bare_view(9_000, 30)] * 40)) * 36 <= 600_000
    first, again = (json_of(events_json([large])) for _ in range(2))
    assert first == again
    assert "5,000 of 9,000 lines are drawn" in first


def test_a_page_of_many_events_has_some_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = {"first": 1.0, "second": 4.0, "third": 3.0}
    timings = write_timings(tmp_path / "t.txt", *((name, time_s) for name, time_s in times.items()))
    note = "Of 3 events, the 2 whose lines took the most time are shown."
    for most in (3, 2):
        monkeypatch.setattr("rewritelog.viewing.events.MOST_EVENTS", most)
        done = run("fit", timings, "--html", tmp_path / f"{most}.html")
        assert done.returncode == 0, done.stderr
        shown = {event["event"] for event in data_of(tmp_path / f"{most}.html")["events"]}
        assert shown == ({"second", "third"} if most == 2 else times.keys())
        assert (note in (tmp_path / f"{most}.html").read_text()) == (most == 2)


def test_exploring_too_many_events_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    timings = write_timings(tmp_path / "t.txt", ("first", 1.0), ("second", 2.0))
    monkeypatch.setattr("rewritelog.viewing.explore.MOST_EVENTS", 1)
    done = run("explore", timings, "--no-browser")
    assert done.returncode == 2
    assert "the timings hold 2 events; explore shows at most 1" in done.stderr


def test_names_that_are_not_utf8_are_shown(sample_logs: Path, tmp_path: Path) -> None:
    timings, page, model = (
        tmp_path / name for name in ("odd \udcff.txt", "page.html", "model.json")
    )
    shutil.copy(sample_logs / "cells" / "timings.txt", timings)
    done = run("fit", timings, "--html", page, "-o", model)
    assert (done.returncode, done.stderr) == (0, "")
    assert r"Fit of odd \udcff.txt" in page.read_text(encoding="utf-8")
    assert r"odd \\udcff.txt" in model.read_text(encoding="utf-8")


def test_a_page_needs_the_ending_of_one(sample_logs: Path, tmp_path: Path) -> None:
    timings, model = sample_logs / "cells" / "timings.txt", tmp_path / "model.json"
    model.write_text('{"format": "rewritelog model"}')
    done = run("fit", timings, "--html", model)
    assert done.returncode == 2
    assert "a page needs the ending .html" in done.stderr
    assert model.read_text() == '{"format": "rewritelog model"}'


def test_terms_in_the_overview_have_the_names_of_parameters(tmp_path: Path) -> None:
    timings = {"k": ([[1], [2], [4], [8]], [1e-6, 2e-6, 4e-6, 8e-6])}
    names = tmp_path / "names.toml"
    names.write_text('k = ["cells"]\n')
    page = rewritelog.page(rewritelog.fit(timings, param_names=names))
    assert 'title="cells: cells"' in page
