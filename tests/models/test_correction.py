"""Corrections of formulas: taken where they help, of no effect far away, kept in model files."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from chosen import by_tier
from models.laws import auto, relative_errors
from msgspec import structs

from rewritelog.arrays import Floats
from rewritelog.core import DistinctPoints
from rewritelog.models.base import EventTimings, digest_of
from rewritelog.models.fit_report import summarise
from rewritelog.models.fitted import Fitted, Source
from rewritelog.models.fitting import function as functions
from rewritelog.models.fitting import process
from rewritelog.models.fitting.correction import CorrectedFit, CorrectedMean, Prior
from rewritelog.models.fitting.function import CorrectedFunction
from rewritelog.models.fitting.process import MOST_POINTS, Correction, CovarianceFunction
from rewritelog.models.fitting.validation import HeldOutPredictions
from rewritelog.models.model_file import model_file_text, parse_model

COUNT = 300


def times_of(params: Floats) -> Floats:
    """A power law with waves, as of a cache that comes and goes: no formula has them."""
    waves = 0.4 * np.sin(1.5 * np.log(params[:, 0])) * np.cos(1.2 * np.log(params[:, 1]))
    return np.asarray(1e-7 * params[:, 0] * params[:, 1] ** 0.5 * np.exp(waves))


def random_params(count: int, seed: int) -> Floats:
    rng = np.random.default_rng(seed)
    return np.rint(10 ** rng.uniform(1, 4, (count, 2)))


def waves(count: int = COUNT, noise: float = 0.02, seed: int = 1) -> EventTimings:
    params = random_params(count, seed)
    factors = np.exp(noise * np.random.default_rng(seed + 1).normal(size=count))
    return EventTimings("kernel", params, times_of(params) * factors)


@pytest.fixture(scope="module")
def corrected() -> Any:
    return auto(waves())


def only(fitted: Any) -> Any:
    (fit,) = fitted.fits.values()
    return fit


def each_alone(function: Any) -> list[Any]:
    """Return the function of each of its corrected formulas."""
    return [
        structs.replace(function, members=(member,), weights=(1.0,)) for member in function.members
    ]


def test_what_no_formula_has_is_corrected(corrected: Any) -> None:
    plain = auto(waves(), correction="none")
    params = random_params(400, 5)
    errors = [
        relative_errors(fitted.predict("kernel", params), times_of(params)).mean()
        for fitted in (plain, corrected)
    ]
    assert errors[0] > 0.1
    assert errors[1] < 0.4 * errors[0]
    assert not isinstance(only(plain).whole.function, CorrectedFunction)


def test_a_corrected_formula_below_zero_predicts_0_and_says_so(corrected: Any) -> None:
    fit = only(corrected)
    (function, *_) = each_alone(fit.whole.function)
    below = structs.replace(function.formula, coefficients=-function.formula.coefficients)
    (member,) = function.members
    function = structs.replace(function, members=(structs.replace(member, formula=below),))
    of_all = structs.replace(fit.whole, function=function, growth=None)
    predicted = structs.replace(fit, classes=(of_all,)).predict_detailed(random_params(50, 3))
    assert (predicted.seconds == 0).all()
    assert predicted.negative.all()


@pytest.mark.slow
def test_a_formula_off_by_more_than_half_is_corrected_too() -> None:
    def steep(params: Floats) -> Floats:
        return np.asarray(times_of(params) * np.exp(3.5 * np.sin(3 * np.log(params[:, 0]))))

    params = random_params(400, 5)
    samples = EventTimings("kernel", random_params(COUNT, 1), steep(random_params(COUNT, 1)))
    plain, corrected = (
        relative_errors(
            auto(samples, correction=correction).predict("kernel", params), steep(params)
        ).mean()
        for correction in ("none", "auto")
    )
    assert plain > 0.6
    assert corrected < 0.2 * plain


@pytest.mark.parametrize("count", [60, 120])
def test_few_lines_are_enough_where_the_waves_are_long(count: int) -> None:
    samples, params = waves(count, 0.01), random_params(400, 5)
    errors = [
        relative_errors(
            auto(samples, correction=correction).predict("kernel", params), times_of(params)
        ).mean()
        for correction in ("none", "auto")
    ]
    assert errors[1] < 0.8 * errors[0]


def test_few_lines_of_many_parameters_are_corrected_on_a_power_law() -> None:
    """Attention over new and cached keys, in waves of blocks: 60 lines show little of any sum."""
    rng = np.random.default_rng(6)

    def draw(count: int) -> tuple[Floats, Floats]:
        def sizes(low: int, high: int) -> Floats:
            return np.floor(np.exp(rng.uniform(np.log(low), np.log(high), count)))

        batch, queries = sizes(1, 33), sizes(16, 16385)
        cached = np.where(rng.random(count) < 0.4, sizes(16, 16385), 0)
        heads = rng.choice([8.0, 16.0, 32.0, 64.0], count)
        waves_of_blocks = np.maximum(1, batch * heads * np.ceil(queries / 64) / 108)
        keys = np.ceil((cached + (queries + 64) / 2) / 128) * 128
        seconds = 4e-6 + waves_of_blocks * (2e-6 + 1.5e-8 * keys)
        return np.column_stack((batch, queries, cached, heads)), seconds

    params, seconds = draw(60)
    seconds = seconds * np.exp(0.04 * rng.normal(size=60))
    others, expected = draw(1000)
    fitted = auto(EventTimings("attention", params, seconds))
    assert relative_errors(fitted.predict("attention", others), expected).mean() < 0.175


@pytest.mark.parametrize(
    ("count", "least_share"), by_tier([(60, 0.95), (300, 0.96)], (), [(60, 0.95)])
)
def test_few_lines_know_how_far_off_the_others_are(count: int, least_share: float) -> None:
    """Lengths learnt from a line predicted it too well: 85 of 100 others were in the intervals."""
    held_out, errors, inside = list[float](), list[float](), list[float]()
    for seed in range(6):
        rng = np.random.default_rng(seed)
        samples, others = products_on_threads(rng, count), products_on_threads(rng, 600)
        fitted = auto(samples)
        held_out.append(only(fitted).quality.held_out_error)
        predicted = fitted.predict("kernel", others.params)
        errors.append(relative_errors(predicted, others.seconds).mean())
        low, high = fitted.interval("kernel", others.params)
        inside.append(((others.seconds >= low) & (others.seconds <= high)).mean())
    assert np.mean(inside) > 0.87
    assert sum(held_out) > least_share * sum(errors)


def products_on_threads(rng: np.random.Generator, count: int) -> EventTimings:
    """Products of matrices by threads that wait for the last tiles, and for memory."""
    m, n, k = np.rint(2.0 ** rng.uniform(4, 12, (4, count)))[:3]
    threads = rng.choice([1.0, 2.0, 4.0, 8.0, 16.0, 28.0, 56.0], count)
    used = np.minimum(threads, np.maximum(1, m * n * k / 1e6))
    tiles = np.ceil(m / 48) * np.ceil(n / 96)
    waiting = np.minimum(np.ceil(tiles / used) * used / tiles, 2.5)
    seconds = 1e-6 + 2e-7 * threads + 2 * m * n * k / (6e10 * used) * waiting * (1 + 40 / k)
    seconds += 4 * (m * k + k * n + m * n) / np.minimum(9e9 * used, 1.4e11)
    noise = np.exp(0.03 * rng.normal(size=count))
    return EventTimings("kernel", np.column_stack((m, n, k, threads)), seconds * noise)


def test_the_report_says_what_it_adds(corrected: Any) -> None:
    text = " ".join(" ".join(corrected.summary()).split())
    of_all = only(corrected).whole
    before = f"{100 * of_all.formula_error:.1f}"
    after = f"{100 * of_all.quality.held_out_error:.1f} %"
    assert f"corrected: a smooth correction takes the mean error from {before} to {after}" in text
    (described,) = json.loads(json.dumps(corrected.describe(), allow_nan=False))["events"]
    function = described["classes"][0]["function"]
    assert function["kind"] == "corrected"
    assert "params" not in function
    assert function["members"]
    for member in function["members"]:
        assert "weights" not in member["correction"]["process"]


def test_the_report_says_why_a_correction_may_enlarge_the_mean_error(corrected: Any) -> None:
    """Few lines that are far off count little in the choice, and fully in the mean."""
    fit = only(corrected)
    of_all = structs.replace(fit.whole, formula_error=0.9 * fit.whole.quality.held_out_error)
    reason = "most lines are predicted better, and a few that are far off worse"
    for event_fit, shown in ((fit, False), (structs.replace(fit, classes=(of_all,)), True)):
        assert (reason in " ".join(" ".join(summarise(event_fit)).split())) is shown


def test_half_of_the_intervals_width_goes_and_the_coverage_stays(corrected: Any) -> None:
    other = waves(400, seed=7)
    low, high = corrected.interval("kernel", other.params)
    inside = (other.seconds >= low) & (other.seconds <= high)
    assert 0.84 < inside.mean() < 0.98


def test_far_away_the_formulas_alone_predict(corrected: Any) -> None:
    far = np.array([[1e12, 1e12], [1e-9, 1e9]])
    for member in each_alone(only(corrected).whole.function):
        np.testing.assert_allclose(member.predict(far), member.formula.predict(far), rtol=0.02)


def test_beyond_the_range_it_fades_into_the_fit_without_a_correction(corrected: Any) -> None:
    edge = only(corrected).highest
    at_edge, near = corrected.predict("kernel", edge * np.array([[1.0], [1.01]]))
    assert near == pytest.approx(at_edge, rel=0.05)
    far = edge * np.array([[30.0], [100.0]])
    plain = auto(waves(), correction="none")
    predicted = corrected.predict("kernel", far)
    np.testing.assert_allclose(predicted, plain.predict("kernel", far), rtol=0.1)


def test_beyond_the_range_of_one_parameter_it_fades_with_the_distance(corrected: Any) -> None:
    """It did not where the growth was that of the corrected formula itself."""
    fit = only(corrected)
    of_all = structs.replace(fit.whole, growth=structs.replace(fit.whole.growth, function=None))
    edge = fit.highest
    for factors in ((1.0, 2.0), (4.0, 1.0)):
        rows = np.array([edge, edge * factors])
        seconds, *_ = of_all.predict(rows, fit.lowest, edge)
        formula = of_all.function.formula.predict(rows)
        at_edge, beyond = np.log(seconds / formula)
        assert beyond == pytest.approx(at_edge / max(factors) ** 0.25, rel=1e-6, abs=1e-9)


@pytest.mark.slow
def test_what_a_code_changes_goes_on_beyond_the_range_of_another_parameter() -> None:
    """Calls of a quarter more work took half as long, as the correction for their code faded."""
    rng = np.random.default_rng(0)
    params = np.column_stack([rng.integers(1, 5, 600), np.round(10 ** rng.uniform(1, 4, 600))])
    exponents = np.array([1, 1.5, 2, 0.5])

    def law(rows: Any) -> Any:
        return 1e-9 * rows[:, 1] ** exponents[rows[:, 0].astype(int) - 1] + 1e-6

    seconds = law(params) * np.exp(0.05 * rng.standard_normal(600))
    fitted = auto(EventTimings("kernel", params, seconds))
    codes = np.arange(1.0, 5)
    for further in (1.1, 1.25):
        rows = np.column_stack([codes, np.full(4, further * params[:, 1].max())])
        ratios = fitted.predict("kernel", rows) / law(rows)
        assert ((ratios > 0.45) & (ratios < 1.5)).all()


def test_rows_that_are_no_numbers_are_not_predicted(corrected: Any) -> None:
    rows = np.array([[np.nan, 10.0], [np.inf, 10.0], [100.0, 100.0]])
    seconds = corrected.predict("kernel", rows)
    assert np.isnan(seconds[0])
    assert seconds[2] == corrected.predict("kernel", rows[2:])[0]


def test_equal_rows_have_equal_times_in_any_order(corrected: Any) -> None:
    rows = random_params(50, 9)
    order = np.random.default_rng(1).permutation(np.repeat(np.arange(50), 3))
    once = corrected.predict("kernel", rows)
    assert corrected.predict("kernel", rows[order]).tolist() == once[order].tolist()


@pytest.mark.parametrize("most", [0, 30, 1000])
def test_rows_of_other_tables_are_predicted_once(
    corrected: Any, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of the blocks of a log; what is kept is bounded, and changes no bit."""
    (known, *_) = each_alone(only(corrected).whole.function)
    rows, computed = random_params(80, 9), list[int]()
    expected = known.predict(rows).tolist()
    monkeypatch.setattr(functions, "MOST_CACHED", most)
    means = CovarianceFunction.means

    def counted(*args: Any) -> Floats:
        computed.append(len(args[3]))
        return means(*args)

    monkeypatch.setattr(CovarianceFunction, "means", counted)
    again = structs.replace(known)  # which knows no row
    tables = [again.predict(rows[begin : begin + 40]).tolist() for begin in (0, 20, 40, 0)]
    assert tables == [expected[begin : begin + 40] for begin in (0, 20, 40, 0)]
    assert (sum(computed) == 80) == (most == 1000)


