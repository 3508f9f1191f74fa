"""What a page shows of each event: its lines, their predictions, and the terms tried; its JSON."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

import numpy as np
from msgspec import Struct

from rewritelog.arrays import Flags, Floats, Ints
from rewritelog.models import fit_report
from rewritelog.models.base import EventTimings, FitByEvent
from rewritelog.models.fitted import Fitted
from rewritelog.models.fitting.diagnosis import OUTLIER_FACTOR
from rewritelog.models.fitting.event_fit import EventFit
from rewritelog.models.fitting.function import CorrectedFunction
from rewritelog.models.fitting.regression import Loss
from rewritelog.models.fitting.samples import Weighting
from rewritelog.models.fitting.single_terms import (
    SingleTermFunctions,
    single_term_functions,
)
from rewritelog.models.metrics import mean_relative_error, r_squared
from rewritelog.models.parallel import map_in_processes
from rewritelog.progress import report_progress
from rewritelog.running.locks import cached_property
from rewritelog.text import (
    LABEL_WIDTH,
    count_text,
    event_label,
    parameter_names,
    percent_text,
    shorten_all,
)
from rewritelog.timings.samples import Timings
from rewritelog.timings.stats import spread_of
from rewritelog.viewing.plots import MOST_POINTS, MOST_POINTS_A_PAGE, SEED, is_wide, some_rows

Quality = tuple[float | None, float | None]
"""R² and mean relative error."""

MOST_EVENTS = 1_000
"""A page has at most this many events, those whose lines took the most time."""


class EventView(Struct, frozen=True, dict=True):
    """One event with one number of parameters."""

    timings: EventTimings
    fitted: Fitted
    single_terms: SingleTermFunctions
    where: Callable[[int], str]
    """Returns the location of a line, as `file:line`."""
    unseen: bool = False
    """Whether the fit was not made from these lines."""
    short_name: str = ""
    """The event's name in a list of events, if that is not the whole name."""
    left_out: Flags | np.bool_ = np.False_
    """Which lines were excluded from the fit."""

    @property
    def fit(self) -> EventFit | None:
        """Return the fit; None for a model that is not a sum of terms."""
        return self.fitted.fits.get(self.timings.key)

    def predict(self, params: Floats) -> Floats:
        """Return seconds for a table of parameters, shape (lines, parameters).

        A fit to these lines is drawn without exact matches, which would repeat the lines.
        """
        if self.fit is None or self.unseen:
            return self.fitted.prediction(self.timings.event, params).seconds
        return np.maximum(self.fit.predict(params), 0.0)

    @cached_property
    def predicted_s(self) -> Floats:
        """Return the predictions of the lines."""
        return self.predict(self.timings.params)

    @cached_property
    def quality(self) -> Quality:
        """Return R² and error; those of held-out lines if the fit was made from these lines.

        If it was made from some of them, the error is that of the others.
        """
        if self.fit is not None and not self.unseen:
            quality, others = self.fit.quality, self.fit.left_out
            if others is not None and others.left_out:
                return quality.held_out_r2, others.mean_relative_error
            return quality.held_out_r2, quality.held_out_error
        known = np.isfinite(self.predicted_s) & np.isfinite(self.timings.seconds)
        times = self.predicted_s[known], self.timings.seconds[known]
        return r_squared(*times), mean_relative_error(*times)

    @property
    def label(self) -> str:
        """Return the event's name on the page."""
        return event_label(self.short_name or self.timings.event, self.parameters, names=self.names)

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the parameters, empty if they are unknown."""
        return self.fitted.names_of(*self.timings.key)

    @property
    def parameters(self) -> int:
        """Return the number of parameters."""
        return self.timings.parameters

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return the warnings about the fit, without the event's name."""
        marks = [] if self.fit is None else fit_report.weak_points(self.fit)
        return tuple(mark.text for mark in marks)

    @property
    def outliers(self) -> Flags:
        """Return which lines differ from the fit by more than a factor of 2."""
        measured, predicted = self.timings.seconds, self.predicted_s
        near = (measured <= OUTLIER_FACTOR * predicted) & (predicted <= OUTLIER_FACTOR * measured)
        known = np.isfinite(measured) & np.isfinite(predicted)
        return np.asarray(known & ~near & ~self.left_out)


