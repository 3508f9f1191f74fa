"""Models from Python: timings in every form, fits that predict as the command line's do."""

from __future__ import annotations

import html
import io
import json
import os
import shutil
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from logbuilder import bracket, seb, write_logs, write_params, write_timings
from oracle import SAMPLE_LOGS

import rewritelog
from rewritelog import ModelError, Timings, UsageError, UsageTypeError
from rewritelog.models.least_squares import LeastSquares

CELLS = SAMPLE_LOGS / "cells"
LINES = CELLS / "timings.txt"
OUTSIDE = Path(__file__).parents[1] / "models"


@pytest.fixture(scope="module")
def timings() -> Timings:
    return rewritelog.read_timings(LINES)


@pytest.fixture(scope="module")
def fitted(timings: Timings) -> rewritelog.FittedModel:
    return rewritelog.fit(timings, "least-squares", model_options={"exact_match": "never"})


def test_a_fit_gives_back_a_known_function() -> None:
    n = np.arange(1.0, 30)
    fitted = rewritelog.fit({"k": (n[:, None], 2e-6 + 3e-7 * n)}, "least-squares")
    assert fitted.events == ("k",)
    assert fitted.predict("k", [[100]]) == pytest.approx([32e-6], rel=1e-6)
    for form in ([[4.0], [5.0]], np.array([[4], [5]]), ((4,), (5,))):
        assert fitted.predict("k", form).tolist() == fitted.predict("k", [[4], [5]]).tolist()


def test_one_path_or_several_as_text_or_path(timings: Timings) -> None:
    again = rewritelog.read_timings(str(LINES))
    twice = rewritelog.read_timings([str(LINES), LINES])
    assert len(again) == len(timings) == 600
    assert len(twice) == 1200
    assert timings.events == ("Cell::pairForces", "Cell::bonded")


@pytest.mark.parametrize(("entry", "row"), [(0, 9999), (7, 0), (0, 1.0), ("Cell::bonded", 0)])
def test_the_location_of_a_sample_that_there_is_not(entry: Any, row: Any, timings: Timings) -> None:
    """It was a bare `IndexError` or `TypeError`; without files, any number had a location."""
    alone = Timings.from_arrays({"k": ([[1.0]], [1.0])})
    for samples in (timings, alone):
        with pytest.raises(UsageError, match=f"entry {entry!r} of <Timings: .* no sample {row!r}"):
            samples.where(entry, row)
    assert alone.where(0, 0) == "sample 1 of k"
    assert timings.where(-1, -1) == f"{LINES}:600"


def test_sample_takes_timings_in_every_form_that_fit_takes(timings: Timings) -> None:
    """A column of a DataFrame was a file that does not exist."""
    pytest.importorskip("pandas")
    frame = timings.to_frame()
    of_files, *others = (
        rewritelog.sample(CELLS, timings=form, fraction=0.2).text()
        for form in (LINES, timings, frame)
    )
    assert others == [of_files, of_files]
    frame.loc[3, "p1"] = np.nan
    (note, *_) = rewritelog.sample(CELLS, timings=frame, fraction=0.2).warnings
    assert note == "1 sample with numbers that are not finite left out"


def test_a_fit_names_the_files_of_timings_that_were_read_before(timings: Timings) -> None:
    assert rewritelog.fit(timings).source.files == ("timings.txt",)


def test_timings_go_to_a_frame_and_back(timings: Timings) -> None:
    pytest.importorskip("pandas")
    frame = timings.to_frame()
    assert list(frame.columns) == ["event", "p1", "p2", "seconds"]
    assert len(frame) == 600
    with pytest.raises(UsageError, match="the DataFrame has no column 'seconds'"):
        rewritelog.fit(frame[["event", "p1", "p2"]])
    back = Timings.from_frame(frame.sample(frac=1, random_state=3).sort_index())
    for mine, theirs in zip(timings, back, strict=True):
        assert mine.event == theirs.event
        assert mine.params.tobytes() == theirs.params.tobytes()
        assert mine.seconds.tobytes() == theirs.seconds.tobytes()
    named = Timings.from_frame(frame[["event", "p1", "seconds"]].rename(columns={"p1": "n"}))
    assert list(named.to_frame().columns) == ["event", "n", "seconds"]
    assert list(Timings(()).to_frame().columns) == ["event", "seconds"]


def test_a_frame_of_timings_keeps_the_names_of_parameters_and_may_be_empty() -> None:
    pd = pytest.importorskip("pandas")
    columns = {"event": ["a", "a", "b"], "n": [1, 2, np.nan], "m": [3, 4, 5], "seconds": [1, 1, 2]}
    frame = pd.DataFrame(columns)
    timings = Timings.from_frame(frame)
    pd.testing.assert_frame_equal(timings.to_frame(), frame, check_dtype=False)
    assert list(Timings(()).to_frame().columns) == ["event", "seconds"]


def test_a_missing_truth_in_a_frame_is_no_number() -> None:
    """Of integers it was NaN already."""
    pd = pytest.importorskip("pandas")
    for kind in ("boolean", "Int64"):
        frame = pd.DataFrame(
            {"event": "k", "n": pd.array([1, None], dtype=kind), "seconds": [1, 2]}
        )
        assert np.isnan(Timings.from_frame(frame)["k"].params).tolist() == [[False], [True]]


def test_columns_of_a_frame_are_taken_by_their_names(fitted: rewritelog.FittedModel) -> None:
    pd = pytest.importorskip("pandas")
    rows = pd.DataFrame({"p2": [11.0, 17.0], "p1": [53.0, 66.0]})
    expected = fitted.predict("Cell::pairForces", [[53, 11], [66, 17]])
    assert fitted.predict("Cell::pairForces", rows).tolist() == expected.tolist()
    columns: dict[str, Any] = {"p2": [11, 17], "p1": np.array([53, 66]), "seconds": [1, 2]}
    assert fitted.predict("Cell::pairForces", columns).tolist() == expected.tolist()
    with pytest.raises(UsageError, match="X must have the columns p1, p2"):  # p2 was p1
        fitted.predict("Cell::pairForces", rows.rename(columns={"p1": "atoms"}))


