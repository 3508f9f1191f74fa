"""The least-squares model gives back known formulas and never fails on odd samples."""

from __future__ import annotations

import json
import pickle
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from kinds import MakeTimings, ReferenceTimings
from models.fitting import coefficients, dropped, fit, flattened, only

from rewritelog.arrays import Floats
from rewritelog.errors import ModelError
from rewritelog.models.base import EventTimings


def exact_ols(params: Floats, seconds: Floats) -> Any:
    """Fit 1, p1, p2, …, p1², … by the normal equations in rational numbers, without any rounding.

    Return the coefficients and the predictions for the samples.
    """
    rows = []
    for row in params.tolist():
        rows.append([Fraction(value) ** power for power in (1, 2) for value in row])
        rows[-1].insert(0, Fraction(1))
    times = [Fraction(time) for time in seconds.tolist()]
    size = len(rows[0])
    system: list[list[Any]] = [
        [sum(r[i] * r[j] for r in rows) for j in range(size)]
        + [sum(r[i] * t for r, t in zip(rows, times, strict=True))]
        for i in range(size)
    ]
    for i in range(size):
        system[i] = [value / system[i][i] for value in system[i]]
        for k in set(range(size)) - {i}:
            factor = system[k][i]
            system[k] = [a - factor * b for a, b in zip(system[k], system[i], strict=True)]
    solution = [row[-1] for row in system]
    predicted = [sum(b * v for b, v in zip(solution, row, strict=True)) for row in rows]
    return [float(value) for value in solution], [float(value) for value in predicted]


def test_an_exact_formula_comes_back(event: MakeTimings) -> None:
    rng = np.random.default_rng(7)
    p1, p2 = rng.uniform(0, 100, 50), rng.uniform(5, 9, 50)
    fitted = fit(event(p1, p2, seconds=1e-6 + 2e-7 * p1 + 3e-9 * p1**2 + 4e-6 * p2 - 5e-8 * p2**2))
    expected = {"1": 1e-6, "p1": 2e-7, "p1^2": 3e-9, "p2": 4e-6, "p2^2": -5e-8}
    assert coefficients(fitted) == pytest.approx(expected, rel=1e-7)
    assert only(fitted)["r2"] == pytest.approx(1)
    assert only(fitted)["chi2"] < 1e-30
    assert fitted.warnings() == ()


def test_a_noisy_formula_comes_back_within_its_standard_errors(event: MakeTimings) -> None:
    rng = np.random.default_rng(8)
    p = rng.uniform(0, 100, 20_000)
    fitted = fit(event(p, seconds=5.0 + 0.3 * p + 0.02 * p**2 + rng.normal(0, 0.5, len(p))))
    described = only(fitted)
    for term, truth in zip(described["coefficients"], (5.0, 0.3, 0.02), strict=True):
        assert 0 < term["standard_error"] < 0.02
        assert abs(term["value"] - truth) < 4 * term["standard_error"]
    assert described["chi2"] / described["degrees_of_freedom"] == pytest.approx(0.25, rel=0.05)
    assert described["degrees_of_freedom"] == len(p) - 3


def test_statistics_are_the_textbook_ones(event: MakeTimings) -> None:
    p = np.array([1.0, 2, 3, 4, 5])
    y = np.array([2.0, 3, 5, 4, 6])
    described = only(fit(event(p, seconds=y), basis="linear"))
    # Sxx = 10, Sxy = 9, Syy = 10: slope 0.9, χ² = 10 − 8.1, R² = 0.81
    assert described["chi2"] == pytest.approx(1.9)
    assert described["chi2"] / described["degrees_of_freedom"] == pytest.approx(1.9 / 3)
    assert described["r2"] == pytest.approx(0.81)
    intercept, slope = described["coefficients"]
    assert (intercept["value"], slope["value"]) == pytest.approx((1.3, 0.9))
    assert slope["standard_error"] == pytest.approx((1.9 / 3 / 10) ** 0.5)
    assert intercept["standard_error"] == pytest.approx((1.9 / 3 * (1 / 5 + 9 / 10)) ** 0.5)


@pytest.mark.parametrize(
    ("low", "high"), [(0, 10), (40, 160), (1000, 1010), (-5, 5), (0, 1e6), (1e9, 2e9)]
)
def test_it_is_ordinary_least_squares_to_1e_9(event: MakeTimings, low: float, high: float) -> None:
    rng = np.random.default_rng(9)
    p1, p2 = np.round(rng.uniform(low, high, (2, 40)), 1)
    samples = event(p1, p2, seconds=rng.uniform(1e-6, 2e-6, 40))
    truth, predicted = exact_ols(samples.params, samples.seconds)
    fitted = fit(samples)
    assert list(coefficients(fitted).values()) == pytest.approx(truth, rel=1e-9)
    assert fitted.predict("kernel", samples.params) == pytest.approx(predicted, rel=1e-12)


