"""Designs that can be worked out: ends before middles, corners before edges, nothing twice."""

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike

from rewritelog.arrays import Floats, random_keys
from rewritelog.core import DistinctPoints
from rewritelog.sampling.design import Coordinates, DesignTerms, cover, design, leverages
from rewritelog.sampling.selection import allocate


def terms_over(params: Floats) -> Any:
    counts = np.ones(len(params), dtype=np.int64)
    return DesignTerms(Coordinates(params, counts), params, counts)


def designed(rows: ArrayLike, count: int, known: Any = None) -> Any:
    params = np.array(rows, dtype=float)
    terms = terms_over(params)
    measured = np.zeros((0, params.shape[1])) if known is None else np.array(known, dtype=float)
    free = np.ones(len(params), dtype=np.bool_)
    return design(terms.values(params), free, terms.values(measured), count).tolist()


def covered(rows: ArrayLike, count: int, taken: Sequence[int] = (), counts: Any = None) -> Any:
    params = np.array(rows, dtype=float)
    mask = np.zeros(len(params), dtype=np.bool_)
    mask[list(taken)] = True
    counts = np.ones(len(params), dtype=np.int64) if counts is None else np.array(counts)
    return cover(params, counts, mask, count, random_keys("", len(params), 1)).tolist()


def column(*values: float) -> Any:
    return np.array(values, dtype=float)[:, None]


def test_of_one_parameter_the_ends_come_first_and_then_the_middle() -> None:
    sizes = 2.0 ** np.arange(11)
    first, second, third = designed(sizes[:, None], 3)
    assert {first, second} == {0, 10}
    assert 4 <= third <= 6


def test_of_two_parameters_the_corners_come_first() -> None:
    grid = [(a, b) for a in (1, 2, 4, 8, 16) for b in (1, 10, 100)]
    corners = {(1, 1), (1, 100), (16, 1), (16, 100)}
    assert {grid[row] for row in designed(grid, 4)} == corners


def test_what_is_known_already_is_not_measured_again() -> None:
    sizes = (2.0 ** np.arange(11))[:, None]
    (only,) = designed(sizes, 1, known=column(1, 1024))
    assert 4 <= only <= 6


def test_the_information_is_near_the_best_that_any_choice_has() -> None:
    rng = np.random.default_rng(3)
    params = np.exp(rng.normal(3, 1, (14, 2)))
    values = terms_over(params).values(params)

    def information(rows: Sequence[int]) -> Any:
        chosen = values[list(rows)]
        return np.linalg.slogdet(np.eye(values.shape[1]) + chosen.T @ chosen / 0.1)[1]

    best = max(information(rows) for rows in combinations(range(14), 5))
    mean = np.mean([information(rows) for rows in combinations(range(14), 5)])
    assert information(designed(params, 5)) > best - 0.15 * (best - mean)


def test_terms_are_moments_of_the_logarithms_over_all_rows() -> None:
    """1, u, and the products of u at 0.3, each of variance 1; together of mean square 1."""
    rng = np.random.default_rng(4)
    params, counts = np.exp(rng.uniform(0, 3, (30, 2))), rng.integers(1, 9, 30)
    logs = np.log1p(params / params.min(axis=0))
    weights = counts / counts.sum()

    def scaled(columns: Floats) -> Any:
        spread = np.sqrt(np.cov(columns.T, aweights=counts, ddof=0).diagonal())
        return (columns - weights @ columns) / spread

    u = scaled(logs)
    products = scaled(np.column_stack([u[:, 0] ** 2, u[:, 0] * u[:, 1], u[:, 1] ** 2]))
    expected = np.column_stack([np.ones(30), u, 0.3 * products]) / np.sqrt(1 + 2 + 3 * 0.09)
    terms = DesignTerms(Coordinates(params, counts), params, counts)
    np.testing.assert_allclose(terms.values(params), expected, rtol=1e-9, atol=1e-12)


def test_what_is_a_millionth_of_the_largest_is_as_0() -> None:
    sizes = column(0, 1e-9, 1, 10)
    none, least, one, _ = Coordinates(sizes, np.ones(4, dtype=np.int64)).of(sizes)[:, 0]
    assert least - none < 1e-3 < one - none


def test_units_change_nothing() -> None:
    params = np.exp(np.random.default_rng(1).normal(3, 1, (200, 3)))
    assert designed(params * [1e-6, 8.0, 1024.0], 20) == designed(params, 20)