@pytest.mark.parametrize(
    ("count", "noise", "reason"),
    [(19, 0.02, "too few lines"), (COUNT, 0.0, "no wave")],
)
def test_none_is_taken_without_need(count: int, noise: float, reason: str) -> None:
    samples = waves(count, noise)
    if reason == "no wave":
        rng = np.random.default_rng(3)
        params = samples.params
        exact = 1e-7 * params[:, 0] * params[:, 1] ** 0.5
        samples = EventTimings("kernel", params, exact * np.exp(0.1 * rng.normal(size=count)))
    assert only(auto(samples)).whole.formula_error is None


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_noise_is_not_corrected_however_many_parameters_there_are(seed: int) -> None:
    """With a length for each of them some noise was always alike: 20 flags got a correction."""
    rng = np.random.default_rng(seed)
    params = rng.integers(0, 2, (60, 20)).astype(np.float64)
    seconds = 1e-6 * (1 + 3 * params[:, 3]) * (1 + params[:, 1]) * rng.lognormal(0, 0.05, 60)
    fitted = auto(EventTimings("kernel", params, seconds))
    assert "corrected" not in "".join(fitted.summary())


def test_values_unlike_their_neighbours_count_as_codes() -> None:
    """A code with a pattern of its own over n for each value: 4 is nothing like 3 or 5."""
    rng = np.random.default_rng(4)
    n, code = np.rint(10 ** rng.uniform(1, 4, 500)), rng.integers(0, 6, 500).astype(np.float64)
    shift = np.array([0.0, 2.5, 5.0, 1.2, 3.8, 0.6])[code.astype(np.int64)]
    seconds = 1e-7 * n * np.exp(0.5 * np.sin(1.5 * np.log(n) + shift))
    seconds *= np.exp(0.01 * rng.normal(size=500))
    logs = np.log(seconds / (1e-7 * n))
    params = np.column_stack((n, code))
    ((process, _, _),) = Prior.learnt(params, logs).conditioned(params, logs)
    assert Correction.of(logs, process).codes == (2,)


