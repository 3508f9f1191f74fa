"""Laws that kernels follow, with samples of them, for several test modules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from rewritelog.arrays import Floats
from rewritelog.models.auto import Auto, AutoOptions
from rewritelog.models.base import EventTimings, ModelFit


@dataclass(frozen=True)
class Known:
    """Seconds from parameters that are drawn evenly over their logarithms."""

    ranges: tuple[tuple[float, float], ...]
    law: Callable[..., Any]

    def params(self, count: int, rng: np.random.Generator) -> Any:
        low, high = np.log(np.array(self.ranges)).T
        return np.round(np.exp(rng.uniform(low, high, (count, len(self.ranges)))))

    def timings(self, count: int, seed: int, noise: float = 0.0, event: str = "kernel") -> Any:
        rng = np.random.default_rng(seed)
        params = self.params(count, rng)
        seconds = self.seconds(params) * np.exp(rng.normal(0, 1, count) * noise)
        return EventTimings(event, params, seconds)

    def seconds(self, params: Floats) -> Any:
        return np.broadcast_to(self.law(*params.T), len(params)) * 1e-7


LAWS = {
    "constant": Known(((1, 100), (1, 100)), lambda _a, _b: 30.0),
    "linear": Known(((1, 1000),), lambda n: 50 + 3 * n),
    "p²": Known(((1, 300),), lambda n: 20 + 0.5 * n**2),
    "n log n": Known(((2, 10000),), lambda n: 5 * n * np.log(n) + 40),
    "three loop bounds": Known(((2, 200),) * 3, lambda a, b, c: a * b * c),
    "repeat count times n log n": Known(
        ((1, 100), (8, 4096)), lambda repeats, n: repeats * n * np.log(n)
    ),
    "p1·p2² + p3": Known(((2, 100), (2, 100), (2, 1000)), lambda a, b, c: 0.1 * a * b**2 + c),
    "sum of two": Known(((1, 100), (1, 100)), lambda a, b: 7 + 2 * a + 0.3 * b**2),
    "sum and product": Known(((1, 100), (1, 100)), lambda a, b: 7 + 2 * a + 0.3 * a * b),
    "surface and volume": Known(((4, 64),), lambda n: 3 * n**3 + 12 * n**2),
    "n/p": Known(((100, 10000), (1, 64)), lambda n, p: 10 * n / p + 60),
}


def auto(*timings: EventTimings, **options: Any) -> Any:
    return Auto(AutoOptions(**options)).fit(timings)


def relative_errors(predicted: Floats, seconds: Floats) -> Any:
    return np.abs(predicted - seconds) / seconds


def errors_elsewhere(fitted: ModelFit, law: Any, count: int = 400) -> Any:
    """Errors at other parameters of the same ranges, against the law itself, without noise."""
    params = law.params(count, np.random.default_rng(99))
    return relative_errors(fitted.predict("kernel", params), law.seconds(params))
