"""The predictions of a fitted model for the records of text files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import IntEnum
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rewritelog.arrays import Flags, Floats, Ints
from rewritelog.errors import TimingError
from rewritelog.formats import Columns
from rewritelog.models.base import ModelFit
from rewritelog.models.checks import checked_interval, checked_prediction, total_seconds
from rewritelog.progress import report_progress
from rewritelog.text import FAULTS_SHOWN, count_text, fault_text, printable
from rewritelog.timings.read import line_groups
from rewritelog.timings.texts import named_fit, read_model_file, read_param_names
from tracebigsim.errors import TraceFileError
from tracebigsim.files import scan_file
from tracebigsim.lines import LineTable


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


@dataclass(frozen=True)
class PredictedRows:
    """Predictions with their origins, one array entry for each."""

    predicted_s: Floats
    """Typical times, at least 0; NaN without a prediction."""
    total_s: Floats
    """The contribution of each to a sum, corrected as by `rewrite --total measured`."""
    determined_by: NDArray[np.int8]
    """The `DeterminedBy` of each."""
    negative: Flags
    """Where the fit is negative."""
    low_s: Floats
    high_s: Floats
    """The 90 % interval of measured times; NaN where it is unknown."""

    def part(self, rows: Ints) -> PredictedRows:
        """Return the predictions for some of the rows."""
        columns = (getattr(self, column.name) for column in fields(PredictedRows))
        return PredictedRows(*(column[rows] for column in columns))


@dataclass(frozen=True)
class PredictedLines(PredictedRows):
    """The predictions for some lines of a file."""

    path: Path
    table: LineTable

    def params(self, row: int) -> list[float]:
        """Return the parameters of a line."""
        start, end = self.table.param_start[row : row + 2]
        values: list[float] = self.table.params[start:end].tolist()
        return values


@dataclass
class MalformedLines:
    """Malformed lines, counted."""

    count: int = 0
    shown: list[str] = field(default_factory=list)
    predicted: int = 0
    """The number of other lines with a prediction."""

    def note(self, path: Path, table: LineTable, *, strict: bool) -> None:
        """Count the malformed lines of a table; with `strict` raise `TimingError` for the first."""
        texts = [fault_text(path, fault.line, fault.problem, fault.text) for fault in table.faults]
        if strict and texts:
            raise TimingError(texts[0])
        self.count += table.fault_count
        self.shown += texts[: FAULTS_SHOWN - len(self.shown)]

    def warnings(self) -> tuple[str, ...]:
        """Return a warning if there are any."""
        if not self.count:
            return ()
        return (f"{count_text(self.count, 'malformed line')} left out: {'; '.join(self.shown)}",)


@dataclass(frozen=True)
class LinePredictor:
    """Predicts the times of lines with a fitted model."""

    name: str
    """The name of the model in reports: its file, or its own name."""
    fitted: ModelFit
    columns: Columns
    notes: tuple[str, ...] = ()
    """Warnings of names that belong to no event."""

    @classmethod
    def of(cls, path: Path) -> LinePredictor:
        """Read a model file; raise `ModelError` if it is invalid."""
        file = read_model_file(path)
        return cls(str(path), file.fitted, file.columns)

    def named(self, path: Path | None) -> LinePredictor:
        """Return the same with the names of parameters in a file, if there is one."""
        names = read_param_names(path)
        fitted = named_fit(self.fitted, names)
        known = getattr(fitted, "notes", ())
        return replace(self, fitted=fitted, notes=known if names else ())

    def names_of(self, event: str, parameters: int) -> tuple[str, ...]:
        """Return the names of an event's parameters; empty if they have none."""
        fit = getattr(self.fitted, "fits", {}).get((event, parameters))
        return () if fit is None else tuple(fit.names)

    @property
    def events(self) -> frozenset[str]:
        """The events that the model has fits for, as far as it knows them."""
        keys = getattr(self.fitted, "fits", None) or getattr(self.fitted, "events", {})
        return frozenset(key[0] for key in keys if isinstance(key, tuple))

    def predict_detailed(
        self, paths: Sequence[Path], malformed: MalformedLines, *, strict: bool = False
    ) -> Iterator[PredictedLines]:
        """Yield the predictions for the lines of files in order, some lines at a time.

        Raise `TimingError` for a file that cannot be read and, with `strict`, for a malformed line.
        """
        for path in paths:
            done = 0
            try:
                for table in scan_file(path):
                    stage = f"predicting {printable(str(path))}"
                    report_progress(f"{stage}, {done:,} lines done" if done else stage)
                    done += len(table)
                    malformed.note(path, table, strict=strict)
                    lines = self._lines(path, table)
                    malformed.predicted += int(np.count_nonzero(~np.isnan(lines.predicted_s)))
                    yield lines
            except TraceFileError as error:
                raise TimingError(str(error)) from error

    def predict_rows(self, event: str, params: Floats) -> PredictedRows:
        """Return the predictions for rows of an event's parameters."""
        predicted = checked_prediction(self.fitted, self.name, event, params)
        sources = {
            DeterminedBy.NO_MODEL: np.isnan(predicted.seconds),
            DeterminedBy.EXACT: predicted.exact,
            DeterminedBy.OUT_OF_RANGE: predicted.outside,
        }
        low, high = checked_interval(self.fitted, self.name, event, params)
        return PredictedRows(
            predicted_s=np.where(predicted.seconds < 0, 0.0, predicted.seconds),
            total_s=total_seconds(self.fitted, self.name, event, params, predicted),
            determined_by=np.select(
                [*sources.values()],
                [np.int8(source) for source in sources],
                np.int8(DeterminedBy.FIT),
            ),
            negative=np.asarray(predicted.negative),
            low_s=low,
            high_s=high,
        )

    def _lines(self, path: Path, table: LineTable) -> PredictedLines:
        count = len(table)
        seconds, total, low, high = (np.full(count, np.nan) for _ in range(4))
        determined_by = np.full(count, DeterminedBy.NO_MODEL, dtype=np.int8)
        negative = np.zeros(count, dtype=np.bool_)
        columns = (seconds, total, determined_by, negative, low, high)
        for event, rows, params in line_groups(table, self.columns, np.ones(count, dtype=np.bool_)):
            predicted = self.predict_rows(event, params)
            for column, own in zip(columns, fields(PredictedRows), strict=True):
                column[rows] = getattr(predicted, own.name)
        return PredictedLines(*columns, path, table)
