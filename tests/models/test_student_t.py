"""Quantiles of Student's t distribution."""

from __future__ import annotations

import pytest
from scipy.special import stdtrit

from rewritelog.models.student_t import upper_quantile


@pytest.mark.parametrize("degrees", [1, 2, 3, 4, 5, 30, 31, 99, 100, 101, 1000, 10**6, 10**9])
@pytest.mark.parametrize("probability", [0.6, 0.9, 0.95, 0.99])
def test_a_quantile_is_that_of_scipy(probability: float, degrees: int) -> None:
    expected = float(stdtrit(degrees, probability))
    assert upper_quantile(probability, degrees) == pytest.approx(expected, rel=1e-9)
