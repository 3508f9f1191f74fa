"""Fits of one to three lines, which leave nothing or little to choose."""

import numpy as np
import pytest

from rewritelog.models.base import EventTimings
from rewritelog.models.fitting.pipeline import FitConfig, fit_event


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
