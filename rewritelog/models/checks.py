"""Guards around a model that others wrote: what it raises and returns becomes a clear error."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from rewritelog.arrays import Flags, Floats
from rewritelog.errors import ModelError, RewriteLogError
from rewritelog.models.base import FittedModel, Model, Prediction, Timings, TotalSpread
from rewritelog.stopping import is_stop, raise_if_stopped


def checked_fit(model: Model[Any], model_name: str, timings: Timings) -> FittedModel:
    """Return the model fitted; raise `ModelError` that names it where that goes wrong."""
    with named(f"model {model_name!r} cannot be fitted"):
        fitted: Any = model.fit(timings)  # outsiders may break the type
    if not isinstance(fitted, FittedModel):
        found = type(fitted).__name__
        raise ModelError(f"model {model_name!r}: fit() returned {found}, not a FittedModel")
    return fitted


def checked_prediction(
    fitted: FittedModel, model_name: str, event: str, params: Floats
) -> Prediction:
    """Return what the model says of the rows, with float64 seconds and every mask.

    Raise `ModelError` naming model and event where the model raises, or where its answer has
    another shape than (rows,), is not numeric or infinite. NaN stands for "not covered".
    """
    where = f"model {model_name!r}, event {event!r}"
    with named(where):
        predictions: Any = fitted.predict_detailed(event, params)
    if not isinstance(predictions, Prediction):
        raise ModelError(
            f"{where}: predict_detailed() returned {type(predictions).__name__}, not a Prediction"
        )
    seconds = checked_seconds(predictions.seconds, len(params), where)
    exact, outside, remote, negative = (
        _mask(mask, len(params), f"{where}: {what}")
        for what, mask in (
            ("exact", predictions.exact),
            ("outside", predictions.outside),
            ("remote", _or_nothing(predictions.remote, params)),
            ("negative", seconds < 0 if predictions.negative is None else predictions.negative),
        )
    )
    return Prediction(seconds, exact, outside, remote, negative)


def _or_nothing(mask: Flags | None, params: Floats) -> Flags:
    """Return a mask, or one without any row where the model has none."""
    return np.zeros(len(params), dtype=np.bool_) if mask is None else mask


def checked_interval(
    fitted: FittedModel, model_name: str, event: str, params: Floats
) -> tuple[Floats, Floats]:
    """Return the bounds of the 90 % interval of each row's duration, NaN where they are not known.

    Raise `ModelError` where the model raises or gives anything else.
    """
    where = f"model {model_name!r}, event {event!r}: interval()"
    with named(where):
        low, high = fitted.interval(event, params)
        bounds = np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)
    for one in bounds:
        _require_shape(one.shape, len(params), f"{where}: a bound")
    return bounds


def checked_factors(
    fitted: FittedModel, model_name: str, event: str, params: Floats, numbers: Floats
) -> Floats | None:
    """Return the factors that spread the rows' durations, or None where the model knows none.

    Raise `ModelError` as `checked_prediction` does, and where a factor is below zero or NaN.
    """
    where = f"model {model_name!r}, event {event!r}: drawn_factors()"
    with named(where):
        answer: Any = fitted.drawn_factors(event, params, numbers)
    if answer is None:
        return None
    factors = checked_seconds(answer, len(params), where)
    if not (factors >= 0).all():
        raise ModelError(f"{where}: a factor is {factors[~(factors >= 0)][0]}")
    return factors


def checked_total_factors(
    fitted: FittedModel, model_name: str, event: str, params: Floats
) -> Floats:
    """Return the factors with which sums come out as measured, 1 where the model knows none.

    Raise `ModelError` as `checked_factors` does.
    """
    where = f"model {model_name!r}, event {event!r}: total_factors()"
    with named(where):
        answer: Any = fitted.total_factors(event, params)
    if answer is None:
        return np.ones(len(params))
    factors = checked_seconds(answer, len(params), where)
    if not (factors >= 0).all():
        raise ModelError(f"{where}: a factor is {factors[~(factors >= 0)][0]}")
    return factors


def total_seconds(
    fitted: FittedModel, model_name: str, event: str, params: Floats, found: Prediction
) -> Floats:
    """Return predicted durations, never below zero, with which sums come out as measured.

    Durations of identically parameterised samples stay: their means hold what was measured.
    """
    factors = checked_total_factors(fitted, model_name, event, params)
    seconds = np.where(found.seconds < 0, 0.0, found.seconds)
    return seconds * np.where(found.exact, 1.0, factors)


def checked_spread(
    fitted: FittedModel, model_name: str, event: str, parameters: int
) -> TotalSpread | None:
    """Return what the error of a sum of the event's durations is made of, or None.

    Raise `ModelError` where the model raises or gives anything but finite spreads from 0 up.
    """
    where = f"model {model_name!r}, event {event!r}: total_spread()"
    with named(where):
        spread: Any = fitted.total_spread(event, parameters)
    if spread is None:
        return None
    if not isinstance(spread, TotalSpread):
        raise ModelError(f"{where} returned {type(spread).__name__}, not a TotalSpread")
    with named(where):
        for value in (spread.single, spread.common):
            if not 0 <= value < math.inf:
                raise ModelError(f"{where} gives a spread of {value}")
    return spread


def knows_intervals(fitted: FittedModel) -> bool:
    """Return whether the model has intervals at all."""
    return type(fitted).interval is not FittedModel.interval


def knows_residuals(fitted: FittedModel) -> bool:
    """Return whether the model can spread durations at all."""
    return type(fitted).drawn_factors is not FittedModel.drawn_factors


@contextmanager
def named(where: str) -> Iterator[None]:
    """Turn whatever others' code raises into a `ModelError` that says where it came from.

    What the user asks for passes: a signal ends the run even where that code catches it.
    """
    try:
        yield
    except (RewriteLogError, MemoryError):
        raise
    except BaseException as error:  # leaving would look like a run that is done
        raise ModelError(f"{where}: {problem_of(error)}") from error
    raise_if_stopped()


def problem_of(error: BaseException) -> str:
    """Return what an exception of others says; raise it where it is the user who ends the run."""
    raise_if_stopped()
    if is_stop(error):
        raise error
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # noqa: BLE001 - their __str__ is their code too
        return type(error).__name__


def checked_seconds(answer: object, rows: int, where: str) -> Floats:
    """Return durations as float64, shape (rows,); raise `ModelError` where they are not so."""
    with named(where):
        raw = np.asarray(answer)
    if raw.dtype.kind not in "iuf":
        raise ModelError(f"{where}: durations are of type {raw.dtype}, not numbers")
    _require_shape(raw.shape, rows, f"{where}: the answer")
    seconds = raw.astype(np.float64, copy=False)
    infinite = np.flatnonzero(np.isinf(seconds))
    if len(infinite):
        raise ModelError(f"{where}: the duration of row {infinite[0]} is {seconds[infinite[0]]}")
    return seconds


def _mask(answer: object, rows: int, where: str) -> Flags:
    """Return a mask as booleans, shape (rows,)."""
    raw = np.asarray(answer)
    if raw.dtype != np.bool_:
        raise ModelError(f"{where} is of type {raw.dtype}, not bool")
    _require_shape(raw.shape, rows, where)
    return raw


def _require_shape(shape: tuple[int, ...], rows: int, where: str) -> None:
    """Refuse every shape but (rows,)."""
    if shape != (rows,):
        raise ModelError(f"{where} has shape {shape}, not ({rows},)")