def test_a_fit_of_named_columns_takes_them_by_name_in_any_order() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"event": "k", "n": [1, 2, 4, 8] * 3, "m": [1] * 4 + [3] * 4 + [9] * 4})
    frame["seconds"] = 2e-6 * frame.n
    fitted = rewritelog.fit(frame)
    expected = fitted.predict("k", [[4, 3], [8, 1]])
    other = pd.DataFrame({"m": [3, 1], "n": [4, 8]})
    assert fitted.predict("k", other).tolist() == expected.tolist()
    assert fitted.predict("k", {"n": [4, 8], "m": 3}).tolist() == expected.tolist()
    assert fitted.predict("k", frame).shape == (12,)
    of_records = pd.DataFrame({"p2": [3, 1], "p1": [4, 8]})  # as to_frame names them
    assert fitted.predict("k", of_records).tolist() == expected.tolist()
    with pytest.raises(UsageError, match="the columns of X have 2, 3 values"):
        fitted.predict("k", {"n": [4, 8], "m": [3, 1, 2]})
    wrongs: list[Any] = [other.rename(columns={"m": "threads"}), {"n": 4}]
    for wrong in wrongs:
        with pytest.raises(UsageError, match="X must have the columns n, m, the parameters of 'k'"):
            fitted.predict("k", wrong)


def test_an_events_own_names_go_before_the_p1_of_another_event() -> None:
    """Predictions of the rows of `to_frame` were NaN, since its column p1 was taken for n."""
    pd = pytest.importorskip("pandas")
    n = np.array([1.0, 2, 4, 8])
    named = {"k": (pd.DataFrame({"n": n}), 2e-6 * n), "other": (n[:, None], 1e-6 * n)}
    timings = Timings.from_arrays(named)
    fitted, frame = rewritelog.fit(timings), timings.to_frame()
    assert list(frame.columns) == ["event", "n", "p1", "seconds"]
    for event in fitted.events:
        rows = frame[frame["event"] == event]
        assert fitted.predict(event, rows) == pytest.approx(rows["seconds"])


def test_columns_in_another_order_than_their_names_in_a_file_are_refused(tmp_path: Path) -> None:
    """They were taken as they came, m for n, and predictions by name were wrong without a word."""
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"event": "k", "m": [1] * 4 + [3] * 4 + [9] * 4, "n": [1, 2, 4, 8] * 3})
    frame["seconds"] = 2e-6 * frame.n
    formulas, names = tmp_path / "f.toml", tmp_path / "n.toml"
    logs = write_logs(tmp_path / "logs", [[seb(0, 1, events=bracket(0.2, 0.8))]])
    write_params(logs, 0, (0, "k", 4, 3))
    calls: list[Callable[[Any], object]] = [
        lambda timings: rewritelog.fit(timings, formulas=formulas),
        lambda timings: rewritelog.fit(timings, param_names=names),
        lambda timings: rewritelog.compare(timings, "auto", formulas=formulas, folds=2),
        lambda timings: rewritelog.rewrite(CELLS, timings=timings, formulas=formulas),
        lambda timings: rewritelog.sample(logs, timings=timings, formulas=formulas),
        lambda timings: rewritelog.sample(logs, timings=timings, param_names=names),
    ]
    for second in ("m", "other", "_"):  # they passed if only one was the name of a column
        given = f'["n", "{second}"]'
        formulas.write_text(f'[[formula]]\nevent = "k"\nparams = {given}\nterms = ["n"]\n')
        names.write_text(f"k = {given}\n")
        for call in calls:
            with pytest.raises(UsageError, match=f"parameters n, {second}, in this .* have m, n:"):
                call(frame)
            call(frame[["event", "n", "m", "seconds"]])
    names.write_text('k = ["size", "_"]\n')
    assert rewritelog.fit(frame, param_names=names).names_of("k", 2) == ("size", "_")


def test_a_verification_takes_columns_by_name_also_if_a_file_names_only_some(
    tmp_path: Path,
) -> None:
    """Those in another order than at the fit were taken as they came, with errors of 96 %."""
    pd = pytest.importorskip("pandas")
    sizes = {"n": [1, 2, 4, 8] * 3, "m": [1] * 4 + [3] * 4 + [9] * 4}
    frame = pd.concat([pd.DataFrame({"event": event, **sizes}) for event in ("k", "other")])
    frame["seconds"] = 2e-6 * frame.n
    swapped = frame[["event", "m", "n", "seconds"]]
    names = tmp_path / "names.toml"
    names.write_text('k = ["n", "_"]\n')
    fitted = rewritelog.fit(frame, param_names=names)
    assert fitted.names_of("other", 2) == ("n", "m")
    assert rewritelog.verify(fitted, frame).overall.r2 == pytest.approx(1.0)
    with pytest.raises(UsageError, match=r"parameters n, _, in this order, .* have m, n"):
        rewritelog.verify(fitted, swapped)
    others = swapped[swapped["event"] == "other"]
    assert rewritelog.verify(fitted, others).overall.r2 == pytest.approx(1.0)


