"""The predictions of a model file for the records of text files, a line each."""

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
from rewritelog.text import json_text, printable

HEAD = ("file", "line", "seb", "event", "params", "predicted_s", "determined_by")


def predict(
    model: Path,
    files: Sequence[Path],
    form: Literal["csv", "jsonl"],
    malformed: MalformedLines,
    *,
    strict: bool = False,
) -> Iterator[str]:
    """Yield text, whole lines at a time: one line for each record, in the files' order.

    Malformed lines are noted in `malformed`. Raise a `RewriteLogError` for what cannot be read.
    """
    predictor = LinePredictor.of(model)
    if form == "csv":
        yield ",".join(HEAD) + "\n"
    for lines in predictor.predict_detailed(files, malformed, strict=strict):
        yield _csv(lines) if form == "csv" else _jsonl(lines)


def _csv(lines: PredictedLines) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for row in rows_of(lines):
        params = " ".join(map(_number, row["params"]))
        seb, seconds = row["seb"], row["predicted_s"]
        record = row | {
            "file": printable(row["file"]),
            "seb": "" if seb is None else seb,
            "event": printable(row["event"]),
            "params": params,
            "predicted_s": "" if seconds is None else _number(seconds),
        }
        writer.writerow([record[name] for name in HEAD])
    return text.getvalue()


def _jsonl(lines: PredictedLines) -> str:
    return "".join(json_text(row) + "\n" for row in rows_of(lines))


def rows_of(lines: PredictedLines) -> Iterator[dict[str, Any]]:
    """Yield each record with its prediction in types that JSON has."""
    table, path = lines.table, str(lines.path)
    columns = (
        table.line,
        table.seb,
        table.seqno,
        table.event,
        lines.predicted_s,
        lines.determined_by,
    )
    listed = zip(*(column.tolist() for column in columns), strict=True)
    names = [str(one) for one in DeterminedBy]
    for row, (line, seb, seqno, event, seconds, source) in enumerate(listed):
        index = seb if seb >= 0 else seqno
        yield {
            "file": path,
            "line": line,
            "seb": None if index < 0 else index,
            "event": table.events[event],
            "params": lines.params(row),
            "predicted_s": None if source == DeterminedBy.NO_MODEL else seconds,
            "determined_by": names[source],
        }


def _number(value: float) -> str:
    """Return the shortest text that reads back as the number; whole ones without a point."""
    return repr(value).removesuffix(".0")
