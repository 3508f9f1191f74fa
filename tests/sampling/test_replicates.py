"""The spread of repeated measurements, worked out by hand and on real ones."""

import math

import numpy as np
import pytest
from kinds import MakeTimings, ReferenceTimings

from rewritelog.timings.stats import spread_of


def test_equal_times_do_not_spread(event: MakeTimings) -> None:
    spread = spread_of(event([1, 1, 2, 2, 3], seconds=[5, 5, 7, 7, 9]))
    assert (spread.lines, spread.points, spread.relative) == (4, 2, 0)
    assert (spread.is_large, spread.replicates) == (False, 1)


def test_the_spread_is_pooled_over_the_points(event: MakeTimings) -> None:
    spread = spread_of(event([1, 1, 2, 2, 2], seconds=[0.9, 1.1, 90, 100, 110]))
    assert spread.relative == pytest.approx(math.sqrt((2 * 0.1**2 + 2 * 0.1**2) / 3))
    assert spread.is_large
    assert spread.replicates == 10


def test_replicates_bring_the_mean_to_three_per_cent(event: MakeTimings) -> None:
    spread = spread_of(event([1, 1], seconds=[0.95, 1.05]))
    assert spread.relative == pytest.approx(0.05 * math.sqrt(2))
    assert spread.replicates == math.ceil(0.005 / 0.0009)


def test_accidents_are_left_out(event: MakeTimings) -> None:
    spread = spread_of(event([1, 1, 1, 1, 2, 2], seconds=[1, 1, 1, 4, 3, 3]))
    assert (spread.lines, spread.left_out, spread.relative) == (5, 1, 0)
    spread = spread_of(event([1, 1, 2, 2], seconds=[1, 1, 1, 2.5]))
    assert (spread.lines, spread.left_out, spread.relative) == (2, 1, 0)


def test_times_that_spread_evenly_are_no_accidents(event: MakeTimings) -> None:
    """The upper median of four was the longer time, and both shorter ones were left out."""
    spread = spread_of(event([1, 1, 1, 1], seconds=[1, 1, 2.1, 2.1]))
    assert (spread.lines, spread.left_out) == (4, 0)
    assert spread.relative == pytest.approx(np.std([1, 1, 2.1, 2.1], ddof=1) / 1.55)


def test_without_repetition_nothing_is_known(event: MakeTimings) -> None:
    for seconds in ([1, 2, 3], [0, 0, 0]):
        spread = spread_of(event([1, 2, 3] if seconds[0] else [1, 1, 1], seconds=seconds))
        assert (spread.relative, spread.points, spread.replicates) == (None, 0, 1)


def test_the_noise_of_real_timings(reference_timings: ReferenceTimings) -> None:
    spreads = [spread_of(samples) for samples in reference_timings("cells")]
    assert all(spread.points > 10 for spread in spreads)
    assert all(0.005 < (spread.relative or 0) < 0.1 for spread in spreads)


def test_a_made_spread_is_found_again(event: MakeTimings) -> None:
    rng = np.random.default_rng(1)
    sizes = np.repeat(np.arange(1, 201), 5)
    spread = spread_of(event(sizes, seconds=sizes * rng.normal(1, 0.04, len(sizes))))
    assert spread.relative == pytest.approx(0.04, rel=0.1)