def test_columns_of_one_events_frame_keep_their_names() -> None:
    """They were taken as they came later on, n for m, and P for D of a study."""
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame({"n": [1, 2, 4, 8] * 3, "m": [1] * 4 + [3] * 4 + [9] * 4})
    fitted = rewritelog.fit({"k": (X, 2e-6 * X.n)})
    assert fitted.formula("k") == "2e-06*n"
    assert fitted.predict("k", X[["m", "n"]]) == pytest.approx(2e-6 * X.n)
    swapped = rewritelog.verify(fitted, {"k": (X[["m", "n"]], 2e-6 * X.n)})
    assert swapped.overall.mean_relative_error == pytest.approx(0, abs=1e-6)
    runs = pd.DataFrame({"D": [1] * 4 + [3] * 4 + [9] * 4, "P": [16, 32, 64, 128] * 3})
    study = rewritelog.fit({"lost::idle": (runs, 0.01 * runs.P)})
    assert rewritelog.predict_run(study, {"P": 64, "D": 3}).predicted_s == pytest.approx(0.01)
    for names in (["my n", "m"], [0, 1], ["n", "n"], ["p1", "p2"]):
        other = rewritelog.fit({"k": (X.set_axis(names, axis=1), 2e-6 * X.n)})
        assert other.formula("k") == "2e-06*p1"


@pytest.mark.parametrize(
    "model", ["regressors.py:Plane", "outside_plugin/power_law_model.py:PowerLaw"]
)
def test_a_fit_of_an_outside_model_takes_named_columns_in_any_order(model: str) -> None:
    """They were taken as they came, n for m, and the predictions were wrong without a word."""
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"event": "k", "n": [1, 2, 4, 8] * 3, "m": [1] * 4 + [3] * 4 + [9] * 4})
    frame["seconds"] = 2e-6 * frame.n + 1e-6 * frame.m
    fitted = rewritelog.fit(frame, f"{OUTSIDE}/{model}")
    expected = fitted.predict("k", [[4, 3], [8, 1]])
    other = pd.DataFrame({"m": [3, 1], "n": [4, 8]})
    assert fitted.predict("k", other).tolist() == expected.tolist()
    assert fitted.predict("k", {"m": [3, 1], "n": [4, 8]}).tolist() == expected.tolist()
    with pytest.raises(UsageError, match="X must have the columns n, m, the parameters of 'k'"):
        fitted.predict("k", {"n": 4})
    swapped = frame[["m", "n", "event", "seconds"]]
    reports = [rewritelog.verify(fitted, table) for table in (frame, swapped)]
    assert reports[0].overall == reports[1].overall


def test_a_data_frame_of_another_library_is_taken() -> None:
    """One of polars ended with an AttributeError: its columns have no `tolist`."""

    class Frame:
        columns = ("event", "n", "seconds")

        def __getitem__(self, name: str) -> tuple[object, ...]:
            return {"event": ("k", "k", "k"), "n": (1, 2, 4), "seconds": (2e-6, 4e-6, 8e-6)}[name]

        def __len__(self) -> int:
            return 3

    frame: Any = Frame()
    fitted = rewritelog.fit(frame)
    assert fitted.formula("k") == "2e-06*n"
    assert fitted.predict("k", frame).tolist() == pytest.approx([2e-6, 4e-6, 8e-6])


def test_a_table_that_is_no_data_frame_is_named(fitted: rewritelog.FittedModel) -> None:
    """They were a bare `TypeError`: the columns of one are its values, the other has none yet."""

    class Lazy:
        columns = ("event", "p1", "p2", "seconds")

        def __getitem__(self, name: str) -> Any:
            raise TypeError("not subscriptable")

    class Values(Lazy):
        columns = ([1.0], [2.0])  # type: ignore[assignment]

        def __len__(self) -> int:
            return 1

    tables: tuple[Any, ...] = (Lazy(), Values())
    for table in tables:
        with pytest.raises(UsageTypeError, match=f"timings cannot be a {type(table).__name__}:"):
            rewritelog.fit(table)
        with pytest.raises(UsageTypeError, match=f"X cannot be a {type(table).__name__}: make"):
            fitted.predict("Cell::pairForces", table)


def test_a_column_of_several_columns_is_named(fitted: rewritelog.FittedModel) -> None:
    """`the columns of X have 2, 2 values`, or more columns than the table has."""
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame([[53.0, 11.0, 12.0], [66, 17, 18]], columns=["p1", "p2", "p2"])
    message = r"the column 'p2' must have 2 values, but has shape \(2, 2\)"
    with pytest.raises(UsageError, match=message):
        fitted.predict("Cell::pairForces", frame)
    column = np.array([[53.0], [66]])
    expected = fitted.predict("Cell::pairForces", [[53, 11], [66, 11]])
    assert (fitted.predict("Cell::pairForces", {"p1": column, "p2": 11}) == expected).all()


def test_negative_times_and_columns_of_texts_are_refused() -> None:
    pd = pytest.importorskip("pandas")
    with pytest.raises(UsageError, match=r"y of 'k' must hold seconds, .*, not -1"):
        rewritelog.fit({"k": ([[1], [2]], [1, -1])})
    frame = pd.DataFrame({"event": ["k"] * 2, "n": [1, 2], "kind": ["a", "b"], "seconds": [1, 2]})
    with pytest.raises(UsageTypeError, match="a parameter's column 'kind' must"):
        rewritelog.fit(frame)
    for kind in ("str", "object", "category"):  # these were taken, where an array was not
        numbered = frame.assign(kind=pd.Series(["1", "2"], dtype=kind))
        with pytest.raises(UsageTypeError, match="'kind' must hold numbers, not texts of numbers"):
            rewritelog.fit(numbered)
    with pytest.raises(UsageError, match="the column 'seconds' must hold seconds"):
        rewritelog.fit(frame[["event", "n"]].assign(seconds=-1.0))


def test_a_frame_without_parameters_is_fitted() -> None:
    """It was a bare ValueError of numpy."""
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"event": ["k", "m"] * 3, "seconds": [2.0, 3.0] * 3})
    fitted = rewritelog.fit(frame)
    assert fitted.predict("m", [[], []]).tolist() == [3, 3]
    assert Timings.from_frame(frame)["k"].params.shape == (3, 0)


