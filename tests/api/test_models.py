"""Models from Python: timings in every form, fits that predict as the command line's do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oracle import SAMPLE_LOGS

import rewritelog
from rewritelog import ModelError, Timings, UsageError

CELLS = SAMPLE_LOGS / "cells"
LINES = CELLS / "timings.txt"


@pytest.fixture(scope="module")
def timings() -> Timings:
    return rewritelog.read_timings(LINES)


@pytest.fixture(scope="module")
def fitted(timings: Timings) -> rewritelog.FittedModel:
    return rewritelog.fit(timings, "least-squares", exact_match="never")


def test_a_fit_gives_back_a_known_function() -> None:
    n = np.arange(1.0, 30)
    fitted = rewritelog.fit({"k": (n[:, None], 2e-6 + 3e-7 * n)}, "least-squares")
    assert fitted.events == ("k",)
    assert fitted.predict("k", [[100]]) == pytest.approx([32e-6], rel=1e-6)
    for form in ([[4.0], [5.0]], np.array([4, 5]), [4, 5], ((4,), (5,))):
        assert fitted.predict("k", form).tolist() == fitted.predict("k", [[4], [5]]).tolist()


def test_one_path_or_several_as_text_or_path(timings: Timings) -> None:
    again = rewritelog.read_timings(str(LINES))
    twice = rewritelog.read_timings([str(LINES), LINES])
    assert len(again) == len(timings) == 600
    assert len(twice) == 1200
    assert timings.events == ("Cell::pairForces", "Cell::bonded")


def test_timings_go_to_a_frame_and_back(timings: Timings) -> None:
    pytest.importorskip("pandas")
    frame = timings.to_pandas()
    assert list(frame.columns) == ["event", "p1", "p2", "seconds"]
    assert len(frame) == 600
    back = Timings.from_pandas(frame.sample(frac=1, random_state=3).sort_index())
    for mine, theirs in zip(timings, back, strict=True):
        assert mine.event == theirs.event
        assert mine.params.tobytes() == theirs.params.tobytes()
        assert mine.seconds.tobytes() == theirs.seconds.tobytes()


def test_columns_of_a_frame_are_taken_by_their_names(fitted: rewritelog.FittedModel) -> None:
    pd = pytest.importorskip("pandas")
    rows = pd.DataFrame({"p2": [11.0, 17.0], "p1": [53.0, 66.0]})
    expected = fitted.predict("Cell::pairForces", [[53, 11], [66, 17]])
    assert fitted.predict("Cell::pairForces", rows).tolist() == expected.tolist()


def test_wrong_tables_and_events_are_refused(fitted: rewritelog.FittedModel) -> None:
    with pytest.raises(UsageError, match="X must have 2 columns, not 3"):
        fitted.predict("Cell::pairForces", [[1, 2, 3]])
    with pytest.raises(UsageError, match=r"no fit for the event 'Cell::pair'; .*'Cell::bonded'"):
        fitted.predict("Cell::pair", [[1, 2]])
    with pytest.raises(UsageError, match="counters"):
        rewritelog.fit(rewritelog.read_timings(LINES), "counters")


def test_a_saved_model_predicts_to_the_bit(fitted: rewritelog.FittedModel, tmp_path: Path) -> None:
    fitted.save(str(tmp_path / "m.json"))
    back = rewritelog.load_model(str(tmp_path / "m.json"))
    X = np.array([[53, 11], [66, 17], [1e6, 3]])
    event = "Cell::pairForces"
    assert back.predict(event, X).tobytes() == fitted.predict(event, X).tobytes()
    for mine, theirs in zip(back.interval(event, X), fitted.interval(event, X), strict=True):
        assert mine.tobytes() == theirs.tobytes()
    assert back.to_json() == fitted.to_json() == json.loads((tmp_path / "m.json").read_text())
    assert back.summary() == fitted.summary()


def test_intervals_hold_nine_in_ten(timings: Timings, fitted: rewritelog.FittedModel) -> None:
    for samples in timings:
        low, high = fitted.interval(samples.event, samples.params)
        inside = (samples.seconds >= low) & (samples.seconds <= high)
        assert 0.85 < inside.mean() < 0.98


def test_regressors_from_outside_predict_but_have_no_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytest.importorskip("sklearn")
    n = np.arange(1.0, 30)
    samples = {"k": (n[:, None], 3e-7 * n)}
    fitted = rewritelog.fit(samples, "sklearn.linear_model:LinearRegression")
    assert fitted.events == ("k",)
    assert fitted.predict("k", [[4.0]]) == pytest.approx([12e-7])
    with pytest.raises(ModelError, match="intervals"):
        fitted.interval("k", [[4.0]])
    with pytest.raises(ModelError, match="cannot be written"):
        fitted.save(tmp_path / "m.json")
    assert "FittedModel" in repr(fitted)
    assert rewritelog.verify(fitted, samples).overall.score.lines == 29


def test_verify_says_the_same_of_files_and_of_timings(
    timings: Timings, fitted: rewritelog.FittedModel
) -> None:
    of_files = rewritelog.verify(fitted, LINES)
    of_timings = rewritelog.verify(fitted, timings)
    assert of_files.overall == of_timings.overall
    assert dict(of_files.events) == dict(of_timings.events)
    errors = [line.relative_error for line in of_files.worst]
    assert errors == [line.relative_error for line in of_timings.worst]


def test_compare_says_the_same_of_files_and_of_timings(timings: Timings) -> None:
    given: Any = {"models": "least-squares", "folds": 3}
    mine, theirs = rewritelog.compare(LINES, **given), rewritelog.compare(timings, **given)
    assert mine.tried[0].overall == theirs.tried[0].overall


def test_predictions_of_records_are_those_of_the_model(fitted: rewritelog.FittedModel) -> None:
    rows = list(rewritelog.predict(fitted, CELLS / "param.0"))
    assert rows
    for row in rows:
        assert row["predicted_s"] == fitted.predict(row["event"], [row["params"]])[0]


def test_reprs_are_short_and_notebooks_get_tables(
    timings: Timings, fitted: rewritelog.FittedModel
) -> None:
    many = {f"event {k}<b>" + "x" * 1000: ([[1.0]], [1.0]) for k in range(300)}
    huge = Timings.from_arrays(many)
    report = rewritelog.verify(fitted, timings)
    for shown in (timings, fitted, huge, rewritelog.fit(huge, "least-squares"), report):
        assert len(repr(shown)) < 160
        assert "\n" not in repr(shown)
        assert "<b>" not in shown._repr_html_()
    assert timings._repr_html_().count("<tr>") == 1 + 2
    assert "Cell::pairForces" in fitted._repr_html_()
    assert "and 200 more" in huge._repr_html_()
