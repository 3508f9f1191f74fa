"""The job of `verify`: predictions of a model file compared with timing lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from rewritelog.arrays import Flags, Floats, rows_by_key
from rewritelog.errors import TimingError, UsageError
from rewritelog.evaluation.predictions import (
    DeterminedBy,
    LinePredictor,
    MalformedLines,
    PredictedLines,
    PredictedRows,
)
from rewritelog.models.base import Timings, has_slow_first_call
from rewritelog.models.metrics import Score, TimePairs, relative_errors
from rewritelog.text import (
    MOST_EVENTS,
    NO_VALUE,
    Readable,
    TextTable,
    count_text,
    parameter_names,
    percent_text,
    printable,
    time_text,
)
from rewritelog.timings.read import refuse_too_many, seconds_of

HEAD: tuple[str, ...] = (
    "lines",
    "no model",
    "R²",
    "median",
    "mean",
    "sum",
    "later",
    "in 90 %",
    "below 0",
)

WORST_HEAD = ("line", "call", "measured", "predicted", "error")


@dataclass(frozen=True)
class WorstLine:
    """A line with a large relative error."""

    where: str
    """The location, `file:line`."""
    event: str
    params: tuple[float, ...]
    measured_s: float
    predicted_s: float
    relative_error: float
    determined_by: str
    names: tuple[str, ...] = ()
    """The names of the parameters; empty if they have none."""

    @property
    def call(self) -> str:
        """The call, as in `work(n=8, m=2)`."""
        values = [f"{value:g}" for value in self.params]
        if self.names:
            named = zip(parameter_names(len(values), self.names), values, strict=True)
            values = [f"{name}={value}" for name, value in named]
        return f"{self.event}({', '.join(values)})"

    def cells(self) -> tuple[str, ...]:
        """Return the line as the cells of a table's row, in the order of `WORST_HEAD`."""
        return (
            self.where,
            self.call,
            time_text(self.measured_s, 3),
            time_text(self.predicted_s, 3),
            percent_text(self.relative_error, 1),
        )


@dataclass(frozen=True)
class Verified:
    """The error measures of some lines, and the coverage of their intervals."""

    score: Score
    coverage: float | None
    """The share of times within their 90 % intervals; None without intervals."""

    def to_json(self) -> dict[str, Any]:
        """Return the numbers as a JSON object."""
        return {**asdict(self.score), "coverage": self.coverage}

    def cells(self) -> tuple[str, ...]:
        """Return the numbers as the cells of a table's row, in the order of `HEAD`."""
        score = self.score
        return (
            f"{score.lines}",
            f"{score.lines - score.predicted}",
            NO_VALUE if score.r2 is None else f"{score.r2:.4f}",
            percent_text(score.median_relative_error),
            percent_text(score.mean_relative_error),
            percent_text(score.sum_error, sign="+"),
            percent_text(score.later_sum_error, sign="+"),
            percent_text(self.coverage, 1),
            f"{score.negative}",
        )


