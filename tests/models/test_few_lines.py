"""Fits of one to three lines, too few to hold any out."""

import numpy as np
import pytest

from rewritelog.models.base import EventTimings
from rewritelog.models.fitting.event_fit import EventFit
from rewritelog.models.fitting.function import FittedFunction, FittedMixture
from rewritelog.models.fitting.pipeline import FitConfig, fit_event


def cube(*sizes: float, noise: float = 0.03) -> EventFit:
    """Return the fit of one line for each size, whose times are 1e-5 s + 1e-10 s of each cell."""
    n = np.array(sizes)
    errors = np.exp(noise * np.random.default_rng(1).normal(size=len(n)))
    return fit_event(EventTimings("cube", n[:, None], (1e-5 + 1e-10 * n**3) * errors), FitConfig())


def test_three_lines_of_a_cube_predict_larger_ones() -> None:
    """It was a multiple of n, which was off by a factor of 1000."""
    predicted_s = cube(64, 256, 1024).predict(np.array([[512.0], [4096.0]]))
    assert predicted_s == pytest.approx([0.01343, 6.872], rel=0.15)


def test_two_lines_show_how_the_time_grows() -> None:
    (predicted_s,) = cube(64, 256).predict(np.array([[1024.0]]))
    assert 0.5 < predicted_s / 0.1074 < 2


def test_three_lines_of_a_product_are_met() -> None:
    rng = np.random.default_rng(4)
    for exponents in ((1, 1), (1, 0), (0, 2), (1, 0.5)):
        params = np.round(10 ** rng.uniform(0, 3, (3, 2)))
        seconds = 1e-6 * (params**exponents).prod(axis=1)
        fit = fit_event(EventTimings("kernel", params, seconds), FitConfig())
        assert fit.predict(params) == pytest.approx(seconds, rel=0.02)


@pytest.mark.parametrize("seed", range(3))
def test_exact_times_of_a_sum_have_that_sum_alone(seed: int) -> None:
    """It was a geometric mean of the sum in up to four different forms."""
    params = np.random.default_rng(seed).integers(1, 1000, (30, 2)).astype(np.float64)
    timings = EventTimings("kernel", params, 2e-6 * params[:, 0] + 3e-6 * params[:, 1])
    function = fit_event(timings, FitConfig()).whole.function
    assert isinstance(function, FittedFunction)
    assert sorted(map(str, function.terms)) == ["p1", "p2"]


def test_calls_where_members_of_a_mixture_differ_are_not_extrapolated_for_that() -> None:
    """One term has no combinations: a few calls in a hundred counted as further out than lines."""
    rng = np.random.default_rng(7)
    params = np.column_stack((rng.integers(16, 128, 27), rng.integers(1, 9, 27))).astype(float)
    seconds = 4e-11 * params[:, 0] ** 2 * params[:, 1] * np.exp(0.02 * rng.normal(size=27))
    fit = fit_event(EventTimings("kernel", params, seconds), FitConfig())
    function = fit.whole.function
    assert isinstance(function, FittedMixture)
    assert len(function.terms) == 1
    inside = rng.uniform(params.min(axis=0), params.max(axis=0), (300, 2))
    assert not np.any(fit.predict_detailed(inside).remote)