@pytest.mark.parametrize("name", ["event", "n", "seconds"])
def test_columns_of_one_name_are_refused(name: str) -> None:
    """Two columns `event` were a bare `AttributeError`."""
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame([["k", 1, 2.0, 3.0]], columns=["event", "n", "seconds", name])
    with pytest.raises(UsageError, match=f"the DataFrame has several columns '{name}'"):
        rewritelog.fit(frame)


@pytest.mark.parametrize("name", ["None", "nan", "NA", "NaT"])
def test_a_sample_without_an_event_is_named(name: str) -> None:
    """It was fitted as the event `nan`."""
    pd = pytest.importorskip("pandas")
    missing = {"None": None, "nan": float("nan"), "NA": pd.NA, "NaT": pd.NaT}[name]
    frame = pd.DataFrame({"event": ["k", missing, "nan"], "n": [1, 2, 4], "seconds": [1.0] * 3})
    with pytest.raises(UsageError, match="the column 'event' has no name in row 2 of"):
        rewritelog.fit(frame)


def test_events_of_a_frame_that_are_bytes_are_refused() -> None:
    """As HDF5 has them: the event was called b'k', which no param record is."""
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"event": ["k", b"k"], "n": [1, 2], "seconds": [1.0] * 2})
    with pytest.raises(UsageTypeError, match=r"'event' has bytes, b'k', in row 2"):
        rewritelog.fit(frame)


@pytest.mark.parametrize("collection", [iter, set, tuple, lambda paths: (path for path in paths)])
def test_paths_of_timings_come_in_any_collection(collection: Any, tmp_path: Path) -> None:
    """What `glob` returns was no timings, where other functions take it for their paths."""
    (tmp_path / "t.txt").write_text("TRACEBIGSIM: event:{ k } time:{ 2 } params:{ 1 }\n")
    assert rewritelog.fit(collection([*tmp_path.glob("*.txt")])).events == ("k",)
    with pytest.raises(UsageError, match="timings: name at least one file"):
        rewritelog.fit(tmp_path.glob("*.out"))


def test_what_is_no_collection_of_paths_is_named(fitted: rewritelog.FittedModel) -> None:
    """The lines of an open file, and the bytes of a path, were taken for paths."""
    with LINES.open() as opened:
        for source in (opened, bytes(LINES)):
            what = f"must be a path or several, not {type(source).__name__}"
            with pytest.raises(UsageTypeError, match=f"timings {what}"):
                rewritelog.fit(source)
            with pytest.raises(UsageTypeError, match=f"logs {what}"):
                rewritelog.replay(source)  # type: ignore[arg-type]
            with pytest.raises(UsageTypeError, match="give files, or an event"):
                rewritelog.predict(fitted, source)  # type: ignore[arg-type]
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"p1": [53.0]})
    with pytest.raises(UsageTypeError, match="logs must be a path or several, not DataFrame"):
        rewritelog.replay(frame)
    with pytest.raises(UsageTypeError, match=r"; FittedModel.predict takes tables"):
        rewritelog.predict(fitted, frame)


def test_wrong_tables_and_events_are_refused(fitted: rewritelog.FittedModel) -> None:
    with pytest.raises(UsageError, match="X must have 1 column, not 2"):
        fitted.predict("Cell::bonded", [[1, 2]])
    with pytest.raises(UsageError, match="'Cell::bonded': parameters must be 1, not 7"):
        fitted.formula("Cell::bonded", parameters=7)
    with pytest.raises(UsageError, match="X must have 2 columns, not 3"):
        fitted.predict("Cell::pairForces", [[1, 2, 3]])
    with pytest.raises(UsageError, match=r"no fit for the event 'Cell::pair'; .*'Cell::bonded'"):
        fitted.predict("Cell::pair", [[1, 2]])
    with pytest.raises(UsageError, match="counters"):
        rewritelog.fit(rewritelog.read_timings(LINES), "counters")
    with pytest.raises(UsageError, match=r"X must have two dimensions, a row .* it has 3"):
        fitted.predict("Cell::pairForces", np.zeros((1, 2, 1)))
    with pytest.raises(UsageTypeError, match=r"X must hold numbers, not str$"):
        fitted.predict("Cell::pairForces", [["53", "11"]])


@pytest.mark.parametrize(
    ("samples", "error", "message"),
    [
        ({}, UsageError, "at least one event"),
        ({"k": 5}, UsageTypeError, r"name to \(X, y\)"),
        ({"k": ([1], [2], [3])}, UsageTypeError, r"name to \(X, y\)"),
        ({7: ([1], [2])}, UsageTypeError, r"name to \(X, y\)"),
        (
            {"k": ([[1], [2]], [3])},
            UsageError,
            r"y of 'k' must have 2 values, but has shape \(1,\)",
        ),
        ({"k": ([[1], [2]], [3, "x"])}, UsageTypeError, "y of 'k' must hold numbers"),
    ],
)
def test_wrong_samples_are_refused(samples: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        rewritelog.fit(samples)


def test_counters_may_be_arrays() -> None:
    """They were refused, with the advice to read them from a file."""
    samples = {"k": ([[1, 9], [2, 5], [3, 4], [4, 7]], [2.0, 4.0, 6.0, 8.0])}
    fitted = rewritelog.fit(samples, "counters")
    assert fitted.columns == "counters"
    assert fitted.predict("k", [[5, 1]]) == pytest.approx([10.0])
    assert rewritelog.verify(fitted, samples).overall.mean_relative_error == pytest.approx(0)


def test_seconds_may_be_a_column() -> None:
    mine, theirs = (
        Timings.from_arrays({"k": ([[1], [2]], y)}) for y in ([3e-6, 4e-6], [[3e-6], [4e-6]])
    )
    assert [samples.seconds.tolist() for samples in mine] == [
        samples.seconds.tolist() for samples in theirs
    ]


def test_an_event_may_have_fits_to_several_numbers_of_parameters(tmp_path: Path) -> None:
    rows = [("k", 1e-6 * n, n) for n in range(1, 9)] + [("k", 1e-6 * n, n, 2) for n in range(1, 9)]
    fitted = rewritelog.fit(write_timings(tmp_path / "t.txt", *rows), "least-squares")
    assert fitted.events == ("k",)
    assert fitted.predict("k", [[4.0]]) == pytest.approx([4e-6])
    assert fitted.predict("k", [[4.0, 2.0]]) == pytest.approx([4e-6])
    with pytest.raises(UsageError, match="X must have 1 or 2 columns"):
        fitted.predict("k", [[4.0, 2.0, 1.0]])


def test_a_model_is_a_name_or_a_model_and_paths_are_texts(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="a name or a Model, not ABCMeta"):
        rewritelog.fit(LINES, LeastSquares)  # type: ignore[arg-type]
    predicted = rewritelog.fit(LINES, LeastSquares(LeastSquares.Options())).predict(
        "Cell::bonded", [[9]]
    )
    assert predicted == rewritelog.fit(LINES, "least-squares").predict("Cell::bonded", [[9]])
    shutil.copy(LINES, tmp_path)
    with os.scandir(os.fsencode(tmp_path)) as entries:
        (entry,) = entries
    with pytest.raises(UsageTypeError, match="the timings must be a path, not DirEntry"):
        rewritelog.read_timings(entry)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="'params' or 'counters', not 'both'"):
        rewritelog.read_timings(LINES, columns="both")  # type: ignore[arg-type]


