"""Means of a Gaussian process, compared with numpy's own formulas."""

import numpy as np
import pytest
from msgspec.structs import replace

from rewritelog.core import DistinctPoints, core
from rewritelog.models.fitting.process import CovarianceFunction, conditioned, learn


def covariance_of(inputs: int, seed: int = 0) -> CovarianceFunction:
    rng = np.random.default_rng(seed)
    codes = np.arange(inputs) % 3 == 2
    smooth, rough = rng.uniform(0.5, 4.0, (2, inputs))
    return CovarianceFunction(codes, smooth, rough, 1.3, 0.4, 0.2)


def covariances(covariance: CovarianceFunction, rows: np.ndarray, points: np.ndarray) -> np.ndarray:
    """The same covariances, written down from the book."""
    squares = (rows[:, None, :] - points[None]) ** 2
    squares[:, :, covariance.codes] = (
        rows[:, None, covariance.codes] != points[None][:, :, covariance.codes]
    )
    smooth = np.sqrt(5 * (squares / covariance.smooth_lengths**2).sum(axis=2))
    rough = np.sqrt((squares / covariance.rough_lengths**2).sum(axis=2))
    matern = (1 + smooth + smooth**2 / 3) * np.exp(-smooth)
    return np.asarray(covariance.smooth**2 * matern + covariance.rough**2 * np.exp(-rough))


def points_of(count: int, inputs: int, seed: int) -> np.ndarray:
    points = np.random.default_rng(seed).normal(size=(count, inputs))
    points[:, 2::3] = np.rint(points[:, 2::3])
    return points


@pytest.mark.parametrize(("count", "inputs"), [(1, 1), (7, 3), (255, 2), (256, 4), (600, 7)])
def test_means_are_sums_of_weighted_covariances(count: int, inputs: int) -> None:
    points, rows = points_of(count, inputs, 1), points_of(50, inputs, 2)
    covariance = covariance_of(inputs)
    weights = np.random.default_rng(3).normal(size=count)
    for function in (covariance, replace(covariance, rough=0.0), replace(covariance, smooth=0.0)):
        means, expected = (
            function.means(points, weights, rows),
            covariances(function, rows, points),
        )
        assert (np.abs(means - expected @ weights) <= 2e-6 * (expected @ np.abs(weights))).all()


def test_a_mean_has_the_same_bits_whatever_other_rows_there_are() -> None:
    points, rows = points_of(300, 5, 4), points_of(40, 5, 5)
    covariance, weights = covariance_of(5), np.random.default_rng(6).normal(size=300)
    alone = [covariance.means(points, weights, rows[index : index + 1])[0] for index in range(40)]
    assert covariance.means(points, weights, rows).tolist() == alone


def test_wide_vectors_change_no_bit() -> None:
    rng, inputs = np.random.default_rng(1), 5
    rows, points = rng.normal(size=(40, inputs)), rng.normal(size=(inputs, 2 * core.PROCESS_LANES))
    squares, weights = np.array([0, 0, 2, 0, 0]), rng.normal(size=points.shape[1])
    of_rows, codes, of_points, of_weights = (
        np.asarray(values, dtype=np.float32) for values in (rows, squares, points, weights)
    )
    for is_rough in (False, True):
        means = np.zeros((2, len(rows)))
        for is_wide in (False, True):
            core.process_add_means(
                of_rows,
                inputs,
                codes,
                is_rough,
                is_wide,
                of_points,
                of_weights,
                means[int(is_wide)],
            )
        assert means[0].all()
        assert means[0].tobytes() == means[1].tobytes()


def test_far_from_all_points_the_mean_is_zero() -> None:
    rows = np.array([[1e6, 0.0], [-1e300, 1e300], [np.inf, 0.0]])
    far = covariance_of(2).means(points_of(20, 2, 7), np.ones(20), rows)
    assert np.abs(far).max() < 1e-20


def test_held_out_means_are_those_of_processes_without_the_point() -> None:
    points, values = points_of(60, 3, 8), np.random.default_rng(9).normal(size=60)
    covariance = covariance_of(3)
    ((own_weights, held_out, _),) = conditioned(
        covariance, points, DistinctPoints.of_rows(points), values
    )
    noise = covariance.noise**2 * np.eye(60)
    weights = np.linalg.solve(covariances(covariance, points, points) + noise, values)
    np.testing.assert_allclose(own_weights, weights, rtol=1e-8)
    for index in range(0, 60, 7):
        others = np.arange(60) != index
        ((alone, *_),) = conditioned(
            covariance, points[others], DistinctPoints.of_rows(points[others]), values[others]
        )
        mean = covariance.means(points[others], alone, points[index : index + 1])
        np.testing.assert_allclose(held_out[index], mean[0], rtol=1e-4)


