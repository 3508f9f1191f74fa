"""The automatic model on samples that nobody would choose: plain, finite and never below zero."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from chosen import by_tier
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from kinds import MakeTimings
from models.fitting import dropped
from models.laws import LAWS, auto, errors_elsewhere, relative_errors
from numpy.typing import ArrayLike

from rewritelog.arrays import Floats
from rewritelog.models.base import EventTimings, ModelFit


def predicted(fitted: ModelFit, params: ArrayLike) -> Any:
    return fitted.predict("kernel", np.array(params, dtype=np.float64))


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5])
def test_a_few_samples_of_a_multiple_give_that_multiple(event: MakeTimings, count: int) -> None:
    p = np.array([7.0, 20.0, 3.0, 11.0, 40.0])[:count]
    fitted = auto(event(p, seconds=2e-6 * p))
    assert predicted(fitted, p[:, None]) == pytest.approx(2e-6 * p, rel=1e-3)
    assert 0 < predicted(fitted, [[10.0]])[0] < 1e-4


def test_one_sample_says_its_time_for_everything(event: MakeTimings) -> None:
    fitted = auto(event([7.0], [3.0], seconds=[5e-6]))
    assert predicted(fitted, [[7, 3], [8, 3], [1000, 0]]) == pytest.approx([5e-6] * 3)
    assert fitted.warnings()


@pytest.mark.parametrize("count", by_tier(range(1, 31), (1, 2, 3, 5, 8, 13, 21)))
def test_any_number_of_noisy_samples_gives_a_fit_that_is_no_worse_than_their_spread(
    count: int,
) -> None:
    law = LAWS["sum and product"]
    timings = law.timings(count, seed=count, noise=0.05)
    fitted = auto(timings)
    seconds = predicted(fitted, law.params(100, np.random.default_rng(1)))
    assert (seconds >= 0).all()
    assert seconds.max() < 20 * law.seconds(np.array([[100.0, 100.0]]))[0]


def test_an_event_without_parameters_is_its_usual_time(event: MakeTimings) -> None:
    rng = np.random.default_rng(1)
    seconds = 1e-5 * rng.normal(1, 0.01, 50)
    seconds[0] = 1e-3
    fitted = auto(event(seconds=seconds))
    assert fitted.predict("kernel", np.zeros((3, 0))) == pytest.approx([1e-5] * 3, rel=0.01)


def test_constant_parameters_are_left_out_and_named(event: MakeTimings) -> None:
    p = np.arange(1.0, 31)
    fitted = auto(event(p, np.full(30, -0.0), np.full(30, 3.5), seconds=1e-6 * p))
    assert predicted(fitted, [[10, 0, 3.5]]) == pytest.approx([1e-5], rel=1e-3)
    reasons = dropped(fitted)
    assert "constant 0" in reasons["p2"]
    assert "constant 3.5" in reasons["p3"]


@pytest.mark.parametrize("second", [lambda p: p, lambda p: 2 * p + 3, lambda p: 1e6 * p])
def test_a_copied_parameter_changes_nothing(event: MakeTimings, second: Any) -> None:
    p = np.arange(1.0, 61)
    seconds = 1e-6 * (3 + p) * np.random.default_rng(2).normal(1, 0.02, 60)
    alone = predicted(auto(event(p, seconds=seconds)), p[:, None])
    both = predicted(auto(event(p, second(p), seconds=seconds)), np.column_stack((p, second(p))))
    assert both == pytest.approx(alone, rel=0.01)


def test_collinear_parameters_give_no_huge_coefficients(event: MakeTimings) -> None:
    rng = np.random.default_rng(3)
    p, q = rng.uniform(1, 100, (2, 80))
    seconds = 1e-6 * (p + 2 * q) * rng.normal(1, 0.02, 80)
    fitted = auto(event(p, q, p + q, p - q + 1e-7 * rng.normal(size=80), seconds=seconds))
    rows = np.column_stack((p, q, p + q, p - q))
    assert relative_errors(predicted(fitted, rows), seconds).mean() < 0.03
    (described,) = fitted.describe()["events"]
    assert json.dumps(described, allow_nan=False)


def test_zero_times_do_not_pull_the_others_down(event: MakeTimings) -> None:
    p = np.arange(1.0, 61)
    seconds = 1e-6 * p
    seconds[10::20] = 0.0
    fitted = auto(event(p, seconds=seconds))
    assert predicted(fitted, [[30.0]]) == pytest.approx([30e-6], rel=0.02)


@pytest.mark.parametrize("seed", [3, 6, 7])
def test_zero_times_of_large_calls_do_not_pull_the_others_down(
    event: MakeTimings, seed: int
) -> None:
    """In units of the median they weighed up to a hundred times as much as any other."""
    rng = np.random.default_rng(seed)
    p = np.exp(rng.uniform(np.log(10), np.log(1e5), 100))
    seconds = (1e-7 + 2e-9 * p) * rng.lognormal(0, 0.05, 100)
    seconds[rng.random(100) < 0.3] = 0.0
    sizes = np.geomspace(10, 1e5, 41)
    ratios = predicted(auto(event(p, seconds=seconds)), sizes[:, None]) / (1e-7 + 2e-9 * sizes)
    assert 0.8 < ratios.min() <= ratios.max() < 1.3


@pytest.mark.slow
@pytest.mark.parametrize(("count", "seed"), [(100, 3), (200, 4)])
def test_times_over_twelve_decades_are_all_as_good(
    event: MakeTimings, count: int, seed: int
) -> None:
    """Those below a thousandth of the median counted little: more than ten times was predicted."""
    rng = np.random.default_rng(seed)
    p = 10 ** rng.uniform(0, 12, count)
    fitted = auto(event(p, seconds=1e-9 * (1 + p) * rng.lognormal(0, 0.2, count)))
    sizes = np.geomspace(1, 1e12, 49)
    ratios = predicted(fitted, sizes[:, None]) / (1e-9 * (1 + sizes))
    assert 0.5 < ratios.min() <= ratios.max() < 2


def test_all_zero_times_are_predicted_as_zero(event: MakeTimings) -> None:
    p = np.arange(1.0, 21)
    assert predicted(auto(event(p, seconds=np.zeros(20))), [[1.0], [30.0]]) == pytest.approx([0, 0])


@pytest.mark.parametrize("count", [3, 5, 40])
def test_equal_times_are_predicted_as_they_are(event: MakeTimings, count: int) -> None:
    p = np.arange(1.0, count + 1)
    fitted = auto(event(p, p[::-1] ** 2, seconds=np.full(count, 4e-6)))
    assert predicted(fitted, [[1.0, 1.0], [2.5, 9.0]]) == pytest.approx([4e-6, 4e-6], rel=0.01)


def test_negative_parameters_are_as_good_as_others(event: MakeTimings) -> None:
    p = np.linspace(-50, 50, 101)
    fitted = auto(event(p, seconds=1e-6 * (10 + p**2)))
    assert predicted(fitted, [[-33.5], [0.5]]) == pytest.approx(
        1e-6 * np.array([10 + 33.5**2, 10.25]), rel=0.01
    )


@pytest.mark.parametrize(("lowest", "highest"), [(-50, 50), (-50, -1)])
def test_times_grow_beyond_negative_parameters_as_beyond_positive_ones(
    event: MakeTimings, lowest: int, highest: int
) -> None:
    """No prediction below a negative least value was longer than the longest line."""
    p = np.arange(lowest, highest + 1.0)
    seconds = 1e-6 * (10 + p**2) * np.random.default_rng(5).normal(1, 0.02, len(p))
    fitted, mirrored = auto(event(p, seconds=seconds)), auto(event(-p, seconds=seconds))
    rows = np.array([[-100.0], [-500.0], [-5000.0]])
    assert predicted(fitted, rows) == pytest.approx(1e-6 * (10 + rows[:, 0] ** 2), rel=0.1)
    assert predicted(mirrored, -rows) == pytest.approx(predicted(fitted, rows), rel=0.1)


def test_a_divisor_of_0_counts_as_nearly_1_if_all_samples_are_above_it(event: MakeTimings) -> None:
    """It was the only one whose times could not be longer than the longest line."""
    processors = np.repeat(2.0 ** np.arange(2, 9), 6)
    sizes = np.random.default_rng(3).uniform(10, 50, len(processors))
    fitted = auto(event(processors, sizes, seconds=1e-5 * sizes / processors))
    at_0, nearly_1 = (predicted(fitted, [[p, 20.0], [p, 40.0]]) for p in (0.0, 0.8))
    assert at_0 == pytest.approx(nearly_1)
    assert at_0[1] == pytest.approx(2 * at_0[0])


def test_times_that_fall_towards_zero_stay_above_it(event: MakeTimings) -> None:
    p = np.arange(0.0, 100)
    fitted = auto(event(p, seconds=1e-6 * (100.5 - p)))
    inside = predicted(fitted, p[:, None])
    assert relative_errors(inside, 1e-6 * (100.5 - p)).mean() < 0.2
    assert (predicted(fitted, [[100.4], [110.0], [1e4]]) > 0).all()


@pytest.mark.parametrize("unit", by_tier((1e-200, 1e-9, 1e9, 1e140), (1e-200, 1e140)))
def test_parameters_and_times_of_any_size_give_the_same_law(
    event: MakeTimings, unit: float
) -> None:
    rng = np.random.default_rng(4)
    p = rng.uniform(1, 100, 60)
    fitted = auto(event(p * unit, seconds=1e-6 * p * rng.normal(1, 0.02, 60)))
    assert predicted(fitted, [[50 * unit]]) == pytest.approx([5e-5], rel=0.03)
    fitted = auto(event(p, seconds=unit * p * rng.normal(1, 0.02, 60)))
    assert predicted(fitted, [[50]]) == pytest.approx([50 * unit], rel=0.03)


@pytest.mark.parametrize("count", [3, 40])
def test_a_parameter_smaller_than_all_normal_numbers_is_no_reason_to_fail(
    event: MakeTimings, count: int
) -> None:
    """Coefficients of such parameters overflow; fits ended in an IndexError, or predicted NaN.

    A correction of enough samples knows them by their logarithms.
    """
    p = np.arange(1.0, count + 1)
    fitted = auto(event(5e-324 * p, seconds=1e-6 * p))
    times = predicted(fitted, 5e-324 * p[:, None])
    expected = 1e-6 * p if count == 40 else np.full(count, np.median(1e-6 * p))
    assert times == pytest.approx(expected, rel=0.1)
    assert any("only one value" in text for text in fitted.warnings())


def test_times_over_many_decades_are_fitted(event: MakeTimings) -> None:
    rng = np.random.default_rng(25)
    sizes = np.round(10.0 ** rng.uniform(0, 3, (2, 22)))
    fitted = auto(event(*sizes, seconds=10.0 ** rng.uniform(-150, 99, 22)))
    assert np.isfinite(predicted(fitted, sizes.T)).all()


def test_samples_with_numbers_that_are_not_finite_are_left_aside(event: MakeTimings) -> None:
    law = LAWS["linear"]
    good = law.timings(40, seed=5, noise=0.01)
    params = np.vstack((good.params, [[np.nan], [np.inf], [5.0], [6.0]]))
    seconds = np.concatenate((good.seconds, [1.0, 1.0, np.nan, np.inf]))
    fitted = auto(EventTimings("kernel", params, seconds))
    alone = auto(good)
    assert predicted(fitted, good.params).tobytes() == predicted(alone, good.params).tobytes()
    assert any("4 samples" in text for text in fitted.warnings()), fitted.warnings()


def test_an_event_without_any_finite_sample_is_not_covered(event: MakeTimings) -> None:
    fitted = auto(event([1.0, np.nan], seconds=[np.nan, 1.0]))
    assert np.isnan(predicted(fitted, [[1.0]])).all()
    assert "not covered" in " ".join(fitted.warnings())


def test_rows_with_numbers_that_are_not_finite_do_not_disturb_the_others() -> None:
    law = LAWS["three loop bounds"]
    fitted = auto(law.timings(40, seed=6, noise=0.01))
    rows = law.params(3, np.random.default_rng(1))
    alone = predicted(fitted, rows)
    with_odd = predicted(fitted, np.vstack((rows, [[np.nan, 1, 1]])))
    assert with_odd[:3].tobytes() == alone.tobytes()


def test_repeated_rows_are_no_more_than_what_they_are(event: MakeTimings) -> None:
    p = np.repeat(np.array([1.0, 10.0, 100.0]), 40)
    seconds = 1e-6 * p * np.random.default_rng(7).normal(1, 0.05, 120)
    fitted = auto(event(p, seconds=seconds))
    assert predicted(fitted, [[1.0], [10.0], [100.0]]) == pytest.approx(
        [1e-6, 1e-5, 1e-4], rel=0.03
    )
    assert 1e-6 < predicted(fitted, [[5.0]])[0] < 1e-5


@pytest.mark.parametrize("name", by_tier(LAWS, ("constant", "n log n", "sum and product")))
@pytest.mark.parametrize(("count", "factor"), [(5, 30), (12, 10), (60, 4)])
def test_ten_per_cent_outside_of_the_samples_nothing_explodes(
    name: str, count: int, factor: float
) -> None:
    law = LAWS[name]
    timings = law.timings(count, seed=8 + count, noise=0.05)
    fitted = auto(timings)
    low, high = timings.params.min(axis=0), timings.params.max(axis=0)
    margin = 0.1 * (high - low)
    corners = np.array(np.meshgrid(*zip(low - margin, high + margin, strict=True)))
    rows = corners.reshape(len(low), -1).T
    seconds = predicted(fitted, rows)
    assert not (seconds < 0).any()
    assert np.nanmax(seconds) < factor * law.seconds(np.clip(rows, low, high)).max()


def test_a_step_in_the_times_does_not_swing_beyond_them(event: MakeTimings) -> None:
    p = np.arange(1.0, 201)
    seconds = np.where(p < 100, 1e-6, 5e-6)
    rows = np.linspace(1, 220, 500)[:, None]
    seconds = predicted(auto(event(p, seconds=seconds)), rows)
    assert (seconds > 0.1e-6).all()
    assert (seconds <= 15e-6).all()


@pytest.mark.slow
def test_pure_noise_is_predicted_by_its_level(event: MakeTimings) -> None:
    rng = np.random.default_rng(9)
    params = rng.uniform(1, 100, (14, 60))
    seconds = 1e-5 * np.exp(rng.normal(0, 0.3, 60))
    elsewhere = rng.uniform(1, 100, (200, 14))
    times = predicted(auto(event(*params, seconds=seconds)), elsewhere)
    assert times.mean() == pytest.approx(1e-5, rel=0.25)
    assert times.max() < 4e-5


@pytest.mark.long
def test_a_hundred_thousand_samples_of_eight_parameters_with_outliers_come_out_right() -> None:
    rng = np.random.default_rng(10)
    params = np.round(10 ** rng.uniform(0, 2, (100_000, 8)), 2)
    p = params.T
    truth = 2e-6 + 1e-9 * p[0] * p[1] * p[2] + 2e-8 * p[4]
    seconds = truth * np.exp(rng.normal(0, 0.03, 100_000))
    seconds[::1000] *= 100
    fitted = auto(EventTimings("kernel", params, seconds))
    assert relative_errors(predicted(fitted, params[:2000]), truth[:2000]).mean() < 0.02


@pytest.mark.slow
@settings(max_examples=15, deadline=None, derandomize=True)
@given(
    hnp.arrays(
        np.float64,
        st.tuples(st.integers(1, 12), st.integers(1, 4)),
        elements=st.floats(-1e6, 1e6) | st.sampled_from([0.0, 1.0, -1.0, 1e-300, 1e300]),
    ),
    st.floats(0, 1e3),
)
def test_no_table_of_parameters_makes_a_negative_or_an_infinite_time(
    params: Floats, level: float
) -> None:
    seconds = np.asarray(level * (1 + np.arange(len(params)) % 3), dtype=np.float64)
    fitted = auto(EventTimings("kernel", params, seconds))
    times = predicted(fitted, params)
    assert np.isfinite(times).all()
    assert (times >= 0).all()
    assert times.max() <= 10 * seconds.max() + 1e-12
    json.dumps(fitted.describe(), allow_nan=False)


@pytest.mark.slow
def test_errors_of_a_fit_to_few_lines_are_of_their_noise() -> None:
    law = LAWS["three loop bounds"]
    errors = [errors_elsewhere(auto(law.timings(8, seed, 0.02)), law).mean() for seed in range(5)]
    assert np.median(errors) < 0.2


@pytest.mark.parametrize("seconds", [[1, 2, 3, 4, 5, 6], [6, 1, 5, 2, 4, 3, 500], range(1, 41)])
def test_times_without_parameters_are_predicted_as_their_median(seconds: Sequence[int]) -> None:
    times = np.array(list(seconds)) * 1e-6
    fitted = auto(EventTimings("kernel", np.zeros((len(times), 0)), times))
    assert predicted(fitted, np.zeros((1, 0))) == pytest.approx(np.median(times), rel=0.01)
