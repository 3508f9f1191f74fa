"""Helpers for numpy arrays."""

import numpy as np
import pytest

from rewritelog.arrays import column_range, median, with_text


@pytest.mark.parametrize("rows", [1, 511, 512, 5000])
@pytest.mark.parametrize("columns", [0, 1, 3])
def test_ranges_are_those_of_each_column(rows: int, columns: int) -> None:
    values = np.random.default_rng(rows).normal(size=(rows, columns))
    for some in (values, np.asfortranarray(values), values[::-1]):
        lowest, highest = column_range(some)
        assert lowest.tolist() == values.min(axis=0).tolist()
        assert highest.tolist() == values.max(axis=0).tolist()


@pytest.mark.parametrize("count", [1, 2, 3, 10, 64, 65, 100])
def test_medians_have_the_bits_of_numpy(count: int) -> None:
    rng = np.random.default_rng(count)
    for values in (rng.normal(size=count), rng.integers(-3, 4, count) / 3, np.zeros(count)):
        assert median(values) == np.median(values)


@pytest.mark.parametrize("count", [0, 1, 9_999])
def test_rows_with_text_are_the_rows_in_their_order(count: int) -> None:
    rows = np.zeros(count, dtype=[("seb", np.int64), ("name", "S20"), ("text", object)])
    rows["seb"], rows["name"] = np.arange(count), [b"n%d" % (k % 300) for k in range(count)]
    rows["text"] = [b"t%d" % k if k % 2 else None for k in range(count)]
    table = with_text(rows)
    assert table["seb"].tolist() == list(range(count))
    assert table["name"].tolist() == [f"n{k % 300}" for k in range(count)]
    assert table["text"].tolist() == [f"t{k}" if k % 2 else None for k in range(count)]
