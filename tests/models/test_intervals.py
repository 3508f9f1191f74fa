"""Intervals and drawn spread come from held-out errors: they hold what they promise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kinds import MakeTimings
from models.laws import LAWS, auto

from rewritelog.models.base import EventTimings
from rewritelog.models.fit_report import fits_table
from rewritelog.models.fitting.diagnosis import interval_of, widening_rate
from rewritelog.models.fitting.tuning import LEAST_RATE, NEAREST
from rewritelog.models.least_squares import LeastSquares, LeastSquaresOptions


@pytest.mark.parametrize(
    "draw",
    [
        lambda rng, n: rng.normal(0, 0.1, n),
        pytest.param(lambda rng, n: rng.uniform(-0.2, 0.2, n), marks=pytest.mark.slow),
        pytest.param(lambda rng, n: rng.exponential(0.1, n), marks=pytest.mark.slow),
    ],
    ids=["normal", "uniform", "skewed"],
)
def test_nine_in_ten_further_measurements_lie_in_the_interval(draw: Any) -> None:
    law = LAWS["sum and product"]
    rng = np.random.default_rng(1)
    timings = law.timings(300, seed=2)
    timings.seconds[:] *= np.exp(draw(rng, 300))
    fitted = auto(timings)
    rows = law.params(3000, rng)
    measured = law.seconds(rows) * np.exp(draw(rng, 3000))
    low, high = fitted.interval("kernel", rows)
    assert 0.86 < ((measured >= low) & (measured <= high)).mean() < 0.94


@pytest.mark.slow
def test_intervals_of_real_kernels_hold_nine_in_ten_lines(
    sample_timings: list[EventTimings],
) -> None:
    inside = count = 0
    for samples in sample_timings:
        fold = np.random.default_rng(3).permutation(len(samples.seconds)) % 2
        part = type(samples)(samples.event, samples.params[fold > 0], samples.seconds[fold > 0])
        low, high = auto(part).interval(samples.event, samples.params[fold == 0])
        measured = samples.seconds[fold == 0]
        inside += ((measured >= low) & (measured <= high)).sum()
        count += len(measured)
    assert 0.85 < inside / count < 0.95


def test_the_prediction_lies_within_its_interval() -> None:
    timings = LAWS["three loop bounds"].timings(100, seed=4, noise=0.1)
    fitted = auto(timings)
    low, high = fitted.interval("kernel", timings.params)
    seconds = fitted.predict("kernel", timings.params)
    assert ((low < seconds) & (seconds < high)).all()


def test_the_table_of_fits_has_the_width_of_the_interval() -> None:
    """Of 10 lines it had the range of their errors: 78 of 100 calls were within, instead of 90."""
    for samples in (10, 40):
        fitted = auto(LAWS["sum and product"].timings(samples, seed=7, noise=0.05))
        fit = fitted.fits[next(iter(fitted.fits))]
        (low, high), seconds = fit.interval(fit.lowest[None]), fit.predict(fit.lowest[None])
        half = (high[0] - low[0]) / seconds[0] / 2
        assert fits_table([fit]).rows[0][5] == f"{100 * half:.1f} %"


def test_too_few_samples_and_unknown_events_have_no_interval(event: MakeTimings) -> None:
    fitted = auto(event([1.0, 2.0], seconds=[1.0, 2.0]))
    for name in ("kernel", "unknown"):
        low, high = fitted.interval(name, np.array([[1.5]]))
        assert np.isnan([low, high]).all()


def test_drawn_factors_are_the_held_out_errors_at_their_numbers() -> None:
    timings = LAWS["linear"].timings(400, seed=5, noise=0.1)
    fitted = auto(timings)
    rows = np.full((10_000, 1), 50.0)
    numbers = np.random.default_rng(6).uniform(0, 1, 10_000)
    factors = fitted.drawn_factors("kernel", rows, numbers)
    assert np.log(factors).std() == pytest.approx(0.1, rel=0.15)
    assert factors.mean() == pytest.approx(1, abs=0.02)
    rising = fitted.drawn_factors("kernel", rows[:100], np.arange(100) / 100)
    assert (np.diff(rising) >= 0).all()


def test_drawn_factors_leave_sums_right_where_short_calls_are_predicted_badly(
    event: MakeTimings,
) -> None:
    """Uniform weights ignore short calls; long ones then varied as much as these."""
    rng = np.random.default_rng(9)
    p = np.geomspace(1, 1000, 200)
    timings = event(p, seconds=1e-9 * p**1.5 * rng.lognormal(0, 0.05, 200))
    fitted = LeastSquares(LeastSquaresOptions()).fit([timings])
    predicted = np.maximum(fitted.predict("kernel", timings.params), 0)
    factors = fitted.drawn_factors("kernel", timings.params, rng.uniform(0, 1, 200))
    assert factors is not None
    assert (predicted * factors).sum() == pytest.approx(timings.seconds.sum(), rel=0.05)
    assert factors.std() < 0.1


def test_drawn_factors_leave_sums_of_exact_matches_right_where_the_clock_is_coarse(
    event: MakeTimings,
) -> None:
    """Sums were half as large again: many of the times by which others are predicted are 0."""
    rng = np.random.default_rng(0)
    p = np.repeat(np.arange(1.0, 21), 10)
    ticks = np.floor(p / 15 * rng.lognormal(0, 0.1, len(p)) + rng.random(len(p)))
    fitted = auto(event(p, seconds=1e-6 * ticks), exact_match="always")
    rows = np.repeat(p, 200)[:, None]
    factors = fitted.drawn_factors("kernel", rows, rng.random(len(rows)))
    assert factors is not None
    total = (fitted.predict("kernel", rows) * factors).sum() / 200
    assert total == pytest.approx(1e-6 * ticks.sum(), rel=0.05)


def test_a_row_draws_the_same_factor_in_any_company() -> None:
    fitted = auto(LAWS["linear"].timings(100, seed=7, noise=0.1))
    rows = np.linspace(1, 900, 50)[:, None]
    numbers = np.random.default_rng(8).uniform(0, 1, 50)
    together = fitted.drawn_factors("kernel", rows, numbers)
    alone = [fitted.drawn_factors("kernel", rows[i : i + 1], numbers[i : i + 1]) for i in range(50)]
    assert together.tobytes() == np.concatenate(alone).tobytes()


def test_an_exact_law_has_an_interval_of_no_width() -> None:
    fitted = auto(LAWS["linear"].timings(60, seed=9))
    low, high = fitted.interval("kernel", np.array([[100.0]]))
    assert high[0] == pytest.approx(low[0], rel=1e-3)


@pytest.mark.parametrize("count", [1, 5, 20, 99, 1000])
def test_the_bounds_of_an_interval_are_never_too_narrow(count: int) -> None:
    """Of n + 1 values in random order, each place of the last one is as likely as any other."""
    rising = np.arange(count, dtype=np.float64)
    low, high = interval_of(rising, len(rising))
    further = np.arange(count + 1) - 0.5
    assert ((further >= low) & (further <= high)).mean() >= min(
        0.9, (count - 1) / (count + 1)
    ) - 1e-9


@pytest.mark.slow
def test_the_spread_of_a_mean_falls_with_the_samples() -> None:
    law = LAWS["linear"]
    of_50, of_800 = (
        auto(law.timings(n, seed=10, noise=0.1)).total_spread("kernel", 1) for n in (50, 800)
    )
    assert of_800.single == pytest.approx(0.1, rel=0.2)
    assert of_800.common < 0.5 * of_50.common
    assert of_800.common < 0.1 * of_800.single


@pytest.mark.slow
def test_nine_in_ten_lines_lie_within_the_intervals_of_five_lines() -> None:
    inside = []
    for seed in range(16):
        fitted = auto(LAWS["linear"].timings(5, seed=seed, noise=0.2))
        further = LAWS["linear"].timings(40, seed=1000 + seed, noise=0.2)
        rows = fitted.fits["kernel", 1].predict_detailed(further.params).outside
        low, high = fitted.interval("kernel", further.params[~rows])
        measured = further.seconds[~rows]
        inside += ((measured >= low) & (measured <= high)).tolist()
    assert 0.85 <= np.mean(inside) <= 0.97


@pytest.mark.slow
def test_totals_of_few_lines_spread_further_than_their_noise_alone() -> None:
    """Their choice of terms errs too, which few lines do not show."""
    law = LAWS["linear"]
    few, enough = (
        auto(law.timings(n, seed=12, noise=0.1)).total_spread("kernel", 1) for n in (15, 60)
    )
    assert few is not None
    assert enough is not None
    assert few.common / few.single > 1.5 * 2 * enough.common / enough.single


def test_intervals_of_few_ratios_bear_ratios_below_zero() -> None:
    """A fit may predict less than 0, as ordinary least squares does: its ratios are below 0 too."""
    low, high = interval_of(np.array([-0.5, 0.8, 1.0, 1.1, 1.3]), 5)
    assert low == -0.5
    assert high > 1.3


def test_intervals_of_times_near_zero_may_have_no_upper_end() -> None:
    """Numpy's warning of the overflow would have been printed; a time of 1e-250 s led to it."""
    assert interval_of(np.array([0, 0, 1e-250, 4, 4]), 5).tolist() == [0.0, np.inf]


