"""Waves of blocks: found in residuals, named in the report, kept in model files."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from models.laws import auto, relative_errors

from rewritelog.arrays import Floats
from rewritelog.errors import ModelError
from rewritelog.models.base import EventTimings, digest_of
from rewritelog.models.fitted import Fitted, Source
from rewritelog.models.fitting.waves import Waves, find_waves
from rewritelog.models.model_file import model_file_text, parse_model

PROCESSORS = 108


def attention(count: int, seed: int) -> tuple[Floats, Floats]:
    """Return sequences, heads and lengths, and seconds: a block is 128 rows of a head."""
    rng = np.random.default_rng(seed)
    sequences, heads = np.rint(2 ** rng.uniform(0, 5, count)), rng.choice([8, 16, 32, 40], count)
    length = np.rint(10 ** rng.uniform(1.5, 3.7, count))
    waves = np.ceil(sequences * heads * np.ceil(length / 128) / PROCESSORS)
    return np.column_stack((sequences, heads, length)), 5e-6 + 4e-9 * waves * length


def timed(count: int, seed: int = 3) -> EventTimings:
    params, seconds = attention(count, seed)
    noise = np.random.default_rng(seed + 1).normal(size=count)
    return EventTimings("attention", params, seconds * np.exp(0.03 * noise))


@pytest.fixture(scope="module")
def in_waves() -> Any:
    return auto(timed(400))


@pytest.mark.slow
def test_the_report_has_the_blocks_and_how_many_run_at_a_time(in_waves: Any) -> None:
    text = " ".join(" ".join(in_waves.summary()).split())
    assert f"p1 · p2 · ⌈p3/128⌉ blocks run {PROCESSORS} at a time" in text


def test_other_calls_are_predicted_nearly_as_well_as_they_can_be_measured(in_waves: Any) -> None:
    """Without waves the error is 6 %."""
    params, seconds = attention(500, 9)
    assert relative_errors(in_waves.predict("attention", params), seconds).mean() < 0.02


@pytest.mark.parametrize("workers", [7, 16, 132])
def test_the_number_of_workers_is_found_exactly(workers: int) -> None:
    rng = np.random.default_rng(workers)
    params = np.rint(10 ** rng.uniform(1, 3.5, (600, 3)))
    waves = Waves(np.array([1, 3]), np.array([1, 64]), workers)
    idle = np.where(waves.blocks(params) > workers, waves.idle(params), 0.0)
    found = find_waves(params, idle + 0.1 * rng.normal(size=600), (1, 2, 3))
    assert found is not None
    assert (found.parameters.tolist(), found.tiles.tolist()) == ([1, 3], [1, 64])
    assert found.workers == workers


@pytest.mark.slow
def test_a_parameter_may_be_the_number_of_workers() -> None:
    """Threads that share the tiles of a matrix: without waves the error is 4 %."""
    rng = np.random.default_rng(1)
    sizes, threads = np.rint(10 ** rng.uniform(1.5, 3.3, (900, 2))), rng.choice([1, 4, 6, 16], 900)
    waves = np.ceil(np.ceil(sizes / 64).prod(axis=1) / threads)
    params, seconds = np.column_stack((sizes, threads)), 2e-6 + 2e-7 * threads + 4e-6 * waves
    noise = rng.lognormal(0, 0.03, 300)
    fitted = auto(EventTimings("multiply", params[:300], seconds[:300] * noise))
    text = " ".join(" ".join(fitted.summary()).split())
    assert "⌈p1/64⌉ · ⌈p2/64⌉ blocks run p3 at a time" in text
    predicted_s = fitted.predict("multiply", params[300:])
    assert relative_errors(predicted_s, seconds[300:]).mean() < 0.02


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_what_is_no_wave_is_not_reported_as_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    params = np.rint(10 ** rng.uniform(0, 3.5, (300, 3)))
    times = (
        1e-7
        * params.prod(axis=1) ** 0.7
        * np.exp(0.4 * np.sin(1.5 * np.log(params[:, 0])) * np.cos(np.log(params[:, 1])))
    )
    fitted = auto(EventTimings("kernel", params, times * rng.lognormal(0, 0.05, 300)))
    text = " ".join(fitted.summary())
    assert "corrected" in text
    assert "at a time" not in text


def test_parameters_that_are_no_counts_have_no_waves() -> None:
    params = 10 ** np.random.default_rng(1).uniform(0, 3, (400, 1))
    waves = Waves(np.array([1]), np.array([1]), 8)
    assert find_waves(params, waves.idle(params), (1,)) is None


@pytest.mark.parametrize("largest", [1.0, 1e200])
def test_extreme_samples_have_no_waves(largest: float) -> None:
    params = np.rint(np.geomspace(1, largest, 80))[:, None]
    assert find_waves(np.hstack((params, params)), np.zeros(80), (1, 2)) is None
    assert find_waves(np.hstack((params, params)), np.resize([0.0, 0.1], 80), (1, 2)) is None


def written(fitted: Any) -> Any:
    source = Source("1", ("t.txt",), 400, None, digest_of((timed(400),)))
    return json.loads(model_file_text(Fitted("auto", fitted, source=source)))


def test_a_model_file_keeps_the_waves(in_waves: Any) -> None:
    back = parse_model(json.dumps(written(in_waves)), "m.json").raw
    params, _ = attention(100, 5)
    assert (
        back.predict("attention", params).tobytes()
        == in_waves.predict("attention", params).tobytes()
    )


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("parameters", [1, 2, 4], r"waves.parameters: has 4; the event has 3 parameters"),
        ("tiles", [1, 128], r"waves.tiles: must have 3 numbers, not 2"),
        ("tiles", [1, 1, 0], r"waves.tiles: must be above 0"),
        ("workers", 0, r"waves.workers: must be above 0"),
        ("multiplier", 4, r"waves.multiplier: has 4; the event has 3 parameters"),
    ],
)
def test_damaged_waves_are_refused(in_waves: Any, key: str, value: Any, message: str) -> None:
    document = written(in_waves)
    member = document["events"][0]["classes"][0]["function"]["members"][0]
    member["correction"]["process"]["inputs"]["waves"][key] = value
    with pytest.raises(ModelError, match=message):
        parse_model(json.dumps(document), "m.json")


def test_an_input_of_waves_needs_waves(in_waves: Any) -> None:
    document = written(in_waves)
    member = document["events"][0]["classes"][0]["function"]["members"][0]
    del member["correction"]["process"]["inputs"]["waves"]
    with pytest.raises(ModelError, match=r"inputs.waves: is missing"):
        parse_model(json.dumps(document), "m.json")