def test_what_is_odd_about_timings_and_fits_is_told(tmp_path: Path) -> None:
    path = write_timings(tmp_path / "t.txt", ("k", 1e-6, 1), ("k", 2e-6, 2))
    with path.open("a") as file:
        file.write("TRACEBIGSIM: event:{ k } time:{ 1 params:{ 1 }\n")
    timings = rewritelog.read_timings(path)
    assert len(timings.warnings) == 1
    assert "malformed" in timings.warnings[0]
    no: Any = "no"  # which was true
    assert rewritelog.read_timings(path, strict=no).warnings == timings.warnings
    fitted = rewritelog.fit(timings, "least-squares")
    assert any("2 samples" in sentence for sentence in fitted.warnings)


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
    back.save(tmp_path / "m.json")


def test_the_timings_of_a_model_are_not_replaced(tmp_path: Path) -> None:
    """`predict` and pages did not know them, since only `save` looked for them."""
    write_timings(tmp_path / "t", ("k", 1.0, 1.0), ("k", 2.0, 2.0))
    before = (tmp_path / "t").read_bytes()
    fitted = rewritelog.fit(tmp_path / "t")
    calls: list[Callable[[Path], object]] = [
        fitted.save,
        lambda path: rewritelog.predict(fitted, CELLS / "param.0", output=path),
        lambda path: rewritelog.replay(CELLS, model=fitted, html=path),
    ]
    for call in calls:
        with pytest.raises(rewritelog.OutputError, match="t: the output would replace an input"):
            call(tmp_path / "t")
    assert (tmp_path / "t").read_bytes() == before


