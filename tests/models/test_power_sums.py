"""Sums of power laws: that they are found, readable, right beyond the lines, and left alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from chosen import by_tier

from rewritelog.arrays import Floats
from rewritelog.models.auto import Auto, AutoOptions
from rewritelog.models.base import EventTimings
from rewritelog.models.fitting.bases.power_laws import power_law, sum_of_power_laws
from rewritelog.models.fitting.design import Family, SelectionSamples
from rewritelog.models.fitting.pipeline import FitConfig, fit_event
from rewritelog.models.fitting.samples import Samples, usable_samples


def random_params(count: int, seed: int, largest: float = 4.0) -> Floats:
    rng = np.random.default_rng(seed)
    columns = (10 ** rng.uniform(1, largest, count), 10 ** rng.uniform(0, 2, count))
    return np.asarray(np.round(np.column_stack(columns)), dtype=np.float64)


def two_laws(params: Floats) -> Any:
    """Work for each element, and for pairs of neighbouring ones."""
    n, m = params.T
    return np.asarray(4e-8 * n + 5e-10 * n**1.7 * m**0.6)


def selected(params: Floats, seconds: Any) -> SelectionSamples:
    samples = Samples.of(*usable_samples(EventTimings("k", params, seconds)), "relative")
    return SelectionSamples.of(samples, "huber")


@pytest.mark.parametrize("seed", by_tier(range(1, 9), [2], range(1, 9)))
def test_two_laws_are_told_apart_and_extrapolated(seed: int) -> None:
    params, noise = random_params(120, seed), np.random.default_rng(seed).normal(0, 0.05, 120)
    timings = EventTimings("kernel", params, two_laws(params) * np.exp(noise))
    families = {"sum of power laws": Family(sum_of_power_laws)}
    fit = fit_event(timings, FitConfig(families=families))
    assert len(fit.whole.function.terms) == 2
    for others in (random_params(200, 100 + seed), random_params(200, 100 + seed, largest=5.0)):
        assert np.abs(fit.predict(others) / two_laws(others) - 1).mean() < 0.03


def test_auto_reports_both_laws() -> None:
    params, noise = random_params(120, 3), np.random.default_rng(3).normal(0, 0.05, 120)
    timings = EventTimings("kernel", params, two_laws(params) * np.exp(noise))
    fitted = Auto(AutoOptions("relative", "huber", "never")).fit((timings,))
    assert "sum of power laws" in fitted.summary()[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("exponents", "most"), [((0.9, 0.6, 0.4), 0.025), ((0.9, 0.6, 0.4, 0.3, 0.7), 0.05)]
)
def test_a_power_law_beside_a_constant_is_found_in_few_lines(
    exponents: tuple[float, ...], most: float
) -> None:
    """Terms with exponents of halves, thirds and quarters were off by 3.9 and 10.2 %."""

    def seconds(params: Floats) -> Any:
        return 1e-6 * (1 + np.prod(params**exponents, axis=1) / 50)

    errors = []
    for seed in range(1, 7):
        rng = np.random.default_rng(seed)
        params, others = np.round(np.exp(rng.uniform(0, 7, (2, 40, len(exponents)))))
        timings = EventTimings("k", params, seconds(params) * np.exp(rng.normal(0, 0.05, 40)))
        fitted = Auto(AutoOptions("relative", "huber", "never")).fit((timings,))
        errors.append(np.abs(fitted.predict("k", others) / seconds(others) - 1).mean())
    assert np.mean(errors) < most


def test_exact_sums_are_found_to_the_digits_that_are_printed() -> None:
    params = random_params(100, seed=3)
    n, m = params.T
    terms = sum_of_power_laws(selected(params, 1e-6 * n + 1e-9 * n**2 * m**0.5))
    assert len(terms) == 2
    values = np.column_stack([term.evaluate(params) for term in terms])
    others = np.column_stack((n, n**2 * np.sqrt(m)))
    for column in others.T:
        ratios = np.ptp(np.log(values / column[:, None]), axis=0)
        assert ratios.min() < 0.2


def test_one_power_law_stays_one() -> None:
    params = random_params(100, seed=4)
    noise = np.exp(np.random.default_rng(4).normal(0, 0.1, 100))
    some = selected(params, 1e-9 * params[:, 0] ** 1.3 * noise)
    assert sum_of_power_laws(some) == power_law(some)


def test_zeros_and_negative_values_have_factors_of_their_own() -> None:
    rng = np.random.default_rng(5)
    flag, zero = rng.integers(0, 2, 120) * 3.0, rng.integers(0, 40, 120) * 1.0
    negative = rng.integers(-20, 20, 120) * 1.0
    params = np.column_stack((flag, zero, negative))
    seconds = 1e-6 * (1 + zero) * np.where(flag == 3, 5, 1) + 1e-8 * (1 + np.abs(negative)) ** 3
    terms = sum_of_power_laws(selected(params, seconds))
    assert len(terms) > 1
    for others in ([[0.0, 0.0, 0.0]], [[3.0, 100.0, -100.0]], [[1.0, 0.5, 9.0]]):
        values = [term.evaluate(np.array(others)) for term in terms]
        assert np.isfinite(values).all()
        assert (np.array(values) > 0).all()


@pytest.mark.parametrize(("samples", "parameters", "most"), [
    (11, 2, 1), (12, 2, 2), (17, 2, 2), (18, 2, 2), (20, 2, 2), (21, 2, 3), (27, 2, 3), (900, 2, 3),
    (14, 3, 1), (15, 3, 2), (20, 3, 2), (26, 3, 2), (27, 3, 3), (900, 12, 3), (900, 13, 1),
])  # fmt: skip
def test_laws_are_as_many_as_samples_can_determine(
    samples: int, parameters: int, most: int
) -> None:
    """Each number needs three samples, and a constant is one number."""
    rng = np.random.default_rng(6)
    params = np.exp(rng.uniform(0, 7, (samples, parameters)))
    seconds = 1 + params[:, 0] ** 0.7 / 10 + params[:, 0] ** 2 / 1e4
    assert len(sum_of_power_laws(selected(params, seconds))) == most


def test_constant_parameters_leave_the_constant() -> None:
    assert str(sum_of_power_laws(selected(np.full((30, 2), 5.0), np.ones(30)))[0]) == "1"
