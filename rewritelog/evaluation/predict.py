"""The job of `predict`: predictions for text files, one line per record, or for one call.

Also predictions for rows of parameters and for timing lines, and their errors, for other reports.
"""

from __future__ import annotations

import csv
import io
import math
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import chain, pairwise
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from msgspec import Struct, field
from msgspec.structs import asdict

from rewritelog import units
from rewritelog.arrays import Floats, Table
from rewritelog.commands.fits import PredictCommand
from rewritelog.errors import MissingFileError, TimingError, UsageError, UsageTypeError, spelled
from rewritelog.models.base import EventKey, EventTimings
from rewritelog.models.fitted import Fitted
from rewritelog.models.metrics import mean_relative_error, r_squared, relative_errors, sum_error
from rewritelog.output.files import write_file
from rewritelog.paths import is_stdout, to_inputs
from rewritelog.progress import report_progress
from rewritelog.text import (
    NO_VALUE,
    WIDTH,
    Readable,
    count_text,
    event_label,
    json_number,
    json_text,
    parameter_names,
    percent_text,
    printable,
    shorten,
    shortest_text,
    some_text,
    time_range_text,
    time_text,
)
from rewritelog.timings.read import MalformedLines, line_groups, seconds_of
from tracebigsim.lines import LineTable

HEAD = (
    "file",
    "line",
    "seb",
    "event",
    "params",
    "measured_s",
    "predicted_s",
    "determined_by",
    "low_s",
    "high_s",
)
_SECONDS = ("measured_s", "predicted_s", "low_s", "high_s")


