"""The predictions of a model file for the records of text files, a line each."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from rewritelog.evaluation.predictions import Faults, How, LinePredictor, PredictedLines
from rewritelog.text import json_text, printable

HEAD = ("file", "line", "seb", "event", "params", "predicted_s", "determined_by")


def predict(
    model: Path,
    files: Sequence[Path],
    form: Literal["csv", "jsonl"],
    faults: Faults,
    *,
    strict: bool = False,
) -> Iterator[str]:
    """Yield text, whole lines at a time: one line for each record, in the files' order.

    Malformed lines are noted in `faults`. Raise a `RewriteLogError` for what cannot be read.
    """
    predict_detailed = LinePredictor.of(model)
    if form == "csv":
        yield ",".join(HEAD) + "\n"
    for lines in predict_detailed.predict_detailed(files, faults, strict=strict):
        yield _csv(lines) if form == "csv" else _jsonl(lines)


def _csv(lines: PredictedLines) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for row in _rows(lines):
        params = " ".join(map(_number, row["params"]))
        seb, seconds = row["seb"], row["predicted_s"]
        writer.writerow((
            printable(row["file"]), row["line"], "" if seb is None else seb,
            printable(row["event"]), params, "" if seconds is None else _number(seconds),
            row["determined_by"],
        ))  # fmt: skip
    return text.getvalue()


def _jsonl(lines: PredictedLines) -> str:
    return "".join(json_text(row) + "\n" for row in _rows(lines))


def _rows(lines: PredictedLines) -> Iterator[dict[str, Any]]:
    """Yield each record with its prediction in types that JSON has."""
    table, path = lines.table, str(lines.path)
    columns = (table.line, table.seb, table.seqno, table.event, lines.predicted_s, lines.how)
    listed = zip(*(column.tolist() for column in columns), strict=True)
    names = [str(how) for how in How]
    for row, (line, seb, seqno, event, seconds, how) in enumerate(listed):
        index = seb if seb >= 0 else seqno
        yield {
            "file": path,
            "line": line,
            "seb": None if index < 0 else index,
            "event": table.events[event],
            "params": lines.params(row),
            "predicted_s": None if how == How.NO_MODEL else seconds,
            "determined_by": names[how],
        }


def _number(value: float) -> str:
    """Return the shortest text that reads back as the number; whole ones without a point."""
    return repr(value).removesuffix(".0")