def test_nine_in_ten_lines_of_a_trial_lie_within_intervals_that_widen() -> None:
    rng = np.random.default_rng(21)
    ratios = np.sort(np.exp(rng.normal(0, 0.05, 200)))
    distances = rng.uniform(0, 2, 400)
    tried = np.exp(rng.normal(0, 0.05, 400) + rng.normal(0, 0.4, 400) * distances)
    rate = widening_rate(ratios, len(ratios), tried, distances)
    assert rate is not None
    assert rate > LEAST_RATE
    low, high = interval_of(ratios, len(ratios))
    wider = np.exp(rate * np.maximum(distances, NEAREST))
    inside = (tried >= low / wider) & (tried <= high * wider)
    assert 0.895 <= inside.mean() <= 0.92


def test_noise_within_the_range_does_not_widen_intervals_beyond_it() -> None:
    rng = np.random.default_rng(22)
    ratios, tried = np.sort(np.exp(rng.normal(0, 0.2, 300))), np.exp(rng.normal(0, 0.2, 100))
    assert widening_rate(ratios, 300, tried, np.full(100, 1.5)) == LEAST_RATE
    assert widening_rate(ratios, 300, tried, np.zeros(100)) is None


@pytest.mark.slow
def test_step_numbers_from_a_million_on_grow_and_widen_beyond_their_range(
    sample_timings: list[EventTimings],
) -> None:
    """Relative to a million no line seemed to leave the range: none was within its interval, and
    predictions, which did not grow, were off by 43 %.
    """
    (pairs,) = (samples for samples in sample_timings if samples.event == "Cell::pairForces")
    order = np.argsort(pairs.params[:, 0], kind="stable")
    moved = EventTimings(pairs.event, pairs.params + np.array([1e6, 0]), pairs.seconds)
    fitted = auto(moved.part(order[: len(order) // 2]))
    largest = moved.part(order[-len(order) // 4 :])
    low, high = fitted.interval(largest.event, largest.params)
    assert ((largest.seconds >= low) & (largest.seconds <= high)).mean() > 0.8
    predicted = fitted.predict(largest.event, largest.params)
    assert np.mean(np.abs(predicted / largest.seconds - 1)) < 0.2


def test_an_interval_however_far_beyond_the_range_is_found_in_silence(event: MakeTimings) -> None:
    """Python warned of an overflow, with a line of the source."""
    p = np.where(np.arange(40) == 0, 5e-324, np.arange(40.0))
    fitted = auto(event(p, seconds=1e-6 * np.arange(1, 41)))
    low, high = fitted.interval("kernel", np.array([[1e300], [-1.7e308], [40.0]]))
    assert (low >= 0).all()
    assert (high > low).all()


def test_no_drawn_factor_is_negative_where_held_out_predictions_are(event: MakeTimings) -> None:
    p = np.linspace(1, 100, 60)
    times = 1e-6 * np.maximum(p - 30, 0.5) ** 2
    fitted = LeastSquares(LeastSquaresOptions(basis="linear")).fit([event(p, seconds=times)])
    assert fitted.fits["kernel", 1].whole.ratios[0] < 0
    factors = fitted.drawn_factors("kernel", p[:, None], np.linspace(0, 0.99, 60))
    assert factors is not None
    assert (factors > 0).all()


def test_a_fit_below_zero_for_lines_held_out_is_not_judged_by_these(event: MakeTimings) -> None:
    """One call was said to make up -5 % of the time, and totals to be off by 1000 %."""
    rng = np.random.default_rng(29)
    p = np.linspace(1, 100, 60) + rng.uniform(-0.5, 0.5, 60)
    times = 1e-6 * np.maximum(p - 30, 2) ** 2 * rng.lognormal(0, 0.3, 60) + 1e-4
    fitted = LeastSquares(LeastSquaresOptions(basis="linear")).fit([event(p, seconds=times)])
    assert fitted.fits["kernel", 1].whole.ratios.sum() < 0
    assert "one call" not in " ".join(fitted.warnings())
    spread = fitted.total_spread("kernel", 1)
    assert spread is not None
    assert spread.single < 1
