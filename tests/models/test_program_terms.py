"""Laws that programs have: flags, thresholds, parts, two sizes, trees; and what few lines give."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from chosen import by_tier

from rewritelog.arrays import Floats
from rewritelog.models.auto import Auto, AutoOptions
from rewritelog.models.base import EventTimings
from rewritelog.models.expressions import parse
from rewritelog.models.fitting.bases.program_terms import program_terms
from rewritelog.models.fitting.design import SelectionSamples
from rewritelog.models.fitting.function import FittedFunction, FittedMixture
from rewritelog.models.fitting.samples import Samples, usable_samples

Law = Callable[[Floats, Floats], Any]


def auto(params: Any, seconds: Any) -> Any:
    return Auto(AutoOptions("relative", "huber", "never")).fit(
        (EventTimings("kernel", params, seconds),)
    )


def random_calls(law: Law, second: Any, count: int, seed: int) -> tuple[Floats, Floats]:
    """Return parameters and times: n over two decades, and a second one drawn by `second`."""
    rng = np.random.default_rng(seed)
    params = np.column_stack((np.round(10 ** rng.uniform(1, 3, count)), second(rng, count)))
    return params, law(*params.T) * 1e-9


def flag(rng: np.random.Generator, count: int) -> Any:
    return rng.integers(0, 2, count).astype(float)


def size(rng: np.random.Generator, count: int) -> Any:
    return np.round(10 ** rng.uniform(1, 3, count))


def depth(rng: np.random.Generator, count: int) -> Any:
    return rng.integers(2, 14, count).astype(float)


LAWS: dict[str, tuple[Law, Any]] = {
    "a flag that makes calls ten times faster": (
        lambda n, f: 100 * n * np.where(f == 1, 0.1, 1),
        flag,
    ),
    "a range, |n - m|": (lambda n, m: 50 + 20 * np.abs(n - m), size),
    "the larger of two sizes": (lambda n, m: 50 + 20 * np.maximum(n, m), size),
    "a merge of two sizes": (lambda n, m: (n + m) * np.log1p(n + m), size),
    "a tree": (lambda n, d: n * 2.0**d, depth),
}


@pytest.mark.parametrize(
    "name", by_tier(LAWS, LAWS.keys() - {"a tree", "a merge of two sizes"}, LAWS)
)
def test_laws_of_programs_are_found(name: str) -> None:
    params, seconds = random_calls(*LAWS[name], count=80, seed=1)
    others, expected = random_calls(*LAWS[name], count=50, seed=2)
    inside = ((others >= params.min(axis=0)) & (others <= params.max(axis=0))).all(axis=1)
    errors = np.abs(auto(params, seconds).predict("kernel", others) / expected - 1)[inside]
    assert errors.mean() < 0.1


FACTORS: dict[str, tuple[Law, Any]] = {
    "a constant beside an odd power": (lambda n, m: 2000 + n**1.37 * m**0.8, size),
    "powers of the larger and of the smaller of two sizes": (
        lambda n, m: 50 * np.minimum(n, m) * np.sqrt(np.maximum(n, m)),
        size,
    ),
    "sizes that are aligned": (lambda n, m: n * m * np.where(n % 8 == 0, 0.5, 1), size),
}


@pytest.mark.parametrize("name", FACTORS)
def test_factors_of_a_power_law_are_found(name: str) -> None:
    params, seconds = random_calls(*FACTORS[name], count=150, seed=1)
    others, expected = random_calls(*FACTORS[name], count=50, seed=2)
    seconds *= np.exp(np.random.default_rng(3).normal(0, 0.03, 150))
    errors = np.abs(auto(params, seconds).predict("kernel", others) / expected - 1)
    assert np.median(errors) < 0.03
    assert errors.mean() < 0.05


def test_calls_far_smaller_than_all_lines_keep_to_the_law() -> None:
    params = np.array([[1.6e4], [3.8e4], [1.7e4], [7.7e4], [8.4e3]])
    fitted = auto(params, 1e-9 * params[:, 0] ** 1.5)
    small = np.array([[10.0], [100.0], [1000.0]])
    assert fitted.predict("kernel", small) == pytest.approx(1e-9 * small[:, 0] ** 1.5, rel=0.1)


def test_a_parameter_of_zero_that_hardly_matters_changes_hardly_anything() -> None:
    rng = np.random.default_rng(1)
    params = np.floor(np.exp(rng.uniform(3, 6, (8, 2))))
    seconds = 1e-9 * params[:, 0] * np.exp(rng.normal(0, 0.05, 8))
    predicted = auto(params, seconds).predict("kernel", np.array([[100.0, 0.0]]))
    assert predicted == pytest.approx([1e-7], rel=0.3)


def test_squares_of_logarithms_go_on_beyond_the_range() -> None:
    """A sorting network took 1.55 times as long as it does."""
    sizes = 2.0 ** np.arange(2, 7)
    params = np.repeat(np.array([(n, m) for n in sizes for m in sizes]), 5, axis=0)
    noise = np.random.default_rng(3).uniform(0.98, 1.02, len(params))

    def law(n: Any, m: Any) -> Any:
        return 1e-6 * (500 + n * np.log2(n) ** 2 * m)

    fitted = auto(params, law(*params.T) * noise)
    assert fitted.predict("kernel", np.array([[1024.0, 1024]])) == pytest.approx(
        law(1024, 1024), rel=0.1
    )


def test_a_tree_goes_on_to_twice_its_depth() -> None:
    params, seconds = random_calls(*LAWS["a tree"], count=80, seed=1)
    seconds *= np.exp(np.random.default_rng(3).normal(0, 0.03, 80))
    deeper = np.array([[100.0, 16.0], [100.0, 20.0], [100.0, 24.0]])
    predicted = auto(params, seconds).predict("kernel", deeper)
    assert predicted == pytest.approx(100e-9 * 2 ** deeper[:, 1], rel=0.5)


def test_few_lines_of_a_range_are_better_than_any_power() -> None:
    params, seconds = random_calls(*LAWS["a range, |n - m|"], count=14, seed=4)
    others, expected = random_calls(*LAWS["a range, |n - m|"], count=50, seed=2)
    errors = np.abs(auto(params, seconds).predict("kernel", others) / expected - 1)
    assert np.median(errors) < 0.1


def test_a_parameter_of_zero_takes_no_mixture_to_zero() -> None:
    """A power of a parameter that is 0 beyond the lines is 0; the other members still answer."""
    powers = FittedFunction((parse("p1*p2"),), np.array([1e-9]))
    sums = FittedFunction((parse("p1"),), np.array([2e-9]))
    mixture = FittedMixture((powers, sums), (0.75, 0.25))
    seconds = mixture.predict(np.array([[10.0, 0.0], [10.0, 2.0], [0.0, 0.0]]))
    assert seconds == pytest.approx([2e-8, 2e-8, 0.0])


def test_times_beyond_the_lines_are_neither_zero_nor_missing_nor_wild() -> None:
    rng = np.random.default_rng(5)
    params = np.column_stack((np.round(10 ** rng.uniform(1, 3, 60)), rng.integers(1, 9, 60)))
    seconds = 1e-8 * params[:, 0] * np.exp(rng.normal(0, 0.05, 60))
    fitted = auto(params, seconds)
    beyond = np.array([[10.0, 0.0], [10.0, -1.0], [1e4, 8.0], [1e5, 100.0]])
    predicted = fitted.predict("kernel", beyond)
    assert (predicted > 0).all()
    assert predicted[2:] == pytest.approx([1e-4, 1e-3], rel=0.5)
    low, high = fitted.interval("kernel", np.array([[1e3, 8.0], [1e4, 8.0], [1e6, 8.0]]))
    widths = high / low
    assert widths[0] < widths[1] < widths[2]


def test_interrupted_calls_add_to_totals_and_not_to_usual_times() -> None:
    rng = np.random.default_rng(6)
    params = np.round(10 ** rng.uniform(1, 2, (200, 1)))
    usual = 1e-6 * params[:, 0]
    long = rng.uniform(size=200) < 0.05
    fitted = auto(params, usual * np.where(long, 10.0, 1.0))
    factors = fitted.retransformation("kernel", params)
    assert fitted.predict("kernel", params) == pytest.approx(usual, rel=0.02)
    assert (fitted.predict("kernel", params) * factors).sum() == pytest.approx(
        (usual * np.where(long, 10.0, 1.0)).sum(), rel=0.05
    )
    assert any("total='typical'" in text for text in fitted.warnings())


@pytest.mark.parametrize("huge", [1e154, 1e200, 1e300])
def test_an_absurd_time_costs_no_event_its_fit(huge: float) -> None:
    params = np.arange(1.0, 31.0)[:, None]
    seconds = 1e-6 * params[:, 0]
    seconds[7] = huge
    fitted = auto(params, seconds)
    assert fitted.predict("kernel", params[10:12]) == pytest.approx([1.1e-5, 1.2e-5], rel=0.1)
    assert all(len(line) < 400 for line in (*fitted.summary(), *fitted.warnings()))


def test_three_exact_lines_of_a_square_give_the_square() -> None:
    params = np.array([[10.0], [20.0], [40.0]])
    fitted = auto(params, 1e-9 * params[:, 0] ** 2)
    assert fitted.predict("kernel", np.array([[30.0]])) == pytest.approx([9e-7], rel=0.01)


def test_two_lines_of_a_multiple_give_the_multiple() -> None:
    fitted = auto(np.array([[10.0], [20.0]]), np.array([1e-6, 2e-6]))
    assert fitted.predict("kernel", np.array([[40.0]])) == pytest.approx([4e-6], rel=0.01)


def test_a_sum_as_a_term_has_parentheses() -> None:
    params, seconds = random_calls(lambda n, m: 30 * (n + m), size, count=40, seed=1)
    text = "\n".join(auto(params, seconds).summary())
    assert "p1 + p2" not in text.replace("(p1 + p2)", "") or ") p1 + (" in text


def test_a_parameter_of_two_values_may_change_times_by_any_factor() -> None:
    """A power of 1 + p, its exponent bounded, could change them by 8 at most."""
    rng = np.random.default_rng(8)
    params = np.column_stack((np.round(10 ** rng.uniform(1, 4, 12)), np.arange(12) % 2))
    seconds = 1e-9 * params[:, 0] * np.where(params[:, 1] == 1, 1.0, 40.0)
    fitted = auto(params, seconds * np.exp(rng.normal(0, 0.05, 12)))
    at = np.array([[300.0, 0.0], [300.0, 1.0]])
    slow, quick = fitted.predict("kernel", at)
    assert slow / quick == pytest.approx(40, rel=0.3)


def test_a_time_near_the_smallest_number_is_told_in_few_digits() -> None:
    params = np.arange(1.0, 31.0)[:, None]
    seconds = 1e-6 * params[:, 0]
    seconds[7] = 1e-300
    fitted = auto(params, seconds)
    assert fitted.predict("kernel", params[10:12]) == pytest.approx([1.1e-5, 1.2e-5], rel=0.1)
    assert all(len(line) < 400 for line in (*fitted.summary(), *fitted.warnings()))


@pytest.mark.parametrize("seed", range(1, 4))
def test_a_jump_is_found_between_the_lines_on_its_sides(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = np.round(10 ** rng.uniform(1, 5, 150))
    times = 1e-7 * n**0.7 * np.where(n > 3000, 4, 1) * np.exp(rng.normal(0, 0.05, 150))
    fitted = auto(n[:, None], times)
    below, above = n[n <= 3000].max(), n[n > 3000].min()
    at = np.array([[below], [above]])
    expected = 1e-7 * at[:, 0] ** 0.7 * [1, 4]
    assert np.abs(fitted.predict("kernel", at) / expected - 1).max() < 0.1


@pytest.mark.parametrize("seed", [3, 25, 83])
def test_a_large_jump_between_few_lines_is_not_a_steep_slope(seed: int) -> None:
    """Two changes of slope came first for it; they were fitted, and then their exponents cut."""
    rng = np.random.default_rng(seed)
    n = np.round(10 ** rng.uniform(1, 3.7, 40))
    expected = 1e-8 * n * np.where(n > 500, 8, 1)
    fitted = auto(n[:, None], expected * np.exp(rng.normal(0, 0.05, 40)))
    errors = np.abs(fitted.predict("kernel", n[:, None]) / expected - 1)
    assert errors.max() < 0.2


@pytest.mark.parametrize("seed", range(4))
def test_a_power_that_noise_suggests_is_not_taken_for_a_slower_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    params = np.column_stack((rng.integers(2, 30, 100), rng.integers(1, 9, 100))).astype(float)
    times = (1e-6 + 2e-8 * params[:, 0]) * np.exp(rng.normal(0, 0.2, 100))
    far = np.array([[3000.0, 4.0]])
    predicted = auto(params, times).predict("kernel", far)[0]
    assert predicted < 5 * (1e-6 + 2e-8 * 3000)


def test_what_was_selected_goes_on_where_samples_are_enough_for_a_trial() -> None:
    rng = np.random.default_rng(5)
    params = np.column_stack((rng.integers(1, 5000, 60), rng.integers(1, 5000, 60))).astype(float)
    times = 1e-6 + 2e-9 * np.abs(params[:, 0] - params[:, 1])
    times *= np.exp(rng.normal(0, 0.02, 60))
    far = np.array([[20_000.0, 1000.0]])
    predicted = auto(params, times).predict("kernel", far)[0]
    assert abs(predicted / (1e-6 + 2e-9 * 19_000) - 1) < 0.2


@np.errstate(all="ignore")  # as in `fit_event`
def test_candidates_do_not_depend_on_which_samples_ask_first() -> None:
    """Of more than five parameters those that vary most with the times are paired."""
    draw = np.random.default_rng(5)
    params = np.floor(draw.uniform(1, 100, (200, 8)))
    seconds = 1e-9 * (params @ np.array([9.0, 8, 1, 1, 1.1, 7, 6, 1]) + 300 * draw.random(200))
    samples = Samples.of(*usable_samples(EventTimings("e", params, seconds)), "relative")
    alone = SelectionSamples.of(samples, "huber")
    after = SelectionSamples.of(samples, "huber")
    for first in range(0, 200, 20):
        after.part(np.arange(first, first + 20)).chosen(program_terms)
    assert after.chosen(program_terms) == alone.chosen(program_terms)


def strong_scaling(processors: Any, cells: Any) -> Any:
    return 1e-6 + 1e-8 * cells / processors


@pytest.mark.parametrize("count", [20, 200])
def test_fewer_processors_than_in_the_lines_take_as_much_longer(count: int) -> None:
    """Below half of the least number, the time stayed as it was: a factor of 8 on one processor."""
    rng = np.random.default_rng(3)
    params = np.column_stack((2.0 ** rng.integers(4, 10, count), 10 ** rng.uniform(4, 7, count)))
    fitted = auto(params, strong_scaling(*params.T) * np.exp(rng.normal(0, 0.03, count)))
    rows = np.array([[8.0, 1e6], [4.0, 1e6], [1.0, 1e6]])
    expected_s = strong_scaling(*rows.T)
    low, high = fitted.interval("kernel", rows)
    assert fitted.predict("kernel", rows) == pytest.approx(expected_s, rel=0.1)
    assert ((low < expected_s) & (expected_s < high)).all()


def test_intervals_widen_below_the_range_as_they_do_above_it() -> None:
    rng = np.random.default_rng(5)
    sizes = 10 ** rng.uniform(3, 4, 60)
    fitted = auto(sizes[:, None], 1e-9 * sizes * np.exp(rng.normal(0, 0.05, 60)))
    low, high = fitted.interval("kernel", np.array([[sizes.min() / 100], [sizes.max() * 100]]))
    assert high[0] / low[0] == pytest.approx(high[1] / low[1], rel=1e-6)


def test_an_inverse_goes_on_below_its_least_value() -> None:
    rng = np.random.default_rng(3)
    steps = 10 ** rng.uniform(-2, 0, 40)
    fitted = auto(steps[:, None], (1e-5 / steps + 2e-5) * np.exp(rng.normal(0, 0.03, 40)))
    assert fitted.predict("kernel", np.array([[0.001]])) == pytest.approx([0.01], rel=0.15)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_step_at_the_largest_of_few_values_goes_on_beyond_it(seed: int) -> None:
    """Calls with 32 took a third of the time of those with 16, as if with none of the values."""
    rng = np.random.default_rng(seed)
    n, width = np.exp(rng.uniform(5, 11, 200)), 2.0 ** rng.integers(0, 5, 200)
    seconds = 1e-6 + 1e-9 * n * width * np.where(width >= 16, 3, 1)
    seconds *= np.exp(0.05 * rng.normal(size=200))
    predicted = auto(np.column_stack((n, width)), seconds).predict(
        "kernel", np.array([[1e4, 32.0], [1e5, 32.0]])
    )
    assert predicted == pytest.approx(1e-6 + 96e-9 * np.array([1e4, 1e5]), rel=0.2)


@pytest.mark.parametrize(("power", "share"), [(2, 0.6), (3, 0.6), (3, 0.9)])
def test_a_power_beside_an_overhead_goes_on_beyond_it(power: int, share: float) -> None:
    """Ten times further, a limit of growth took a tenth of the time that its own formula says."""
    rng = np.random.default_rng(1)
    sizes = np.round(10 ** rng.uniform(1, 3, 80))

    def law(n: Any) -> Any:
        return 1e-3 * ((1 - share) + share * (n / 1000) ** power)

    fitted = auto(sizes[:, None], law(sizes) * np.exp(0.03 * rng.standard_normal(80)))
    far = np.array([2000.0, 10000.0])
    predicted = fitted.predict("kernel", far[:, None])
    np.testing.assert_allclose(predicted, law(far), rtol=0.3)


@pytest.mark.parametrize(("power", "seed"), [(2, 1), (3, 3)])
def test_a_power_beside_an_overhead_goes_on_beyond_doubled_sizes(power: int, seed: int) -> None:
    """At four times the largest of five doubled sizes, a cube was 82 % too small."""
    rng = np.random.default_rng(seed)
    sizes = np.repeat(2.0 ** np.arange(5, 10), 5)

    def law(n: Any) -> Any:
        return 1e-3 * (0.5 + 0.5 * (n / 512) ** power)

    fitted = auto(sizes[:, None], law(sizes) * np.exp(0.02 * rng.standard_normal(25)))
    far = np.array([1024.0, 2048.0])
    np.testing.assert_allclose(fitted.predict("kernel", far[:, None]), law(far), rtol=0.1)


@pytest.mark.parametrize("largest", [64.0, 72.0])
def test_more_threads_than_were_timed_do_not_take_exponentially_longer(largest: float) -> None:
    """At 1,024 threads a call took 130 times as long, since 64 threads may be a tree's depth."""
    rng = np.random.default_rng(1)
    threads = np.repeat([1, 2, 4, 8, 16, 32, 48, largest], 4)

    def law(p: Any) -> Any:
        return 1e-3 + 1e-3 / 32 * np.maximum(p - 32, 0)

    fitted = auto(threads[:, None], law(threads) * np.exp(0.03 * rng.standard_normal(32)))
    far = np.array([128.0, 1024.0])
    ratios = fitted.predict("kernel", far[:, None]) / law(far)
    assert ((ratios > 0.5) & (ratios < 5)).all()


