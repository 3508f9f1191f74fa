"""Lines with the same parameters tell of other parameters once, however many they are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from logbuilder import bracket, seb, write_logs, write_params, write_timings
from models.laws import LAWS, auto, relative_errors

from rewritelog.arrays import Floats
from rewritelog.commands.durations import RewriteOptions
from rewritelog.models.base import EventTimings
from rewritelog.models.fit_report import verdict
from rewritelog.rewriting.run import rewrite


def tiled(n: Floats) -> Floats:
    """The time of a kernel that works on whole tiles of 256."""
    return np.asarray(1e-6 * np.ceil(n / 256))


def jagged(n: Floats) -> Floats:
    """The time of a kernel that depends on the size in a way that no function describes."""
    return np.asarray(1e-9 * n * (1 + 0.5 * np.sin(37 * n)))


def timed_often(
    seed: int, points: int = 10, times: int = 10, time_of: Callable[[Floats], Floats] = tiled
) -> EventTimings:
    rng = np.random.default_rng(seed)
    n = np.repeat(np.rint(10 ** rng.uniform(1.5, 3.6, points)), times)
    return EventTimings("tiles", n[:, None], time_of(n) * np.exp(0.02 * rng.normal(size=len(n))))


def test_the_error_of_few_points_timed_often_is_that_of_other_points() -> None:
    """They were reported to be off by 2 %, and were so by 20; of ten calls four had their time."""
    reported, true, covered = [], [], []
    for seed in range(12):
        timings = timed_often(seed)
        fit = auto(timings).fits["tiles", 1]
        rng = np.random.default_rng(100 + seed)
        low, high = np.log10(timings.params.min()), np.log10(timings.params.max())
        others = np.rint(10 ** rng.uniform(low, high, 200))
        measured = tiled(others) * np.exp(0.02 * rng.normal(size=200))
        bounds = fit.interval(others[:, None])
        reported.append(fit.quality.held_out_error)
        true.append(relative_errors(fit.predict(others[:, None]), measured).mean())
        covered.append(((bounds[0] <= measured) & (measured <= bounds[1])).mean())
    assert 0.7 * np.mean(true) < np.mean(reported) < 1.6 * np.mean(true)
    assert np.mean(true) > 0.1
    assert np.mean(covered) > 0.85


def test_timed_parameters_are_within_narrow_intervals_of_their_own() -> None:
    timings = timed_often(1, times=20)
    fit = auto(timings).fits["tiles", 1]
    predicted = fit.predict_detailed(timings.params)
    assert predicted.exact.all()
    low, high = fit.interval(timings.params)
    inside = (low <= timings.seconds) & (timings.seconds <= high)
    assert 0.86 <= inside.mean() <= 0.97
    assert ((high - low) / predicted.seconds).max() < 0.12


def test_how_often_points_were_timed_does_not_change_what_is_known_of_others() -> None:
    """Nor does it narrow the error of a total at other points."""
    once, often = timed_often(3, 40, 1, jagged), timed_often(3, 40, 20, jagged)
    errors = [auto(timings).fits["tiles", 1].quality.held_out_error for timings in (once, often)]
    assert errors[1] == pytest.approx(errors[0], rel=0.5)
    spreads = [auto(timings).total_spread("tiles", 1) for timings in (once, often)]
    assert spreads[1].common > 0.4 * spreads[0].common
    assert spreads[1].exact.common < 0.1 * spreads[1].common


def test_lines_of_other_points_are_as_before() -> None:
    """Each of these is a point, in the fold that it always had."""
    timings = LAWS["n log n"].timings(80, seed=4)
    distinct, first = np.unique(timings.params, axis=0, return_index=True)
    fit = auto(timings.part(np.sort(first))).fits["kernel", 1]
    assert fit.whole.points == len(fit.whole.ratios) == len(distinct)


def test_codes_have_a_value_each_in_the_formula() -> None:
    """What predicts the other codes best is a trend, which is none."""
    rng = np.random.default_rng(5)
    seconds = np.array([3e-5, 4e-4, 1e-4, 9e-4, 2e-5, 6e-4])
    code = rng.integers(0, 6, 240)
    times = seconds[code] * np.exp(0.03 * rng.normal(size=240))
    timings = EventTimings("phase", code[:, None].astype(float), times)
    fit = auto(timings, exact_match="never").fits["phase", 1]
    errors = relative_errors(fit.predict(np.arange(6.0)[:, None]), seconds)
    assert errors.max() < 0.03
    fit = auto(timings).fits["phase", 1]
    assert verdict(fit) == "good if timed"
    low, high = fit.interval(np.arange(6.0)[:, None])
    assert (high < 1.15 * low).all()
    low, high = fit.interval(np.array([[2.5]]))
    assert high[0] > 5 * low[0]


def test_a_rewrite_of_timed_parameters_is_as_certain_as_their_times(tmp_path: Path) -> None:
    timings = timed_often(6, points=8, times=12)
    sizes, times = timings.params[:, 0].tolist(), timings.seconds.tolist()
    lines = [("tiles", time_s, size) for size, time_s in zip(sizes, times, strict=True)]
    text = write_timings(tmp_path / "t.txt", *lines)
    width = {}
    for name, size in (("timed", sizes[0]), ("other", float(np.median(sizes)) + 33)):
        logs = write_logs(tmp_path / name, [[seb(0, 1e-3, events=bracket(0, 50e-6))]])
        write_params(logs, 0, (0, "tiles", size))
        report = rewrite(logs, None, RewriteOptions(timings=(text,), dilation=1))
        expected = report.events[0].expected
        assert expected.interval_s is not None
        low_s, high_s = expected.interval_s
        width[name] = (high_s - low_s) / expected.seconds
    assert width["timed"] < 0.12 < width["other"]