def test_the_formulas_time_is_no_parameter_in_the_report(corrected: Any) -> None:
    """It was p3 of an event with two parameters."""
    fit = only(corrected)
    function = fit.whole.function
    first, *others = function.members
    correction = first.correction
    numbers = np.resize([2, 3], len(correction.process.inputs.parameters))
    inputs = structs.replace(correction.process.inputs, parameters=numbers)
    covariance = structs.replace(correction.process.covariance, codes=numbers > 1)
    changed = structs.replace(correction.process, inputs=inputs, covariance=covariance)
    correction = structs.replace(correction, process=changed)
    members = (structs.replace(first, correction=correction), *others)
    of_all = structs.replace(fit.whole, function=structs.replace(function, members=members))
    text = " ".join(" ".join(summarise(structs.replace(fit, classes=(of_all,)))).split())
    assert "the values of p2 count as codes without order" in text
    assert "the times of the formula count as codes without order" in text
    assert "p3" not in text


@pytest.mark.slow
def test_what_depends_on_size_as_such_is_corrected_by_the_formulas_time() -> None:
    """A cache holds n·m·k numbers or not, whatever n, m and k."""
    rng = np.random.default_rng(3)
    params = np.rint(10 ** rng.uniform(1, 3, (800, 3)))
    size = params.prod(axis=1)
    seconds = 1e-9 * size * np.exp(np.tanh(8 * (np.log10(size) - 6)) + 0.02 * rng.normal(size=800))
    fitted = auto(EventTimings("kernel", params[:400], seconds[:400]))
    correction = only(fitted).whole.function.members[0].correction
    assert params.shape[1] + 1 in correction.process.inputs.parameters
    errors = relative_errors(fitted.predict("kernel", params[400:]), seconds[400:])
    assert errors.mean() < 0.035


