"""Helpers for numpy arrays."""

import numpy as np
import pytest

from rewritelog.arrays import column_range


@pytest.mark.parametrize("rows", [1, 511, 512, 5000])
@pytest.mark.parametrize("columns", [0, 1, 3])
def test_ranges_are_those_of_each_column(rows: int, columns: int) -> None:
    values = np.random.default_rng(rows).normal(size=(rows, columns))
    for some in (values, np.asfortranarray(values), values[::-1]):
        lowest, highest = column_range(some)
        assert lowest.tolist() == values.min(axis=0).tolist()
        assert highest.tolist() == values.max(axis=0).tolist()
