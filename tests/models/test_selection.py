"""Selection of terms: what is chosen among columns."""

from __future__ import annotations

import numpy as np
import pytest

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
