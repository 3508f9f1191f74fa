"""The sampled model draws the same lines everywhere and says how far off it is."""

from __future__ import annotations

import json
import pickle
from typing import Any

import numpy as np
import pytest
from kinds import MakeTimings, ReferenceTimings

from rewritelog.arrays import Flags, random_ranks
from rewritelog.errors import ModelError, UsageError
from rewritelog.models.auto import Auto, AutoOptions
from rewritelog.models.base import EventTimings, ModelFit, ModelText
from rewritelog.models.registry import load_model
from rewritelog.models.sampled import Sampled, SampledOptions


def draw(event: str, parameters: int, rows: int, count: int, seed: int) -> Flags:
    """Return which `count` of the rows the model draws."""
    return random_ranks(f"{parameters} {event}", rows, seed) < count


def fit(*timings: EventTimings, **options: Any) -> Any:
    return Sampled(SampledOptions(**options)).fit(timings)


def only(fitted: ModelFit) -> Any:
    (described,) = json.loads(json.dumps(fitted.describe(), allow_nan=False))["events"]
    return described


@pytest.fixture
def noisy(event: MakeTimings) -> Any:
    rng = np.random.default_rng(31)
    p = rng.integers(1, 100, 2000).astype(float)
    return event(p, seconds=1e-6 * (3 + p + 0.1 * p**2) * rng.uniform(0.95, 1.05, 2000))


def test_the_draw_is_the_same_everywhere() -> None:
    frozen = {
        ("Cell::bonded", 1, 1): [6, 167, 262, 526, 570, 591, 768, 981],
        ("Cell::bonded", 1, 2): [16, 208, 269, 622, 756, 890, 899, 937],
        ("Cell::bonded", 2, 1): [22, 27, 43, 47, 244, 502, 614, 784],
        ("α kernel", 1, -7): [301, 531, 605, 669, 686, 756, 899, 940],
    }
    for (name, parameters, seed), expected in frozen.items():
        assert np.flatnonzero(draw(name, parameters, 1000, 8, seed)).tolist() == expected


def test_the_draw_is_even_and_of_the_size_asked_for() -> None:
    counts = np.zeros(200)
    for seed in range(400):
        chosen = draw("kernel", 1, 200, 50, seed)
        assert chosen.sum() == 50
        counts += chosen
    # each line is drawn 100 times of 400 on average, with a standard deviation of 8.7
    assert counts.min() > 60
    assert counts.max() < 140
    assert draw("kernel", 1, 5, 9, 1).all()
    assert draw("kernel", 1, 0, 9, 1).shape == (0,)


def test_more_lines_keep_those_drawn_before() -> None:
    ten, sixty = (draw("kernel", 2, 500, count, 3) for count in (10, 60))
    assert not (ten & ~sixty).any()


@pytest.mark.parametrize("fraction", [0.0, -0.1, 1.01, float("nan"), float("inf")])
def test_a_fraction_that_cannot_be_meant_is_refused(fraction: float) -> None:
    with pytest.raises(UsageError, match="fraction"):
        load_model("sampled", {"fraction": fraction})


def test_each_event_keeps_enough_lines_to_fit(noisy: EventTimings) -> None:
    assert only(fit(noisy, fraction=0.1))["check"]["drawn"] == 200
    assert only(fit(noisy, fraction=1e-9))["check"]["drawn"] == 8


@pytest.mark.slow
def test_the_whole_is_the_automatic_model(noisy: EventTimings) -> None:
    sampled = fit(noisy, fraction=1.0)
    plain = Auto(AutoOptions()).fit([noisy])
    assert sampled.predict("kernel", noisy.params).tolist() == (
        plain.predict("kernel", noisy.params).tolist()
    )
    check = only(sampled)["check"]
    assert (check["left_out"], check["mean_relative_error"], check["sum_error"]) == (0, None, None)


def test_the_error_is_measured_on_the_lines_left_out(noisy: EventTimings) -> None:
    fitted = fit(noisy, fraction=0.05, seed=5)
    out = ~draw("kernel", 1, 2000, 100, 5)
    predicted, measured = fitted.predict("kernel", noisy.params[out]), noisy.seconds[out]
    check = only(fitted)["check"]
    assert check["left_out"] == 1900
    relative = np.mean(np.abs(predicted - measured) / measured)
    assert check["mean_relative_error"] == pytest.approx(relative)
    assert check["mean_relative_error"] == pytest.approx(0.025, abs=0.01)
    assert check["sum_error"] == pytest.approx(predicted.sum() / measured.sum() - 1)
    assert abs(check["sum_error"]) < 0.02
    row = next(line for line in fitted.overview() if "kernel" in line)
    assert f"100 of 2,000       1  {100 * relative:.1f} %" in row
    assert "error and sum: of lines left out, the sum as by" in " ".join(fitted.overview())
    summary = " ".join(" ".join(fitted.summary()).split())
    errors = f"mean error {100 * relative:.2f} %, error of the total {check['sum_error']:+.2%}"
    assert f"on lines left out: {errors[:-1]} %, 1,900 lines" in summary
    assert fitted.warnings() == ()


