"""The job of `predict`: the predictions of a model file for text files, one line per record."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from rewritelog.evaluation.predictions import (
    DeterminedBy,
    LinePredictor,
    MalformedLines,
    PredictedLines,
)
from rewritelog.text import json_number, json_text, printable
from rewritelog.timings.read import seconds_of

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
_OPTIONAL = ("measured_s", "predicted_s", "low_s", "high_s")


def predict(
    predictor: LinePredictor,
    files: Sequence[Path],
    form: Literal["csv", "jsonl"],
    malformed: MalformedLines,
    clock_hz: float | None = None,
    *,
    strict: bool = False,
) -> Iterator[str]:
    """Yield whole lines of text, one line for each record, in the order of the files.

    Malformed lines are counted in `malformed`. Raise a `RewriteLogError` for a file that cannot be
    read, and `TimingError` for a time in cycles without a clock.
    """
    found = predictor.predict_detailed(files, malformed, strict=strict)
    texts = (
        csv_text(lines, clock_hz) if form == "csv" else _jsonl(lines, clock_hz) for lines in found
    )
    first = next(texts, "")  # raises errors before anything is printed
    if form == "csv":
        yield ",".join(HEAD) + "\n"
    yield first
    yield from texts


def csv_text(lines: PredictedLines, clock_hz: float | None = None) -> str:
    """Return lines with their predictions as CSV, without the header."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for row in rows_of(lines, clock_hz):
        params = " ".join(map(_number_text, row["params"]))
        seb = row["seb"]
        record = row | {
            "file": printable(row["file"]),
            "seb": "" if seb is None else seb,
            "event": printable(row["event"]),
            "params": params,
            **{name: _optional_number_text(row[name]) for name in _OPTIONAL},
        }
        writer.writerow([record[name] for name in HEAD])
    return text.getvalue()


def _jsonl(lines: PredictedLines, clock_hz: float | None) -> str:
    return "".join(json_text(row) + "\n" for row in rows_of(lines, clock_hz))


def rows_of(lines: PredictedLines, clock_hz: float | None = None) -> Iterator[dict[str, Any]]:
    """Yield each record with its measured time, if any, and its prediction, as a JSON object.

    `low_s` and `high_s` bound the 90 % interval of the time; None where it is unknown.

    Raise `TimingError` for a time in cycles without a clock.
    """
    table, path = lines.table, str(lines.path)
    columns = (
        table.line,
        table.seb,
        table.seqno,
        table.event,
        seconds_of(lines.path, table, clock_hz),
        lines.predicted_s,
        lines.determined_by,
        lines.low_s,
        lines.high_s,
    )
    listed = zip(*(column.tolist() for column in columns), strict=True)
    names = [str(one) for one in DeterminedBy]
    for row, (line, seb, seqno, event, measured, seconds, source, low, high) in enumerate(listed):
        index = seb if seb >= 0 else seqno
        yield {
            "file": path,
            "line": line,
            "seb": None if index < 0 else index,
            "event": table.events[event],
            "params": lines.params(row),
            "measured_s": json_number(measured),
            "predicted_s": None if source == DeterminedBy.NO_MODEL else seconds,
            "determined_by": names[source],
            "low_s": json_number(low),
            "high_s": json_number(high),
        }


def _optional_number_text(value: float | None) -> str:
    return "" if value is None else _number_text(value)


def _number_text(value: float) -> str:
    """Return the shortest text that reads back as the number; integers without a point."""
    return repr(value).removesuffix(".0")
