"""Export as tables of SEBs, messages, events and so on, with units in the names of columns."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np

from rewritelog.errors import RewriteLogError
from rewritelog.exporting.contents import BRACKET_ROW, PARAM_ROW, Contents
from rewritelog.logs.columns import NamedColumns, columns_of
from rewritelog.logs.tables import DEPENDENCY_ROW, EVENT_ROW, MESSAGE_ROW, SEB_ROW

_ROW_GROUP = 1 << 16
"""The number of rows collected for a row group of Parquet."""


TABLES = {
    "sebs": SEB_ROW,
    "messages": MESSAGE_ROW,
    "events": EVENT_ROW,
    "dependencies": DEPENDENCY_ROW,
    "brackets": BRACKET_ROW,
    "params": PARAM_ROW,
}
"""The rows of each table."""


def tables_of_contents(contents: Contents) -> Iterator[tuple[str, NamedColumns]]:
    """Yield all tables of some SEBs by name."""
    for name in TABLES:
        yield name, columns_of(contents.records if name == "params" else getattr(contents, name))


class TableWriter(Protocol):
    """Writes the rows of one table, some at a time."""

    def write(self, columns: NamedColumns) -> None:
        """Write rows."""

    def close(self) -> None:
        """Finish the file."""


class CsvWriter:
    """Writes a table as CSV with a header line; lists of numbers are separated by blanks."""

    def __init__(self, path: Path, columns: NamedColumns) -> None:
        self._file = path.open("x", newline="", encoding="utf-8")
        self._writer = csv.writer(self._file, lineterminator="\n")
        self._writer.writerow(columns)

    def write(self, columns: NamedColumns) -> None:
        """Write rows."""
        self._writer.writerows(zip(*map(_csv_values, columns.values()), strict=True))

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _csv_values(values: Any) -> Iterator[Any]:
    for value in values.tolist() if isinstance(values, np.ndarray) else values:
        yield " ".join(map(repr, value)) if isinstance(value, list) else value


class ParquetWriter:
    """Writes a table as Parquet, in row groups of a suitable size."""

    def __init__(self, path: Path, columns: NamedColumns) -> None:
        self._arrow, parquet = _pyarrow()
        self._schema = self._arrow.schema(
            [(name, self._type(name, values)) for name, values in columns.items()]
        )
        self._writer = parquet.ParquetWriter(path, self._schema)
        self._waiting: list[Any] = []
        self._rows = 0

    def _type(self, name: str, values: Any) -> Any:
        if isinstance(values, np.ndarray):
            return self._arrow.from_numpy_dtype(values.dtype)
        return self._arrow.list_(self._arrow.float64()) if name == "params" else "string"

    def write(self, columns: NamedColumns) -> None:
        """Write rows, buffered until there are enough."""
        table = self._arrow.table(columns, schema=self._schema)
        self._waiting.append(table)
        self._rows += len(table)
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

    def write(self, contents: Contents) -> None:
        """Write the rows of some SEBs."""
        for name, columns in tables_of_contents(contents):
            self._writers[name].write(columns)
            self.counts[name] += len(next(iter(columns.values())))

    def __exit__(self, *_: object) -> None:
        self._stack.close()