class Predictions(Struct):
    """The predictions for the records of files, printed or written while they are made."""

    fitted: Fitted
    files: tuple[Path, ...]
    output: Path | None = None
    clock_hz: float | None = None
    strict: bool = False
    malformed: MalformedLines = field(default_factory=MalformedLines)
    records: int = 0
    """The number of records so far."""
    predicted: int = 0
    """The number of records so far that have a prediction."""
    is_read: bool = False
    """Whether all files have been read."""

    def pieces(self, *, as_json: bool) -> Iterator[str]:
        """Yield the predictions as CSV or lines of JSON, or write them to the file if there is one.

        Raise a `RewriteLogError` for a file that cannot be read, and `TimingError` for a time in
        cycles without a clock.
        """
        texts = _texts(self._tables(), as_json=as_json)
        if self.output is None or is_stdout(self.output):
            yield from texts
        else:
            write_file(self.output, map(str.encode, texts))

    def rows(self) -> PredictedRecords:
        """Return a dict for each record, with None for what is unknown.

        If there is an output, the predictions are also written to it.
        """
        tables: Iterable[Iterable[dict[str, Any]]] = self._tables()
        if self.output is not None:
            tables = list(map(list, tables))
            write_file(self.output, map(str.encode, _texts(tables, as_json=False)))
        source = ", ".join(map(str, self.files))
        return PredictedRecords(source, chain.from_iterable(tables), self)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about the lines read so far; at the end, also if none is found or predicted."""
        warnings = [*self.malformed.warnings("line")]
        if not self.is_read:
            return tuple(warnings)
        if not self.records:
            warnings.append(f"{', '.join(map(str, self.files))}: no timing or param line found")
        elif not self.predicted:
            warnings.append(f"{self.fitted.name}: the model has no prediction for any record")
        return tuple(warnings)

    def _tables(self) -> Iterator[Iterator[dict[str, Any]]]:
        """Yield the records of the files, some lines at a time."""
        for path in self.files:
            lines, stage = 0, f"predicting {printable(str(path))}"
            for _, table in self.malformed.scanned(path, strict=self.strict):
                report_progress(f"{stage}, {lines:,} lines done" if lines else stage)
                lines += len(table)
                yield self._records(path, table)
        self.is_read = True

    def _records(self, path: Path, table: LineTable) -> Iterator[dict[str, Any]]:
        """Yield each record with its measured time, if any, and its prediction, as a JSON object.

        `low_s` and `high_s` bound the 90 % interval of the time; None where it is unknown.
        """
        calls = unpredicted(len(table))
        everything = np.ones(len(table), dtype=np.bool_)
        for event, rows, params in line_groups(table, self.fitted.columns, everything):
            calls[rows] = predicted_calls(self.fitted, event, params)
        self.records += len(table)
        self.predicted += int(np.count_nonzero(~np.isnan(calls["predicted_s"])))
        measured_s = seconds_of(path, table, self.clock_hz)
        sebs, params = np.where(table.seb >= 0, table.seb, table.seqno), table.params
        origins = [str(origin) for origin in DeterminedBy]
        columns = (
            [str(path)] * len(table),
            table.line.tolist(),
            (None if seb < 0 else seb for seb in sebs.tolist()),
            (table.events[event] for event in table.event.tolist()),
            (params[begin:end].tolist() for begin, end in pairwise(table.param_start.tolist())),
            map(json_number, measured_s.tolist()),
            map(json_number, calls["predicted_s"].tolist()),
            (origins[origin] for origin in calls["determined_by"].tolist()),
            map(json_number, calls["low_s"].tolist()),
            map(json_number, calls["high_s"].tolist()),
        )
        for values in zip(*columns, strict=True):
            yield dict(zip(HEAD, values, strict=True))


def predictions(command: PredictCommand) -> Predictions | CallPrediction:
    """Return the predictions for files, or for a call: an event of the model, and its parameters.

    Raise `MissingFileError` if the first word is neither, `TimingError` for a folder, and as
    `predict_call` and `to_inputs` do.
    """
    fitted, question = command.model, command.files
    words = [question] if isinstance(question, str | PathLike) else units.items_of(question) or []
    if hasattr(question, "keys") or not words or not isinstance(words[0], str | PathLike):
        raise UsageTypeError(
            "give files, or an event and its parameters; FittedModel.predict takes tables, and "
            "verify takes timings"
        )
    event, *values = map(str, words)
    events = {name for name, _ in fitted.keys}
    has_values = bool(values) and not any(map(_is_there, values))
    is_call = event in events and (has_values or os.path.isdir(event))  # noqa: PTH112 - as below
    if not is_call and (event == "-" or _is_there(event) or not events):
        files = to_inputs(words, "files")
        for path in files:
            if path.is_dir():
                advice = "name files of params or timing lines in it, such as param.0"
                raise TimingError(f"{path}: is a folder, not a file; {advice}")
        return Predictions(fitted, files, command.output, command.clock_hz, command.strict)
    if event not in events:
        listed = some_text(sorted(events), 5)
        raise MissingFileError(
            f"{event}: is neither a file nor an event of {fitted.name}; its events: {listed}"
        )
    for name in ("output", "clock_hz"):
        if getattr(command, name) is not None:
            raise UsageError(f"{spelled(name)} is for predictions of files, not of one call")
    return predict_call(fitted, event, values)


def _is_there(word: str) -> bool:
    return os.path.exists(word)  # noqa: PTH110 - no error for a long name


@dataclass(repr=False)
class PredictedRecords(Iterator[dict[str, Any]]):
    """A dict for each record of some files, made when it is asked for."""

    source: str
    records: Iterator[dict[str, Any]]
    report: Predictions | CallPrediction

    @property
    def warnings(self) -> tuple[str, ...]:
        """What was odd about the records, once all have been read."""
        return self.report.warnings

    def __next__(self) -> dict[str, Any]:
        return next(self.records)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {shorten(self.source, WIDTH)}: an iterator of dicts>"


def _texts(tables: Iterable[Iterable[dict[str, Any]]], *, as_json: bool) -> Iterator[str]:
    """Yield whole lines of text, one line for each record, in the order of the files."""
    texts = map(_json_lines if as_json else _csv_lines, tables)
    first = next(texts, "")  # raises errors before anything is printed
    if not as_json:
        yield ",".join(HEAD) + "\n"
    yield first
    yield from texts


def _json_lines(rows: Iterable[dict[str, Any]]) -> str:
    return "".join(json_text(row) + "\n" for row in rows)


def _csv_lines(rows: Iterable[dict[str, Any]]) -> str:
    """Return records as CSV, without the header."""
    text = io.StringIO()
    writer = csv.DictWriter(text, HEAD, lineterminator="\n")  # which leaves None empty
    for row in rows:
        record = row | {
            "file": printable(row["file"]),
            "event": printable(row["event"]),
            "params": " ".join(map(shortest_text, row["params"])),
        }
        for name in _SECONDS:
            record[name] = None if row[name] is None else shortest_text(row[name])
        writer.writerow(record)
    return text.getvalue()


@dataclass(frozen=True, repr=False)
class CallPrediction(Readable):
    """The predicted time of one call."""

    event: str
    names: tuple[str, ...]
    """The names of the parameters."""
    values: tuple[float, ...]
    predicted_s: float
    determined_by: str
    low_s: float | None
    """The bounds of the 90 % interval; None where it is unknown."""
    high_s: float | None
    predicted: ClassVar[int] = 1

    warnings = ()

    def text(self) -> str:
        """Return the prediction as text."""
        arguments = ", ".join(
            f"{name} = {shortest_text(value)}"
            for name, value in zip(self.names, self.values, strict=True)
        )
        within = ""
        if self.low_s is not None and self.high_s is not None:
            within = f", 90 %: {time_range_text(self.low_s, self.high_s)}"
        call = f"{printable(self.event)}({printable(arguments)})"
        return f"{call}: {time_text(self.predicted_s)}{within}; {self.determined_by}"

    def rows(self) -> PredictedRecords:
        """Return the prediction as the only record."""
        return PredictedRecords(self.text(), iter([self.to_json()]), self)

    def pieces(self, *, as_json: bool) -> Iterator[str]:
        """Yield the prediction as a line of text or JSON."""
        yield (json_text(self.to_json()) if as_json else self.text()) + "\n"

    def to_json(self) -> dict[str, Any]:
        """Return the prediction as a JSON object."""
        return {
            "event": self.event,
            "params": list(self.values),
            "predicted_s": json_number(self.predicted_s),
            "determined_by": self.determined_by,
            "low_s": self.low_s,
            "high_s": self.high_s,
        }


def predict_call(fitted: Fitted, event: str, arguments: Sequence[str]) -> CallPrediction:
    """Predict one call of an event, given its parameters as `157` or `n=157`.

    Raise `UsageError` for an event that the model does not have, and for other parameters.
    """
    known = {count: fit.names for (name, count), fit in fitted.fits.items() if name == event}
    if known and len(arguments) not in known:
        takes = " or ".join(
            f"{event_label(event, count, names=names)}" for count, names in known.items()
        )
        count = count_text(len(arguments), "parameter")
        raise UsageError(f"{event}: {count} given, but the model has {takes}")
    names = parameter_names(len(arguments), known.get(len(arguments), ()))
    values = _values(event, names, arguments)
    (call,) = predicted_calls(fitted, event, np.array([values], dtype=np.float64))
    if math.isnan(call["predicted_s"]):
        raise UsageError(f"{fitted.name}: the model has no prediction for this call of {event}")
    seconds, origin = float(call["predicted_s"]), str(DeterminedBy(call["determined_by"]))
    bounds = json_number(call["low_s"]), json_number(call["high_s"])
    return CallPrediction(event, tuple(names), values, seconds, origin, *bounds)


def _values(event: str, names: Sequence[str], arguments: Sequence[str]) -> tuple[float, ...]:
    """Return the parameters in order; raise `UsageError` for one that is unknown or missing."""
    values: dict[str, float] = {}
    for place, text in enumerate(arguments):
        name, equals, number = text.rpartition("=")
        name = name if equals else names[place]
        if name not in names or name in values:
            problem = "is given twice" if name in values else "is not a parameter"
            raise UsageError(f"{event}: {name} {problem}; it has {', '.join(names)}")
        values[name] = units.number(number, f"{event} {name}")
        if not math.isfinite(values[name]):
            raise UsageError(f"{event}: {text!r} is not a finite number")
    return tuple(values[name] for name in names)


class DeterminedBy(IntEnum):
    """The origin of a prediction."""

    FIT = 0
    EXACT = 1
    """Measured times of exactly these parameters."""
    OUT_OF_RANGE = 2
    """The fit, with a parameter outside the range of the samples."""
    NO_MODEL = 3
    """None: the model does not cover the event with this number of parameters."""

    def __str__(self) -> str:
        return self.name.lower().replace("_", " ")


PREDICTED = np.dtype(
    [
        ("measured_s", np.float64),  # NaN without a measured time
        ("predicted_s", np.float64),  # the typical time, at least 0; NaN without a prediction
        ("total_s", np.float64),  # its part of a sum, corrected as by `rewrite --total measured`
        ("low_s", np.float64),  # the 90 % interval of measured times; NaN where it is unknown
        ("high_s", np.float64),
        ("determined_by", np.int8),  # its `DeterminedBy`
        ("negative", np.bool_),  # whether the fit is negative
        ("first", np.bool_),  # whether it is an event's first call, which may have been slow
    ],
    align=True,
)
"""The columns of a table of calls with their predictions."""


def unpredicted(rows: int) -> Table:
    """Return calls without a measured time or a prediction, to be filled in."""
    calls = np.empty(rows, PREDICTED)
    calls[:] = (*[np.nan] * 5, DeterminedBy.NO_MODEL, False, False)
    return calls


def predicted_calls(fitted: Fitted | None, event: str, params: Floats) -> Table:
    """Return the predictions for rows of an event's parameters; NaN if `fitted` is None."""
    calls = unpredicted(len(params))
    if fitted is not None:
        predicted = fitted.prediction(event, params)
        calls["predicted_s"] = predicted.seconds
        calls["total_s"] = fitted.total_seconds(event, params, predicted)
        calls["low_s"], calls["high_s"] = fitted.bounds(event, params)
        calls["determined_by"] = DeterminedBy.FIT
        calls["determined_by"][predicted.outside] = DeterminedBy.OUT_OF_RANGE
        calls["determined_by"][predicted.exact] = DeterminedBy.EXACT
        calls["determined_by"][np.isnan(predicted.seconds)] = DeterminedBy.NO_MODEL
        calls["negative"] = predicted.negative
    return calls


