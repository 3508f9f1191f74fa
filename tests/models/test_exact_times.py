"""Exact matches: means of identically parameterised samples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rewritelog import arrays
from rewritelog.arrays import Floats
from rewritelog.core import DistinctPoints
from rewritelog.models.base import EventTimings
from rewritelog.models.exact_matches import ExactMatches, exact_matches_of


def means_by_hand(params: Floats, seconds: Floats) -> Any:
    groups: dict[tuple[float, ...], list[float]] = {}
    for row, time in zip((params + 0.0).tolist(), seconds.tolist(), strict=True):
        groups.setdefault(tuple(row), []).append(time)
    return {row: np.mean(times) for row, times in groups.items()}


def samples(rows: int = 5000, columns: int = 3, values: Any = 12, seed: int = 21) -> Any:
    rng = np.random.default_rng(seed)
    params = rng.integers(0, values, (rows, columns)).astype(float)
    return EventTimings("kernel", params, rng.uniform(1, 2, rows))


def times_of(timings: EventTimings) -> ExactMatches:
    matches = exact_matches_of(timings, "always", timings, timings.seconds)
    assert matches is not None
    return matches


def looked_up(timings: EventTimings, rows: Any) -> Any:
    """Each row's mean seconds, NaN without one, and which rows have one."""
    times = times_of(timings)
    place = times.points.find(rows)
    seconds = np.full(len(rows), np.nan)
    seconds[place >= 0] = times.seconds[place[place >= 0]]
    return seconds, place >= 0


@pytest.mark.parametrize("columns", [0, 1, 2, 3, 20])
def test_means_are_those_of_the_rows_grouped_by_hand(columns: int) -> None:
    timings = samples(columns=columns)
    rows = np.random.default_rng(22).integers(0, 14, (3000, columns)).astype(float)
    seconds, exact = looked_up(timings, rows)
    by_hand = means_by_hand(timings.params, timings.seconds)
    expected = [by_hand.get(tuple(row), np.nan) for row in rows.tolist()]
    assert seconds == pytest.approx(expected, rel=1e-14, nan_ok=True)
    assert exact.tolist() == np.isfinite(expected).tolist()


def test_shared_hashes_never_mix_up_rows() -> None:
    """These have one hash by splitmix64; others share slots of the table."""
    first = np.arange(1.0, 4001.0)
    second = arrays.mix(first.view(np.uint64).copy()) * arrays.GOLDEN ^ np.uint64(7)
    params: Floats = np.column_stack((first, second.view(np.float64)))
    params = params[np.isfinite(params).all(axis=1)]
    timings = EventTimings("kernel", params, np.arange(1.0, len(params) + 1))
    seconds, exact = looked_up(timings, params)
    assert exact.all()
    assert seconds.tolist() == timings.seconds.tolist()
    assert not looked_up(timings, params[:, ::-1])[1].any()


@pytest.mark.parametrize("rows", [3, 100_000])
def test_rows_among_others_are_those_with_equal_rows(rows: int) -> None:
    params = samples(rows, values=60).params
    others = np.vstack((params[1:3], [[0.0, 70.0, 0.0]]))
    expected = (params[:, None, :] == others).all(axis=2).any(axis=1)
    is_among = DistinctPoints.of_rows(others).find(params) >= 0
    assert is_among.tolist() == expected.tolist()
    assert (DistinctPoints.of_rows(others[:0]).find(params) < 0).all()


def test_minus_zero_is_zero() -> None:
    timings = EventTimings("kernel", np.array([[0.0], [-0.0], [1.0]]), np.array([1.0, 2, 3]))
    seconds, exact = looked_up(timings, np.array([[-0.0], [0.0], [-1.0]]))
    assert seconds[:2].tolist() == [1.5, 1.5]
    assert exact.tolist() == [True, True, False]


def test_equal_times_give_that_time_itself() -> None:
    timings = EventTimings("kernel", np.ones((3, 1)), np.full(3, 0.1))
    assert looked_up(timings, np.ones((1, 1)))[0].tolist() == [0.1]


def test_neighbouring_values_and_nan_do_not_match() -> None:
    timings = EventTimings("kernel", np.array([[0.1, 5.0]]), np.array([1.0]))
    rows = np.array([[np.nextafter(0.1, 1), 5.0], [0.1, np.nan], [5.0, 0.1], [0.1, 5.0]])
    assert looked_up(timings, rows)[1].tolist() == [False] * 3 + [True]


def test_no_samples_and_other_parameter_counts_match_nothing() -> None:
    empty = EventTimings("kernel", np.empty((0, 1)), np.empty(0))
    assert not looked_up(empty, np.ones((2, 1)))[1].any()
    assert not looked_up(samples(), np.zeros((2, 2)))[1].any()


def test_the_same_samples_give_the_same_bits() -> None:
    first, second = (times_of(samples()) for _ in range(2))
    assert first.seconds.tobytes() == second.seconds.tobytes()


def test_mixing_is_splitmix64() -> None:
    """The first numbers of splitmix64 from 1234567, as published with many implementations."""
    steps = np.arange(1, 4, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    numbers = arrays.mix(steps + np.uint64(1234567))
    assert numbers.tolist() == [6457827717110365317, 3203168211198807973, 9817491932198370423]
