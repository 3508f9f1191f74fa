"""The automatic model gives back known formulas, from exact and from noisy samples."""

from __future__ import annotations

import numpy as np
import pytest
from chosen import by_tier
from kinds import MakeTimings, ReferenceTimings
from models.laws import LAWS, Known, auto, errors_elsewhere, relative_errors

from rewritelog.models.auto import Auto, AutoOptions
from rewritelog.models.base import EventTimings


@pytest.mark.parametrize("name", by_tier(LAWS, ("linear", "n log n"), ("p1·p2² + p3",)))
def test_a_known_law_comes_back_from_exact_times(name: str) -> None:
    law = LAWS[name]
    fitted = auto(law.timings(60, seed=1))
    assert errors_elsewhere(fitted, law).max() < 0.005


@pytest.mark.parametrize(
    "name", by_tier(LAWS, LAWS.keys() - {"sum of two", "sum and product"}, LAWS)
)
def test_a_known_law_comes_back_from_times_with_three_per_cent_of_noise(name: str) -> None:
    law = LAWS[name]
    fitted = auto(law.timings(100, seed=2, noise=0.03))
    errors = errors_elsewhere(fitted, law)
    assert errors.mean() < 0.04
    assert errors.max() < 0.15


@pytest.mark.parametrize("name", ["three loop bounds", "repeat count times n log n", "p1·p2² + p3"])
@pytest.mark.parametrize("seed", by_tier((3, 4, 5), (3,)))
def test_thirty_samples_over_four_decades_are_enough_for_a_product(name: str, seed: int) -> None:
    law = LAWS[name]
    least, most = law.seconds(np.array(law.ranges).T)
    assert most / least > 1e4
    errors = errors_elsewhere(auto(law.timings(30, seed=seed, noise=0.02)), law)
    assert errors.mean() < 0.05


@pytest.mark.parametrize("seed", by_tier((2, 0, 5), (2,)))
def test_the_sum_of_matrix_products_holds_on_lines_left_out(seed: int) -> None:
    """On a GPU they take the time of m·n·k, of waves of tiles, or of the memory's bandwidth."""
    rng = np.random.default_rng(seed)
    m, n, k = np.rint(np.exp(rng.uniform(0, np.log(8192), (3, 1150))))
    waves = np.ceil(np.ceil(m / 128) * np.ceil(n / 128) / 108)
    bytes_moved = 2 * (m * k + n * k + m * n)
    seconds = 5e-6 + np.maximum(waves * 128**2 * k * 2 / 1.4e12, bytes_moved / 1.5e12)
    measured = seconds * np.exp(0.03 * rng.normal(size=1150))
    params = np.column_stack((m, n, k))
    fitted = auto(EventTimings("gemm", params[:150], measured[:150]))
    predicted = fitted.predict("gemm", params[150:])
    assert relative_errors(predicted, seconds[150:]).mean() < 0.05
    assert predicted.sum() == pytest.approx(seconds[150:].sum(), rel=0.06)


def test_a_law_is_spelled_as_a_person_would(event: MakeTimings) -> None:
    p = np.arange(1.0, 41)
    fitted = auto(event(p, seconds=1e-6 * p**2))
    (line, *_rest) = fitted.describe()["events"]
    assert any("p1^2" in text for text in fitted.summary()), line


def test_a_parameter_that_says_nothing_is_not_in_the_law(event: MakeTimings) -> None:
    rng = np.random.default_rng(6)
    work, noise = rng.uniform(1, 100, 80), rng.uniform(1, 100, 80)
    fitted = auto(event(work, noise, seconds=1e-6 * work * rng.normal(1, 0.01, 80)))
    elsewhere = np.column_stack((np.full(9, 50.0), np.linspace(1, 100, 9)))
    predicted = fitted.predict("kernel", elsewhere)
    assert predicted == pytest.approx(np.full(9, 50e-6), rel=0.02)


def test_the_sum_of_the_times_is_right_although_errors_count_in_per_cent(
    event: MakeTimings,
) -> None:
    rng = np.random.default_rng(7)
    p = rng.uniform(1, 100, 400)
    seconds = 1e-6 * p * np.exp(rng.normal(0, 0.2, 400))
    timings = event(p, seconds=seconds)
    predicted = auto(timings).predict("kernel", timings.params)
    near = (seconds < 2 * predicted) & (predicted < 2 * seconds)
    assert predicted[near].sum() == pytest.approx(seconds[near].sum(), rel=0.01)


def test_one_first_call_of_a_hundred_times_the_time_moves_nothing(event: MakeTimings) -> None:
    law = LAWS["linear"]
    timings = law.timings(60, seed=8, noise=0.01)
    timings.seconds[0] *= 100
    assert errors_elsewhere(auto(timings), law).mean() < 0.01


def test_one_slow_first_call_of_a_dozen_lines_does_not_bound_all_others(
    event: MakeTimings,
) -> None:
    """It is the largest of so few ratios, and intervals reached a hundred times too far."""
    timings = LAWS["linear"].timings(12, seed=8, noise=0.01)
    for slow in (1, 60):
        timings.seconds[0] *= slow
        fit = auto(timings)
        low, high = fit.interval("kernel", timings.params)
        assert (high < 1.2 * low).all()
        assert ["first call" in text for text in fit.warnings()] == [True] * (slow > 1)