@pytest.mark.slow
def test_the_least_size_may_be_a_case_of_its_own() -> None:
    """A single column may be summed by another loop, which few lines show."""
    rng = np.random.default_rng(5)
    n, m = np.rint(np.exp(rng.uniform(0, 7, (2, 1500))))
    kind = rng.integers(0, 4, 1500)
    seconds = 1e-8 * n * m**0.9 * np.exp(0.3 * np.sin(np.log(n) * (1 + 0.2 * kind)))
    seconds[(m == 1) & (kind == 2)] *= 0.03
    seconds *= np.exp(0.02 * rng.normal(size=1500))
    params = np.column_stack((n, m, kind))
    fitted = auto(EventTimings("kernel", params[:800], seconds[:800]))
    errors = relative_errors(fitted.predict("kernel", params[800:]), seconds[800:])
    assert errors[m[800:] == 1].mean() < 0.07
    assert errors.mean() < 0.024


@pytest.mark.slow
def test_the_mean_of_several_corrected_formulas_predicts() -> None:
    fitted = auto(waves(noise=0.1))
    function = only(fitted).whole.function
    members, weights = each_alone(function), function.weights
    assert len(members) > 1
    params = random_params(400, 5)
    alone = [member.predict(params) for member in members]
    errors, *others = (
        relative_errors(seconds, times_of(params)).mean()
        for seconds in (function.predict(params), *alone)
    )
    assert errors < np.mean(others)
    assert sum(weights) == pytest.approx(1)
    means = np.exp(np.average(np.log(alone), axis=0, weights=weights))
    np.testing.assert_allclose(function.predict(params), means, rtol=1e-12)
    share = f"with weight {100 * weights[0]:.0f} % in the mean of this and {len(members) - 1} other"
    assert share in " ".join(" ".join(fitted.summary()).split())