def test_a_large_error_is_warned_of(event: MakeTimings) -> None:
    seconds = np.where(draw("kernel", 1, 300, 8, 1), 1.0, 2.0)
    fitted = fit(event(np.arange(300), seconds=seconds), fraction=0.02)
    assert only(fitted)["check"]["sum_error"] == pytest.approx(-0.5)
    assert "off by -50.0 %; draw a larger fraction" in " ".join(fitted.warnings())


def test_long_calls_that_totals_count_ask_for_no_more_lines(event: MakeTimings) -> None:
    """A sum off by 27 % was warned of, with the advice to draw more; the total was right to 2 %."""
    rng = np.random.default_rng(1)
    p = rng.integers(10, 500, 2000).astype(float)
    seconds = 1e-9 * (500 + 10 * p) * rng.normal(1, 0.02, 2000)
    seconds *= np.where(rng.random(2000) < 0.02, 20, 1)
    fitted = fit(event(p, seconds=seconds), fraction=0.5)
    out = ~draw("kernel", 1, 2000, 1000, 1)
    usual_s = fitted.predict("kernel", p[out, None])
    totals_s = usual_s * fitted.retransformation("kernel", p[out, None])
    measured_s = seconds[out].sum()
    assert usual_s.sum() / measured_s < 0.8
    expected = totals_s.sum() / measured_s - 1
    assert only(fitted)["check"]["sum_error"] == pytest.approx(expected)
    assert abs(expected) < 0.1
    assert "left out" not in " ".join(fitted.warnings())


def test_the_table_says_where_no_line_was_left_out(event: MakeTimings) -> None:
    """Errors of held-out lines were said to be those of lines left out."""
    p = np.arange(1.0, 41)
    some, all_drawn = event(p, name="some", seconds=p), event(p[:5], name="all", seconds=p[:5])
    note = "(of held-out lines if all were drawn)"
    assert note in " ".join(" ".join(fit(some, all_drawn).overview()).split())
    assert note not in " ".join(" ".join(fit(some).overview()).split())


def test_times_of_zero_and_negative_predictions_do_not_break_the_error(event: MakeTimings) -> None:
    p = np.arange(40.0)
    check = only(fit(event(p, seconds=np.zeros(40)), fraction=0.2))["check"]
    assert (check["mean_relative_error"], check["sum_error"]) == (None, None)
    steep = fit(event(p, seconds=np.where(p < 39, 1e-9, 1.0)), fraction=0.2)
    assert only(steep)["check"]["sum_error"] >= -1


def test_exact_matches_are_with_the_lines_drawn_only(event: MakeTimings) -> None:
    p = np.arange(100.0)
    samples = event(p, seconds=1 + np.sin(p))
    chosen = draw("kernel", 1, 100, 10, 4)
    judged = fit(samples, fraction=0.1, seed=4, exact_match="always").predict_detailed(
        "kernel", samples.params
    )
    assert judged.exact.tolist() == chosen.tolist()
    assert judged.seconds[chosen].tolist() == samples.seconds[chosen].tolist()


def test_an_event_that_is_there_twice_is_refused(event: MakeTimings) -> None:
    """It was a bare IndexError."""
    short, long = (event(p, seconds=p) for p in (np.arange(1.0, 10), np.arange(1.0, 20)))
    with pytest.raises(ModelError, match="are duplicated"):
        fit(short, long)


def test_the_table_says_which_figures_are_those_of_a_class(two_classes: EventTimings) -> None:
    """Errors of all lines left out were said to be those of a class."""
    formulas = '[[formula]]\nevent = "kernel"\nterms = ["p1"]\ncategory = "p2"\n'
    model = load_model("sampled", {"fraction": 0.3}, {"formulas": ModelText("f.toml", formulas)})
    fitted: Any = model.fit([two_classes])
    predicted = fitted.predict("kernel", two_classes.params)
    left_out = ~draw("kernel", 2, 400, 120, 1)
    error = np.mean(np.abs(predicted / two_classes.seconds - 1)[left_out])
    *_, row, _, _, note = fitted.overview()
    assert f"{100 * error:.1f} %" in row
    assert note.startswith("  ±, verdict of an event with classes:")


def test_the_sum_of_the_lines_left_out_may_overflow(event: MakeTimings) -> None:
    """numpy warned of it, on stderr."""
    p = np.arange(1.0, 200)
    assert only(fit(event(p, seconds=1e308 * (1 + p % 2 / 2))))["check"]["sum_error"] == -1


def test_no_samples_and_pickle(event: MakeTimings, noisy: EventTimings) -> None:
    assert fit().summary() == ()
    empty = fit(event(np.empty(0), seconds=np.empty(0)))
    assert "no usable timing sample" in empty.warnings()[0]
    fitted = fit(noisy)
    again = pickle.loads(pickle.dumps(fitted))  # noqa: S301 - our own bytes
    assert again.describe() == fitted.describe()


def test_the_cells_sample_is_close_to_all_lines(
    reference_timings: ReferenceTimings,
) -> None:
    timings = reference_timings("cells")
    fitted = fit(*timings, fraction=0.25)
    for described in fitted.describe()["events"]:
        assert described["check"]["drawn"] == described["samples"]
        assert abs(described["check"]["sum_error"]) < 0.05
