"""Outside regressors by `module:Class`: used as they are, and blamed by name where they fail."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from building import forks
from commands import rewritelog
from kinds import MakeTimings
from numpy.typing import ArrayLike

from rewritelog.errors import ModelError, UsageError
from rewritelog.models.base import EventTimings, ModelFit, ModelText
from rewritelog.models.fitted import Fitted
from rewritelog.models.least_squares import LeastSquares
from rewritelog.models.registry import load_model

HERE = Path(__file__).parent


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Make `regressors` importable, as PYTHONPATH does for a user's module."""
    monkeypatch.syspath_prepend(HERE)
    yield
    sys.modules.pop("regressors", None)


@pytest.fixture
def plane(event: MakeTimings) -> Any:
    """Exact samples of 1 + 2 p1 + 3 p2."""
    p1, p2 = np.random.default_rng(2).uniform(1, 50, (2, 30))
    return event(p1, p2, seconds=1 + 2 * p1 + 3 * p2)


def fit(name: str, *timings: EventTimings, **options: Any) -> Any:
    return Fitted.of(load_model(f"regressors:{name}", options), f"regressors:{name}", timings).raw


def seconds(fitted: ModelFit, params: ArrayLike, event: str = "kernel") -> Any:
    return Fitted("outside", fitted).prediction(event, np.array(params, dtype=float)).seconds


def test_a_regressor_is_fitted_to_each_event_and_number_of_parameters(
    plane: EventTimings, event: MakeTimings
) -> None:
    line = event([1, 2, 3], seconds=[5, 7, 9], name="line")
    fewer = event([1, 2, 3], seconds=[10, 20, 30])
    fitted = fit("Plane", plane, line, fewer)
    assert seconds(fitted, [[10, 20], [0, 0]]) == pytest.approx([81, 1])
    assert seconds(fitted, [[10]], "line") == pytest.approx([23])
    assert seconds(fitted, [[10]]) == pytest.approx([100])
    assert np.isnan(seconds(fitted, [[10, 20, 30]])).all()
    assert np.isnan(seconds(fitted, [[10]], "other")).all()
    assert seconds(fitted, np.empty((0, 2))).shape == (0,)
    assert fitted.summary() == (
        "kernel(p1, p2): fitted to 30 samples",
        "line(p1): fitted to 3 samples",
        "kernel(p1): fitted to 3 samples",
    )


def test_an_event_without_parameters_gets_its_mean(event: MakeTimings) -> None:
    fitted = fit("FailsToFit", event(seconds=[1, 2, 6]))
    assert seconds(fitted, np.empty((2, 0))).tolist() == [3, 3]


def test_options_are_numbers_and_words_as_they_are_written(plane: EventTimings) -> None:
    fitted = fit("Plane", plane, scale="2", offset="None")
    assert seconds(fitted, [[10, 20]]) == pytest.approx([162])
    assert fitted.options.arguments == {"scale": 2, "offset": None}
    options = {"a": "1e-3", "b": "true", "c": "sqrt", "d": [1]}
    with pytest.raises(ModelError, match=r"a=0\.001 b=True c='sqrt' d=\[1\]: TypeError: .*'a'"):
        load_model("regressors:Plane", options)


def test_a_function_may_make_the_regressor(plane: EventTimings) -> None:
    assert seconds(fit("doubled", plane, scale=3), [[10, 20]]) == pytest.approx([486])
    assert seconds(fit("Group.Plane", plane), [[10, 20]]) == pytest.approx([81])


def test_a_run_can_be_repeated_since_a_random_state_is_0_unless_it_is_told(
    plane: EventTimings,
) -> None:
    assert fit("Seeded", plane).options.arguments == {"random_state": 0}
    assert seconds(fit("Seeded", plane, random_state="1"), [[10, 20]]) == pytest.approx([162])


def test_rows_outside_the_samples_range_are_told(plane: EventTimings) -> None:
    judged = fit("Plane", plane).predict_detailed(
        "kernel", np.array([[10, 20], [10, 1e6], [-1, 20]])
    )
    assert judged.outside.tolist() == [False, True, True]
    assert not judged.exact.any()


def test_odd_samples_and_rows_never_reach_the_regressor(
    plane: EventTimings, event: MakeTimings
) -> None:
    odd = event([1, np.nan, 3, 4], seconds=[5, 7, np.inf, 11], name="odd")
    lost = event([np.nan], seconds=[1], name="lost")
    fitted = fit("Plane", plane, odd, lost)
    rows = np.array([[2], [np.nan], [np.inf]])
    assert seconds(fitted, rows, "odd") == pytest.approx([7, np.nan, np.nan], nan_ok=True)
    assert fitted.warnings() == (
        "lost(p1): no usable timing sample, so it is not covered; add timing lines",
    )


