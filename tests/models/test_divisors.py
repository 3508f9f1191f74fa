"""Divisors of sizes: taken as inputs of a correction where times depend on them."""

from __future__ import annotations

import numpy as np
import pytest
from models.laws import auto, relative_errors

from rewritelog.arrays import Floats
from rewritelog.models.base import EventTimings
from rewritelog.models.fitting.process import Inputs


def largest_prime(number: int) -> int:
    largest, divisor = 1, 2
    while number > 1:
        while number % divisor == 0:
            number, largest = number // divisor, divisor
        divisor += 1
    return largest


def transforms(count: int, seed: int) -> tuple[Floats, Floats]:
    """Return lengths and counts, and seconds: a length takes its largest prime factor at once."""
    rng = np.random.default_rng(seed)
    params = np.rint(10 ** rng.uniform((1.0, 0.0), (3.5, 2.0), (count, 2)))
    primes = np.array([largest_prime(int(length)) for length in params[:, 0]])
    seconds = 1e-6 + 1e-9 * params.prod(axis=1) * (np.log2(params[:, 0]) + np.minimum(primes, 60))
    return params, seconds * np.exp(0.02 * rng.normal(size=count))


@pytest.mark.slow
def test_transforms_depend_on_the_largest_prime_factor_of_their_length() -> None:
    """The error was 41 %."""
    params, seconds = transforms(400, 1)
    fitted = auto(EventTimings("fft", params, seconds))
    text = " ".join(" ".join(fitted.summary()).split())
    assert "it depends on the largest prime factor in p1" in text
    others, of_others = transforms(400, 2)
    assert relative_errors(fitted.predict("fft", others), of_others).mean() < 0.05


def test_divisors_of_a_size_are_those_of_arithmetic() -> None:
    large = (2**31 - 1, 997 * 1009, 2**40, 3 * 2**13)
    sizes = np.array([[n] for n in (*range(1, 2000), *large)], np.float64)
    inputs = Inputs.of(sizes, divisors=["twos", "prime"])
    columns = inputs.columns(sizes) * inputs.deviations + inputs.centres
    twos, primes = (
        np.rint(np.exp(columns[:, inputs.kinds.index(kind)])) for kind in ("twos", "prime")
    )
    assert twos.tolist() == [min(int(n) & -int(n), 4096) for n in sizes[:, 0]]
    expected = [*map(largest_prime, range(1, 2000)), 2**31 - 1, 1009, 2, 3]
    assert primes.tolist() == pytest.approx(expected)
