"""What a plug-in raises and returns becomes an error that names model and event."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from rewritelog.arrays import Floats
from rewritelog.errors import ModelError
from rewritelog.models.base import EventTimings, Model, ModelFit, NoOptions, Prediction
from rewritelog.models.fitted import Fitted

PARAMS = np.ones((3, 2))


class Answers(ModelFit):
    """Answers what it was made with, or raises it."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def predict(self, event: str, params: Floats) -> Any:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class Judges(Answers):
    def predict_detailed(self, event: str, params: Floats) -> Any:
        return self.answer


def check(fitted: ModelFit) -> Any:
    return Fitted("mine", fitted).prediction("Cell::bonded", PARAMS)


@pytest.mark.parametrize(
    "answer", [[1, 2, 3], np.array([1, 2, 3], dtype=np.float32), np.array([1.0, np.nan, -1])]
)
def test_numbers_pass_as_float64(answer: Any) -> None:
    judged = check(Answers(answer))
    assert judged.seconds.dtype == np.float64
    at_least_0 = [0.0 if number < 0 else number for number in answer]
    assert judged.seconds.tolist() == pytest.approx(at_least_0, nan_ok=True)
    assert judged.outside.dtype == np.bool_


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (np.ones(2), r"shape \(2,\), not \(3,\)"),
        (np.ones((3, 1)), r"shape \(3, 1\)"),
        (1.0, r"shape \(\)"),
        (["a", "b", "c"], "not numbers"),
        (None, "not numbers"),
        (np.ones(3, dtype=complex), "not numbers"),
        (np.array([1, np.inf, 1]), "row 1 is inf"),
        ([[1, 2], [3]], "inhomogeneous"),
        (ZeroDivisionError("oops"), "ZeroDivisionError: oops"),
    ],
)
def test_other_answers_are_refused_by_name(answer: Any, problem: str) -> None:
    with pytest.raises(ModelError, match=problem) as caught:
        check(Answers(answer))
    assert "model 'mine', event 'Cell::bonded'" in str(caught.value)
    if isinstance(answer, Exception):
        assert caught.value.__cause__ is answer


def detailed(**masks: Any) -> Prediction:
    """Return a prediction of three rows whose masks are not what they are declared to be."""
    return Prediction(
        np.ones(3), **{"exact": np.zeros(3, bool), "outside": np.zeros(3, bool)} | masks
    )


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (np.ones(3), "event 'Cell::bonded': AttributeError"),
        (detailed(negative=np.zeros(2, bool)), r"ValueError: .*shape \(2,\)"),
    ],
)
def test_judgements_are_checked_too(answer: Any, problem: str) -> None:
    with pytest.raises(ModelError, match=problem):
        check(Judges(answer))


def test_masks_that_a_model_does_not_know_are_made_up() -> None:
    judged = check(Answers(np.array([-1.0, np.nan, 1.0])))
    assert judged.negative.tolist() == [True, False, False]
    assert judged.remote.tolist() == [False] * 3
    known = Prediction(
        np.ones(3), np.zeros(3, bool), np.zeros(3, bool), np.ones(3, bool), np.eye(3, dtype=bool)[1]
    )
    assert check(Judges(known)).remote.all()
    assert check(Judges(known)).negative.tolist() == [False, True, False]


class Fits(Model[Any]):
    Options = NoOptions

    def __init__(self, answer: Any, options: Any = None) -> None:
        super().__init__(options or NoOptions())
        self.answer = answer

    def fit(self, timings: Sequence[EventTimings]) -> Any:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def test_a_fit_is_checked() -> None:
    fitted = Answers(np.ones(3))
    assert Fitted.of(Fits(fitted), "mine", []).raw is fitted
    with pytest.raises(ModelError, match="model 'mine' cannot be fitted: KeyError: 'x'"):
        Fitted.of(Fits(KeyError("x")), "mine", [])
    with pytest.raises(ModelError, match="returned int, not a ModelFit"):
        Fitted.of(Fits(3), "mine", [])
    with pytest.raises(ModelError, match="cannot be fitted: TypeError: asdict"):
        Fitted.of(Fits(fitted, {"loss": "squares"}), "mine", [])


def test_errors_of_our_own_pass_as_they_are() -> None:
    error = ModelError("as it is")
    with pytest.raises(ModelError) as caught:
        Fitted.of(Fits(error), "mine", [])
    assert caught.value is error
