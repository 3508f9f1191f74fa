"""Export as tables of SEBs, messages, events and so on, with units in the names of columns."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterable
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import numpy as np

from rewritelog.arrays import NamedColumns, columns_of
from rewritelog.errors import RewriteLogError
from rewritelog.exporting.contents import TABLES, Contents

Tables = dict[str, tuple[int, Any]]
"""Each table of some SEBs: the number of its rows, and the rows in the form of a file format."""


def tables_part(kind: str, contents: Contents, /) -> Tables:
    """Return the tables of some SEBs for `csv` or `parquet`."""
    to_rows = _csv_lines if kind == "csv" else _arrow_table
    tables = {}
    for name in TABLES:
        columns = columns_of(contents[name])
        tables[name] = len(next(iter(columns.values()))), to_rows(columns)
    return tables


def write_tables(folder: Path, kind: str, parts: Iterable[Tables]) -> dict[str, int]:
    """Write a file for each table; return the numbers of their rows."""
    counts = Counter(dict.fromkeys(TABLES, 0))
    with ExitStack() as opened:
        writers = dict[str, Any]()
        for name, row in TABLES.items():
            path, columns = folder / f"{name}.{kind}", columns_of(np.empty(0, row))
            if kind == "csv":
                writers[name] = opened.enter_context(path.open("x", newline="", encoding="utf-8"))
                csv.writer(writers[name], lineterminator="\n").writerow(columns)
            else:  # each table that is written becomes a row group
                file = opened.enter_context(path.open("xb"))
                writer = pyarrow()[1].ParquetWriter(file, _arrow_table(columns).schema)
                writers[name] = opened.enter_context(closing(writer))
        for tables in parts:
            for name, (count, rows) in tables.items():
                if count:
                    writers[name].write(rows)
                counts[name] += count
    return dict(counts)


def _csv_lines(columns: NamedColumns) -> str:
    """Return rows as CSV; lists of numbers are separated by blanks."""
    text = io.StringIO()
    listed = [
        [" ".join(map(repr, value)) if isinstance(value, list) else value for value in values]
        for values in (v.tolist() if isinstance(v, np.ndarray) else v for v in columns.values())
    ]
    csv.writer(text, lineterminator="\n").writerows(zip(*listed, strict=True))
    return text.getvalue()


def _arrow_table(columns: NamedColumns) -> Any:
    arrow, _ = pyarrow()
    kinds = {name: arrow.string() for name in columns} | {"params": arrow.list_(arrow.float64())}
    for name, values in columns.items():
        if isinstance(values, np.ndarray):
            kinds[name] = arrow.from_numpy_dtype(values.dtype)
    return arrow.table(columns, schema=arrow.schema([(name, kinds[name]) for name in columns]))


def pyarrow() -> tuple[Any, Any]:
    """Return pyarrow, which writes Parquet; raise `RewriteLogError` if it is not installed."""
    try:
        import pyarrow as pa  # noqa: PLC0415 - an extra, and slow to import
        from pyarrow import parquet  # noqa: PLC0415
    except ImportError as error:
        message = "Parquet needs pyarrow: pip install 'rewritelog[parquet]'"
        raise RewriteLogError(message) from error
    return pa, parquet