@pytest.mark.parametrize(
    "params",
    [
        np.ones((6, 2)),
        np.repeat(np.arange(6.0), 2).reshape(6, 2),
        np.column_stack([np.arange(6.0), 7 - 2 * np.arange(6.0)]),
        column(0, 0, 0, 0, 1, 2),
        column(-5, -1, 0, 1, 5, 9),
        column(1e-300, 1, 1e300, 0, -1e300, 1e9),
        1e6 + column(0, 1e-3, 2e-3, 3e-3, 4e-3, 5e-3),
        column(0, 1, 0, 1, 0, 1),
        np.zeros((6, 0)),
    ],
    ids=["constant", "copied", "collinear", "zeros", "negative", "wide", "narrow", "two", "none"],
)
def test_odd_parameters_are_designed_over_too(params: Floats) -> None:
    with np.errstate(all="raise", under="ignore"):
        chosen = designed(params, 4)
        assert len(set(chosen)) == 4
        leverage = leverages(terms_over(params), params[chosen], params)
    assert np.isfinite(leverage).all()


def test_no_more_points_than_there_are() -> None:
    assert sorted(designed(column(1, 2, 3), 10)) == [0, 1, 2]


def test_leverage_is_large_where_nothing_was_measured() -> None:
    params = np.array([(a, b) for a in (1.0, 2, 4, 8) for b in (1.0, 2, 4, 8)])
    measured = params[(params[:, 0] < 8) & (params[:, 1] < 8)]
    leverage = leverages(terms_over(params), measured, params)
    inside = (params < 8).all(axis=1)
    assert leverage[~inside].min() > leverage[inside].max()


def test_coverage_takes_something_from_each_cluster() -> None:
    centres = np.array([(0, 0), (0, 100), (100, 0), (100, 100)])
    params = np.repeat(centres, 25, axis=0) + np.random.default_rng(0).normal(0, 1, (100, 2))
    assert [row // 25 for row in covered(params, 4)] == [0, 1, 2, 3]


def test_coverage_fills_where_nothing_is_taken() -> None:
    line = np.arange(100.0)[:, None]
    (new,) = covered(line, 2, taken=[3])
    assert new >= 50


def test_coverage_is_denser_where_rows_are_more() -> None:
    counts = np.ones(100, dtype=np.int64)
    counts[:10] = 90
    rows = covered(np.arange(100.0)[:, None], 10, counts=counts)
    assert np.count_nonzero(np.array(rows) < 10) >= 8


@pytest.mark.parametrize("count", [1, 7, 64, 99, 100, 200])
def test_coverage_gives_as_many_as_are_wanted(count: int) -> None:
    params = np.random.default_rng(2).normal(size=(100, 3))
    counts = np.random.default_rng(2).integers(1, 1000, 100)
    for taken in ([], [5], list(range(60))):
        new = covered(params, count, taken, counts)
        assert len(new) == max(min(count, 100) - len(taken), 0)
        assert not set(new) & set(taken)


def test_shares_are_in_proportion_within_their_bounds() -> None:
    def shares(total: int, weights: Any, least: Any, most: Any) -> Any:
        return allocate(total, np.array(weights, float), np.array(least), np.array(most)).tolist()

    assert shares(40, [3, 1], [0, 0], [99, 99]) == [30, 10]
    assert shares(40, [3, 1], [0, 15], [99, 99]) == [25, 15]
    assert shares(40, [3, 1], [0, 0], [20, 99]) == [20, 20]
    assert shares(10, [1, 1, 1], [0, 0, 0], [99, 99, 99]) == [4, 3, 3]
    assert shares(10, [3, 2, 2], [0, 0, 0], [99, 99, 99]) == [4, 3, 3], "2.86 is nearer to 3"
    assert shares(3, [1, 1], [2, 2], [9, 9]) == [2, 2]
    assert shares(50, [1, 1], [2, 2], [9, 9]) == [9, 9]
    assert sum(shares(1001, np.sqrt(np.arange(1, 60)), [1] * 59, [30] * 59)) == 1001


def test_points_are_the_distinct_rows_in_order() -> None:
    rows = np.array([[2, 1], [0, 1], [2, 1], [-0.0, 1], [3, 3]])
    points = DistinctPoints.of_rows(rows)
    assert points.params.tolist() == [[2, 1], [0, 1], [3, 3]]
    assert points.counts.tolist() == [2, 2, 1]
    assert points.point_of_row.tolist() == [0, 1, 0, 1, 2]
    assert DistinctPoints.of_rows(np.array([[0.0, 1], [9, 9]])).find(rows).tolist() == [
        -1, 0, -1, 0, -1,
    ]  # fmt: skip


def test_points_of_the_same_numbers_in_another_order_stay_apart() -> None:
    points = DistinctPoints.of_rows(np.array([[1.0, 2], [2, 1], [1, 2], [2, 1], [2, 2]]))
    assert points.params.tolist() == [[1, 2], [2, 1], [2, 2]]
    assert points.counts.tolist() == [2, 2, 1]