def test_it_agrees_with_numpy_on_scaled_columns(event: MakeTimings) -> None:
    rng = np.random.default_rng(9)
    p1, p2 = rng.uniform(10, 1e6, (2, 500))
    samples = event(p1, p2, seconds=rng.uniform(1e-6, 2e-6, 500))
    columns = np.column_stack((np.ones(500), p1, p1**2, p2, p2**2))
    scale = np.abs(columns).max(axis=0)
    plain = np.linalg.lstsq(columns / scale, samples.seconds, rcond=None)[0] / scale
    fitted = fit(samples)
    assert list(coefficients(fitted).values()) == pytest.approx(plain, rel=1e-9)
    assert fitted.predict("kernel", samples.params) == pytest.approx(columns @ plain, rel=1e-9)


def test_far_from_zero_the_fit_is_that_of_the_shifted_parameter(event: MakeTimings) -> None:
    rng = np.random.default_rng(10)
    p = rng.integers(0, 20, 200).astype(float)
    seconds = rng.uniform(1e-6, 2e-6, 200)
    near, far = fit(event(p, seconds=seconds)), fit(event(p + 1e3, seconds=seconds))
    expected = near.predict("kernel", p[:, None])
    assert far.predict("kernel", p[:, None] + 1e3) == pytest.approx(expected, rel=1e-10)


def test_a_square_that_a_line_cannot_be_told_from_is_dropped(event: MakeTimings) -> None:
    rng = np.random.default_rng(10)
    p = rng.integers(0, 20, 200) + 1e6
    seconds = 1e-6 * (p - 999_990)
    fitted = fit(event(p, seconds=seconds))
    assert list(coefficients(fitted)) == ["1", "p1"]
    assert dropped(fitted) == {"p1^2": "a linear combination of the other terms"}
    assert fitted.predict("kernel", p[:, None]) == pytest.approx(seconds, rel=1e-9)


def test_of_very_many_lines_some_tell_the_coefficients(event: MakeTimings) -> None:
    rng = np.random.default_rng(11)
    p = rng.uniform(1, 50, 200_000)
    seconds = (2 + 0.3 * p) * rng.lognormal(0, 0.1, len(p))
    fitted = fit(event(p, seconds=seconds), weights="relative", loss="huber", basis="linear")
    assert fitted.predict("kernel", p[:, None]).sum() == pytest.approx(seconds.sum(), rel=1e-3)
    (described,) = fitted.describe()["events"]
    assert described["samples"] == 200_000
    assert described["classes"][0]["samples"] == 65_536


def test_what_is_not_fitted_is_not_covered(event: MakeTimings) -> None:
    fitted = fit(event([1.0, 2, 3], seconds=[1.0, 2, 3]))
    assert np.isnan(fitted.predict("other", np.ones((2, 1)))).all()
    assert np.isnan(fitted.predict("kernel", np.ones((2, 2)))).all()
    judged = fitted.predict_detailed("kernel", np.empty((0, 1)))
    assert judged.seconds.shape == judged.exact.shape == judged.outside.shape == (0,)


def test_each_parameter_count_of_an_event_has_its_own_fit(event: MakeTimings) -> None:
    single = event([1.0, 2, 3], seconds=[1.0, 2, 3])
    double = event([1.0, 2, 3, 4], [5.0, 1, 2, 2], seconds=[9.0] * 4)
    fitted = fit(single, double)
    assert fitted.predict("kernel", np.array([[2.0]])) == pytest.approx([2])
    assert fitted.predict("kernel", np.array([[2.0, 1.0]])) == pytest.approx([9])
    with pytest.raises(ModelError, match="are duplicated"):
        fit(single, single)


def test_predictions_are_raw_and_rows_outside_are_flagged(event: MakeTimings) -> None:
    fitted = fit(event([1.0, 2, 3, 4], seconds=[1.0, 2, 3, 4]), basis="linear")
    judged = fitted.predict_detailed(
        "kernel", np.array([[-5.0], [1], [4], [4.001], [1e9], [np.nan]])
    )
    assert judged.seconds[:5] == pytest.approx([-5, 1, 4, 4.001, 1e9])
    assert judged.outside.tolist() == [True, False, False, True, True, True]
    assert np.isnan(judged.seconds[5])


def test_a_row_does_not_depend_on_the_rows_beside_it(event: MakeTimings) -> None:
    rng = np.random.default_rng(16)
    p = rng.uniform(0, 9, (3, 70_001))
    fitted = fit(event(*p[:, :100], seconds=rng.uniform(1, 2, 100)))
    predicted = fitted.predict("kernel", p.T)
    parts = [fitted.predict("kernel", part) for part in np.array_split(p.T, 13)]
    assert np.concatenate(parts).tobytes() == predicted.tobytes()


