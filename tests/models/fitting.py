"""Fit and read the description, for several test modules."""

from __future__ import annotations

import json
from typing import Any

from rewritelog.models.base import EventTimings, ModelFit
from rewritelog.models.least_squares import LeastSquares, LeastSquaresOptions


def fit(*timings: EventTimings, **options: Any) -> Any:
    """Fit by least squares; the fit alone, unless other `exact_match` is asked for."""
    settings = {"exact_match": "never", **options}
    return LeastSquares(LeastSquaresOptions(**settings)).fit(timings)


def only(fitted: ModelFit) -> Any:
    """Return the one event with its function's facts and quality, checked to be strict JSON."""
    (described,) = json.loads(json.dumps(fitted.describe(), allow_nan=False))["events"]
    return flattened(described)


def flattened(described: Any) -> Any:
    """Return what a report says of an event and of the function of all its samples."""
    of_all = described["classes"][0]
    return described | of_all | of_all["quality"]


def coefficients(fitted: ModelFit) -> Any:
    return {term["term"]: term["value"] for term in only(fitted)["coefficients"]}


def dropped(fitted: ModelFit) -> Any:
    return {term["term"]: term["reason"] for term in only(fitted)["dropped"]}
