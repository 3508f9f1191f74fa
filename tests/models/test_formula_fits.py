"""Fits by formulas: their terms and nothing else, and a fit for each class of an event."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from kinds import MakeTimings, ReferenceTimings
from models.laws import relative_errors

from rewritelog.models.auto import Auto, AutoOptions
from rewritelog.models.base import EventTimings, ModelText

PAIRS = """
[[formula]]
event = "pair"
params = ["n", "x1", "y1", "z1", "x2", "y2", "z2"]
terms = ["1", "n"]
category = "torus_distance(x1, y1, z1, x2, y2, z2, 4, 4, 4)"
"""
SECONDS = {0: 9e-6, 1: 5e-6, 2: 2e-6, 3: 1e-6}
"""Of one unit of work, by the distance on the torus."""


def by_formula(text: str, *timings: EventTimings, **options: Any) -> Any:
    return Auto(AutoOptions(**options), ModelText("my.toml", text)).fit(timings)


def pairs(
    count: int = 600, seed: int = 1, noise: float = 0.01, distances: Sequence[int] = (0, 1, 2, 3)
) -> Any:
    """Pairs of neighbouring cells on a torus of 4 × 4 × 4."""
    rng = np.random.default_rng(seed)
    steps = np.array(
        [
            step
            for step in itertools.product((-1, 0, 1), repeat=3)
            if sum(map(abs, step)) in distances
        ]
    )
    cell = rng.integers(0, 4, (count, 3))
    step = steps[rng.integers(0, len(steps), count)]
    work = rng.integers(10, 500, count)
    params = np.column_stack((work, cell, (cell + step) % 4)).astype(np.float64)
    unit = np.vectorize(SECONDS.get)(np.abs(step).sum(axis=1))
    seconds = (3e-5 + unit * work) * np.exp(rng.normal(0, noise, count))
    return EventTimings("pair", params, seconds)


def test_the_terms_of_a_formula_and_no_others_are_fitted(event: MakeTimings) -> None:
    p = np.arange(1.0, 41)
    text = '[[formula]]\nevent = "kernel"\nterms = ["1", "p1^2"]\n'
    fitted = by_formula(text, event(p, np.sqrt(p), seconds=1e-6 * (5 + 2 * p**2)))
    (described,) = fitted.describe()["events"]
    assert "p1^2" in "".join(fitted.summary())
    law = fitted.fits["kernel", 2].whole.function
    assert [str(term) for term in law.terms] == ["1", "p1^2"]
    assert law.coefficients == pytest.approx([5e-6, 2e-6], rel=1e-6)
    assert described["event"] == "kernel"


def test_an_event_without_a_formula_is_fitted_automatically(event: MakeTimings) -> None:
    p = np.arange(1.0, 41)
    text = '[[formula]]\nevent = "another"\nterms = ["1"]\n'
    fitted = by_formula(text, event(p, seconds=1e-6 * p))
    assert fitted.predict("kernel", np.array([[20.5]])) == pytest.approx([20.5e-6], rel=1e-3)


def test_a_term_of_either_sign_is_taken_as_the_samples_say(event: MakeTimings) -> None:
    p = np.arange(1.0, 41)
    text = '[[formula]]\nevent = "kernel"\nterms = ["1", "p1"]\n'
    fitted = by_formula(text, event(p, seconds=1e-6 * (50 - p)))
    assert fitted.predict("kernel", np.array([[10.0]])) == pytest.approx([40e-6], rel=1e-6)
    assert fitted.predict("kernel", np.array([[60.0]]))[0] >= 0


def test_classes_by_the_distance_on_a_torus_have_a_fit_each() -> None:
    timings, others = pairs(seed=1), pairs(seed=2, noise=0.0)
    fitted = by_formula(PAIRS, timings)
    predicted = fitted.predict("pair", others.params)
    assert relative_errors(predicted, others.seconds).mean() < 0.01
    fit = fitted.fits["pair", 7]
    assert [category.value for category in fit.classes[1:]] == [0, 1, 2, 3]
    one_for_all = by_formula(PAIRS.rsplit("\n", 2)[0], timings).predict("pair", others.params)
    assert relative_errors(one_for_all, others.seconds).mean() > 0.2


def test_a_class_without_samples_is_predicted_by_the_law_of_all_samples() -> None:
    timings = pairs(distances=(1, 2))
    fitted = by_formula(PAIRS, timings)
    unseen = pairs(seed=3, distances=(3,)).params
    unsplit = by_formula(PAIRS.rsplit("\n", 2)[0], timings)
    assert fitted.predict("pair", unseen).tobytes() == unsplit.predict("pair", unseen).tobytes()


def test_a_class_with_few_samples_is_predicted_by_the_law_of_all_samples() -> None:
    some, few = pairs(distances=(1,)), pairs(count=7, seed=4, distances=(3,))
    timings = EventTimings(
        "pair", np.vstack((some.params, few.params)), np.concatenate((some.seconds, few.seconds))
    )
    fit = by_formula(PAIRS, timings).fits["pair", 7]
    assert [category.value for category in fit.classes] == [None, 1]


def test_a_category_that_is_no_number_leaves_its_rows_to_the_law_of_all_samples(
    event: MakeTimings,
) -> None:
    p = np.arange(0.0, 60)
    text = (
        '[[formula]]\nevent = "kernel"\nterms = ["1", "p1"]\ncategory = "floor(10/p1)*0 + p1/p1"\n'
    )
    fitted = by_formula(text, event(p, seconds=1e-6 * (3 + p)))
    seconds = fitted.predict("kernel", np.array([[0.0], [10.0]]))
    assert seconds == pytest.approx([3e-6, 13e-6], rel=1e-3)


def test_a_formula_that_does_not_fit_the_parameters_is_said(event: MakeTimings) -> None:
    text = '[[formula]]\nevent = "kernel"\nterms = ["1", "p3"]\n'
    p = np.arange(1.0, 41)
    fitted = by_formula(text, event(p, seconds=1e-6 * p))
    assert any("kernel" in text and "my.toml" in text for text in fitted.notes)


def test_intervals_and_spread_are_those_of_the_class(two_classes: EventTimings) -> None:
    text = '[[formula]]\nevent = "kernel"\nterms = ["p1"]\ncategory = "p2"\n'
    fitted = by_formula(text, two_classes)
    low, high = fitted.interval("kernel", np.array([[50.0, 0.0], [50.0, 1.0]]))
    assert high[0] / low[0] < 1.1
    assert high[1] / low[1] > 1.8


def test_namds_pairs_fall_into_classes(
    reference_timings: ReferenceTimings,
) -> None:
    """By the distance of two patches: the fit of all samples alone is twice as far off."""
    (pair,) = (
        samples for samples in reference_timings("namd") if samples.event.startswith("calc_pair")
    )
    fold = np.random.default_rng(6).permutation(len(pair.seconds)) % 4
    part = EventTimings(pair.event, pair.params[fold > 0], pair.seconds[fold > 0])
    errors = []
    for category in ("", 'category = "torus_distance(p3, p4, p5, p6, p7, p8, 6, 6, 6)"\n'):
        text = f'[[formula]]\nevent = "calc_pair_*"\nterms = ["1", "p9", "p10"]\n{category}'
        predicted = by_formula(text, part, exact_match="never").predict(
            pair.event, pair.params[fold == 0]
        )
        errors.append(relative_errors(predicted, pair.seconds[fold == 0]).mean())
    assert errors[1] < errors[0]


def test_a_term_that_is_not_finite_for_all_samples_is_left_out_and_named(
    event: MakeTimings,
) -> None:
    p = np.arange(1.0, 41)
    text = '[[formula]]\nevent = "kernel"\nparams = ["n"]\nterms = ["n", "1/(n - 4)"]\n'
    fitted = by_formula(text, event(p, seconds=1e-6 * p))
    assert "dropped: 1/(n - 4) (not finite for 1 sample)" in "\n".join(fitted.summary())
    (warning,) = fitted.warnings()
    assert "kernel(n): 1/(n - 4): not finite for some samples, so left out" in warning


def test_a_term_that_is_not_finite_in_a_class_or_a_line_of_many_is_left_out_of_all(
    event: MakeTimings,
) -> None:
    """Other classes had it, and those of many lines that chose terms without such a line."""
    text = '[[formula]]\nevent = "kernel"\nterms = ["p1", "1/(p1 - 4)"]\n'
    sizes = np.tile(np.arange(1.0, 41), 2)
    side = np.repeat([0.0, 1.0], 40)
    sizes[side == 1] += 10
    fitted = by_formula(text + 'category = "p2"\n', event(sizes, side, seconds=1e-6 * sizes))
    assert np.isfinite(fitted.predict("kernel", np.array([[4.0, 0], [4.0, 1]]))).all()
    more_sizes = np.r_[np.arange(10.0, 4000), 4.0]
    fitted = by_formula(text, event(more_sizes, seconds=1e-6 * more_sizes))
    assert np.isfinite(fitted.predict("kernel", np.array([[4.0]]))).all()
    assert "dropped: 1/(p1 - 4) (not finite for 1 sample)" in "\n".join(fitted.summary())


def test_an_event_with_classes_is_judged_by_the_worst_of_them() -> None:
    """Warnings said how bad the function of all samples is, which predicts none of these."""
    fitted = by_formula(PAIRS, pairs())
    fit = fitted.fits["pair", 7]
    assert fit.whole.quality.held_out_error > 0.2
    assert fit.quality.held_out_error < 0.02
    assert fit.quality.r2 > 0.99
    assert abs(fit.ratios - 1).max() < 0.1
    assert fitted.warnings() == ()
    assert "    on held-out samples: mean error" in "".join(fitted.summary())
    assert "good" in "".join(fitted.overview())
    spread = fitted.total_spread("pair", 7)
    assert spread is not None
    assert spread.single < 0.02


def test_the_table_of_fits_says_that_errors_are_those_of_a_class() -> None:
    """It had the error of one class of four as that of all lines."""
    split, unsplit = by_formula(PAIRS, pairs()), by_formula(PAIRS.partition("category")[0], pairs())
    assert "of the class from which most errors come" in split.overview()[-1]
    assert "class" not in " ".join(unsplit.overview())


def test_a_class_with_few_samples_for_its_terms_is_warned_of(event: MakeTimings) -> None:
    n, side = np.arange(1.0, 50), np.r_[np.zeros(40), np.ones(9)]
    text = (
        '[[formula]]\nevent = "kernel"\nparams = ["n", "side"]\n'
        'terms = ["1", "n", "n^2", "n^3"]\ncategory = "side"\n'
    )
    fitted = by_formula(text, event(n, side, seconds=1e-6 * (1 + n) * (1 + side)))
    assert "only 9 samples of class 1 for 4 coefficients" in " ".join(fitted.warnings())
    assert "few lines" in "".join(fitted.overview())


def test_a_class_too_small_for_a_fit_of_its_own_is_warned_of(event: MakeTimings) -> None:
    """Its calls were predicted as those of the other class, and the fit was called good."""
    n, side = np.arange(1.0, 51), np.r_[np.zeros(43), np.ones(7)]
    text = (
        '[[formula]]\nevent = "kernel"\nparams = ["n", "side"]\n'
        'terms = ["1", "n"]\ncategory = "side"\n'
    )
    fitted = by_formula(text, event(n, side, seconds=1e-6 * n * (1 + 5 * side)))
    assert any(
        "kernel(n, side): the category side has fewer than 8 samples in 1 of 2 classes" in warning
        for warning in fitted.warnings()
    )
    assert "dropped: side (fewer than 8 samples in 1 of 2 classes)" in "\n".join(fitted.summary())


def test_lines_of_no_class_count_among_the_errors_of_an_event(event: MakeTimings) -> None:
    """A total that was off by a tenth was said to be certain to 0.0 %: the only class was exact."""
    n, side = np.arange(1.0, 51), np.r_[np.zeros(43), np.ones(7)]
    text = '[[formula]]\nevent = "kernel"\nterms = ["1", "p1"]\ncategory = "p2"\n'
    samples = event(n, side, seconds=1e-6 * n * (1 + 5 * side))
    fitted = by_formula(text, samples)
    fit = fitted.fits["kernel", 2]
    assert fit.judged is fit.whole
    *_, row, _, note = fitted.overview()
    assert "good" not in row
    assert "of the class from which most errors come" in note
    total_s = float(fitted.predict("kernel", samples.params).sum())
    spread = fitted.total_spread("kernel", 2)
    assert spread is not None
    error = abs(total_s / samples.seconds.sum() - 1)
    assert 0.01 < error < 2 * spread.common
    n, side = np.tile(n, 9), np.r_[np.zeros(449), 1]
    one = by_formula(text, event(n, side, seconds=1e-6 * n * (1 + 5 * side)))
    assert one.fits["kernel", 2].unclassed == 1
    assert one.fits["kernel", 2].judged.value == 0


def test_a_category_without_a_fit_counts_as_extrapolated(event: MakeTimings) -> None:
    """Calls of a category that was never timed were several times off, without a word."""
    n, side = np.tile(np.arange(1.0, 51), 2), np.repeat([0.0, 2.0], 50)
    text = '[[formula]]\nevent = "kernel"\nterms = ["1", "p1"]\ncategory = "p2"\n'
    fitted = by_formula(text, event(n, side, seconds=1e-6 * n * (1 + 5 * side)))
    rows = np.array([[20.0, 0.0], [20.0, 2.0], [20.0, 1.0], [60.0, 0.0]])
    answer = fitted.predict_detailed("kernel", rows)
    assert answer.outside.tolist() == [False, False, True, True]


def test_totals_are_those_measured_with_just_enough_samples_to_calibrate(
    event: MakeTimings,
) -> None:
    """Fits to four of five samples were not calibrated, and showed sums a third too small."""
    p = np.geomspace(10, 1000, 32)
    timings = event(p, seconds=1e-7 * p**1.3)
    fitted = by_formula('[[formula]]\nevent = "kernel"\nterms = ["1", "p1"]\n', timings)
    factors = fitted.retransformation("kernel", timings.params)
    total_s = (fitted.predict("kernel", timings.params) * factors).sum()
    assert total_s == pytest.approx(timings.seconds.sum(), rel=0.02)
    low, high = fitted.interval("kernel", timings.params)
    assert ((low < timings.seconds) & (timings.seconds < high)).mean() > 0.8