def views_of(timings: Timings, fitted: Fitted, *, unseen: bool = False) -> list[EventView]:
    """Return the views of the at most `MOST_EVENTS` events whose lines took the most time.

    `unseen`: the fit was not made from these lines. Functions of one term are fitted with the
    weights of the fit, if it records them.
    """
    entries = np.arange(len(timings.timings))
    if len(entries) > MOST_EVENTS:
        totals = [event.seconds[np.isfinite(event.seconds)].sum() for event in timings.timings]
        entries = np.sort(np.argsort(-np.array(totals), kind="stable")[:MOST_EVENTS])
    options = fitted.raw.options if isinstance(fitted.raw, FitByEvent) else {}
    weights = cast(Weighting, options.get("weights", "relative"))
    loss = cast(Loss, options.get("loss", "huber"))
    shown = [timings.timings[entry] for entry in entries]
    single_terms = map_in_processes(
        lambda event: single_term_functions(event, weights, loss), shown
    )
    short_names = shorten_all([event.event for event in shown], LABEL_WIDTH)
    views: list[EventView] = []
    for entry, samples, terms, name in zip(
        entries.tolist(), shown, single_terms, short_names, strict=True
    ):
        where = partial(timings.where, entry)
        report_progress("trying functions of event term, event", len(views) + 1, len(shown))
        views.append(EventView(samples, fitted, terms, where, unseen, name))
    return views


PLAIN_COLUMNS = 5
"""Number of the columns of points before the parameters."""

MOST_NUMBERS = 600_000
"""The points of a page have at most this many numbers, of 5⅓ bytes each."""

MOST_CURVE_NUMBERS = 200_000
"""The same for curves, unless the minimum number of their points needs more."""

CURVE_POINTS = (8, 60)
"""The minimum and maximum number of points of a curve."""

MOST_SINGLE_TERMS = 4
"""At most this many functions of one term, the best ones, are drawn at a time."""

OUTLIERS_SHOWN = 20
OUTLIER, LEFT_OUT = 1.0, 2.0
"""The values of column `mark`; other lines have 0."""


def events_json(views: Sequence[EventView]) -> list[dict[str, Any]]:
    """Return the data of all events of a page, as `event_json` does for one."""
    curves = sum((MOST_SINGLE_TERMS + 3) * view.parameters for view in views)
    steps = int(np.clip(MOST_CURVE_NUMBERS / max(curves, 1), *CURVE_POINTS))
    return [
        event_json(view, count, steps)
        for view, count in zip(views, shown_counts(views), strict=True)
    ]


def shown_counts(views: Sequence[EventView]) -> list[int]:
    """Return how many lines of each event are drawn: all, or the same share of each event's."""
    counts = np.array([min(len(view.timings.seconds), MOST_POINTS) for view in views])
    numbers = sum(counts * [PLAIN_COLUMNS + 1 + view.parameters for view in views])
    share = min(MOST_POINTS_A_PAGE / max(counts.sum(), 1), MOST_NUMBERS / max(numbers, 1), 1.0)
    shown: list[int] = np.floor(counts * share).astype(np.int64).tolist()
    return shown


def event_json(
    view: EventView, points: int = MOST_POINTS, steps: int = CURVE_POINTS[1]
) -> dict[str, Any]:
    """Return the data of one event: at most `points` lines, and curves of `steps` points."""
    count = len(view.timings.seconds)
    rows = some_rows(view.label, count, points)
    summary = _summary(view)
    if len(rows) < count:
        lines = f"{len(rows):,} of {count:,} lines"
        summary.append(f"{lines} are drawn, chosen at random (seed {SEED})")
    return {
        "label": view.label,
        "event": view.timings.event,
        "parameters": view.parameters,
        "names": parameter_names(view.parameters, view.names),
        "lines": count,
        "summary": summary,
        "warnings": view.warnings,
        "coefficients": _coefficients(view),
        "singleTerms": _single_terms(view),
        "outliers": _outliers(view),
        "curves": _curves(view, steps),
        "steps": steps,
        "shown": len(rows),
        "points": _points(view, rows),
        "rows": rows.tolist(),
    }