@dataclass(frozen=True, repr=False)
class VerifyReport(Readable):
    """The report of a comparison of a fitted model with timing lines."""

    model: str
    """The file of the model, or its name."""
    files: tuple[str, ...]
    overall: Verified
    events: tuple[tuple[str, Verified], ...]
    worst: tuple[WorstLine, ...]
    warnings: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the report as a JSON object."""
        return {
            "model": self.model,
            "files": list(self.files),
            "overall": self.overall.to_json(),
            "events": [{"event": event, **verified.to_json()} for event, verified in self.events],
            "worst": [asdict(line) for line in self.worst],
            "warnings": list(self.warnings),
        }

    def text(self) -> str:
        """Return the report as text."""
        shown = self.events
        if len(shown) > MOST_EVENTS:  # those with the most lines
            most = sorted(self.events, key=lambda pair: -pair[1].score.lines)[:MOST_EVENTS]
            shown = tuple(pair for pair in self.events if pair in most)
        rows = [(event, *verified.cells()) for event, verified in shown]
        if len(shown) < len(self.events):
            rows.append((f"and {len(self.events) - len(shown):,} more", *[""] * len(HEAD)))
        rows.append(("all", *self.overall.cells()))
        lines_of = count_text(self.overall.score.lines, "timing line")
        files = ", ".join(map(printable, self.files))
        lines = [f"{printable(self.model)} against {lines_of} of {files}"]
        lines += TextTable(("event", *HEAD), rows).lines()
        lines += [
            "  (median, mean: relative errors of single calls; sum: how far the total of all",
            "  lines is off; later: the total without each event's first line, which is often",
            "  slow; in 90 %: share of the lines within their 90 % interval)",
        ]
        if self.worst:
            lines.append("worst lines, by relative error:")
            worst = [line.cells() for line in self.worst]
            lines += TextTable(WORST_HEAD, worst, left=frozenset({1})).lines()
        return "\n".join(lines)


def verify_lines(
    predictor: LinePredictor,
    timings: Sequence[Path],
    clock_hz: float | None = None,
    *,
    strict: bool = False,
    worst: int = 10,
) -> VerifyReport:
    """Compare a fitted model with the timing lines of files.

    Raise a `RewriteLogError` for files that cannot be read or have no timing line.
    """
    malformed, compared = MalformedLines(), _Compared(worst, predictor)
    for lines in predictor.predict_detailed(timings, malformed, strict=strict):
        compared.add_lines(lines, seconds_of(lines.path, lines.table, clock_hz))
    if not compared.parts:
        names = ", ".join(map(str, timings))
        raise TimingError("; ".join((f"{names}: no timing line found", *malformed.warnings())))
    return compared.report(tuple(map(str, timings)), malformed.warnings())


def verify_samples(predictor: LinePredictor, timings: Timings, *, worst: int = 10) -> VerifyReport:
    """Compare a fitted model with samples."""
    compared = _Compared(worst, predictor)
    for samples in timings:
        event, params = samples.event, samples.params
        predicted = predictor.predict_rows(event, params)
        compared.add_event(event, samples.seconds, predicted)
        for row in compared.worst_rows(predicted, samples.seconds):
            location = f"sample {row} of {event}"
            compared.note(location, event, params[row].tolist(), predicted, samples.seconds, row)
    return compared.report(("samples",), ())


Part: TypeAlias = tuple[TimePairs, Floats, Floats]
"""Lines of an event, and the bounds of their 90 % intervals in seconds."""


def _verified(parts: Sequence[Part]) -> Verified:
    """Return the score of all parts."""
    pairs = TimePairs.joined([part[0] for part in parts])
    low, high = (np.concatenate([part[side] for part in parts]) for side in (1, 2))
    known = ~np.isnan(low) & ~np.isnan(high)
    inside = (pairs.measured_s >= low) & (pairs.measured_s <= high)
    return Verified(pairs.score(), float(inside[known].mean()) if known.any() else None)


class _Compared:
    """Collects predictions and measured times of all lines."""

    def __init__(self, worst: int, predictor: LinePredictor) -> None:
        if worst < 0:
            raise UsageError(f"the number of worst lines must be 0 or more, not {worst}")
        self.parts: dict[str, list[Part]] = {}
        """By event."""
        self._worst_lines: list[WorstLine] = []
        self._worst, self._predictor = worst, predictor
        self._untimed = 0

    def add_lines(self, lines: PredictedLines, measured: Floats) -> None:
        """Add lines of a file with their measured times in seconds, NaN for none."""
        timed, table = ~np.isnan(measured), lines.table
        self._untimed += int(np.count_nonzero(~timed))
        for rows in rows_by_key(table.event, timed):
            name = table.events[int(table.event[rows[0]])]
            self.add_event(name, measured[rows], lines.part(rows))
            refuse_too_many(lines.path, len(self.parts), name)
        for row in self.worst_rows(lines, measured):
            where, event = f"{lines.path}:{table.line[row]}", table.events[int(table.event[row])]
            self.note(where, event, lines.params(row), lines, measured, row)

    def add_event(self, name: str, measured: Floats, rows: PredictedRows) -> None:
        """Add some rows of an event."""
        first: Flags = np.zeros(len(measured), dtype=np.bool_)
        first[:1] = name not in self.parts and has_slow_first_call(name)
        pairs = TimePairs(measured, rows.predicted_s, rows.total_s, first, rows.negative)
        self.parts.setdefault(name, []).append((pairs, rows.low_s, rows.high_s))

    def worst_rows(self, rows: PredictedRows, measured: Floats) -> list[int]:
        """Return the rows with the largest relative errors, as many as a report shows."""
        errors = relative_errors(rows.predicted_s, measured)
        order = np.argsort(-np.nan_to_num(errors, nan=-1.0), kind="stable")[: self._worst]
        return [row for row in order.tolist() if not np.isnan(errors[row])]

    def note(
        self,
        where: str,
        event: str,
        params: Sequence[float],
        rows: PredictedRows,
        measured: Floats,
        row: int,
    ) -> None:
        """Keep a line, that of a row with a prediction, if it is one of the worst."""
        measured_s, predicted_s = float(measured[row]), float(rows.predicted_s[row])
        error = abs(predicted_s - measured_s) / measured_s
        source = str(DeterminedBy(rows.determined_by[row]))
        names = self._predictor.names_of(event, len(params))
        line = WorstLine(where, event, tuple(params), measured_s, predicted_s, error, source, names)
        both = sorted([*self._worst_lines, line], key=lambda worst: -worst.relative_error)
        self._worst_lines = both[: self._worst]

    def report(self, files: tuple[str, ...], warnings: tuple[str, ...]) -> VerifyReport:
        """Return the report."""
        verified = tuple((name, _verified(parts)) for name, parts in self.parts.items())
        untimed = (f"{count_text(self._untimed, 'line')} without a time left out",)
        uncovered = (
            f"event {printable(name)!r}: the model has no fit for "
            f"{score.lines - score.predicted} of {count_text(score.lines, 'line')}"
            for name, score in ((name, result.score) for name, result in verified)
            if score.predicted < score.lines
        )
        return VerifyReport(
            model=self._predictor.name,
            files=files,
            overall=_verified(list(chain(*self.parts.values()))),
            events=verified,
            worst=tuple(self._worst_lines),
            warnings=(
                *warnings,
                *self._predictor.notes,
                *(untimed if self._untimed else ()),
                *uncovered,
            ),
        )