def test_a_dash_is_standard_output_for_a_model_too(
    fitted: rewritelog.FittedModel,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It was a file of that name, where all other outputs and `load_model` take the stream."""
    monkeypatch.chdir(tmp_path)
    fitted.save("-")
    assert json.loads(capsys.readouterr().out) == fitted.to_json()
    assert not list(tmp_path.iterdir())
    shown = io.StringIO()
    with redirect_stdout(shown):  # like the one of a notebook, it takes no bytes
        fitted.save("-")
    assert json.loads(shown.getvalue()) == fitted.to_json()
    records = rewritelog.predict(fitted, CELLS / "param.0", output="-")  # which printed nothing
    assert len(capsys.readouterr().out.splitlines()) == 1 + len(list(records))
    nothing: Any = None
    with pytest.raises(UsageTypeError, match="the model file must be a path, not NoneType"):
        fitted.save(nothing)


def test_intervals_hold_nine_in_ten(timings: Timings, fitted: rewritelog.FittedModel) -> None:
    for samples in timings:
        low, high = fitted.interval(samples.event, samples.params)
        inside = (samples.seconds >= low) & (samples.seconds <= high)
        assert 0.85 < inside.mean() < 0.98


@pytest.mark.slow
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
    assert rewritelog.verify(fitted, samples).overall.lines == 29


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
    options: Any = {"models": "least-squares", "folds": 3}
    mine, theirs = rewritelog.compare(LINES, **options), rewritelog.compare(timings, **options)
    assert mine.tried[0].overall == theirs.tried[0].overall


def test_predictions_of_records_are_those_of_the_model(fitted: rewritelog.FittedModel) -> None:
    rows = list(rewritelog.predict(fitted, CELLS / "param.0"))
    assert rows
    for row in rows:
        assert row["predicted_s"] == fitted.predict(row["event"], [row["params"]])[0]


def test_warnings_of_predictions_are_there_once_all_are_read(
    fitted: rewritelog.FittedModel, tmp_path: Path
) -> None:
    lines = tmp_path / "lines.txt"
    lines.write_text("TRACEBIGSIM: event:{ x }  time:{ y }\n" + (CELLS / "param.0").read_text())
    records = rewritelog.predict(fitted, lines)
    assert list(records.warnings) == []  # not: no line found
    assert len(list(records)) == 5
    (warning,) = records.warnings
    assert warning.startswith("1 malformed line left out: ")
    assert rewritelog.predict(fitted, ["Cell::bonded", "50"]).warnings == ()


def test_predictions_of_records_say_what_they_are_and_are_written(
    fitted: rewritelog.FittedModel, tmp_path: Path
) -> None:
    records = rewritelog.predict(fitted, CELLS / "param.0", output=tmp_path / "p.csv")
    assert repr(records).startswith("<PredictedRecords of ")
    assert len((tmp_path / "p.csv").read_text().splitlines()) == 1 + len(list(records))
    with pytest.raises(UsageError, match="output is for predictions of files, not of one call"):
        rewritelog.predict(fitted, ["Cell::bonded", "50"], output=tmp_path / "p.csv")


def test_a_notebook_shows_warnings_and_folds_many_away(tmp_path: Path) -> None:
    """Only `rewrite` said how many there were; the command line prints them."""
    lines = [("k<b>", 1e-6, 1.0), ("k<b>", 2e-6, 1.0, 2.0), ("k<b>", 2e-6, 2.0, 4.0)]
    path = write_timings(tmp_path / "t.txt", *lines)
    fitted = rewritelog.fit(path)
    other = rewritelog.verify(fitted, {"other": ([[1.0]], [1.0])})
    shown: list[Any] = [rewritelog.read_timings(path), fitted, other]
    shown.append(rewritelog.rewrite(CELLS, timings=path))
    for each in shown:
        page = each._repr_html_()
        assert each.warnings
        assert page.count("<p>warning: ") == len(each.warnings)
        assert html.escape(each.warnings[0]) in page
        assert ("<details>" in page) == (len(each.warnings) > 6)
        assert "<b>" not in page
        assert "\n" not in repr(each)
    many = replace(other, warnings=tuple(map(str, range(30))))._repr_html_()
    assert many.index("warning: 5<") < many.index("<details><summary>24 more") < many.index(": 6<")


def test_reprs_are_short_and_notebooks_get_tables(
    timings: Timings, fitted: rewritelog.FittedModel
) -> None:
    samples = {f"event {k}<b>" + "x" * 1000: ([[1.0]], [1.0]) for k in range(300)}
    huge = Timings.from_arrays(samples)
    report = rewritelog.verify(fitted, timings)
    for shown in (timings, fitted, huge, rewritelog.fit(huge, "least-squares"), report):
        assert len(repr(shown)) < 160
        assert "\n" not in repr(shown)
        assert "<b>" not in shown._repr_html_()
    assert timings._repr_html_().count("<tr>") == 1 + 2
    assert "<td>p2</td><td>5</td><td>21</td>" in timings["Cell::pairForces"]._repr_html_()
    without = Timings.from_arrays({"none": (np.zeros((0, 1)), [])})["none"]
    assert "<td>seconds</td><td>–</td><td>–</td>" in without._repr_html_()
    assert "Cell::pairForces" in fitted._repr_html_()
    assert "and 200 more" in huge._repr_html_()


def test_what_cannot_be_a_table_or_fitted_is_refused() -> None:
    with pytest.raises(UsageTypeError, match="X of 'k' must hold numbers: int too large"):
        rewritelog.fit({"k": ([[10**400]], [1.0])})
    with pytest.raises(UsageTypeError, match="must hold numbers, not complex128"):
        rewritelog.fit({"k": ([[1j]], [1.0])})
    with pytest.raises(UsageTypeError, match=r"y of 'k' must hold numbers, not timedelta64\[ms\]"):
        rewritelog.fit({"k": ([[1]], np.array([1], "m8[ms]"))})  # was 1000 times as long
    with pytest.raises(UsageError, match="no fit for the event 'k'; events: none"):
        rewritelog.fit({"k": ([[1]], [np.inf])}).formula("k")
    for model, what in (
        ("auto", "parameters"),
        ("least-squares", "parameters"),
        ("counters", "counters"),  # they were called parameters
    ):
        with pytest.raises(ModelError, match=f"'k' has 21 {what}; at most 20 can be fitted"):
            rewritelog.fit({"k": (np.ones((4, 21)), np.ones(4))}, model=model)
    with pytest.raises(UsageError, match=r"1000.* is not a number"):
        rewritelog.rewrite(CELLS, dilation_for={"k": 10**400}, dry_run=True)
    fitted = rewritelog.fit({"k": ([[], [], []], [1, 2, 3])})
    with pytest.raises(UsageError, match=r"X must be a table, as \[\[\]\]: 'k' has no parameters"):
        fitted.predict("k", {})


def test_models_and_timings_are_equal_to_themselves_alone() -> None:
    first, second = (Timings.from_arrays({"k": ([[1], [2]], [1, 2])}) for _ in range(2))
    assert first == first
    assert first != second
    models = {rewritelog.fit(first, model="least-squares") for _ in range(2)}
    assert len(models) == 2


@pytest.mark.parametrize(
    "make",
    [
        lambda: rewritelog.stats(LINES),
        lambda: rewritelog.diff(CELLS, CELLS),
        lambda: rewritelog.open_logs(CELLS).timeline(3),
        lambda: rewritelog.replay(CELLS),
    ],
)
def test_results_with_arrays_compare_as_objects(make: Any) -> None:
    """Numpy's comparison of their arrays had no truth value."""
    result, other = make(), make()
    assert result == result
    assert (result == other) is False
    assert result in [other, result]


def test_a_column_of_names_is_no_event(timings: Timings, fitted: rewritelog.FittedModel) -> None:
    """Pandas said that the truth value of a Series is ambiguous."""
    pd = pytest.importorskip("pandas")
    columns: list[Any] = [pd.Series(["Cell::bonded"] * 2), np.array(["Cell::bonded"] * 2)]
    for names in columns:
        for call in (
            lambda names: fitted.predict(names, [[40], [80]]),
            lambda names: fitted.interval(names, [[40], [80]]),
            fitted.formula,
            fitted.plot,
            lambda names: timings[names],
        ):
            with pytest.raises(UsageTypeError, match="must be the name of one event, not "):
                call(names)


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("log", "'log' is a function and cannot be a parameter's name"),
        ("p2", "'m' is not one of p1, p2, … as 'p2' is"),
        ("batch size", "'batch size' is not a valid name: a letter, then letters, digits and _"),
    ],
)
def test_a_column_that_no_formula_can_name_is_refused_in_one_sentence(
    name: str, problem: str
) -> None:
    """Of `log` and `p2` a model file was written that could not be read."""
    pd = pytest.importorskip("pandas")
    rows = np.arange(1.0, 9)
    frame = pd.DataFrame({"event": "k", name: rows, "m": rows % 2, "seconds": rows})
    with pytest.raises(UsageError) as refused:
        rewritelog.fit(frame)
    what_to_do = "drop it, or rename it if it is a parameter"
    assert str(refused.value) == f"the column {problem}; {what_to_do}"


