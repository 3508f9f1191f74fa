"""Selection of terms: what is chosen among columns."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import nnls

from rewritelog.arrays import Floats
from rewritelog.models.fitting.selection import Stepwise, select_columns


def test_few_columns_of_many_samples() -> None:
    steps = np.arange(20.0)
    columns: Floats = np.column_stack((np.ones(20), steps, steps**2))
    assert sorted(select_columns(columns, 2 + steps**2, Stepwise())) == [0, 2]


@pytest.mark.parametrize("seed", range(4))
def test_rounding_does_not_choose_among_terms_that_explain_the_same(seed: int) -> None:
    """The sides of a threshold explain what their term does; machines round inner products anew."""
    rng = np.random.default_rng(seed)
    a, b = rng.integers(40, 160, 320) ** 2.0, rng.integers(5, 22, 320) * 130.0
    sides = [side * a for knot in np.quantile(a, (0.3, 0.8)) for side in (a > knot, a <= knot)]
    target = (a + b) * rng.normal(1, 0.02, 320)
    columns = np.column_stack([np.ones(320), *sides, a, b, np.minimum(b, b.max())])
    chosen = set()
    for _ in range(20):
        rounded = columns * (1 + rng.integers(-2, 3, columns.shape) * 2.0**-53) / target[:, None]
        chosen.add(tuple(sorted(select_columns(rounded, np.ones(320), Stepwise()))))
    assert chosen == {(5, 6)}


def bic(columns: Floats, target: Floats, *, non_negative: bool) -> float:
    """BIC of the best fit, found by scipy and numpy, with the correction for small samples."""
    samples, terms = columns.shape
    fitted = nnls(columns, target) if non_negative else np.linalg.lstsq(columns, target, rcond=None)
    chi2 = ((columns @ fitted[0] - target) ** 2).sum()
    penalty = terms * np.log(samples) * samples / (samples - terms - 1)
    return float(samples * np.log(chi2 / samples) + penalty)


@pytest.mark.parametrize("non_negative", [True, False])
def test_no_other_selection_has_a_lower_bic(non_negative: bool) -> None:
    """The sums of columns are taken first, and then superfluous beside the columns themselves."""
    for seed in range(15):
        rng = np.random.default_rng(seed)
        a, b, c, noise = rng.uniform(0, 1, (4, 40))
        sums = np.array((a + b, b + c, a + b + c)) + rng.normal(0, 0.05, (3, 40))
        columns = np.column_stack((np.ones(40), *sums, a, b, c))
        target = 2 * a + b + (1.5 if non_negative else -1.5) * c + 0.1 * noise
        chosen = select_columns(columns, target, Stepwise(non_negative=non_negative))
        _, best = min(
            (bic(columns[:, places], target, non_negative=non_negative), places)
            for count in range(1, 8)
            for places in map(list, combinations(range(7), count))
        )
        assert sorted(chosen) == best
        for most in range(1, len(best)):
            fewer = Stepwise(non_negative=non_negative, most=most)
            assert len(select_columns(columns, target, fewer)) == most


@pytest.mark.parametrize(
    ("noise", "growth", "chosen"),
    [
        (0.2, (0.0, 1.0, 0.0), [0, 2]),  # in so much noise n explains as much as n^1.2
        (0.0005, (0.0, 1.0, 0.0), [0, 1]),
        (0.2, (0.0, 0.04, 0.0), [0, 1]),  # they grow alike
    ],
)
def test_of_terms_that_explain_about_the_same_the_one_that_grows_less_is_taken(
    noise: float, growth: tuple[float, ...], chosen: list[int]
) -> None:
    n = np.linspace(1, 3, 40)
    columns = np.column_stack((np.ones(40), n**1.2, n))
    target = 1 + n**1.2 + noise * np.random.default_rng(2).normal(size=40)
    stepwise = Stepwise(growth=np.array(growth), plain=3)
    assert sorted(select_columns(columns, target, stepwise)) == chosen
