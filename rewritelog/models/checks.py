"""Exceptions of third-party code, and what is no array of durations, as a `ModelError`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rewritelog.arrays import Floats
from rewritelog.errors import ModelError, RewriteLogError
from rewritelog.stopping import is_stop, raise_if_stopped


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
    require_rows(raw, rows, f"{where}: the answer")
    seconds = raw.astype(np.float64, copy=False)
    infinite = np.flatnonzero(np.isinf(seconds))
    if len(infinite):
        raise ModelError(f"{where}: the duration of row {infinite[0]} is {seconds[infinite[0]]}")
    return seconds


def require_rows(values: NDArray[Any], rows: int, where: str) -> None:
    """Refuse every shape but (rows,)."""
    if values.shape != (rows,):
        raise ModelError(f"{where} has shape {values.shape}, not ({rows},)")