def test_means_of_predictions_of_zero_and_less_warn_of_nothing() -> None:
    """Numpy's warnings of their logarithms would have been printed."""
    seconds, points = np.array([1.0, 2.0]), DistinctPoints.of_rows(np.array([[1.0], [2.0]]))
    samples: Any = SimpleNamespace(
        seconds=seconds, sigma_s=seconds, points=points, part=lambda rows: rows
    )
    prior: Any = None
    fits = [
        CorrectedFit(name, prior, HeldOutPredictions.compared(np.array(predicted_s), samples))
        for name, predicted_s in (("sum", [0.0, 2.0]), ("power law", [1.0, -1.0]))
    ]
    mean = CorrectedMean.of(fits, np.arange(2), samples)
    assert mean.held_out.predicted_s.tolist() == pytest.approx([1.0, 2.0])


@pytest.mark.slow
@pytest.mark.parametrize("row", [100, 280])
def test_an_outlier_does_not_bend_its_surroundings(row: int) -> None:
    samples = waves()
    seconds = samples.seconds.copy()
    seconds[row] *= 1000
    fitted = auto(EventTimings("kernel", samples.params, seconds))
    near = samples.params[[row]] + 1
    error = relative_errors(fitted.predict("kernel", near), times_of(near))
    assert error < 0.5


