"""Export as tables of SEBs, messages, events and so on, with units in the names of columns."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar

import numpy as np

from rewritelog.errors import RewriteLogError
from rewritelog.exporting.contents import BRACKET_ROW, PARAM_ROW, Contents
from rewritelog.formats.bgtrace.columns import NamedColumns, columns_of
from rewritelog.formats.bgtrace.tables import DEPENDENCY_ROW, EVENT_ROW, MESSAGE_ROW, SEB_ROW

Result = TypeVar("Result")

_ROW_GROUP = 1 << 16
"""The number of rows collected for a row group of Parquet."""


TABLES = {
    "sebs": SEB_ROW,
    "messages": MESSAGE_ROW,
    "log_events": EVENT_ROW,
    "dependencies": DEPENDENCY_ROW,
    "brackets": BRACKET_ROW,
    "params": PARAM_ROW,
}
"""The rows of each table."""


def csv_tables(contents: Contents) -> dict[str, tuple[int, str]]:
    """Return the number of rows of each table of some SEBs, and their lines of CSV."""
    return {name: _counted(columns, _csv_lines) for name, columns in _tables_of(contents)}


def arrow_tables(contents: Contents) -> dict[str, tuple[int, Any]]:
    """Return the number of rows of each table of some SEBs, and the rows for Parquet."""
    return {name: _counted(columns, _arrow_table) for name, columns in _tables_of(contents)}


def _tables_of(contents: Contents) -> Iterator[tuple[str, NamedColumns]]:
    for name in TABLES:
        yield name, columns_of(contents.records if name == "params" else getattr(contents, name))


def _counted(columns: NamedColumns, make: Callable[[NamedColumns], Result]) -> tuple[int, Result]:
    return len(next(iter(columns.values()))), make(columns)


def _csv_lines(columns: NamedColumns) -> str:
    """Return rows as CSV; lists of numbers are separated by blanks."""
    text = io.StringIO()
    rows = zip(*map(_csv_values, columns.values()), strict=True)
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def _csv_values(values: Any) -> Iterator[Any]:
    for value in values.tolist() if isinstance(values, np.ndarray) else values:
        yield " ".join(map(repr, value)) if isinstance(value, list) else value


def _arrow_table(columns: NamedColumns) -> Any:
    arrow, _ = _pyarrow()

    def kind_of(name: str, values: Any) -> Any:
        if isinstance(values, np.ndarray):
            return arrow.from_numpy_dtype(values.dtype)
        return arrow.list_(arrow.float64()) if name == "params" else arrow.string()

    kinds = [(name, kind_of(name, values)) for name, values in columns.items()]
    return arrow.table(columns, schema=arrow.schema(kinds))


class TableWriter(Protocol):
    """Writes the rows of one table, some at a time."""

    def write(self, rows: Any) -> None:
        """Write rows."""

    def close(self) -> None:
        """Finish the file."""


class CsvWriter:
    """Writes a table as CSV with a header line."""

    def __init__(self, path: Path, columns: NamedColumns) -> None:
        self._file = path.open("x", newline="", encoding="utf-8")
        csv.writer(self._file, lineterminator="\n").writerow(columns)

    def write(self, rows: str) -> None:
        """Write lines."""
        self._file.write(rows)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class ParquetWriter:
    """Writes a table as Parquet, in row groups of a suitable size."""

    def __init__(self, path: Path, columns: NamedColumns) -> None:
        self._arrow, parquet = _pyarrow()
        self._writer = parquet.ParquetWriter(path, _arrow_table(columns).schema)
        self._waiting: list[Any] = []
        self._rows = 0

    def write(self, rows: Any) -> None:
        """Write rows, buffered until there are enough."""
        self._waiting.append(rows)
        self._rows += len(rows)
        if self._rows >= _ROW_GROUP:
            self._flush()

    def _flush(self) -> None:
        if self._rows:
            self._writer.write_table(self._arrow.concat_tables(self._waiting))
        self._waiting, self._rows = [], 0

    def close(self) -> None:
        """Write the remaining rows, and close the file."""
        self._flush()
        self._writer.close()


def check_parquet() -> None:
    """Raise `RewriteLogError` if pyarrow, which writes Parquet, is not installed."""
    _pyarrow()


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow as pa  # noqa: PLC0415 - an extra, and slow to import
        from pyarrow import parquet  # noqa: PLC0415
    except ImportError as error:
        message = "Parquet needs pyarrow: pip install 'rewritelog[parquet]'"
        raise RewriteLogError(message) from error
    return pa, parquet


@dataclass
class TablesWriter:
    """Writes all tables to a folder, one file for each."""

    folder: Path
    kind: str
    """The ending of the files: `csv` or `parquet`."""
    counts: dict[str, int] = field(default_factory=dict)
    """The number of rows by table."""
    _writers: dict[str, TableWriter] = field(default_factory=dict)
    _stack: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> Self:
        make = CsvWriter if self.kind == "csv" else ParquetWriter
        for name, row in TABLES.items():
            columns = columns_of(np.empty(0, dtype=row))
            writer = make(self.folder / f"{name}.{self.kind}", columns)
            self._stack.callback(writer.close)
            self._writers[name] = writer
            self.counts[name] = 0
        return self

    def write(self, tables: dict[str, tuple[int, Any]]) -> None:
        """Write the rows of some SEBs, as `csv_tables` or `arrow_tables` returns them."""
        for name, (count, rows) in tables.items():
            self._writers[name].write(rows)
            self.counts[name] += count

    def __exit__(self, *_: object) -> None:
        self._stack.close()