def test_a_fit_crosses_process_borders_and_is_described_in_json(plane: EventTimings) -> None:
    fitted = fit("Plane", plane, scale=2.5)
    again = pickle.loads(pickle.dumps(fitted))  # noqa: S301 - just made
    assert seconds(again, [[10, 20]]) == seconds(fitted, [[10, 20]])
    described = json.loads(json.dumps(fitted.describe(), allow_nan=False))
    assert described["regressor"] == "regressors:Plane"
    assert described["arguments"] == {"scale": "2.5"}
    (only,) = described["events"]
    assert (only["event"], only["parameters"], only["samples"]) == ("kernel", 2, 30)
    assert only["lowest"] == plane.params.min(axis=0).tolist()


def test_the_class_of_a_file_crosses_process_borders(
    plane: EventTimings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process, such as an MPI rank, runs the file before it looks for the class.

    Its working folder may be another one.
    """
    (tmp_path / "mine.py").write_text(
        "class Mine:\n"
        "    def fit(self, X, y): self.mean = y.mean()\n"
        "    def predict(self, X): return self.mean + 0 * X[:, 0]\n"
    )
    monkeypatch.chdir(tmp_path)
    name = "mine.py:Mine"
    sent = pickle.dumps(Fitted.of(load_model(name, {}), name, [plane]))
    for module in [module for module in sys.modules if module.startswith("rewritelog_model_")]:
        del sys.modules[module]
    monkeypatch.chdir("/")
    received: Fitted = pickle.loads(sent)  # noqa: S301 - just made
    assert received.name == name
    predicted = received.prediction("kernel", plane.params).seconds
    assert predicted == pytest.approx(np.full(30, plane.seconds.mean()))


def test_an_error_names_the_file_and_not_the_module_that_it_runs_as(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("class Mine: ...\n")
    name = f"{tmp_path}/mine.py:Other"
    with pytest.raises(ModelError, match=f"module '{tmp_path}/mine.py' has no attribute 'Other'"):
        load_model(name, {})


def test_a_fit_that_pickle_refuses_is_named(plane: EventTimings) -> None:
    model = load_model("regressors:Unpicklable", {})
    fitted = Fitted.of(model, "regressors:Unpicklable", [plane])
    with pytest.raises(ModelError, match=r"'.*:Unpicklable' cannot be pickled: .* local obj"):
        pickle.dumps(fitted)


def test_one_thread_at_a_time_asks_a_regressor(plane: EventTimings) -> None:
    fitted = fit("Alone", plane)
    rows = np.ones((20_000, 2))
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: fitted.predict("kernel", rows)[0], range(40)))
    assert answers == pytest.approx([6] * 40)


def test_a_process_forked_while_a_regressor_predicts_predicts_as_well() -> None:
    """It waited for the thread that had asked the regressor, which is not in it."""
    forks("""import rewritelog
class Slow:
    def fit(self, X, y):
        pass
    def predict(self, X):
        asked.set()
        time.sleep(0.2)
        return X[:, 0]
def work():
    fitted.predict("work", [[1]])
asked = threading.Event()
fitted = rewritelog.fit({"work": ([[1], [2]], [1, 2])}, "__main__:Slow")
threading.Thread(target=work).start()
asked.wait()
""")


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("FailsToFit", "event 'kernel', fit: RuntimeError: no luck"),
        ("FailsToPredict", "event 'kernel': ZeroDivisionError: no luck"),
        ("WrongShape", r"event 'kernel': the answer has shape \(1, 1\), not \(1,\)"),
        ("Words", "event 'kernel': durations are of type <U4, not numbers"),
        ("Infinite", "event 'kernel': the duration of row 0 is inf"),
    ],
)
def test_what_a_regressor_does_wrong_is_named_with_model_and_event(
    plane: EventTimings, name: str, problem: str
) -> None:
    with pytest.raises(ModelError, match=problem) as caught:
        seconds(fit(name, plane), [[1, 2]])
    assert f"model 'regressors:{name}'" in str(caught.value)


@pytest.mark.parametrize(
    ("method", "words"),
    [("overview", []), ("summary", ["--verbose"]), ("warnings", []), ("describe", ["--json"])],
)
def test_a_fit_that_cannot_say_what_it_is_is_named(
    sample_logs: Path, method: str, words: list[str]
) -> None:
    timings = sample_logs / "cells" / "timings.txt"
    model = ("--model", "regressors:Refuses", "--model-option", f"method={method}")
    done = rewritelog("fit", timings, *model, *words)
    problem = f"model 'regressors:Refuses': {method}(): RuntimeError: no luck"
    assert (done.returncode, done.stderr) == (1, f"rewritelog: error: {problem}\n")


@pytest.mark.parametrize(
    ("name", "error", "problem"),
    [
        ("regressors:NoPredict", ModelError, "has no method predict; it needs fit and predict"),
        ("regressors:CONSTANT", ModelError, "is neither a class nor a function"),
        ("regressors:Nothing", ModelError, "AttributeError: .*Nothing"),
        ("regressors:Plane.more", ModelError, "AttributeError: .*more"),
        (
            "no_such_module:Thing",
            ModelError,
            "ModuleNotFoundError: .*a file is named file.py:Class",
        ),
        ("exits_at_once:Thing", ModelError, "cannot be imported: SystemExit: 3"),
        ("regressors:", UsageError, "is named module:Class or file.py:Class, not 'regressors:'"),
        (":Plane", UsageError, "is named module:Class"),
        ("a b:Plane", UsageError, "is named module:Class"),
        ("regressors:Plane()", UsageError, "is named module:Class"),
    ],
)
def test_a_name_that_gives_no_regressor_is_refused(
    name: str, error: Any, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "exits_at_once.py").write_text("raise SystemExit(3)\n")
    with pytest.raises(error, match=problem) as caught:
        load_model(name, {})
    assert repr(name) in str(caught.value)


def test_an_outside_model_takes_no_other_files() -> None:
    with pytest.raises(UsageError, match="takes no file of formulas"):
        load_model("regressors:Plane", {}, {"formulas": ModelText("a.toml", "")})


def test_a_model_class_that_no_package_declares_can_be_named_too() -> None:
    model = load_model("rewritelog.models.least_squares:LeastSquares", {"basis": "linear"})
    assert isinstance(model, LeastSquares)
    assert model.options.basis == "linear"


def test_real_regressors_of_scikit_learn_agree_with_numpy(plane: EventTimings) -> None:
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    linear = load_model("sklearn.linear_model:LinearRegression", {})
    assert seconds(linear.fit([plane]), [[10, 20]]) == pytest.approx([81])
    options = {"n_estimators": "5", "max_depth": "3"}
    forests = [load_model("sklearn.ensemble:RandomForestRegressor", options) for _ in range(2)]
    first, second = (seconds(forest.fit([plane]), plane.params) for forest in forests)
    assert (first == second).all()


def test_the_command_line_uses_one(sample_logs: Path, tmp_path: Path) -> None:
    """Each record costs twice p1, as the regressor of this test has it."""
    (tmp_path / "mine.py").write_text(
        "class Mine:\n"
        "    def fit(self, X, y): return self\n"
        "    def predict(self, X): return 1e-6 * X[:, 0]\n"
    )
    logs = sample_logs / "cells"
    timings = tmp_path / "timings.txt"
    timings.write_text(
        "TRACEBIGSIM: event:{ Cell::pairForces } time:{ 1 } params:{ 1 1 }\n"
        "TRACEBIGSIM: event:{ Cell::bonded } time:{ 1 } params:{ 1 }\n"
    )
    report = tmp_path / "report.json"
    command = [
        *(sys.executable, "-m", "rewritelog", "rewrite", str(logs), "--dry-run"),
        *("--model", "mine:Mine", "--timings", str(timings), "--report", str(report)),
    ]
    folders = (str(tmp_path), os.environ.get("PYTHONPATH", ""))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(folders)}
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=tmp_path, env=environment
    )
    assert done.returncode == 0, done.stderr
    expected = _sum_of_first_params(logs) * 1e-6
    events = json.loads(report.read_text())["events"]
    assert sum(event["new_s"] for event in events) == pytest.approx(expected)


def _sum_of_first_params(logs: Path) -> float:
    lines = [line for path in logs.glob("param.*") for line in path.read_text().splitlines()]
    return sum(float(line.split("params:{")[1].split()[0]) for line in lines)


def test_the_help_says_that_a_module_s_code_is_run() -> None:
    text = " ".join(rewritelog("models").stdout.split())
    assert "a regressor with scikit-learn's fit and predict: its module's code is run" in text
