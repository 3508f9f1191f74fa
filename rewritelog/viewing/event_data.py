"""The events of a page as JSON types: sampled points, curves, and texts."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from rewritelog.arrays import Floats, Ints
from rewritelog.hashing import draw_numbers
from rewritelog.models import fit_report
from rewritelog.models.distinct_points import DistinctPoints
from rewritelog.models.fitting.single_terms import SingleTermFunction
from rewritelog.text import count_text, parameter_names, percent_text
from rewritelog.viewing.events import EventView
from rewritelog.viewing.plots import is_wide

MOST_POINTS = 5_000
"""At most this many lines of an event are drawn."""

MOST_POINTS_A_PAGE = 60_000

SEED = 1
"""Seed of the sample of lines that is drawn if there are more."""

BASE64 = 4 / 3
FLOAT_BYTES = 4
"""Bytes of a number in the points, which are 32-bit floats; tables hold texts of all digits."""

PLAIN_COLUMNS = 6
"""Number of the columns of points before the parameters."""

MOST_SINGLE_TERMS = 4
"""At most this many functions of one term, the best ones, are drawn at a time."""

OUTLIERS_SHOWN = 20
OUTLIER, LEFT_OUT = 1.0, 2.0
"""The values of column `mark`; other lines have 0."""

CURVE_POINTS = (8, 60)
"""The minimum and maximum number of points of a curve."""

CURVES_BYTES = 1_000_000
"""Bytes for the curves of all events together, if that is enough for the minimum of points."""


def events_json(
    views: Sequence[EventView], room_bytes: int, seed: int = SEED
) -> list[dict[str, Any]]:
    """Return the data of all events, with as many points as fit in `room_bytes` beside the rest."""
    curves = sum((MOST_SINGLE_TERMS + 3) * view.parameters for view in views)
    fewest, most = CURVE_POINTS
    steps = int(np.clip(CURVES_BYTES / BASE64 / FLOAT_BYTES / max(curves, 1), fewest, most))
    made = [_texts(view, steps) for view in views]
    counts = shown_counts(views, max(0, room_bytes - json_bytes(made)))
    return [
        event | _drawn(view, count, seed)
        for view, event, count in zip(views, made, counts, strict=True)
    ]


def shown_counts(views: Sequence[EventView], room_bytes: int) -> list[int]:
    """Return how many lines of each event are drawn: all, or the same share of each event's."""
    counts = np.array([min(len(view.timings.seconds), MOST_POINTS) for view in views])
    if not len(counts):
        return []
    needed = counts @ np.array([_row_bytes(view) for view in views])
    share = min(1.0, MOST_POINTS_A_PAGE / max(counts.sum(), 1), room_bytes / max(needed, 1))
    fewer: list[int] = np.floor(counts * share).astype(np.int64).tolist()
    return fewer


def _row_bytes(view: EventView) -> float:
    """Return the bytes of a line in a page: its columns and its row number."""
    return (PLAIN_COLUMNS + view.parameters + 1) * FLOAT_BYTES * BASE64


def event_json(view: EventView, points: int = MOST_POINTS, seed: int = SEED) -> dict[str, Any]:
    """Return the data of one event, with at most `points` points."""
    return _texts(view, CURVE_POINTS[1]) | _drawn(view, points, seed)


def _texts(view: EventView, steps: int) -> dict[str, Any]:
    """Return the data of an event whose size does not grow with the number of lines."""
    return {
        "label": view.label,
        "event": view.timings.event,
        "parameters": view.parameters,
        "names": parameter_names(view.parameters, view.names),
        "lines": len(view.timings.seconds),
        "summary": _summary(view),
        "warnings": list(view.warnings),
        "coefficients": _coefficients(view),
        "singleTerms": _single_terms(view),
        "ignored": {
            str(ignored.parameter): ignored.reason for ignored in view.single_terms.ignored
        },
        "outliers": _outliers(view),
        "curves": _curves(view, steps),
        "steps": steps,
    }


def _drawn(view: EventView, points: int, seed: int) -> dict[str, Any]:
    """Return the points of an event, a sample of at most `points` of them."""
    rows = drawn_rows(view, points, seed)
    points_of = {
        "shown": len(rows),
        "points": packed(_points(view, rows)),
        "rows": packed_rows(rows),
    }
    count = len(view.timings.seconds)
    if len(rows) < count:
        words = f"{len(rows):,} of {count:,} lines are drawn, chosen at random (seed {seed})"
        points_of["drawn"] = words
    return points_of


def drawn_rows(view: EventView, points: int, seed: int) -> Ints:
    """Return at most `points` rows of an event's lines, in ascending order, sampled by `seed`."""
    return some_rows(view.label, len(view.timings.seconds), min(points, MOST_POINTS), seed)


def some_rows(label: str, count: int, most: int, seed: int = SEED) -> Ints:
    """Return at most `most` of `count` rows, in ascending order, sampled by `label` and `seed`."""
    if count <= most:
        return np.arange(count)
    return np.sort(np.argsort(draw_numbers(label, count, seed), kind="stable")[:most])


