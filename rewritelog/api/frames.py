"""Tables of log sets as pandas DataFrames."""

from __future__ import annotations

from typing import Any

import numpy as np

from rewritelog.arrays import Table
from rewritelog.errors import UsageTypeError
from rewritelog.formats.bgtrace.columns import columns_of, new_frame


def to_pandas(table: Table) -> Any:
    """Return a table of `LogSet` as a pandas DataFrame, with the columns of `rewritelog export`.

    Names become `str`, array fields one column for each element, such as `obj_id_0` to `obj_id_3`;
    units are in the names of the columns. pandas has to be installed.

    >>> logs = rewritelog.open_logs("sample_logs/cells")
    >>> list(rewritelog.to_pandas(logs.log_events([0])).columns)
    ['pe', 'seb', 'log_event', 'offset_bytes', 'type', 'r_time_s', 'index', 'text']
    """
    if getattr(getattr(table, "dtype", None), "names", None) is None:
        raise UsageTypeError(f"expected a table of a log set, not {type(table).__name__}")
    return new_frame(columns_of(np.asarray(table)))