@pytest.mark.slow
def test_steps_without_noise_have_no_error_beyond_that_of_the_formula() -> None:
    """It was 1e303 %: what a correction without a point says of it was not limited."""
    rng = np.random.default_rng(1)
    params = np.rint(10 ** rng.uniform(1, 3.5, (300, 2)))
    seconds = 1e-5 * np.ceil(np.ceil(params / 128).prod(axis=1) / 16)
    fitted = only(auto(EventTimings("kernel", params, seconds * rng.lognormal(0, 0.001, 300))))
    assert isinstance(fitted.whole.function, CorrectedFunction)
    assert fitted.whole.quality.held_out_error < fitted.whole.formula_error


@pytest.mark.slow
def test_lines_may_come_in_the_order_of_their_sizes() -> None:
    """What is similar was learnt from the first lines, here those without waves."""
    rng = np.random.default_rng(2)
    n, m = np.sort(10 ** rng.uniform(1, 4, 1200)), 10 ** rng.uniform(1, 4, 1200)
    depth = np.where(n > 3000, 0.5, 0.0)
    seconds = 1e-7 * n * np.sqrt(m) * np.exp(depth * np.sin(4 * np.log(m)))
    seconds *= np.exp(0.02 * rng.normal(size=1200))
    params, odd = np.column_stack((n, m)), np.arange(1200) % 2 == 1
    errors = []
    for order in (np.arange(600), rng.permutation(600)):
        fitted = auto(EventTimings("kernel", params[odd][order], seconds[odd][order]))
        errors.append(relative_errors(fitted.predict("kernel", params[~odd]), seconds[~odd]).mean())
    assert errors[0] < min(0.04, 1.1 * errors[1])


@pytest.mark.slow
def test_of_many_lines_some_are_interpolated_between() -> None:
    fitted = auto(waves(3000))
    function = only(fitted).whole.function
    assert len(function.params) == MOST_POINTS
    params = random_params(200, 11)
    assert relative_errors(fitted.predict("kernel", params), times_of(params)).mean() < 0.03


def test_a_model_file_keeps_every_bit_in_little_space(corrected: Any) -> None:
    timings = (waves(),)
    source = Source("1", ("t.txt",), COUNT, None, digest_of(timings))
    text = model_file_text(Fitted("auto", corrected, source=source))
    assert len(text) < 60_000
    back = parse_model(text, "m.json").raw
    rows = np.vstack((random_params(100, 12), 1e3 * random_params(10, 13)))
    assert back.predict("kernel", rows).tobytes() == corrected.predict("kernel", rows).tobytes()
    assert back.summary() == corrected.summary()
    assert back.describe() == corrected.describe()


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("process", "inputs", "parameters", 0), 4, "has 4; the event has 2 parameters"),
        (("process", "kernel", "smooth_lengths", 0), 0.0, "smooth_lengths: must be above 0"),
        (("process", "inputs", "kinds", 0), "cosine", "kinds"),
        (("process", "inputs", "kinds"), [], "kinds: must be a list of length >= 1"),
        (("process", "weights"), [1.0], "must have 300 numbers, not 1"),
        (("params", 5), [1.0], "must have 2 numbers, not 1"),
        (("process", "inputs", "units", 0), 0.0, "units: must be above 0"),
        (("process",), [], "process"),
        (("most",), -1.0, "most"),
        (("process", "weights"), [1.0] * 1001, "weights"),
        (("params",), [[1.0, 2.0]] * 1001, "params"),
        (("weights",), [], "weights"),
    ],
)
def test_a_damaged_correction_is_refused(
    corrected: Any, path: tuple[Any, ...], value: Any, message: str
) -> None:
    source = Source("1", ("t.txt",), COUNT, None, digest_of((waves(),)))
    document = json.loads(model_file_text(Fitted("auto", corrected, source=source)))
    part = document["events"][0]["classes"][0]["function"]
    part = part if path[0] in part else part["members"][0]["correction"]
    for step in path[:-1]:
        part = part[step]
    part[path[-1]] = value
    with pytest.raises(Exception, match=message) as caught:
        parse_model(json.dumps(document), "m.json")
    assert type(caught.value).__name__ == "ModelError"