def _points(view: EventView, rows: Ints) -> Floats:
    """Return a table of measured, predicted, low, high, mark, parameters.

    Its shape is (rows, `PLAIN_COLUMNS` + parameters).
    """
    timings = view.timings
    marks = np.where(view.left_out, LEFT_OUT, view.outliers * OUTLIER)
    interval = view.fitted.bounds(timings.event, timings.params)
    columns = (timings.seconds, view.predicted_s, *interval, marks)
    return np.column_stack([*columns, timings.params])[rows]


def _curves(view: EventView, steps: int) -> list[Floats]:
    """Return, for each parameter, a table of its grid and the curves over it.

    These are the fit, a corrected fit without its correction, and the functions of one term. The
    other parameters are at their medians, the lower of two, since a mean of codes is no code. If a
    parameter has few values, the grid has them all, since a function may have a term for each.
    """
    params = view.timings.params
    finite = params[np.isfinite(params).all(axis=1)]
    if not len(finite):
        return [np.empty((0, 0))] * view.parameters
    middle = np.quantile(finite, 0.5, axis=0, method="lower")
    whole = None if view.fit is None else view.fit.whole.function
    curves = []
    for number in range(1, view.parameters + 1):
        values = finite[:, number - 1]
        ends = float(values.min()), float(values.max())
        table = np.tile(middle, (steps, 1))
        spaced, on_grid = np.geomspace if is_wide(*ends) else np.linspace, np.unique(values)
        on_grid = on_grid if len(on_grid) <= steps // 2 else on_grid[:0]
        rest = spaced(*ends, steps - len(on_grid))
        table[:, number - 1] = np.sort(np.append(on_grid, rest))
        functions = view.single_terms.of(number)[:MOST_SINGLE_TERMS]
        with np.errstate(all="ignore"):
            columns = [function.predict(table) for function in functions]
        alone = np.full(steps, np.nan)
        if isinstance(whole, CorrectedFunction):
            alone = whole.formula.predict(table)
        plain = table[:, number - 1], view.predict(table), alone
        curves.append(np.column_stack([*plain, *columns]))
    return curves


def _single_terms(view: EventView) -> list[list[Any]]:
    """Return parameter, term, R², error and formula of each function, the best ones first."""
    return [
        [
            number,
            str(function.term),
            short(function.held_out_r2),
            short(function.held_out_error),
            (
                f"{function.constant_s:.4g} {'-' if function.slope_s < 0 else '+'} "
                f"{abs(function.slope_s):.4g}*{function.term}"
            ),
        ]
        for number in range(1, view.parameters + 1)
        for function in view.single_terms.of(number)
    ]


def short(value: float | None) -> float | None:
    """Return a number rounded to the digits that a table shows, None if it is not finite."""
    return None if value is None or not np.isfinite(value) else float(f"{value:.5g}")


def _coefficients(view: EventView) -> list[list[str]]:
    """Return class, term, coefficient and standard error; of a mixture each member's weight."""
    return [
        [
            "" if class_fit.value is None else f"{class_fit.value:g}",
            term.term,
            f"{term.value:.6g}",
            "" if term.standard_error is None else f"{term.standard_error:.2g}",
        ]
        for class_fit in (() if view.fit is None else view.fit.classes)
        for term in class_fit.coefficients
    ]


def _summary(view: EventView) -> list[str]:
    """Return the lines of text that describe the fit and its timing lines."""
    lines = [] if view.fit is None else fit_report.summarise(view.fit)[1:]
    lines = textwrap.dedent("\n".join(lines)).splitlines()
    outliers = int(np.count_nonzero(view.outliers))
    lines.append(f"outliers: {count_text(outliers, 'line')} off by more than a factor of 2")
    spread = spread_of(view.timings)
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
