"""Guards around a model that others wrote: what it raises and returns becomes a clear error."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from rewritelog.errors import ModelError, RewriteLogError
from rewritelog.models.base import FittedModel, Flags, Floats, Model, Prediction, Timings


def checked_fit(model: Model[Any], model_name: str, timings: Timings) -> FittedModel:
    """Return the model fitted; raise `ModelError` that names it where that goes wrong."""
    with _named(f"model {model_name!r} cannot be fitted"):
        fitted: Any = model.fit(timings)  # outsiders may break the type
    if not isinstance(fitted, FittedModel):
        found = type(fitted).__name__
        raise ModelError(f"model {model_name!r}: fit() returned {found}, not a FittedModel")
    return fitted


def checked_prediction(
    fitted: FittedModel, model_name: str, event: str, params: Floats
) -> Prediction:
    """Return what the model says of the rows, with float64 seconds and boolean masks.

    Raise `ModelError` naming model and event where the model raises, or where its answer has
    another shape than (rows,), is not numeric or infinite. NaN stands for "not covered".
    """
    where = f"model {model_name!r}, event {event!r}"
    with _named(where):
        judged: Any = fitted.judge(event, params)
    if not isinstance(judged, Prediction):
        raise ModelError(f"{where}: judge() returned {type(judged).__name__}, not a Prediction")
    seconds = _seconds(judged.seconds, len(params), where)
    exact = _mask(judged.exact, len(params), f"{where}: exact")
    outside = _mask(judged.outside, len(params), f"{where}: outside")
    return Prediction(seconds, exact, outside)


@contextmanager
def _named(where: str) -> Iterator[None]:
    """Turn whatever a plug-in raises into a `ModelError` that says where it came from."""
    try:
        yield
    except (RewriteLogError, MemoryError):
        raise
    except Exception as error:
        raise ModelError(f"{where}: {type(error).__name__}: {error}") from error


def _seconds(answer: object, rows: int, where: str) -> Floats:
    """Return the durations as float64, shape (rows,)."""
    with _named(where):
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