def test_held_out_means_of_repeated_values_are_those_without_any_of_them() -> None:
    distinct, repeats = points_of(12, 2, 11), [1, 3, 12, 2, 1, 5, 7, 1, 1, 2, 2, 2]
    points = np.repeat(distinct, repeats, axis=0)
    values = np.sin(points[:, 0]) + 0.1 * np.random.default_rng(12).normal(size=len(points))
    covariance, known = covariance_of(2), DistinctPoints.of_rows(points)
    ((_, held_out, counted),) = conditioned(covariance, points, known, values)
    for index, point in enumerate(distinct):
        rows = (points == point).all(axis=1)
        others = covariances(covariance, points[~rows], points[~rows])
        others += covariance.noise**2 * np.eye(len(others))
        mean = covariances(covariance, point[None], points[~rows]) @ np.linalg.solve(
            others, counted[~rows]
        )
        assert rows.sum() == repeats[index]
        np.testing.assert_allclose(held_out[rows], mean[0], rtol=1e-4)


def test_held_out_means_of_values_without_noise_are_those_of_other_points() -> None:
    """The same numbers nearly cancelled, as for times of a simulator that repeats a call."""
    distinct = points_of(12, 2, 11)
    points = np.repeat(distinct, 40, axis=0)
    values = np.sin(points[:, 0])
    covariance, known = replace(covariance_of(2), noise=1e-4), DistinctPoints.of_rows(points)
    ((_, held_out, _),) = conditioned(covariance, points, known, values)
    once = DistinctPoints.of_rows(distinct)
    covariance_once = replace(covariance, noise=1e-4 / 40**0.5)
    ((_, expected, _),) = conditioned(covariance_once, distinct, once, np.sin(distinct[:, 0]))
    np.testing.assert_allclose(held_out, np.repeat(expected, 40), rtol=1e-6)


def test_a_value_unlike_all_around_it_counts_for_little() -> None:
    points = np.linspace(-2, 2, 81)[:, None]
    values = np.sin(points[:, 0])
    values[40] = 4.0
    covariance = CovarianceFunction(
        np.zeros(1, dtype=np.bool_), np.ones(1), np.ones(1), 1.0, 0.01, 0.1
    )
    ((weights, held_out, limited),) = conditioned(
        covariance, points, DistinctPoints.of_rows(points), values
    )
    means = covariance.means(points, weights, points)
    np.testing.assert_allclose(means, np.sin(points[:, 0]), atol=0.2)
    assert abs(held_out[40]) < 0.2
    assert 0 < limited[40] < 1
    np.testing.assert_allclose(np.delete(limited, 40), np.delete(values, 40), atol=0.1)


def test_what_is_learnt_is_most_probable() -> None:
    """No length or deviation near those learnt makes the values more probable."""
    rng = np.random.default_rng(10)
    points = rng.normal(size=(80, 2))
    values = np.sin(2 * points[:, 0]) + 0.1 * rng.normal(size=80)
    covariance, _ = learn(points, values, np.zeros(2, dtype=np.bool_))
    assert 0.05 < covariance.noise < 0.15
    assert covariance.smooth_lengths[1] > 3 * covariance.smooth_lengths[0]

    def probability(smooth: float, noise: float) -> float:
        changed = CovarianceFunction(
            covariance.codes,
            covariance.smooth_lengths * smooth,
            covariance.rough_lengths,
            covariance.smooth,
            covariance.rough,
            covariance.noise * noise,
        )
        matrix = changed.matrix(points)
        misfit = values @ np.linalg.solve(matrix, values)
        return float(-0.5 * misfit - 0.5 * np.linalg.slogdet(matrix)[1])

    best = probability(1.0, 1.0)
    for change in (0.5, 2.0):
        assert probability(change, 1.0) < best
        assert probability(1.0, change) < best


def test_what_matters_is_learnt_from_many_points_in_blocks() -> None:
    """Of 1,000 points in four blocks, with codes whose order says nothing of their values."""
    rng = np.random.default_rng(11)
    points = np.hstack((rng.normal(size=(1000, 2)), rng.integers(0, 4, (1000, 2)).astype(float)))
    levels = np.array([0.5, -0.7, 0.9, -0.4])[points[:, 2].astype(np.int64)]
    values = np.sin(2 * points[:, 0]) + levels + 0.1 * rng.normal(size=1000)
    codes = np.array([False, False, True, True])
    covariance, _ = learn(points, values, codes, most=1000)
    assert 0.09 < covariance.noise < 0.11
    lengths = covariance.smooth_lengths
    assert lengths[1] > 5 * lengths[0]
    assert lengths[3] > 5 * lengths[2]