def predicted_lines(fitted: Fitted | None, samples: EventTimings) -> Table:
    """Return timing lines with predictions."""
    calls = predicted_calls(fitted, samples.event, samples.params)
    calls["measured_s"] = samples.seconds
    calls["first"] = samples.are_first
    return calls


def joined(parts: Iterable[Table]) -> Table:
    """Return the calls of all parts."""
    return np.concatenate([unpredicted(0), *parts])


class Score(Struct, frozen=True):
    """The errors of the predictions of some timing lines."""

    lines: int
    predicted: int
    """The number of lines with a prediction; all errors refer to them."""
    mean_relative_error: float | None
    median_relative_error: float | None
    sum_error: float | None
    """The relative error of the sum, corrected as by `rewrite --total measured`."""
    later_sum_error: float | None
    """The sum's error without first calls, whose times often differ from the others."""
    r2: float | None
    negative: int
    """The number of lines with a negative prediction, which counts as 0."""
    intervals: int
    """The number of lines that `coverage` refers to."""
    coverage: float | None
    """The share of times within their 90 % intervals, of lines that have one; a negative prediction
    has none, and its time counts as outside. None for a model without intervals."""

    def cells(self, sign: str = "+") -> dict[str, str]:
        """Return the errors as the cells of a table's row, by their heads; see `errors_text`."""
        return {
            "lines": f"{self.lines:,}",
            "no model": f"{self.lines - self.predicted:,}",
            "R²": NO_VALUE if self.r2 is None else f"{self.r2:.4f}",
            "mean": percent_text(self.mean_relative_error),
            "median": percent_text(self.median_relative_error),
            "sum": percent_text(self.sum_error, sign=sign),
            "later": percent_text(self.later_sum_error, sign=sign),
            "in 90 %": percent_text(self.coverage, 1),
            "below 0": f"{self.negative:,}",
        }


