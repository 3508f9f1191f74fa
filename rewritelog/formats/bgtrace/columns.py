"""Columns of tables for data frames and exported files, with units in their names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rewritelog.arrays import Table
from rewritelog.errors import RewriteLogError

if TYPE_CHECKING:
    import pandas as pd

NamedColumns = dict[str, Any]
"""Arrays or lists of equal length, by column name."""

_SECONDS = {"start", "end"}


class Rows(np.ndarray[Any, np.dtype[Any]]):
    """A structured array that can become a data frame; its fields are plain arrays."""

    def __getitem__(self, key: Any) -> Any:
        """Return some rows, or one field of all rows as a plain array."""
        rows = super().__getitem__(key)
        if isinstance(rows, Rows) and rows.dtype.names is None:
            return rows.view(np.ndarray)
        return rows

    def to_pandas(self) -> pd.DataFrame:
        """Return the rows as a pandas data frame, with the columns of `rewritelog export`.

        Raise `RewriteLogError` if pandas is not installed.
        """
        return new_frame(columns_of(self.view(np.ndarray)))


def new_frame(columns: NamedColumns) -> pd.DataFrame:
    """Return columns as a data frame; raise `RewriteLogError` if pandas is not installed."""
    try:
        import pandas as pd  # noqa: PLC0415 - optional, and slow to import
    except ImportError as error:
        raise RewriteLogError("data frames need pandas: pip install pandas") from error
    return pd.DataFrame(columns)


def with_text(rows: Table) -> Rows:
    """Return the rows with `str` in place of bytes, each up to its first NUL."""
    kinds: list[Any] = []
    texts: dict[str, Any] = {}
    for name in rows.dtype.names or ():
        kind = rows.dtype[name]
        if kind.kind == "S":
            names, which = np.unique(rows[name], return_inverse=True)
            texts[name] = np.array(
                [_text(name_bytes) for name_bytes in names.tolist()], dtype=np.str_
            )[which]
            kind = texts[name].dtype
        elif kind.kind == "O":
            texts[name] = [_text(name_bytes) for name_bytes in rows[name].tolist()]
        kinds.append((name, kind))
    made = np.empty(len(rows), dtype=kinds)
    for name, _ in kinds:
        made[name] = texts.get(name, rows[name])
    return made.view(Rows)


def columns_of(rows: Table) -> NamedColumns:
    """Return the columns of structured rows: one for each array element, bytes as text."""
    columns: NamedColumns = {}
    for name in rows.dtype.names or ():
        kind, values = rows.dtype[name], rows[name]
        if kind.subdtype is not None:
            columns |= {f"{name}_{k}": values[:, k] for k in range(kind.shape[0])}
        elif kind.kind in "SOU":
            columns[name] = [_text(value) for value in values.tolist()]
        else:
            columns[_with_unit(name, kind)] = values
    return columns


def _with_unit(name: str, kind: np.dtype[Any]) -> str:
    if name.endswith("_time") or name in _SECONDS:
        return f"{name}_s"
    if name == "offset" or (name == "size" and kind.kind == "i"):
        return f"{name}_bytes"
    return name


def _text(value: bytes | str | None) -> str | None:
    """Return bytes as text up to their first NUL, and text as it is."""
    if isinstance(value, bytes):
        return value.split(b"\0", 1)[0].decode("utf-8", "backslashreplace")
    return value
