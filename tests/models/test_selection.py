"""Selection of terms: with many samples only the rows of the Gram matrix that are needed."""

from __future__ import annotations

import numpy as np
import pytest

from rewritelog.arrays import Floats, Ints
from rewritelog.models.fitting import selection
from rewritelog.models.fitting.selection import select


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("constant", [0, None])
@pytest.mark.parametrize("non_negative", [True, False])
def test_rows_of_the_gram_matrix_on_demand(
    monkeypatch: pytest.MonkeyPatch, seed: int, constant: int | None, non_negative: bool
) -> None:
    """Gradual growth makes columns similar, so that selected ones are exchanged and removed."""
    rng = np.random.default_rng(seed)
    columns = rng.uniform(0.5, 1.5, (60, 3))[:, np.arange(41) % 3] ** rng.uniform(0, 4, 41)
    columns[:, 0] = 1
    target = columns[:, ::6] @ rng.uniform(0.1, 1, 7) * rng.uniform(0.99, 1.01, 60)
    slopes = rng.integers(0, 4, 41).astype(np.float64)
    asked: list[Ints] = []
    compute = selection._GramMatrix.compute

    def counted(matrix: selection._GramMatrix, wanted: Ints) -> None:
        asked.append(wanted)
        compute(matrix, wanted)

    def selected(growth: Floats | None) -> list[int]:
        return select(
            columns,
            target,
            non_negative=non_negative,
            constant=constant,
            growth=growth,
            plain=30,
        )

    monkeypatch.setattr(selection._GramMatrix, "compute", counted)
    whole = [selected(None), selected(slopes)]
    assert not asked
    assert len(whole[0]) > 1
    monkeypatch.setattr(selection, "MANY_SAMPLES", len(target))
    assert [selected(None), selected(slopes)] == whole
    assert 2 <= len(asked) < 12


def test_few_columns_of_many_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selection, "MANY_SAMPLES", 8)
    steps = np.arange(20.0)
    columns: Floats = np.column_stack((np.ones(20), steps, steps**2))
    assert sorted(select(columns, 2 + steps**2, non_negative=True, constant=0)) == [0, 2]


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
        chosen.add(tuple(sorted(select(rounded, np.ones(320), non_negative=True, constant=0))))
    assert chosen == {(5, 6)}
