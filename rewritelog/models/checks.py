"""Calls of a model's methods, checked: exceptions and invalid results become a `ModelError`."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rewritelog.arrays import Floats
from rewritelog.errors import ModelError, RewriteLogError
from rewritelog.models.base import Model, ModelFit, Prediction, Timings, TotalSpread
from rewritelog.stopping import is_stop, raise_if_stopped


def checked_fit(model: Model[Any], model_name: str, timings: Timings) -> ModelFit:
    """Return the fitted model; raise `ModelError` naming the model if that fails."""
    with errors_as_model_errors(f"model {model_name!r} cannot be fitted"):
        fitted: Any = model.fit(timings)  # outsiders may break the type
    if not isinstance(fitted, ModelFit):
        kind = type(fitted).__name__
        raise ModelError(f"model {model_name!r}: fit() returned {kind}, not a ModelFit")
    return fitted


def checked_prediction(fitted: ModelFit, model_name: str, event: str, params: Floats) -> Prediction:
    """Return the model's predictions for the rows with all masks; negative seconds become 0.

    Raise `ModelError` naming model and event if the model raises, or if its result does not have
    the shape (rows,), is not numeric, or is infinite. NaN means "not covered".
    """
    where, rows = f"model {model_name!r}, event {event!r}", len(params)
    with errors_as_model_errors(where):
        answer: Any = fitted.predict_detailed(event, params)
    if not isinstance(answer, Prediction):
        kind = type(answer).__name__
        raise ModelError(f"{where}: predict_detailed() returned {kind}, not a Prediction")
    seconds = checked_seconds(answer.seconds, rows, where)
    below = seconds < 0
    masks = {
        "exact": answer.exact,
        "outside": answer.outside,
        "remote": np.zeros(rows, dtype=np.bool_) if answer.remote is None else answer.remote,
        "negative": below if answer.negative is None else answer.negative,
    }
    for name, given in masks.items():
        masks[name] = mask = np.asarray(given)
        if mask.dtype != np.bool_:
            raise ModelError(f"{where}: {name} is of type {mask.dtype}, not bool")
        _require_shape(mask, rows, f"{where}: {name}")
    return Prediction(np.where(below, 0.0, seconds), **masks)


def checked_interval(
    fitted: ModelFit, model_name: str, event: str, params: Floats
) -> tuple[Floats, Floats]:
    """Return the bounds in seconds of each row's 90 % interval, NaN where they are unknown.

    Raise `ModelError` if the model raises or returns anything else.
    """
    where = f"model {model_name!r}, event {event!r}: interval()"
    with errors_as_model_errors(where):
        low, high = fitted.interval(event, params)
        bounds = np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)
    for bound in bounds:
        _require_shape(bound, len(params), f"{where}: a bound")
    return bounds


def checked_factors(
    fitted: ModelFit, model_name: str, event: str, params: Floats, numbers: Floats
) -> Floats | None:
    """Return the random factors for the rows' durations, or None if the model has none.

    Raise `ModelError` as `checked_prediction` does, and if a factor is negative or NaN.
    """
    where = f"model {model_name!r}, event {event!r}: drawn_factors()"
    with errors_as_model_errors(where):
        answer = fitted.drawn_factors(event, params, numbers)
    return _factors(answer, len(params), where)


def total_seconds(
    fitted: ModelFit, model_name: str, event: str, params: Floats, prediction: Prediction
) -> Floats:
    """Return checked predictions in seconds as factors make their sums agree with measured ones.

    Exact matches are left as they are: means of measured times already have the right sum. Raise
    `ModelError` as `checked_factors` does.
    """
    where = f"model {model_name!r}, event {event!r}: retransformation()"
    with errors_as_model_errors(where):
        answer = fitted.retransformation(event, params)
    factors = _factors(answer, len(params), where)
    if factors is None:
        return prediction.seconds
    return prediction.seconds * np.where(prediction.exact, 1.0, factors)


def _factors(answer: object, rows: int, where: str) -> Floats | None:
    if answer is None:
        return None
    factors = checked_seconds(answer, rows, where)
    if not (factors >= 0).all():
        raise ModelError(f"{where}: a factor is {factors[~(factors >= 0)][0]}")
    return factors


def checked_spread(
    fitted: ModelFit, model_name: str, event: str, parameters: int
) -> TotalSpread | None:
    """Return the components of the error of a sum of the event's durations, or None.

    Raise `ModelError` if the model raises, or if a spread is negative or not finite.
    """
    where = f"model {model_name!r}, event {event!r}: total_spread()"
    with errors_as_model_errors(where):
        spread: Any = fitted.total_spread(event, parameters)
        if spread is None:
            return None
        if not isinstance(spread, TotalSpread):
            raise ModelError(f"{where} returned {type(spread).__name__}, not a TotalSpread")
        for value in (spread.single, spread.common):
            if not 0 <= value < math.inf:
                raise ModelError(f"{where} returned a spread of {value}")
    return spread


def knows_intervals(fitted: ModelFit) -> bool:
    """Return whether the model implements `interval`."""
    return type(fitted).interval is not ModelFit.interval


def knows_totals(fitted: ModelFit) -> bool:
    """Return whether the model implements `retransformation`."""
    return type(fitted).retransformation is not ModelFit.retransformation


def knows_residuals(fitted: ModelFit) -> bool:
    """Return whether the model implements `drawn_factors`."""
    return type(fitted).drawn_factors is not ModelFit.drawn_factors


@contextmanager
def errors_as_model_errors(where: str) -> Iterator[None]:
    """Turn any exception of third-party code into a `ModelError` that begins with `where`.

    A signal that ends the run does so even if that code catches it.
    """
    try:
        yield
    except (RewriteLogError, MemoryError):
        raise
    except BaseException as error:  # also SystemExit: it would look like a successful run
        raise ModelError(f"{where}: {problem_of(error)}") from error
    raise_if_stopped()


def problem_of(error: BaseException) -> str:
    """Return type and text of an exception of third-party code; re-raise one that ends the run."""
    raise_if_stopped()
    if is_stop(error):
        raise error
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # noqa: BLE001 - __str__ is third-party code too
        return type(error).__name__


def checked_seconds(answer: object, rows: int, where: str) -> Floats:
    """Return durations as float64, shape (rows,); raise `ModelError` if they are anything else."""
    with errors_as_model_errors(where):
        raw = np.asarray(answer)
    if raw.dtype.kind not in "iuf":
        raise ModelError(f"{where}: durations are of type {raw.dtype}, not numbers")
    _require_shape(raw, rows, f"{where}: the answer")
    seconds = raw.astype(np.float64, copy=False)
    infinite = np.flatnonzero(np.isinf(seconds))
    if len(infinite):
        raise ModelError(f"{where}: the duration of row {infinite[0]} is {seconds[infinite[0]]}")
    return seconds


def _require_shape(values: NDArray[Any], rows: int, where: str) -> None:
    """Refuse every shape but (rows,)."""
    if values.shape != (rows,):
        raise ModelError(f"{where} has shape {values.shape}, not ({rows},)")