def test_the_index_of_a_frame_is_the_column_to_drop(tmp_path: Path) -> None:
    """The advice was to rename it, or the columns after it, which made it a parameter."""
    pd = pytest.importorskip("pandas")
    frame = rewritelog.read_timings(LINES).to_frame()
    frame.to_csv(tmp_path / "t.csv")
    for kept, index in (
        (pd.read_csv(tmp_path / "t.csv"), "Unnamed: 0"),
        (frame.reset_index(), "index"),
    ):
        with pytest.raises(UsageError, match=f"the column '{index}' is not .*; drop it, or"):
            rewritelog.fit(kept)
        assert len(Timings.from_frame(kept.drop(columns=index))) == 600


@pytest.mark.parametrize("name", ["lambda", "np"])
def test_a_formula_in_python_is_python_whatever_its_parameters_are_called(name: str) -> None:
    pd = pytest.importorskip("pandas")
    rows = np.arange(1.0, 9)
    frame = pd.DataFrame({"event": "k", name: rows, "seconds": 2 * rows})
    fitted = rewritelog.fit(frame)
    seconds = eval(fitted.formula("k", "python"), {f"{name}_": 3})  # noqa: S307 - its purpose
    assert seconds == pytest.approx(6)
    assert fitted.formula("k") == f"2*{name}"
    frame = frame.assign(**{f"{name}_": rows[::-1] ** 2})  # which was the same name
    frame["seconds"] = 2 * frame[name] + frame[f"{name}_"]
    names = {f"{name}_": 5, f"{name}__": 3}
    fitted = rewritelog.fit(frame, "least-squares")
    both = eval(fitted.formula("k", "python"), names)  # noqa: S307 - its purpose
    assert both == pytest.approx(11)


def test_no_bound_of_an_interval_is_negative() -> None:
    """A function below zero had the interval from -0.2 to -0.2 ms, then from 0 to 0."""
    rows = np.arange(1.0, 41)[:, None]
    timings = {"k": (rows, 1e-6 * np.maximum(rows[:, 0] - 20, 0.001) ** 3)}
    fitted = rewritelog.fit(timings, model="least-squares")
    low, high = fitted.interval("k", rows)
    predicted = fitted.predict("k", rows)
    below = predicted == 0
    assert below.any()
    assert np.isnan([low[below], high[below]]).all()
    assert (low[~below] >= 0).all()
    assert ((low <= predicted) & (predicted <= high))[~below].all()


def test_times_that_no_call_takes_are_told_and_not_fitted(tmp_path: Path) -> None:
    """Fits of times near 1e308 s ended in `SVD did not converge`, or predicted 0 s."""
    lines = [("k", 2.0 * n, n) for n in range(1, 9)]
    path = write_timings(tmp_path / "t.txt", ("k", 1e308, 1.0), *lines, ("k", 1.5e308, 2.0))
    timings = rewritelog.read_timings(path)
    assert rewritelog.fit(timings).predict("k", [[4]]) == pytest.approx(8)
    (warning,) = timings.warnings
    assert "2 malformed timing lines left out" in warning
    assert f"{path}:1: not a finite number (infinite, or too large): '1e" in warning
    with pytest.raises(UsageError, match=r"y of 'k' must hold seconds, .*, not 1e\+300"):
        rewritelog.fit({"k": ([[1], [2]], [1, 1e300])})


@pytest.mark.parametrize("least", [5e-324, 1e-300, 1e-9])
def test_the_fit_of_times_that_differ_as_no_calls_do_has_a_model_file(least: float) -> None:
    """Intervals of extrapolations widened at an infinite rate, which no model file holds."""
    n = np.arange(1.0, 13)
    fitted = rewritelog.fit({"k": (n[:, None], np.where(n > 8, least, 1e100))})
    assert fitted.to_json()
    assert not np.isnan(fitted.interval("k", [[0.5], [5.0], [50.0]])).any()


def test_columns_are_taken_by_their_names_by_whatever_compares(tmp_path: Path) -> None:
    """`verify`, pages and plots took them by their order, and were wrong without a word."""
    pd = pytest.importorskip("pandas")
    n, m = np.repeat(np.arange(1.0, 9), 4), np.tile([1.0, 3, 5, 7], 8)
    frame = pd.DataFrame({"event": "w", "n": n, "m": m, "seconds": 2e-6 * n + 1e-6 * m**2})
    fitted = rewritelog.fit(frame)
    for columns in (["event", "n", "m", "seconds"], ["event", "m", "n", "seconds"]):
        r2 = rewritelog.verify(fitted, frame[columns]).overall.r2
        assert r2 == pytest.approx(1.0)
    with pytest.raises(rewritelog.UsageError, match="'w' has the parameters n, m, and the timings"):
        rewritelog.verify(fitted, frame.rename(columns={"m": "k"}))


def test_numbers_that_are_not_finite_are_no_samples_of_a_verification() -> None:
    """They were predicted, or the model was said to have no fit."""
    fitted = rewritelog.fit({"w": ([[1], [2], [4]], [1e-6, 2e-6, 4e-6])})
    assert np.isnan(fitted.predict("w", [[np.inf], [-np.inf]])).all()
    samples = {"w": ([[2], [np.inf], [4]], [2e-6, 1e-6, np.nan])}
    report = rewritelog.verify(fitted, samples)
    assert report.overall.lines == report.overall.predicted == 1
    assert "2 samples with numbers that are not finite left out" in report.warnings