def test_exact_matches_replace_the_fit(event: MakeTimings) -> None:
    fitted = fit(event([1.0, 2, 2, 3, 3], seconds=[1.0, 2, 4, 3, 3]), exact_match="always")
    judged = fitted.predict_detailed("kernel", np.array([[2.0], [2.5], [1], [3]]))
    assert judged.exact.tolist() == [True, False, True, True]
    assert judged.seconds[[0, 2, 3]].tolist() == [3.0, 1.0, 3.0]
    assert fitted.predict("kernel", np.array([[2.0]])).tolist() == [3.0]
    assert only(fitted)["exact_matches"]["sets"] == 3


def test_a_fitted_model_survives_pickle(event: MakeTimings) -> None:
    fitted = fit(event([1.0, 2, 2, 3], seconds=[1.0, 2, 4, 3]), exact_match="always")
    again = pickle.loads(pickle.dumps(fitted))  # noqa: S301 - our own bytes
    assert again.describe() == fitted.describe()
    rows = np.array([[2.0], [2.7]])
    assert again.predict("kernel", rows).tobytes() == fitted.predict("kernel", rows).tobytes()


def test_the_summary_shows_quality_and_formula(event: MakeTimings) -> None:
    p = np.arange(1.0, 9)
    summary = fit(event(p, np.ones(8), seconds=2 * p), basis="linear").summary()
    assert summary[0].startswith("kernel(p1, p2): linear basis, 8 samples, R² 1.0000, χ² ")
    assert summary[1].startswith("  on held-out samples: mean error 0.00 %")
    assert summary[2].startswith("  seconds = (")
    assert "p1" in summary[2]
    assert summary[3:] == (
        "  range: p1 1 to 8, p2 1 to 1",
        "  dropped: p2 (p2 is constant 1 in all samples)",
    )


def test_the_cells_kernels_are_fitted_as_plain_least_squares_does(
    reference_timings: ReferenceTimings,
) -> None:
    timings = reference_timings("cells")
    fitted = fit(*timings)
    assert [(t.event, t.params.shape) for t in timings] == [
        ("Cell::pairForces", (400, 2)),
        ("Cell::bonded", (200, 1)),
    ]
    for samples, event_json in zip(timings, fitted.describe()["events"], strict=True):
        described = flattened(event_json)
        truth, predicted = exact_ols(samples.params, samples.seconds)
        values = [term["value"] for term in described["coefficients"]]
        assert values == pytest.approx(truth, rel=1e-9)
        assert fitted.predict(samples.event, samples.params) == pytest.approx(predicted, rel=1e-12)
        assert described["r2"] > 0.98
    assert fitted.warnings() == ()


def test_the_namd_timings_give_moderate_coefficients(
    reference_timings: ReferenceTimings,
) -> None:
    timings = reference_timings("namd")
    fitted = fit(*timings)
    json.dumps(fitted.describe(), allow_nan=False)
    assert {samples.params.shape[1] for samples in timings} == {2, 14}
    for samples, event_json in zip(timings, fitted.describe()["events"], strict=True):
        described = flattened(event_json)
        predicted = fitted.predict(samples.event, samples.params)
        assert np.abs(predicted).max() < 2 * samples.seconds.max()
        assert all(abs(term["value"]) < 0.1 for term in described["coefficients"])
    self_energy = next(d for d in fitted.describe()["events"] if "self" in d["event"])
    names = {drop["term"] for drop in flattened(self_energy)["dropped"]}
    assert {"p2", "p6", "p7", "p8"} <= names


def test_leverage_is_that_of_the_design() -> None:
    draw = np.random.default_rng(0)
    params = draw.uniform(1, 100, (40, 2))
    seconds = 1e-6 * (params.sum(axis=1) - 60)  # near 0 for some
    fitted = fit(EventTimings("e", params, seconds), basis="linear")
    design = np.column_stack([np.ones(40), params])
    inverse = np.linalg.inv(design.T @ design)
    known = np.einsum("ij,jk,ik->i", design, inverse, design)
    (event_fit,) = fitted.fits.values()
    assert event_fit.quality.largest_leverage == pytest.approx(known.max())
    rows = np.array([[50.0, 50.0], [100.0, 0.5], [99.0, 99.0]])
    with_one = np.column_stack([np.ones(3), rows])
    far = np.einsum("ij,jk,ik->i", with_one, inverse, with_one) > known.max()
    assert fitted.predict_detailed("e", rows).remote.tolist() == far.tolist()
