"""Constant, copied, few, absurd: odd samples give fewer terms, never an error or huge values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from kinds import MakeTimings
from models.fitting import coefficients, dropped, fit, only

from rewritelog.models.auto import Auto, AutoOptions
from rewritelog.models.base import EventTimings
from rewritelog.models.fit_report import weak_points


def test_constant_columns_are_dropped_by_name(event: MakeTimings) -> None:
    p = np.arange(10.0)
    fitted = fit(event(p, np.full(10, -0.0), np.full(10, 3.5), seconds=1 + p))
    reason = "p2 is constant 0 in all samples"
    assert dropped(fitted)["p2"] == dropped(fitted)["p2^2"] == reason
    assert dropped(fitted)["p3"] == "p3 is constant 3.5 in all samples"
    assert coefficients(fitted) == pytest.approx({"1": 1, "p1": 1, "p1^2": 0}, abs=1e-12)
    assert "only one value of p2, p3" in " ".join(fitted.warnings())


def test_a_parameter_that_varies_by_rounding_only_counts_as_constant(event: MakeTimings) -> None:
    p = np.array([0.1, 0.1 + 2e-17, np.nextafter(0.1, 1)])
    fitted = fit(event(p, seconds=[1.0, 2.0, 3.0]))
    assert coefficients(fitted) == pytest.approx({"1": 2.0})


@pytest.mark.parametrize(
    "second", [lambda p: p, lambda p: 2 * p + 3, lambda p: -p / 3, lambda p: 1e6 * p]
)
def test_a_collinear_parameter_is_dropped_and_changes_nothing(
    event: MakeTimings, second: Any
) -> None:
    p = np.arange(1.0, 30)
    seconds = 1e-6 * (1 + p + 0.1 * p**2) + 1e-8 * np.sin(p)
    alone, both = fit(event(p, seconds=seconds)), fit(event(p, second(p), seconds=seconds))
    reason = "a linear combination of the other terms"
    assert dropped(both) == {"p2": reason, "p2^2": reason}
    assert coefficients(both) == pytest.approx(coefficients(alone), rel=1e-9)
    assert "other parameters determine p2" in " ".join(both.warnings())


def test_a_parameter_copied_with_six_printed_digits_gives_no_huge_coefficients(
    event: MakeTimings,
) -> None:
    rng = np.random.default_rng(12)
    p = rng.uniform(0, 100, 100)
    copied = np.round(p / 3, 6)
    fitted = fit(event(p, copied, seconds=1e-6 * p + rng.normal(0, 1e-7, 100)))
    assert "p2" in dropped(fitted)
    assert max(map(abs, coefficients(fitted).values())) < 1e-5


def test_the_square_of_a_sum_is_kept_where_the_sum_is_dropped(event: MakeTimings) -> None:
    rng = np.random.default_rng(13)
    p1, p2 = rng.uniform(3, 9, (2, 60))
    seconds = 1 + p1 + 2 * p2 + 0.5 * (p1 + p2) ** 2
    fitted = fit(event(p1, p2, p1 + p2, seconds=seconds))
    assert list(dropped(fitted)) == ["p3"]
    expected = {"1": 1, "p1": 1, "p1^2": 0, "p2": 2, "p2^2": 0, "p3^2": 0.5}
    assert coefficients(fitted) == pytest.approx(expected, abs=1e-8)
    predicted = fitted.predict("kernel", np.column_stack((p1, p2, p1 + p2)))
    assert predicted == pytest.approx(seconds, rel=1e-12)


def test_a_binary_parameter_has_no_square(event: MakeTimings) -> None:
    p = np.array([0.0, 1, 0, 1, 1, 0])
    fitted = fit(event(p, seconds=[1.0, 3, 1, 3, 3, 1]))
    assert dropped(fitted) == {"p1^2": "a linear combination of the other terms"}
    assert coefficients(fitted) == pytest.approx({"1": 1.0, "p1": 2.0})
    assert fitted.warnings() == ()


@pytest.mark.parametrize(
    ("count", "kept"),
    [
        (1, ["1"]),
        (2, ["1", "p1"]),
        (3, ["1", "p1", "p2"]),
        (4, ["1", "p1", "p2", "p1^2"]),
        (5, ["1", "p1", "p2", "p1^2", "p2^2"]),
    ],
)
def test_few_samples_give_few_terms_lower_orders_first(
    event: MakeTimings, count: int, kept: Any
) -> None:
    p1, p2 = np.array([3.0, 5, 2, 9, 4]), np.array([1.0, 7, 8, 2, 2])
    seconds = np.array([1.0, 2, 5, 3, 4])
    samples = event(p1[:count], p2[:count], seconds=seconds[:count])
    fitted = fit(samples)
    described = only(fitted)
    assert list(coefficients(fitted)) == kept
    assert described["degrees_of_freedom"] == 0
    assert {term["standard_error"] for term in described["coefficients"]} == {None}
    assert fitted.predict("kernel", samples.params) == pytest.approx(seconds[:count])
    assert "add timing lines" in " ".join(fitted.warnings()) or count == 1
    assert "no degree of freedom" in " ".join(fitted.summary())


def test_equal_samples_are_one_sample_for_the_fit(event: MakeTimings) -> None:
    fitted = fit(event(np.full(4, 2.0), np.full(4, 3.0), seconds=[1.0, 2, 3, 4]))
    assert coefficients(fitted) == pytest.approx({"1": 2.5})
    assert only(fitted)["degrees_of_freedom"] == 3


def test_constant_times_have_no_r2(event: MakeTimings) -> None:
    fitted = fit(event([1.0, 2, 3, 7, 9], seconds=[0.1] * 5))
    described = only(fitted)
    assert described["r2"] is None
    assert described["chi2"] == 0
    assert fitted.predict("kernel", np.array([[1.0], [5], [1000]])).tolist() == [0.1] * 3
    assert "R² undefined" in fitted.summary()[0]


def test_times_that_are_all_zero_are_too_short_for_the_clock(event: MakeTimings) -> None:
    fitted = fit(event(np.arange(40.0), seconds=np.zeros(40)))
    assert "all times are 0: its calls are shorter than the clock" in " ".join(fitted.warnings())
    assert "all zero" in "".join(fitted.overview())
    replayed = fit(EventTimings("lost::start", np.arange(40.0)[:, None], np.zeros(40)))
    assert not replayed.warnings()


@pytest.mark.parametrize(
    ("step_s", "scale", "text"),
    [(1e-6, 0.05, "1.00 µs"), (1e-6, 0.2, "1.00 µs"), (1 / 3e6, 0.1, "333 ns")],
)
def test_times_of_few_steps_are_too_short_for_the_clock(
    event: MakeTimings, step_s: float, scale: float, text: str
) -> None:
    rng = np.random.default_rng(3)
    p, start = rng.uniform(1, 9, 200), rng.uniform(size=200)
    fitted = Auto(AutoOptions()).fit([event(p, seconds=np.floor(start + scale * p) * step_s)])
    (warning,) = fitted.warnings()
    assert f"few steps of the clock, {text} each" in warning
    assert "coarse clock" in "".join(fitted.overview())


def test_short_calls_that_the_clock_makes_zero_are_not_called_disturbed(event: MakeTimings) -> None:
    """Their errors relative to 0 are undefined, so the mean error of the long ones is small."""
    rng = np.random.default_rng(3)
    p = np.round(np.exp(rng.uniform(np.log(10), np.log(1000), 400)))
    seconds = (2e-9 * p**2 + 1e-6) * rng.normal(1, 0.03, 400)
    fitted = Auto(AutoOptions()).fit([event(p, seconds=np.floor(seconds / 1e-5) * 1e-5)])
    (warning,) = fitted.warnings()
    assert "few steps of the clock, 10.0 µs each" in warning
    assert "coarse clock" in "".join(fitted.overview())


@pytest.mark.parametrize("steps", [6, 10])
def test_totals_are_those_measured_where_the_clock_makes_most_times_zero(
    sample_timings: list[EventTimings], steps: int
) -> None:
    """Of real times on such a clock the usual one is 0, and totals were 0, or 1,400 times too long.

    The step of the clock is so many times the mean time.
    """
    rng = np.random.default_rng(1)
    for samples in sample_timings:
        step_s = steps * samples.seconds.mean()
        start_s = rng.uniform(0, step_s, len(samples.seconds))
        read_s = np.floor((start_s + samples.seconds) / step_s) * step_s
        fitted = Auto(AutoOptions()).fit([EventTimings(samples.event, samples.params, read_s)])
        predicted_s = fitted.predict(samples.event, samples.params)
        factors = fitted.retransformation(samples.event, samples.params)
        assert factors is not None
        assert (predicted_s * factors).sum() == pytest.approx(read_s.sum(), rel=0.1)
        assert predicted_s.sum() == pytest.approx(read_s.sum(), rel=0.1)


def test_times_that_repeat_or_are_few_are_no_sign_of_a_coarse_clock(event: MakeTimings) -> None:
    steps = np.repeat([1.0, 2, 3, 4], 9)
    exact = fit(event(steps, seconds=1e-6 * steps))
    few = fit(event(np.arange(1.0, 9), seconds=[1.0, 3, 2, 5, 2, 7, 3, 8]))
    assert not any("clock" in text for text in exact.warnings() + few.warnings())


def test_the_largest_number_as_a_parameter_ends_no_fit(event: MakeTimings) -> None:
    """As where it stands for "no limit": the singular values of its column did not converge."""
    limit = [0.0, 0.0, np.finfo(np.float64).max]
    fitted = fit(event(limit, [1.0, 0, 0], seconds=[2.0, 1, 1]))
    assert fitted.predict("kernel", np.array([[0.0, 1], [0, 0]])) == pytest.approx([2, 1])


def test_a_fit_below_zero_is_warned_of(event: MakeTimings) -> None:
    samples = event([1.0, 2, 3, 4, 5, 6], seconds=[9.0, 4, 2, 1, 0.02, 0.01])
    (fitted,) = fit(samples).fits.values()
    assert "choose other terms, or add lines" in weak_points(fitted)[-1].text


def test_no_parameters_give_the_mean(event: MakeTimings) -> None:
    samples = event(seconds=[1.0, 2, 6])
    fitted = fit(samples, exact_match="always")
    assert coefficients(fitted) == pytest.approx({"1": 3.0})
    judged = fitted.predict_detailed("kernel", np.empty((4, 0)))
    assert judged.seconds == pytest.approx([3.0] * 4)
    assert judged.exact.all()
    assert not judged.outside.any()
    assert fitted.warnings() == ()


def test_twenty_parameters_come_back(event: MakeTimings) -> None:
    rng = np.random.default_rng(14)
    columns = rng.uniform(0, 50, (20, 300))
    slopes = np.arange(1, 21) * 1e-7
    fitted = fit(event(*columns, seconds=slopes @ columns))
    assert len(coefficients(fitted)) == 41
    fitted_slopes = [coefficients(fitted)[f"p{number}"] for number in range(1, 21)]
    assert fitted_slopes == pytest.approx(slopes, rel=1e-6)
    assert "(p1, ..., p20)" in fitted.summary()[0]
    assert max(map(len, fitted.summary())) <= 100


def test_huge_ranges_stay_accurate(event: MakeTimings) -> None:
    rng = np.random.default_rng(15)
    p1, p2 = 10 ** rng.uniform(0, 6, 400), rng.uniform(0, 1e-6, 400)
    seconds = 1e-3 + 1e-9 * p1 + 2e-15 * p1**2 + 3e2 * p2
    samples = event(p1, p2, seconds=seconds)
    assert fit(samples).predict("kernel", samples.params) == pytest.approx(seconds, rel=1e-10)


@pytest.mark.parametrize("size", [1e-200, 1e200])
def test_absurd_magnitudes_give_reports_and_no_warnings(event: MakeTimings, size: Any) -> None:
    samples = event(np.array([-1.0, 0, 1, 0.5]) * size, seconds=[1.0, 2, 3, 2.4])
    fitted = fit(samples)
    only(fitted)
    assert fitted.predict("kernel", samples.params) == pytest.approx([1, 2, 3, 2.4], rel=0.1)
    fitted.predict("kernel", np.array([[1e308], [-1e308], [np.nan], [np.inf]]))
    fitted.summary()


def test_samples_that_are_not_finite_are_left_aside_and_warned_of(event: MakeTimings) -> None:
    samples = event([1.0, 2, np.nan, 4, 5], seconds=[1.0, 2, 3, 4, np.inf])
    fitted = fit(samples, EventTimings("lost", np.array([[np.nan]]), np.array([1.0])))
    assert only(fitted)["unusable_samples"] == 2
    assert fitted.predict("kernel", np.array([[3.0]])) == pytest.approx([3.0])
    assert np.isnan(fitted.predict("lost", np.array([[1.0]]))).all()
    assert "2 samples with numbers that are not finite left out" in " ".join(fitted.warnings())
    assert "lost(p1): no usable timing sample" in " ".join(fitted.warnings())


@pytest.mark.parametrize(
    "columns",
    [
        ([1.0, 0, 0, 1e6], [1e6, 1, 0, 1e6]),  # each differs enough from the others, not all three
        ([3.5, 1e12, 0.0, 1.0],),  # a parabola through the three near 0 and the one far off
    ],
)
def test_terms_that_are_nearly_dependent_give_no_huge_predictions(
    event: MakeTimings, columns: tuple[list[float], ...]
) -> None:
    """Within the samples' range there is no prediction beyond the times divided by 1e-7."""
    seconds = np.array([1.0, 0, 1, 1])
    samples = event(*columns, seconds=seconds)
    fitted = fit(samples)
    between = np.linspace(samples.params.min(axis=0), samples.params.max(axis=0), 101)
    assert np.abs(fitted.predict("kernel", between)).max() < 1e7
    length = np.linalg.norm(fitted.predict("kernel", samples.params) - 0.5)
    assert length <= np.linalg.norm(seconds - 0.5) * (1 + 1e-8)


