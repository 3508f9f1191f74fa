"""Measured times of identical parameters count as far as they earn it against the fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kinds import MakeTimings
from models.laws import auto, relative_errors

from rewritelog.models.base import EventTimings
from rewritelog.models.exact_matches import exact_matches_of


def rough(
    noise: float, seed: int = 1, sets: int = 30, copies: int = 4, roughness: float = 0.5
) -> Any:
    """Times that no law of the parameter gives, but that come back when measured again."""
    rng = np.random.default_rng(seed)
    p = np.arange(1.0, sets + 1)
    truth = 1e-5 * p * np.exp(rng.normal(0, roughness, sets))
    params = np.tile(p, copies)
    seconds = np.tile(truth, copies) * np.exp(rng.normal(0, noise, sets * copies))
    return EventTimings("kernel", params[:, None], seconds), p[:, None], truth


def test_always_gives_the_mean_of_the_measured_times(event: MakeTimings) -> None:
    timings = event([1.0, 2.0, 2.0, 3.0, 4.0], seconds=[1.0, 2.0, 4.0, 3.0, 4.0])
    judged = auto(timings, exact_match="always").predict_detailed(
        "kernel", np.array([[2.0], [2.5]])
    )
    assert judged.seconds[0] == 3.0
    assert judged.exact.tolist() == [True, False]


def test_never_gives_the_fit_although_it_was_measured() -> None:
    timings, sets, truth = rough(noise=0.01, seed=2)
    judged = auto(timings, exact_match="never", correction="none").predict_detailed("kernel", sets)
    assert not judged.exact.any()
    assert relative_errors(judged.seconds, truth).mean() > 0.1


def test_auto_trusts_times_that_come_back_where_the_fit_is_rough() -> None:
    timings, sets, truth = rough(noise=0.01)
    judged = auto(timings, exact_match="auto", correction="none").predict_detailed("kernel", sets)
    assert judged.exact.all()
    assert relative_errors(judged.seconds, truth).mean() < 0.02


def test_auto_trusts_the_fit_where_measured_times_are_mere_noise() -> None:
    timings, sets, truth = rough(noise=0.2, roughness=0.0, copies=2, sets=60)
    errors = {
        mode: relative_errors(auto(timings, exact_match=mode).predict("kernel", sets), truth).mean()
        for mode in ("auto", "always", "never")
    }
    assert errors["never"] < 0.06 < errors["always"]
    assert errors["auto"] < 0.06


def test_auto_knows_nothing_where_nothing_was_measured_twice(event: MakeTimings) -> None:
    rng = np.random.default_rng(2)
    p = rng.uniform(1, 100, 50)
    timings = event(p, seconds=1e-6 * p * rng.normal(1, 0.1, 50))
    fitted = auto(timings, exact_match="auto", correction="none")
    assert not fitted.predict_detailed("kernel", timings.params).exact.any()
    never = auto(timings, exact_match="never")
    assert fitted.predict("kernel", timings.params) == pytest.approx(
        never.predict("kernel", timings.params), rel=1e-15
    )


def test_a_mean_of_more_times_has_more_weight() -> None:
    timings, sets, _ = rough(noise=0.3)
    more = EventTimings(
        "kernel",
        np.vstack((timings.params, np.full((40, 1), 1.0))),
        np.concatenate((timings.seconds, np.full(40, 1e-5))),
    )
    fitted = auto(more, exact_match="auto", correction="none").fits["kernel", 1]
    assert fitted.exact_matches is not None
    weights = fitted.exact_matches.weights[fitted.exact_matches.points.find(sets)]
    assert weights[0] > weights[1:].max()
    assert ((weights > 0) & (weights < 1)).all()


def test_minus_zero_is_the_twin_of_zero(event: MakeTimings) -> None:
    timings = event([0.0, -0.0, 1.0], seconds=[2.0, 4.0, 5.0])
    assert auto(timings, exact_match="always").predict("kernel", np.array([[-0.0]]))[0] == 3.0


def test_a_row_that_the_fit_cannot_predict_gets_its_measured_time(event: MakeTimings) -> None:
    timings = event(np.arange(1.0, 9), seconds=np.arange(1.0, 9))
    none = np.zeros(len(timings.seconds), dtype=np.bool_)
    exact_matches = exact_matches_of(timings, "always", timings.part(none), np.zeros(0))
    assert exact_matches is not None
    seconds, exact = exact_matches.blend(np.array([[3.0], [9.0]]), np.array([np.nan, np.nan]))
    assert seconds[0] == 3.0
    assert np.isnan(seconds[1])
    assert exact.tolist() == [True, False]


@pytest.mark.slow
def test_on_real_kernels_auto_is_no_worse_than_always_and_never(
    sample_timings: list[EventTimings],
) -> None:
    errors = dict.fromkeys(("auto", "always", "never"), 0.0)
    for samples in sample_timings:
        fold = np.random.default_rng(3).permutation(len(samples.seconds)) % 4
        part = EventTimings(samples.event, samples.params[fold > 0], samples.seconds[fold > 0])
        for mode in errors:
            fitted = auto(part, exact_match=mode)
            predicted = fitted.predict(samples.event, samples.params[fold == 0])
            errors[mode] += relative_errors(predicted, samples.seconds[fold == 0]).sum()
    assert errors["auto"] <= 1.02 * min(errors["always"], errors["never"])


def test_a_call_whose_others_the_clock_makes_zero_is_not_a_billion_times_as_long(
    event: MakeTimings,
) -> None:
    """Rounding left 1e-22 s of the sum of the others, and divided the call by it."""
    n = np.repeat(np.arange(1.0, 13), 3)
    seconds = np.tile([0.0, 0.0, 1.0], 12) * np.repeat(np.arange(7, 19), 3) * 1e-6
    fitted = auto(event(n, seconds=seconds), exact_match="always")
    matches = fitted.fits["kernel", 1].exact_matches
    assert matches is not None
    assert (matches.ratios < 1e3).all()
    _, high = fitted.interval("kernel", n[:, None])
    assert not (high > 1.0).any()
