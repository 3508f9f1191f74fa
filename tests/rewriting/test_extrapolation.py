"""What a log asks of a fit that its samples do not tell: counted, and said with what to do."""

from pathlib import Path

import numpy as np
import pytest
from logbuilder import bracket, seb, write_logs, write_params, write_timings

import rewritelog
from rewritelog.commands.durations import RewriteOptions
from rewritelog.rewriting.report import RewriteReport
from rewritelog.rewriting.run import rewrite


@pytest.fixture
def timings(tmp_path: Path) -> Path:
    """Two parameters that rise together, but not quite."""
    draw = np.random.default_rng(2)
    first = draw.uniform(10, 100, 60).round(3)
    second = (first + draw.uniform(-5, 5, 60)).round(3)
    pairs = zip(first.tolist(), second.tolist(), strict=True)
    return write_timings(tmp_path / "timings", *[("k", 1e-3 * (a + 2 * b), a, b) for a, b in pairs])


def run(timings: Path, *params: tuple[float, ...]) -> RewriteReport:
    folder = timings.parent / "in"
    write_logs(folder, [[seb(k, k + 1, events=bracket(0, 1)) for k in range(len(params))]])
    write_params(folder, 0, *[(k, "k", *row) for k, row in enumerate(params)])
    return rewrite(
        folder,
        None,
        RewriteOptions(
            model="least-squares", model_options={"basis": "linear"}, timings=(timings,)
        ),
    )


def warned(report: RewriteReport, *words: str) -> bool:
    return any(all(word in warning for word in words) for warning in report.warnings)


def test_parameters_beyond_ranges_and_beyond_leverage_are_told_apart(timings: Path) -> None:
    report = run(
        timings, (50, 50), (30, 31), (500, 50), (20, 90), (90, 20), (80, 25), (60, 61), (70, 70)
    )
    (line,) = report.events
    assert (line.by_model, line.outside, line.remote) == (8, 1, 3)
    assert line.extrapolated == 0.5
    assert report.to_json()["events"][0]["extrapolated"] == 0.5
    assert warned(report, "1 bracket (12.5 % of those predicted)", "outside the range", "time this")
    assert warned(report, "3 brackets (37.5 % of those predicted)", "together further", "time such")
    shown = report.details()
    shares = shown[shown.index("shares of all SEB time") :].splitlines()
    row = next(line.split() for line in shares if line.startswith("  k "))
    assert row[:7] == ["k", "100.0", "%", "100.0", "%", "50.0", "%"]


def test_within_the_samples_nothing_is_said(timings: Path) -> None:
    report = run(timings, (50, 50), (30, 31))
    assert report.events[0].extrapolated == 0
    assert not warned(report, "extrapolated")


def test_negative_predictions_are_counted_though_bounds_hide_them(timings: Path) -> None:
    report = run(timings, (50, 50), (-5000, 50), (-9000, -9000))
    (line,) = report.events
    assert line.negative == 2
    assert line.new_s > 0
    assert warned(report, "2 predictions below zero", "time this event with such parameters")


def test_a_doubt_about_many_events_is_one_warning(tmp_path: Path) -> None:
    events = [f"e{k}" for k in range(6)]
    lines = [(event, 1e-3 * n, float(n)) for event in events for n in range(1, 9)]
    timings = write_timings(tmp_path / "timings", *lines)
    folder = write_logs(tmp_path / "in", [[seb(k, k + 1, events=bracket(0, 1)) for k in range(8)]])
    write_params(folder, 0, *[(k, events[min(k, 5)], 100 if k < 7 else 5) for k in range(8)])
    report = rewrite(folder, None, RewriteOptions(model="least-squares", timings=(timings,)))
    (warning,) = [w for w in report.warnings if "outside the range" in w]
    assert warning.startswith(
        "6 events, the largest being 'e5': 7 brackets (87.5 % of those predicted) with parameters "
    )
    assert warning.endswith("; time these events with such parameters too")


def test_a_total_is_as_uncertain_as_its_calls_are_beyond_the_samples(tmp_path: Path) -> None:
    """All calls are off in the same direction, so that many are no better known than one."""
    draw = np.random.default_rng(4)
    sizes = draw.integers(1, 100, 80).tolist()
    noise = draw.normal(1, 0.05, 80)
    times = [1e-5 * n * (1 + 0.02 * n) * f for n, f in zip(sizes, noise.tolist(), strict=True)]
    lines = [("k", t, float(n)) for n, t in zip(sizes, times, strict=True)]
    timings = write_timings(tmp_path / "timings", *lines)

    def half_width(size: float) -> float:
        folder = write_logs(
            tmp_path / f"in{size}", [[seb(k, k + 1, events=bracket(0, 1)) for k in range(40)]]
        )
        write_params(folder, 0, *[(k, "k", size) for k in range(40)])
        (line,) = rewrite(folder, None, RewriteOptions(timings=(timings,))).events
        _, high_s = line.expected.interval_s or (0, 0)
        return (high_s - line.new_s) / line.new_s

    def of_a_call(size: float) -> float:
        fitted = rewritelog.fit(timings)
        _, high_s = fitted.interval("k", [[size]])
        return float(high_s[0] / fitted.predict("k", [[size]])[0] - 1)

    assert half_width(50) < 0.3 * of_a_call(50)
    assert half_width(3000) > 0.7 * of_a_call(3000) > 0.15
