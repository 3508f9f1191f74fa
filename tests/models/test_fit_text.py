"""What the text of a fit says about a mean of functions, and about growth beyond the range."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from msgspec import structs

from rewritelog.models.base import EventTimings, ModelText
from rewritelog.models.registry import load_model
from rewritelog.text import MOST_EVENTS


def summary(params: np.ndarray, seconds: np.ndarray) -> list[str]:
    timings = EventTimings("kernel", params.astype(float), seconds)
    return list(load_model("auto", {}).fit((timings,)).summary())


def test_growth_beyond_the_range_is_a_line_with_a_factor_for_each_parameter() -> None:
    draw = np.random.default_rng(5)
    params = draw.integers(10, 400, (40, 2))
    seconds = 1e-9 * params[:, 0] ** 2 * np.exp(0.05 * draw.standard_normal(40))
    (line,) = [line for line in summary(params, seconds) if "beyond the range" in line]
    growth = re.fullmatch(r" *beyond the range: ([\d.]+) × for twice p1", line)
    assert growth, line
    assert 3.5 < float(growth[1]) < 4.5


def test_growth_is_told_where_other_parameters_are_small_and_where_they_are_large() -> None:
    """It was told where all are largest: there p2 dominates, and p1 seemed to change nothing.

    A flag was said to grow as well.
    """
    draw = np.random.default_rng(5)
    p1, p2 = np.exp(draw.uniform(0, 9, (2, 400)))
    flag = draw.integers(0, 2, 400)
    seconds = 1e-9 * (p1 + p2**2) * (1 + flag) * np.exp(0.05 * draw.standard_normal(400))
    (line,) = [x for x in summary(np.c_[p1, p2, flag], seconds) if "beyond the range" in x]
    growth = re.search(r"([\d.]+) to ([\d.]+) × for twice p1", line)
    assert growth, line
    assert 0.9 < float(growth[1]) < 1.1
    assert 1.7 < float(growth[2]) < 2.3
    assert "p3" not in line


def test_a_mean_of_functions_is_shown_by_the_one_with_the_largest_weight() -> None:
    draw = np.random.default_rng(3)
    params = draw.integers(10, 400, (8, 2))
    seconds = 1e-8 * params[:, 0] * np.exp(0.2 * draw.standard_normal(8))
    lines = summary(params, seconds)
    (mean,) = [line for line in lines if "in the mean of this and" in line]
    assert re.search(r"with weight \d+ % in the mean of this and \d+ other functions?$", mean)
    assert sum("seconds = " in line for line in lines) == 1


def test_no_factor_of_a_mean_is_a_power_of_1() -> None:
    """The function of two lines was `p1^0.607*1^0.1977*…`."""
    params = np.array([[258], [268]])
    function = summary(params, params[:, 0] * 1e-8)[1]
    assert "seconds = " in function
    assert not re.search(r"[ *]1\^", function), function


def test_a_product_longer_than_a_line_has_no_blanks_but_where_it_breaks() -> None:
    """It was `p1^1.549* (1 + abs(p2))^-2.42*`, and elsewhere `p1*p2`."""
    params = np.random.default_rng(4).integers(10, 400, (60, 14))
    seconds = 1e-9 * (params.astype(float) ** 0.7).prod(axis=1)
    text = "\n".join(summary(params, seconds))
    assert "*\n " in text
    assert "* " not in text


def test_times_of_0_have_the_function_0() -> None:
    """It was `(-0 ± 0)`, in model files too."""
    params = np.arange(1, 61)[:, None]
    assert "  seconds = (0 ± 0)" in summary(params, np.zeros(60))


def test_classes_are_named_by_all_digits_of_their_category() -> None:
    """Two classes were called `class 1.04858e+06`."""
    text = ModelText("f.toml", '[[formula]]\nevent = "k"\nterms = ["p1"]\ncategory = "p2"\n')
    n = np.arange(1.0, 21)
    params = np.column_stack([n, 1048576 + n % 2])
    fitted = load_model("auto", {}, {"formulas": text}).fit((EventTimings("k", params, n * 1e-6),))
    heads = [line.split(":")[0] for line in fitted.summary() if "class" in line]
    assert heads == ["  class 1048576", "  class 1048577"]


def with_long_calls(long: int) -> list[str]:
    draw = np.random.default_rng(4)
    seconds = 1e-4 * np.exp(0.02 * draw.standard_normal(300))
    seconds[7 : 7 + long] *= 500
    fitted = load_model("auto", {}).fit((EventTimings("kernel", np.empty((300, 0)), seconds),))
    return [text for text in fitted.warnings() if "long as predicted" in text or "leaves" in text]


def test_long_calls_are_left_out_of_totals_only_if_the_warning_says_so() -> None:
    (warning,) = with_long_calls(1)
    assert "totals leave it out" in warning


def test_totals_that_long_calls_raise_are_named_with_their_factor() -> None:
    (several,) = with_long_calls(4)
    assert "totals leave it out" not in several
    assert "totals are 7.63 × those of usual times (total='typical' leaves that out)" in several


def test_totals_that_are_1_times_the_usual_ones_are_not_mentioned() -> None:
    """It was "totals are 1 × those of usual times", of calls that vary without long ones."""
    draw = np.random.default_rng(1)
    seconds = 1e-6 * np.exp(0.6 * draw.standard_normal(40))
    timings = EventTimings("copy", draw.uniform(1, 99, (40, 1)), seconds)
    fitted: Any = load_model("auto", {}).fit((timings,))
    ((key, fit),) = fitted.fits.items()
    texts = {}
    for ratio in (1.4, 1.0049):
        whole = structs.replace(fit.whole, total_ratio=ratio)
        changed = replace(fitted, fits={key: structs.replace(fit, classes=(whole,))})
        (texts[ratio],) = (text for text in changed.warnings() if "explain little" in text)
    assert "of the time, and totals are 1.4 × those of usual times" in texts[1.4]
    assert "of the time; pass parameters" in texts[1.0049]


def test_many_events_without_any_time_have_a_table() -> None:
    """It was a `ZeroDivisionError`: those beyond the table have no share of a time of 0."""
    params = np.array([[1.0], [2.0], [3.0]])
    names = [f"kernel {number}" for number in range(MOST_EVENTS + 2)]
    timings = tuple(EventTimings(name, params, np.zeros(3)) for name in names)
    lines = load_model("auto", {}).fit(timings).overview()
    assert "  and 2 more with 0.0 % of the measured time" in lines


def test_a_short_call_that_took_long_is_not_told_to_take_most_of_the_time() -> None:
    """It had `makes up 44 % of the time`, by ratios, of a sum of which it was 0.02 %."""
    draw = np.random.default_rng(1)
    sizes = np.geomspace(10, 1e6, 40)
    seconds = 1e-8 * sizes * np.exp(0.02 * draw.standard_normal(40))
    seconds[3] *= 30
    fitted = load_model("auto", {}).fit((EventTimings("kernel", sizes[:, None], seconds),))
    (warning,) = fitted.warnings()
    assert "one call took 29.09 times as long as predicted" in warning
    assert "% of the time" not in warning


@pytest.mark.parametrize(("lines", "seed"), [(8, 27), (12, 7)])
def test_a_call_that_only_a_fit_without_it_misses_was_not_disturbed(lines: int, seed: int) -> None:
    """It was `one call took 38.06 times as long as predicted`, and the fit predicted it well.

    Of 8 lines it was said, too, that their parameters explain little of the time.
    """
    draw = np.random.default_rng(seed)
    params = np.round(10 ** draw.uniform(0, 5, (lines, 3)))
    seconds = (1e-9 * params.sum(axis=1) + 1e-6) * np.exp(0.05 * draw.standard_normal(lines))
    fitted = load_model("auto", {}).fit((EventTimings("k", params, seconds),))
    (warning,) = fitted.warnings()
    assert ": so few lines may not tell what determines the time; add" in warning


@pytest.mark.slow
def test_where_calls_often_return_early_the_warning_says_what_totals_are(
    sample_timings: list[EventTimings],
) -> None:
    """It said that predictions were off `by -100 % in their sum`, and nothing of totals."""
    (pairs,) = (samples for samples in sample_timings if samples.event == "Cell::pairForces")
    draw = np.random.default_rng(2)
    early_s = 2e-8 * np.exp(0.05 * draw.standard_normal(400))
    seconds = np.where(draw.random(400) < 0.55, early_s, pairs.seconds)
    fitted = load_model("auto", {}).fit((EventTimings("k", pairs.params, seconds),))
    (warning,) = fitted.warnings()
    assert "the parameters explain little of the time, and totals are 3" in warning
    assert "split the event by a category" in warning


def test_a_large_error_of_one_short_call_or_of_noise_is_not_blamed_on_the_parameters() -> None:
    """Users looked for a missing parameter, where p1 explains 98 % and one line was torn."""
    draw = np.random.default_rng(0)
    sizes = np.exp(draw.uniform(2, 9, 200))
    noise: np.ndarray = draw.standard_normal(200)
    for spread, cause in ((0.03, "0.5 % of the calls took less than half"), (0.3, "explain most")):
        seconds = np.asarray(1e-6 * sizes * np.exp(spread * noise), dtype=np.float64)
        seconds[3] *= 1e-4 if spread == 0.03 else 1
        timings = EventTimings("k", sizes[:, None], seconds)
        (warning,) = load_model("auto", {}).fit((timings,)).warnings()
        assert cause in warning
        assert "explain little" not in warning


def test_one_of_many_long_calls_is_not_the_only_one() -> None:
    """It was `one call took 1231 times as long as predicted`; 16 others were long too."""
    draw = np.random.default_rng(8)
    sizes, noise = np.geomspace(10, 3000, 50), np.exp(0.05 * draw.standard_normal(50))
    seconds = np.where(draw.random(50) < 0.6, 2e-7, 1e-7 * sizes) * noise
    fitted = load_model("auto", {}).fit((EventTimings("k", sizes[:, None], seconds),))
    (warning,) = fitted.warnings()
    assert "one call" not in warning
    assert "split the event by a category" in warning


def test_only_the_events_first_call_is_one_whatever_its_class() -> None:
    draw = np.random.default_rng(1)
    kind = np.r_[0.0, draw.integers(0, 2, 59)]
    size = draw.integers(10, 100, 60).astype(float)
    seconds = 1e-6 * size * (1 + 4 * kind) * (1 + 0.02 * draw.standard_normal(60))
    later = int(np.flatnonzero(kind == 1)[0])
    seconds[later] *= 7
    text = ModelText("f.toml", '[[formula]]\nevent = "k"\nterms = ["p1"]\ncategory = "p2"\n')
    timings = EventTimings("k", np.column_stack([size, kind]), seconds)
    (warning,) = load_model("auto", {}, {"formulas": text}).fit((timings,)).warnings()
    assert "first call" not in warning


def test_a_first_call_that_took_as_long_as_many_others_pays_for_no_cold_caches() -> None:
    """A fifth of the calls took 1.9 times as long: a warm-up call would have changed nothing."""
    draw = np.random.default_rng(1)
    sizes = np.round(10 ** draw.uniform(1, 4, 200))
    slow = draw.random(200) < 0.2
    slow[0] = True
    seconds = 1e-8 * sizes * np.where(slow, 1.9, 1) * np.exp(0.02 * draw.standard_normal(200))
    seconds[0] = 1.9e-8 * sizes[0]
    others = seconds / np.where(np.arange(200) > 0, np.where(slow, 1.9, 1.0), 1.0)
    for times, is_told in ((seconds, False), (others, True)):
        timings = EventTimings("kernel", sizes[:, None], times)
        warnings = load_model("auto", {}).fit((timings,)).warnings()
        assert any("first call" in text for text in warnings) == is_told


def test_the_first_of_some_lines_is_no_first_call_if_that_is_not_among_them() -> None:
    """Cross-validation and `sampled` fit to some of the lines."""
    draw = np.random.default_rng(1)
    sizes = draw.uniform(10, 100, 60)
    seconds = 1e-6 * sizes * np.exp(0.02 * draw.standard_normal(60))
    seconds[[0, 5]] *= 7
    timings = EventTimings("kernel", sizes[:, None], seconds)
    rows = np.arange(60)
    for part, is_told in ((rows != 5, True), (rows >= 5, False), (rows[5:], False)):
        warnings = load_model("auto", {}).fit((timings.part(part),)).warnings()
        assert any("first call" in text for text in warnings) == is_told