VALUES = st.sampled_from([0.0, -0.0, 1.0, 2.0, 3.5, 1e-9, 1e6, 1e6 + 1, 1e12, -7.0]) | st.floats(
    -1e15, 1e15
)


@settings(deadline=None)
@given(st.data(), st.integers(1, 12), st.integers(0, 5))
def test_whatever_the_samples_the_fit_stays_among_them(
    data: st.DataObject, rows: int, columns: int
) -> None:
    """A least-squares fit is a projection: about the times' middle it is no longer than they."""
    params = data.draw(hnp.arrays(np.float64, (rows, columns), elements=VALUES))
    seconds = data.draw(hnp.arrays(np.float64, rows, elements=st.floats(0, 10)))
    fitted = fit(EventTimings("kernel", params, seconds))
    described = only(fitted)
    assert 1 <= len(described["coefficients"]) <= rows
    assert len(described["coefficients"]) + len(described["dropped"]) == 2 * columns + 1
    middle = (seconds.min() + seconds.max()) / 2
    length = np.linalg.norm(fitted.predict("kernel", params) - middle)
    assert length <= np.linalg.norm(seconds - middle) * (1 + 1e-7) + 1e-12
    fitted.summary()
    fitted.warnings()


def test_a_fit_that_explains_little_is_warned_of(event: MakeTimings) -> None:
    rng = np.random.default_rng(17)
    fitted = fit(event(rng.uniform(0, 1, 500), seconds=rng.uniform(0, 1, 500)))
    assert "explain little of the time" in " ".join(fitted.warnings())
