"""Tables as pandas DataFrames: names are text, the four parts of an object's id are columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from rewritelog.arrays import Table
from rewritelog.errors import RewriteLogError, UsageTypeError


def to_pandas(table: Table) -> Any:
    """Return a table of `LogSet` as a pandas DataFrame.

    Names become `str`, and a column of several numbers one column for each, as `obj_id_0` to
    `obj_id_3`. pandas must be installed.

    >>> logs = rewritelog.open_logs("sample_logs/cells")
    >>> list(rewritelog.to_pandas(logs.events([0])).columns)
    ['pe', 'seb', 'event', 'offset', 'type', 'r_time', 'index', 'text']
    """
    names = getattr(getattr(table, "dtype", None), "names", None)
    if names is None:
        raise UsageTypeError(f"a table of a log set is needed, not {type(table).__name__}")
    columns: dict[str, Any] = {}
    for name in names:
        values = table[name]
        if values.dtype.kind == "S":
            columns[name] = [one.decode("utf-8", "backslashreplace") for one in values.tolist()]
        elif values.ndim > 1:
            columns |= {f"{name}_{k}": values[:, k] for k in range(values.shape[1])}
        else:
            columns[name] = values
    return new_frame(columns)


def new_frame(columns: dict[str, Any]) -> Any:
    """Return a DataFrame of columns; raise `RewriteLogError` where pandas is not installed."""
    try:
        import pandas as pd  # noqa: PLC0415 - heavy, and needed by those alone who ask for it
    except ImportError as error:
        raise RewriteLogError("pandas is not installed: pip install pandas") from error
    return pd.DataFrame({name: np.asarray(values) for name, values in columns.items()})