def errors_text() -> str:
    """Return an explanation of the errors in a table."""
    return (
        "mean, median: relative errors of single calls; sum: that of the total, predicted as by "
        f"rewrite {spelled('total', 'measured')}; later: without first calls, which are "
        "often slow"
    )


_ROUNDING = 64 * np.finfo(np.float64).eps
"""The relative rounding error of a formula of several terms, which the interval of an exact fit,
whose bounds are equal, would not hold."""


def score_of(lines: Table) -> Score:
    """Return the error measures of timing lines with predictions."""
    known = lines[np.isfinite(lines["predicted_s"]) & np.isfinite(lines["measured_s"])]
    predicted_s, measured_s, total_s = known["predicted_s"], known["measured_s"], known["total_s"]
    errors, later = relative_errors(predicted_s, measured_s), ~known["first"]
    errors = errors[~np.isnan(errors)]
    rounding_s = _ROUNDING * measured_s
    inside = measured_s >= known["low_s"] - rounding_s
    inside &= measured_s <= known["high_s"] + rounding_s
    has_interval = ~np.isnan(known["low_s"] + known["high_s"])
    counts = has_interval | (known["negative"] & has_interval.any())
    return Score(
        lines=len(lines),
        predicted=len(known),
        mean_relative_error=mean_relative_error(predicted_s, measured_s),
        median_relative_error=json_number(float(np.median(errors))) if len(errors) else None,
        sum_error=sum_error(total_s, measured_s),
        later_sum_error=sum_error(total_s[later], measured_s[later]),
        r2=r_squared(predicted_s, measured_s),
        negative=int(np.count_nonzero(known["negative"])),
        intervals=int(np.count_nonzero(counts)),
        coverage=float(inside[counts].mean()) if counts.any() else None,
    )


def scores_json(scores: Iterable[tuple[EventKey, Score]]) -> list[dict[str, Any]]:
    """Return the scores of events with their numbers of parameters as JSON objects."""
    return [
        {"event": event, "parameters": parameters, **asdict(score)}
        for (event, parameters), score in scores
    ]
