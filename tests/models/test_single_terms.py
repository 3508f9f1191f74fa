"""Laws of one term: known ones come back, and what is held out is predicted without it."""

from __future__ import annotations

import numpy as np
import pytest

from rewritelog.models.base import EventTimings
from rewritelog.models.fitting.samples import usable_samples
from rewritelog.models.fitting.single_terms import single_term_functions
from rewritelog.models.fitting.validation import folds_of

RANDOM = np.random.default_rng(3)
PARAMS = np.column_stack((RANDOM.uniform(10, 500, 80), RANDOM.uniform(1, 9, 80), np.full(80, 4.0)))


def test_the_law_that_made_the_times_comes_first() -> None:
    seconds = 1e-6 + 3e-9 * PARAMS[:, 0] ** 2
    functions = single_term_functions(EventTimings("k", PARAMS, seconds))
    best = functions.of(1)[0]
    assert str(best.term) == "p1^2"
    assert (best.constant_s, best.slope_s) == pytest.approx((1e-6, 3e-9))
    assert best.held_out_r2 == pytest.approx(1)
    assert best.held_out_error == pytest.approx(0, abs=1e-9)
    assert best.predict(PARAMS) == pytest.approx(seconds)
    assert (functions.of(2)[0].held_out_r2 or 0) < 0.3
    assert list(functions.ignored) == [3]


def test_an_outlier_does_not_move_a_robust_law() -> None:
    seconds = 2e-6 * PARAMS[:, 0] * RANDOM.normal(1, 0.01, 80)
    seconds[7] *= 50
    laws = single_term_functions(EventTimings("k", PARAMS, seconds)).of(1)
    (law,) = (law for law in laws if str(law.term) == "p1")
    assert law.predict(PARAMS)[:5] == pytest.approx(seconds[:5], rel=0.05)


def test_held_out_predictions_are_those_of_fits_without_the_fold() -> None:
    samples, _ = usable_samples(EventTimings("k", PARAMS, RANDOM.uniform(1, 2, 80)))
    folds, seconds = folds_of(80), samples.seconds
    columns = np.column_stack((np.ones(80), samples.params[:, 1]))
    predicted = np.empty(80)
    for fold in range(folds.max() + 1):
        kept = folds != fold
        line = np.linalg.lstsq(columns[kept], seconds[kept], rcond=None)[0]
        predicted[~kept] = columns[~kept] @ line
    r2 = 1 - ((predicted - seconds) ** 2).sum() / ((seconds - seconds.mean()) ** 2).sum()
    laws = single_term_functions(samples, "uniform", "squares")
    (plain,) = (law for law in laws.of(2) if str(law.term) == "p2")
    assert plain.held_out_r2 == pytest.approx(r2)


def test_too_few_samples_have_laws_without_errors() -> None:
    law = single_term_functions(EventTimings("k", PARAMS[:3], PARAMS[:3, 0])).of(1)[0]
    assert (law.held_out_r2, law.held_out_error) == (None, None)
    assert single_term_functions(EventTimings("k", np.zeros((5, 0)), np.ones(5))).functions == ()


@pytest.mark.parametrize(("points", "folds"), [(4, 4), (10, 10), (19, 10), (20, 5), (100, 5)])
def test_few_points_are_held_out_in_more_folds(points: int, folds: int) -> None:
    sizes = np.bincount(folds_of(points))
    assert len(sizes) == folds
    assert np.ptp(sizes) <= 1
