"""The model of Gaussian processes: what a user gets of it, and without scikit-learn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from models.laws import LAWS

from rewritelog.errors import ModelError
from rewritelog.evaluation.compare import default_models
from rewritelog.models import gaussian_process
from rewritelog.models.base import EventTimings
from rewritelog.models.gaussian_process import GaussianProcess
from rewritelog.models.model_file import writable
from rewritelog.models.options import GaussianProcessOptions
from rewritelog.models.registry import known_models

WHY = "scikit-learn is not installed"


def fitted(*timings: EventTimings, most_lines: int = 256) -> Any:
    pytest.importorskip("sklearn", reason=WHY)
    return GaussianProcess(GaussianProcessOptions(most_lines)).fit(timings)


def test_a_power_is_predicted_with_an_interval_that_holds_nine_in_ten() -> None:
    law = LAWS["linear"]
    fit = fitted(law.timings(60, 2, noise=0.05))
    params = law.params(200, np.random.default_rng(3))
    measured = law.timings(200, 102, noise=0.05)
    errors = np.abs(fit.predict("kernel", params) / law.seconds(params) - 1)
    low, high = fit.interval("kernel", measured.params)
    inside = (measured.seconds >= low) & (measured.seconds <= high)
    assert errors.mean() < 0.03
    assert 0.85 < inside.mean() < 0.97


def test_the_same_lines_give_the_same_predictions() -> None:
    timings = LAWS["linear"].timings(30, 1, noise=0.05)
    first, second = (fitted(timings).predict("kernel", timings.params) for _ in range(2))
    assert (first == second).all()


def test_intervals_widen_beyond_the_samples() -> None:
    fit = fitted(LAWS["linear"].timings(40, 1, noise=0.05))
    low, high = fit.interval("kernel", np.array([[500.0], [1e6]]))
    assert high[1] / low[1] > 1.2 * high[0] / low[0]
    assert fit.predict_detailed("kernel", np.array([[500.0], [1e6]])).outside.tolist() == [0, 1]


def test_zeros_in_a_column_and_rows_that_are_no_numbers() -> None:
    params = np.array([[0.0], [1.0], [2.0], [4.0], [8.0]])
    fit = fitted(EventTimings("kernel", params, 1e-6 * (1 + params[:, 0])))
    seconds = fit.predict("kernel", np.array([[0.0], [np.nan], [3.0]]))
    assert np.isnan(seconds).tolist() == [False, True, False]
    assert seconds[2] == pytest.approx(4e-6, rel=0.3)


@pytest.mark.parametrize(("times", "expected"), [([4e-6], 4e-6), ([1e-6, 4e-6], 2e-6)])
def test_too_few_samples_give_their_geometric_mean(times: list[float], expected: float) -> None:
    fit = fitted(EventTimings("kernel", np.ones((len(times), 1)), np.array(times)))
    assert fit.predict("kernel", np.array([[7.0]]))[0] == pytest.approx(expected)
    assert np.isnan(fit.interval("kernel", np.array([[7.0]]))).all()


def test_events_with_zeros_alone_are_not_covered_and_said() -> None:
    fit = fitted(EventTimings("tiny", np.ones((3, 1)), np.zeros(3)))
    assert np.isnan(fit.predict("tiny", np.ones((1, 1)))).all()
    assert "tiny" in fit.warnings()[0]


def test_a_process_fits_in_no_model_file() -> None:
    fit = fitted(LAWS["linear"].timings(10, 1, noise=0.05))
    with pytest.raises(ModelError, match="holds formulas and no code"):
        writable(fit, "gaussian-process")


def test_without_scikit_learn_the_model_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gaussian_process, "find_spec", lambda _name: None)
    assert default_models() == ("auto", "least-squares")
    with pytest.raises(ModelError, match=r"pip install 'rewritelog\[gaussian-process\]'"):
        GaussianProcess(GaussianProcessOptions())


def test_the_package_declares_the_model() -> None:
    text = (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")
    assert 'gaussian-process = "rewritelog.models.gaussian_process:GaussianProcess"' in text
    if "gaussian-process" not in known_models():
        pytest.skip("rewritelog was installed before it had this model")
    pytest.importorskip("sklearn", reason=WHY)
    assert default_models() == ("auto", "gaussian-process", "least-squares")
