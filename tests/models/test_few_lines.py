"""Fits of one to three lines, which leave nothing or little to choose."""

import numpy as np
import pytest

from rewritelog.models.base import EventTimings
from rewritelog.models.fitting.pipeline import FitConfig, fit_event
from rewritelog.models.fitting.samples import Weighting


@pytest.mark.parametrize("weights", ["relative", "uniform"])
@pytest.mark.parametrize("time_s", [*np.logspace(-9, 3, 13), 0.0, 1e-300, 1e-280, 1e280])
def test_one_sample_is_a_constant(weights: Weighting, time_s: float) -> None:
    config = FitConfig(weights, exact_match="never")
    fit = fit_event(EventTimings("kernel", np.array([[3.0, -2.0]]), np.array([time_s])), config)
    assert [str(term) for term in fit.whole.function.terms] == ["1"]
    assert fit.whole.quality.dof == 0
    assert fit.predict(np.array([[3.0, -2.0]])) == pytest.approx(time_s, rel=1e-15)


def test_three_samples_have_a_power_that_meets_all_of_them() -> None:
    rng = np.random.default_rng(4)
    met = 0
    for _ in range(150):
        params = rng.integers(1, 50, (3, 2)) * 10.0 ** rng.integers(-3, 4)
        exponents = rng.choice([0, 0, 0.5, 1, 1 / 3, 4 / 3, 2, -1], 2)
        noise = rng.choice([0, 0.004, 0.01, 0.3])
        seconds = 1e-6 * (params**exponents).prod(axis=1) * np.exp(noise * rng.normal(size=3))
        fit = fit_event(EventTimings("kernel", params, seconds), FitConfig())
        if fit.whole.family == "product":
            met += 1
            assert fit.predict(params) == pytest.approx(seconds, rel=0.011)
    assert 20 < met < 130