def test_what_is_given_is_neither_kept_nor_misread() -> None:
    params, seconds = np.array([[1.0], [2], [4]]), np.array([1e-6, 2e-6, 4e-6])
    fitted = rewritelog.fit({"w": (params, seconds)})
    params[:] = 7  # it was the model's own
    assert fitted.timings is not None
    assert fitted.timings["w"].params.ravel().tolist() == [1, 2, 4]
    masked = np.ma.masked_greater(np.array([[1.0], [9999]]), 100)
    assert fitted.predict("w", masked)[0] == pytest.approx(1e-6)
    assert np.isnan(fitted.predict("w", masked)[1])  # the masked value was predicted
    assert np.isnan(fitted.predict("w", {"p1": masked[:, 0]})[1])  # here, too
    with pytest.raises(rewritelog.UsageTypeError, match="X must hold numbers, not complex128"):
        fitted.predict("w", np.ma.masked_array([[1j]]))
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame([["w", 1.0, 1e-6]], columns=["event", np.nan, "seconds"])
    with pytest.raises(rewritelog.UsageError, match="the column nan has no name that is a text"):
        rewritelog.fit(frame)


def test_fits_of_an_event_with_several_numbers_of_parameters_have_an_r2_each() -> None:
    pd = pytest.importorskip("pandas")
    n = np.tile(np.arange(1.0, 9), 2)
    second = np.repeat([np.nan, 1.0], 8)
    frame = pd.DataFrame({"event": "w", "p1": n, "p2": second, "seconds": 1e-6 * n})
    assert list(rewritelog.fit(frame).r2) == ["w(p1)", "w(p1, p2)"]


def test_results_can_be_compared_and_be_in_sets() -> None:
    """numpy's error on the truth of an array was raised."""
    cells = SAMPLE_LOGS / "cells"
    for make in (rewritelog.open_logs, rewritelog.read_params, rewritelog.replay):
        first, second = make(cells), make(cells)
        assert (first == second, first in [first], len({first, second})) == (False, True, 2)


def test_options_of_a_model_are_for_one_by_name(tmp_path: Path) -> None:
    """With a model as an object they were taken, and had no effect."""
    model = rewritelog.models.registry.load_model("auto", {})
    timings = write_timings(tmp_path / "t.txt", *[("k", 1e-6 * n, float(n)) for n in range(1, 9)])
    with pytest.raises(UsageError, match="model_options is for a model by name"):
        rewritelog.fit(timings, model, model_options={"loss": "squares"})
    with pytest.raises(UsageError, match="model_options is for a model by name"):
        rewritelog.rewrite(CELLS, timings=timings, model=model, model_options={"loss": "squares"})
    assert "k" in rewritelog.read_timings(timings)
    yes: Any = np.True_
    assert rewritelog.rewrite(CELLS, dry_run=yes).out is None


@pytest.mark.parametrize(
    ("models", "written"),
    [
        ("least-squares", "least-squares,auto"),
        ("least-squares,auto", "least-squares,auto"),
        (["least-squares", "file.py:Mine"], "least-squares,file.py:Mine,auto"),
        (str(LINES), "auto"),  # swapped
    ],
)
def test_a_model_among_files_is_named_with_the_models(models: Any, written: str) -> None:
    """It was `models='l,e,a,s,t,-,s,q,u,r,auto'`."""
    with pytest.raises(UsageError, match=f"auto is a model, not a file: write models='{written}'$"):
        rewritelog.compare("auto", models)
    with pytest.raises(UsageTypeError, match="models takes names, not 5"):
        rewritelog.compare("auto", 5)  # type: ignore[arg-type]


def test_columns_with_numbers_have_all_of_them() -> None:
    """p2 alone became p1."""
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"event": "w", "p2": [1.0, 2, 4], "seconds": [1.0, 2, 4]})
    with pytest.raises(UsageError, match="has no p1, but p2: rename them"):
        rewritelog.fit(frame)
    fitted = rewritelog.fit(frame.rename(columns={"p2": "p1"}))
    with pytest.raises(UsageError, match="no sample of 'w' has only finite numbers"):
        fitted.plot("w", {"w": ([[np.nan]], [1.0])})


def test_a_total_is_what_a_rewrite_gives_its_calls(tmp_path: Path) -> None:
    """Some calls take three times as long, and some were timed with their very parameters."""
    draw = np.random.default_rng(3)
    sizes = [float(n) for n in draw.integers(1, 60, 120)]
    slow = np.where(draw.uniform(size=120) < 0.1, 3.0, 1.0) * draw.normal(1, 0.02, 120)
    lines = [("k", 1e-5 * n * f, n) for n, f in zip(sizes, slow.tolist(), strict=True)]
    timings = write_timings(tmp_path / "timings", *lines)
    rows = [[n] for n in (*sizes[:30], 61.0, 75.0, 200.0)]
    logs = write_logs(
        tmp_path / "in", [[seb(k, k + 1, events=bracket(0, 1)) for k in range(len(rows))]]
    )
    write_params(logs, 0, *[(k, "k", *row) for k, row in enumerate(rows)])
    (line,) = rewritelog.rewrite(logs, timings=timings).to_json()["events"]
    fitted = rewritelog.fit(timings)
    assert fitted.total("k", rows) == pytest.approx(
        [line[name] for name in ("new_s", "low_s", "high_s")]
    )
    assert fitted.total("k", rows).seconds > 1.05 * fitted.predict("k", rows).sum()
    seconds, low_s, high_s = rewritelog.fit({"k": ([[1.0]], [2.0])}).total("k", [[1.0]] * 3)
    assert seconds == pytest.approx(6)
    assert np.isnan([low_s, high_s]).all()
