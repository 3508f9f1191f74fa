"""Plug-in models that answer badly: named with the event, and no output is left."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from blocks import in_blocks
from logbuilder import bracket, seb, write_logs, write_params

from rewritelog import open_logs
from rewritelog.commands.durations import RewriteOptions
from rewritelog.errors import ModelError
from rewritelog.rewriting.run import rewrite

MODULE = """
import sys
from dataclasses import dataclass, field
import numpy as np
from rewritelog.models.base import ModelFit, Model, Prediction
from rewritelog.units import number

ANSWERS = {
    "infinite": lambda n: np.full(n, np.inf),
    "minus infinite": lambda n: np.full(n, -np.inf),
    "too long": lambda n: np.ones(n, np.longdouble) * np.longdouble("1e4000"),
    "one number": lambda n: 1.0,
    "a row too many": lambda n: np.ones(n + 1),
    "a column": lambda n: np.ones((n, 1)),
    "ragged": lambda n: [[1.0]] + [1.0] * (n - 1) if n > 1 else [[1.0], 2.0],
    "text": lambda n: ["1.0"] * n,
    "complex": lambda n: np.ones(n, complex),
    "nothing": lambda n: None,
    "objects": lambda n: np.array([object()] * n),
    "dates": lambda n: np.zeros(n, "M8[s]"),
    "flags": lambda n: np.ones(n, bool),
    "raises": lambda n: 1 / 0,
    "as if the user were wrong": lambda n: number("no", "n"),
    "recursion": lambda n: ANSWERS["recursion"](n),
    "leaves": lambda n: sys.exit(0),
    "nan": lambda n: np.full(n, np.nan),
    "negative": lambda n: np.full(n, -1.0),
}

@dataclass(frozen=True)
class Fitted(ModelFit):
    way: str

    def predict(self, event, params):
        return ANSWERS[self.way](len(params)) if event == "bad" else np.ones(len(params))

class Answering(Model):
    needs_timings = False

    @dataclass(frozen=True)
    class Options:
        way: str = field(default="", metadata={"help": "which answer"})

    def fit(self, timings):
        return Fitted(self.options.way)

class NotFitted(Model):
    needs_timings = False

    @dataclass(frozen=True)
    class Options:
        pass

    def fit(self, timings):
        return 1.0
"""


@pytest.fixture
def logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A log set with an event that is predicted well and one that is predicted badly."""
    (tmp_path / "code").mkdir()
    (tmp_path / "code/answering_models.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path / "code")
    monkeypatch.delitem(sys.modules, "answering_models", raising=False)
    timeline = [seb(k, k + 1, events=bracket(0.25, 0.75)) for k in range(4)]
    folder = write_logs(tmp_path / "in", [timeline] * 3)
    for pe in range(3):
        write_params(folder, pe, (0, "good", 1), (1, "bad", 1), (2, "good", 2), (3, "bad", 2))
    return folder


def run(logs: Path, out: Path, way: str, *, block_bytes: int = 200) -> dict[str, object]:
    options = RewriteOptions(
        model="answering_models:Answering",
        model_options={"way": way},
        jobs=2,
        no_flush=True,
    )
    report = rewrite(in_blocks(logs, block_bytes), out, options)
    text = json.dumps(report.to_json(), allow_nan=False)
    document: dict[str, object] = json.loads(text)
    return document


@pytest.mark.filterwarnings("ignore:overflow encountered in cast")
@pytest.mark.parametrize(
    "way",
    [
        "infinite",
        "minus infinite",
        "too long",
        "one number",
        "a row too many",
        "a column",
        "ragged",
        "text",
        "complex",
        "nothing",
        "objects",
        "dates",
        "flags",
        "raises",
        "as if the user were wrong",
        "recursion",
        "leaves",
    ],
)
def test_an_answer_that_cannot_be_used_is_named_and_nothing_is_written(
    way: str, logs: Path, tmp_path: Path
) -> None:
    before = sorted(tmp_path.iterdir())
    with pytest.raises(ModelError) as error:
        run(logs, tmp_path / "out", way)
    assert "model 'answering_models:Answering', event 'bad'" in str(error.value)
    assert sorted(tmp_path.iterdir()) == before


def test_what_is_no_fitted_model_is_named(logs: Path, tmp_path: Path) -> None:
    options = RewriteOptions(model="answering_models:NotFitted", no_flush=True)
    with pytest.raises(ModelError, match=r"answering_models:NotFitted.*returned float"):
        rewrite(logs, tmp_path / "out", options)
    assert not (tmp_path / "out").exists()


def test_nan_is_not_covered_and_a_negative_duration_is_0_and_both_are_reported(
    logs: Path, tmp_path: Path
) -> None:
    """What the models' contract says of them; the report names the event."""
    run(logs, tmp_path / "nan", "nan")
    assert open_logs(tmp_path / "nan").sebs([0])["exec_time"].tolist() == [1.5, 1.0, 1.5, 1.0]
    report = run(logs, tmp_path / "negative", "negative")
    assert open_logs(tmp_path / "negative").sebs([0])["exec_time"].tolist() == [1.5, 0.5, 1.5, 0.5]
    warnings = json.dumps(report["warnings"])
    assert "event 'bad': 6 predictions" in warnings
    assert "below zero became 0" in warnings