@pytest.mark.parametrize("varying", ["hardly", "in one line"])
def test_parameters_that_hardly_vary_have_no_correction(varying: str) -> None:
    """It was `IndexError: Out of bounds on buffer access`, which ended the fit of all events."""
    rng = np.random.default_rng(8)
    params = np.full((2000, 1), 1e6)
    if varying == "hardly":
        params += 1e-4 * rng.uniform(size=(2000, 1))
    else:
        params[-1] *= 2
    seconds = np.exp(0.3 * rng.normal(size=2000))
    fitted = auto(EventTimings("kernel", params, seconds))
    assert not isinstance(only(fitted).whole.function, CorrectedFunction)


@pytest.mark.slow
def test_codes_are_seen_where_a_search_by_order_takes_them_for_noise() -> None:
    """Errors of two codes times two sizes were 1.7 times as large, 6.7 %."""
    errors = []
    for seed in range(3):
        rng = np.random.default_rng([seed, 150])
        sizes = np.round(np.exp(rng.uniform(np.log([16, 1]), np.log([4e4, 300]), (650, 2))))
        codes = np.c_[rng.integers(1, 4, 650), rng.integers(0, 7, 650)]
        paces = (
            np.array([1, 3, 0.4])[codes[:, 0] - 1] * np.array([3, 1, 4, 1, 5, 9, 2])[codes[:, 1]]
        )
        true_s = 1e-9 * paces * sizes[:, 0] * sizes[:, 1] ** 0.7 + 1e-6
        seconds = true_s * np.exp(rng.normal(0, 0.04, 650))
        params = np.c_[codes, sizes]
        fitted = auto(EventTimings("kernel", params[:150], seconds[:150]))
        predicted = fitted.predict("kernel", params[150:])
        errors.append(relative_errors(predicted, true_s[150:]).mean())
    assert np.mean(errors) < 0.055


def test_the_most_probable_kernel_is_found_where_lines_are_repeated() -> None:
    """A point is taken once, with the mean of its values: the probability is that of all lines."""
    rng = np.random.default_rng(2)
    sizes, calls = rng.normal(size=(60, 2)), rng.integers(0, 60, 200)
    steps = np.sin(sizes.sum(axis=1)) + rng.normal(0, 0.3, 60)
    points, values = sizes[calls], steps[calls] + rng.normal(0, 0.1, 200)
    start = CovarianceFunction(np.zeros(2, bool), np.full(2, 1.3), np.full(2, 1.1), 0.7, 0.4, 0.2)

    def improbability(covariance: CovarianceFunction) -> float:
        matrix = covariance.matrix(points)
        lengths = np.log([*covariance.smooth_lengths, *covariance.rough_lengths])
        misfit = values @ np.linalg.solve(matrix, values) + np.linalg.slogdet(matrix)[1]
        prior = ((lengths - process.LIKELY_LENGTH) / process.LENGTH_DEVIATION) ** 2
        return float(misfit + prior.sum()) / 2

    learnt, _ = process.learn(points, values, start.codes, start, steps=500)
    least = improbability(learnt)
    for name in ("smooth_lengths", "rough_lengths", "smooth", "rough", "noise"):
        for factor in (0.98, 1.02):
            other = structs.replace(learnt, **{name: getattr(learnt, name) * factor})
            assert improbability(other) > least - 1e-6, (name, factor)
