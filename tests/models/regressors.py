"""Regressors as users write them, right and wrong; the tests name them `regressors:Class`."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rewritelog.arrays import Floats
from rewritelog.models.base import Model, ModelFit, Timings


class Plane:
    """Least squares over 1, p1, p2, …: right in every way."""

    def __init__(self, scale: float = 1.0, offset: Any = None) -> None:
        self.scale = scale
        self.offset = offset

    def fit(self, X: Floats, y: Floats) -> Any:
        columns = np.column_stack([np.ones(len(X)), X])
        self.coefficients = np.linalg.lstsq(columns, y, rcond=None)[0]
        return self

    def predict(self, X: Floats) -> Any:
        return self.scale * (self.coefficients[0] + X @ self.coefficients[1:])


class Seeded(Plane):
    """Takes a seed, as scikit-learn's do."""

    def __init__(self, random_state: Any = None) -> None:
        super().__init__(scale=1.0 + (random_state or 0))


class Alone(Plane):
    """Raises where two threads predict at once."""

    busy = threading.Lock()

    def predict(self, X: Floats) -> Any:
        if not self.busy.acquire(blocking=False):
            raise RuntimeError("two at a time")
        try:
            return super().predict(X)
        finally:
            self.busy.release()


class FailsToFit(Plane):
    def fit(self, X: Floats, y: Floats) -> None:
        raise RuntimeError("no luck")


class FailsToPredict(Plane):
    def predict(self, X: Floats) -> None:
        raise ZeroDivisionError("no luck")


class WrongShape(Plane):
    def predict(self, X: Floats) -> Any:
        return np.zeros((len(X), 1))


class Words(Plane):
    def predict(self, X: Floats) -> Any:
        return ["long"] * len(X)


class Infinite(Plane):
    def predict(self, X: Floats) -> Any:
        return np.full(len(X), np.inf)


class Unpicklable(Plane):
    def fit(self, X: Floats, y: Floats) -> None:
        self.function = lambda: y


@dataclass(frozen=True)
class RefusesOptions:
    method: str = field(default="summary", metadata={"help": "The method that raises."})


class Refuses(Model[RefusesOptions]):
    """A model whose fit predicts, and raises when it is to say something of itself."""

    Options = RefusesOptions

    def fit(self, timings: Timings) -> ModelFit:
        return Refusing(self.options.method)


class Refusing(ModelFit):
    def __init__(self, method: str) -> None:
        setattr(self, method, self.refuse)

    def predict(self, event: str, params: Floats) -> Floats:
        return np.zeros(len(params))

    def refuse(self) -> None:
        raise RuntimeError("no luck")


class NoPredict:
    def fit(self, X: Floats, y: Floats) -> Any:
        return self


class Group:
    Plane = Plane


def doubled(scale: float = 1.0) -> Any:
    """Make one, as a function."""
    return Plane(2 * scale)


CONSTANT = 3