def packed(table: Floats) -> str:
    """Return a table as base64 of little-endian 32-bit floats, in column-major order."""
    with np.errstate(over="ignore"):
        small = np.asarray(table, dtype="<f4")
    return base64.b64encode(small.tobytes(order="F")).decode()


def packed_rows(rows: Ints) -> str:
    """Return row numbers as base64 of little-endian 32-bit integers."""
    return base64.b64encode(rows.astype("<u4").tobytes()).decode()


def _points(view: EventView, rows: Ints) -> Floats:
    """Return a table of measured, predicted, low, high, mark, mean of replicates, parameters.

    Its shape is (rows, `PLAIN_COLUMNS` + parameters).
    """
    timings = view.timings
    points = DistinctPoints.of_rows(timings.params)
    counts, sums = points.counts, np.bincount(points.point_of_row, weights=timings.seconds)
    means = np.where(counts > 1, sums / counts, np.nan)[points.point_of_row]
    marks = view.outliers * OUTLIER
    if view.left_out is not None:
        marks = np.where(view.left_out, LEFT_OUT, marks)
    columns = (timings.seconds, view.predicted_s, view.low_s, view.high_s, marks, means)
    return np.column_stack([*(column[rows] for column in columns), timings.params[rows]])


def _curves(view: EventView, steps: int) -> list[str]:
    """Return, packed for each parameter, its grid and the curves over it.

    These are the fit, a corrected fit without its correction, and the functions of one term.

    The other parameters are at their medians.
    """
    params = view.timings.params
    finite = params[np.isfinite(params).all(axis=1)]
    if not len(finite):
        return ["" for _ in range(view.parameters)]
    middle = np.median(finite, axis=0)
    curves = []
    for number in range(1, view.parameters + 1):
        values = finite[:, number - 1]
        table = np.tile(middle, (steps, 1))
        table[:, number - 1] = _grid(float(values.min()), float(values.max()), steps)
        columns = [table[:, number - 1], view.predict(table), view.formula_alone(table)]
        with np.errstate(all="ignore"):
            columns += [
                function.predict(table)
                for function in view.single_terms.of(number)[:MOST_SINGLE_TERMS]
            ]
        curves.append(packed(np.column_stack(columns)))
    return curves


def _grid(low: float, high: float, steps: int) -> Floats:
    """Return `steps` values from low to high, logarithmically spaced if the range is wide."""
    if is_wide(low, high):
        return np.geomspace(low, high, steps)
    return np.linspace(low, high, steps)


def _single_terms(view: EventView) -> list[list[Any]]:
    """Return parameter, term, R², error and formula of each function, the best ones first."""
    return [
        [
            number,
            str(function.term),
            short(function.held_out_r2),
            short(function.held_out_error),
            _formula(function),
        ]
        for number in range(1, view.parameters + 1)
        for function in view.single_terms.of(number)
    ]


def _formula(function: SingleTermFunction) -> str:
    sign = "-" if function.slope_s < 0 else "+"
    return f"{function.constant_s:.4g} {sign} {abs(function.slope_s):.4g} {function.term}"


def short(value: float | None) -> float | None:
    """Return a number rounded to the digits that a table shows, None if it is not finite."""
    return None if value is None or not np.isfinite(value) else float(f"{value:.5g}")


def _coefficients(view: EventView) -> list[list[str]]:
    """Return class, term, coefficient and standard error; of a mixture each member's weight."""
    if view.fit is None:
        return []
    rows = []
    for class_fit in view.fit.classes:
        name = "" if class_fit.value is None else f"{class_fit.value:g}"
        for term in class_fit.coefficients:
            error = "" if term.standard_error is None else f"{term.standard_error:.2g}"
            rows.append([name, term.term, f"{term.value:.6g}", error])
    return rows


def _summary(view: EventView) -> list[str]:
    """Return the lines of text that describe the fit and its timing lines."""
    lines = [] if view.fit is None else fit_report.summarise(view.fit)[1:]
    outliers = int(np.count_nonzero(view.outliers))
    lines.append(f"outliers: {count_text(outliers, 'line')} off by more than a factor of 2")
    spread = view.spread
    if spread.relative is None:
        lines.append("replicates: no parameters were timed twice")
    else:
        lines.append(
            f"replicates: {count_text(spread.lines, 'line')} at "
            f"{count_text(spread.points, 'point')} vary by {percent_text(spread.relative, 1)}"
        )
    return lines


def _outliers(view: EventView) -> list[list[Any]]:
    """Return location, parameters, measured, predicted and ratio of the worst-predicted lines."""
    rows = np.flatnonzero(view.outliers)
    with np.errstate(all="ignore"):
        ratios = view.timings.seconds[rows] / view.predicted_s[rows]
        far = np.argsort(-np.abs(np.log(np.maximum(ratios, 1e-300))), kind="stable")
    return [
        [
            view.where(int(rows[k])),
            " ".join(f"{value:g}" for value in view.timings.params[rows[k]]),
            *map(short, (view.timings.seconds[rows[k]], view.predicted_s[rows[k]], ratios[k])),
        ]
        for k in far[:OUTLIERS_SHOWN]
    ]


def json_bytes(value: Any) -> int:
    """Return the bytes that a value takes in a page."""
    return len(json.dumps(value, separators=(",", ":")))
