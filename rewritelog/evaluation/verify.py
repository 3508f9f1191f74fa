"""The job of `verify`: predictions of a model file compared with timing lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

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

    @classmethod
    def of(
        cls,
        where: str,
        event: str,
        params: tuple[float, ...],
        rows: PredictedRows,
        measured: Floats,
        row: int,
    ) -> WorstLine:
        """Return the line of a row with a prediction."""
        predicted = float(rows.predicted_s[row])
        error = abs(predicted - measured[row]) / measured[row]
        source = str(DeterminedBy(rows.determined_by[row]))
        return cls(where, event, params, float(measured[row]), predicted, float(error), source)


@dataclass(frozen=True)
class Verified:
    """The error measures of some lines, and the coverage of their intervals."""

    score: Score
    coverage: float | None
    """The share of times within their 90 % intervals; None without intervals."""

    def to_json(self) -> dict[str, Any]:
        """Return the numbers as a JSON object."""
        return {**self.score.to_json(), "coverage": self.coverage}


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
        rows = [(event, *_cells(verified)) for event, verified in self.events]
        rows.append(("all", *_cells(self.overall)))
        lines = [f"{printable(self.model)} against {self._lines_text()}"]
        lines += TextTable(("event", *HEAD), rows).lines()
        lines += [
            "  (median, mean: relative errors of single calls; sum: how far the total of all",
            "  lines is off; later: the total without each event's first line, which is often",
            "  slow; in 90 %: share of the lines within their 90 % interval)",
        ]
        if self.worst:
            lines.append("worst lines, by relative error:")
            rows = [_worst_cells(line) for line in self.worst]
            lines += TextTable(WORST_HEAD, rows, left=frozenset({1})).lines()
        return "\n".join(lines)

    def _lines_text(self) -> str:
        files = ", ".join(map(printable, self.files))
        return f"{count_text(self.overall.score.lines, 'timing line')} of {files}"


def verify(
    model: Path,
    timings: Sequence[Path],
    clock_hz: float | None = None,
    *,
    strict: bool = False,
    worst: int = 10,
) -> VerifyReport:
    """Compare a model file with the timing lines of files, as `verify_lines` does."""
    return verify_lines(LinePredictor.of(model), timings, clock_hz, strict=strict, worst=worst)


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
    names = ", ".join(str(path) for path in timings)
    if not compared.events:
        raise TimingError("; ".join((f"{names}: no timing line found", *malformed.warnings())))
    return compared.report(predictor.name, tuple(map(str, timings)), malformed.warnings())


def verify_samples(predictor: LinePredictor, timings: Timings, *, worst: int = 10) -> VerifyReport:
    """Compare a fitted model with samples."""
    compared = _Compared(worst, predictor)
    for samples in timings:
        rows = predictor.predict_rows(samples.event, samples.params)
        compared.add_event(samples.event, samples.seconds, rows)
        for row in compared.worst_rows(rows, samples.seconds):
            location = f"sample {row} of {samples.event}"
            params = tuple(samples.params[row].tolist())
            compared.note(WorstLine.of(location, samples.event, params, rows, samples.seconds, row))
    return compared.report(predictor.name, ("samples",), ())


def _uncovered(verified: Sequence[tuple[str, Verified]]) -> list[str]:
    """Return a warning for each event with lines that the model does not cover."""
    return [
        f"event {printable(name)!r}: the model has no fit for "
        f"{result.score.lines - result.score.predicted} of {count_text(result.score.lines, 'line')}"
        for name, result in verified
        if result.score.predicted < result.score.lines
    ]


@dataclass
class _Event:
    """The lines of one event."""

    pairs: list[TimePairs] = field(default_factory=list)
    bounds: list[tuple[Floats, Floats]] = field(default_factory=list)

    @classmethod
    def of_all(cls, events: list[_Event]) -> _Event:
        """Return the lines of all events."""
        return cls(
            [part for event in events for part in event.pairs],
            [part for event in events for part in event.bounds],
        )

    def verified(self) -> Verified:
        """Return the score of all lines."""
        pairs = TimePairs.joined(self.pairs)
        low, high = (np.concatenate([part[side] for part in self.bounds]) for side in (0, 1))
        known = ~np.isnan(low) & ~np.isnan(high)
        inside = (pairs.measured_s >= low) & (pairs.measured_s <= high)
        coverage = float(inside[known].mean()) if known.any() else None
        return Verified(pairs.score(), coverage)


class _Compared:
    """Collects predictions and measured times of all lines."""

    def __init__(self, worst: int, predictor: LinePredictor) -> None:
        if worst < 0:
            raise UsageError(f"the number of worst lines must be 0 or more, not {worst}")
        self.events: dict[str, _Event] = {}
        self._worst_lines: list[WorstLine] = []
        self._worst, self._predictor = worst, predictor
        self._untimed = 0

    def add_lines(self, lines: PredictedLines, measured: Floats) -> None:
        """Add lines of a file with their measured times in seconds, NaN for none."""
        timed = ~np.isnan(measured)
        self._untimed += int(np.count_nonzero(~timed))
        for rows in rows_by_key(lines.table.event, timed):
            name = lines.table.events[int(lines.table.event[rows[0]])]
            self.add_event(name, measured[rows], lines.part(rows))
            refuse_too_many(lines.path, len(self.events), name)
        for row in self.worst_rows(lines, measured):
            where = f"{lines.path}:{lines.table.line[row]}"
            event = lines.table.events[int(lines.table.event[row])]
            self.note(WorstLine.of(where, event, tuple(lines.params(row)), lines, measured, row))

    def add_event(self, name: str, measured: Floats, rows: PredictedRows) -> None:
        """Add some rows of an event."""
        first: Flags = np.zeros(len(measured), dtype=np.bool_)
        first[:1] = name not in self.events and has_slow_first_call(name)
        event = self.events.setdefault(name, _Event())
        pairs = TimePairs(measured, rows.predicted_s, rows.total_s, first, rows.negative)
        event.pairs.append(pairs)
        event.bounds.append((rows.low_s, rows.high_s))

    def worst_rows(self, rows: PredictedRows, measured: Floats) -> list[int]:
        """Return the rows with the largest relative errors, as many as a report shows."""
        errors = relative_errors(rows.predicted_s, measured)
        order = np.argsort(-np.nan_to_num(errors, nan=-1.0), kind="stable")[: self._worst]
        return [row for row in order.tolist() if not np.isnan(errors[row])]

    def note(self, line: WorstLine) -> None:
        """Keep a line if it is one of the worst."""
        named = replace(line, names=self._predictor.names_of(line.event, len(line.params)))
        both = sorted([*self._worst_lines, named], key=lambda worst: -worst.relative_error)
        self._worst_lines = both[: self._worst]

    def report(self, model: str, files: tuple[str, ...], warnings: tuple[str, ...]) -> VerifyReport:
        """Return the report."""
        verified = [(name, compared.verified()) for name, compared in self.events.items()]
        untimed = (f"{count_text(self._untimed, 'line')} without a time left out",)
        return VerifyReport(
            model=model,
            files=files,
            overall=_Event.of_all(list(self.events.values())).verified(),
            events=tuple(verified),
            worst=tuple(self._worst_lines),
            warnings=(
                *warnings,
                *self._predictor.notes,
                *(untimed if self._untimed else ()),
                *_uncovered(verified),
            ),
        )


def _cells(verified: Verified) -> tuple[str, ...]:
    score = verified.score
    return (
        f"{score.lines}",
        f"{score.lines - score.predicted}",
        NO_VALUE if score.r2 is None else f"{score.r2:.4f}",
        percent_text(score.median_relative_error),
        percent_text(score.mean_relative_error),
        percent_text(score.sum_error, sign="+"),
        percent_text(score.later_sum_error, sign="+"),
        percent_text(verified.coverage, 1),
        f"{score.negative}",
    )


def _worst_cells(line: WorstLine) -> tuple[str, ...]:
    return (
        line.where,
        line.call,
        time_text(line.measured_s, 3),
        time_text(line.predicted_s, 3),
        percent_text(line.relative_error, 1),
    )
