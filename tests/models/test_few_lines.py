"""Fits of one to three lines, which leave nothing or little to choose."""

import numpy as np
import pytest

from rewritelog.models.base import EventTimings
from rewritelog.models.fit_json import event_in_file
from rewritelog.models.fitting.pipeline import FitConfig, fit_event
from rewritelog.models.fitting.samples import Weighting


def fitted(timings: EventTimings, config: FitConfig) -> object:
    """Return all that is known of a fit, to the bit."""
    return event_in_file(fit_event(timings, config))


def single_samples() -> list[EventTimings]:
    rng = np.random.default_rng(3)
    times = [*(10 ** rng.uniform(-9, 3, 60)), 0.0, -1.0, 1e-300, 5e-324, 1e300, 1e-280, 1e280]
    return [
        EventTimings(
            "lost::cycles" if place % 7 == 0 else "kernel",
            rng.integers(-5, 1000, (1, place % 4)).astype(np.float64),
            np.array([time_s]),
        )
        for place, time_s in enumerate(times)
    ]


@pytest.mark.parametrize("weights", ["relative", "uniform"])
@pytest.mark.parametrize("loss", ["huber", "squares"])
def test_one_sample_is_fitted_as_several_are(
    monkeypatch: pytest.MonkeyPatch, weights: Weighting, loss: str
) -> None:
    config = FitConfig(weights, "huber" if loss == "huber" else "squares", "always")
    samples = single_samples()
    short = [fitted(one, config) for one in samples]
    monkeypatch.setattr("rewritelog.models.fitting.pipeline.is_one_sample", lambda _: False)
    assert short == [fitted(one, config) for one in samples]


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