@pytest.mark.parametrize("depths", [range(1, 7), range(4, 9), range(10, 19, 2)])
def test_trees_of_few_depths_go_on_exponentially(depths: range) -> None:
    rng = np.random.default_rng(1)
    timed = np.repeat(np.array(depths, dtype=float), 6)
    fitted = auto(timed[:, None], 1e-6 * 2**timed * np.exp(0.03 * rng.standard_normal(len(timed))))
    deeper = np.array([1.0, 4.0]) + depths[-1]
    np.testing.assert_allclose(
        fitted.predict("kernel", deeper[:, None]), 1e-6 * 2**deeper, rtol=0.1
    )


@pytest.mark.parametrize("seed", range(3))
def test_a_logarithm_below_its_sizes_does_not_take_a_call_of_one_element_for_no_work(
    seed: int,
) -> None:
    """It was 0 there, and calls were said to take a hundredth of those at the edge of the range."""
    rng = np.random.default_rng(seed)
    sizes = np.rint(np.exp(rng.uniform(np.log(8), np.log(2000), 20)))
    seconds = 1e-6 * np.log2(sizes + 1) * np.exp(0.05 * rng.normal(size=20))
    predicted = auto(sizes[:, None], seconds).predict("kernel", np.array([[1.0], [2.0]]))
    assert predicted == pytest.approx(1e-6 * np.log2([2.0, 3.0]), rel=0.5)