@pytest.mark.parametrize("law", ["linear", "p1·p2² + p3"])
@pytest.mark.parametrize("lines", by_tier([12, 300], [12], [300]))
def test_lines_after_the_first_give_the_same_bits_in_any_order(law: str, lines: int) -> None:
    """The ranks of a job print in another order each time."""
    timings = LAWS[law].timings(lines, seed=4, noise=0.1)
    fits = []
    for seed in range(3):
        others = np.random.default_rng(seed).permutation([*range(1, lines), 0, 0, 1])
        fits.append(auto(timings.part(np.append(0, others))).describe())
    assert fits[0] == fits[1] == fits[2]


@pytest.mark.parametrize("share", [0.02, 0.1])
def test_outliers_of_a_hundred_times_are_left_aside(share: float) -> None:
    law = LAWS["three loop bounds"]
    timings = law.timings(200, seed=9, noise=0.02)
    timings.seconds[:: int(1 / share)] *= 100
    fitted = auto(timings)
    assert errors_elsewhere(fitted, law).mean() < 0.03
    assert any("by more than a factor of 2" in text for text in fitted.warnings())


@pytest.mark.parametrize(
    "name", by_tier(("linear", "three loop bounds", "n/p", "sum and product"), ("linear",))
)
@pytest.mark.parametrize("factor", [0.1, 0.01])
def test_times_far_too_short_do_not_draw_the_fit_to_them(name: str, factor: float) -> None:
    """In units of its own time, one line a hundred times too short outweighs ten thousand."""
    law = LAWS[name]
    timings = law.timings(60, seed=3, noise=0.02)
    timings.seconds[5:26:7] *= factor
    assert errors_elsewhere(auto(timings), law).mean() < 0.03


def test_squares_follow_outliers_and_huber_does_not() -> None:
    law = LAWS["linear"]
    timings = law.timings(100, seed=10)
    timings.seconds[1::6] *= 1.9
    huber = errors_elsewhere(auto(timings), law).mean()
    squares = errors_elsewhere(auto(timings, loss="squares"), law).mean()
    assert huber < 0.01 < squares


@pytest.mark.parametrize("count", [8, 60])
def test_uniform_weights_leave_functions_in_logarithms_their_times(count: int) -> None:
    """Powers were fitted to the mean of the times, as constants: errors of 16 and 2 %."""
    law = Known(((10, 1000), (10, 1000)), lambda n, m: n**1.37 * m**0.61)
    fitted = auto(law.timings(count, seed=3, noise=0.03), weights="uniform")
    errors = errors_elsewhere(fitted, law)
    assert errors.mean() < 0.03
    assert errors.max() < 0.1


@pytest.mark.slow
def test_relative_weights_hold_small_times_to_their_own_size() -> None:
    law = LAWS["three loop bounds"]
    draws = [law.timings(60, seed=seed, noise=0.05) for seed in (11, 12, 13)]
    relative, uniform = (
        [errors_elsewhere(auto(timings, weights=weights), law).mean() for timings in draws]
        for weights in ("relative", "uniform")
    )
    assert max(relative) < 0.05
    assert sum(relative) < 0.8 * sum(uniform)


@pytest.mark.slow
def test_two_runs_give_the_same_bits_and_other_events_change_none() -> None:
    loops = LAWS["three loop bounds"].timings(80, seed=12, noise=0.05, event="one")
    linear = LAWS["linear"].timings(50, seed=13, noise=0.05, event="other")
    model = Auto(AutoOptions())
    fits = [model.fit(timings) for timings in ((loops, linear), (linear, loops), (loops,))]
    first, *others = (fitted.predict("one", loops.params).tobytes() for fitted in fits)
    assert others == [first, first]
    assert fits[0].describe()["events"][0] == fits[1].describe()["events"][1]


@pytest.mark.slow
def test_very_many_samples_are_fitted_in_bounded_time() -> None:
    law = LAWS["repeat count times n log n"]
    timings = law.timings(150_000, seed=14, noise=0.1)
    fitted = auto(timings, exact_match="never")
    assert errors_elsewhere(fitted, law).max() < 0.02
    assert fitted.fits["kernel", 2].samples == 150_000


@pytest.mark.slow
def test_sums_over_real_kernels_hold_on_lines_left_out(sample_timings: list[EventTimings]) -> None:
    """Ten folds of the project's own kernels: half the lines are within one per cent."""
    for samples in sample_timings:
        fold = np.random.default_rng(15).permutation(len(samples.seconds)) % 10
        part = type(samples)(samples.event, samples.params[fold > 0], samples.seconds[fold > 0])
        predicted = auto(part).predict(samples.event, samples.params[fold == 0])
        errors = relative_errors(predicted, samples.seconds[fold == 0])
        assert np.median(errors) < 0.02
        assert errors.mean() < 0.04


def test_namd_is_predicted_better_than_by_the_originals_basis(
    reference_timings: ReferenceTimings,
) -> None:
    for samples in reference_timings("namd"):
        if not samples.event.startswith("calc_self"):
            continue
        fold = np.random.default_rng(16).permutation(len(samples.seconds)) % 3
        part = type(samples)(samples.event, samples.params[fold > 0], samples.seconds[fold > 0])
        predicted = auto(part).predict(samples.event, samples.params[fold == 0])
        assert relative_errors(predicted, samples.seconds[fold == 0]).mean() < 0.06
