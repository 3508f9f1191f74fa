"""Trace formats: a folder for each, what jobs know of those with events, and param records."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from rewritelog.arrays import Floats, Ints
from rewritelog.paths import input_exists

if TYPE_CHECKING:
    from rewritelog.formats.traces import AnyTraces, Traces

SUMMARY_NAME = "bgTrace"
"""The name of the file by which bgTrace logs are known."""


def open_traces(path: AnyTraces | str | Path) -> AnyTraces:
    """Open the logs or traces that a path names, in any format; return open ones as they are.

    Raise `MissingFileError` if nothing is there, `DamagedLogError` for damaged logs.
    """
    from rewritelog.formats.bgtrace.logset import open_logs  # noqa: PLC0415 - a circle
    from rewritelog.formats.traces import Opened  # noqa: PLC0415 - a circle

    if isinstance(path, Opened):
        return path
    return open_event_traces(Path(path)) or open_logs(path)


def open_event_traces(path: Path) -> Traces | None:
    """Open the traces of events that a path names; return None for bgTrace logs, and for none."""
    if is_log_set(path):
        return None
    from rewritelog.formats.chakra import open_chakra  # noqa: PLC0415 - a circle

    return open_chakra(path)


def is_log_set(path: Path) -> bool:
    """Return whether a path is that of bgTrace logs."""
    return path.name == SUMMARY_NAME or (input_exists(path) and input_exists(path / SUMMARY_NAME))


@dataclass(frozen=True)
class ParamRecords:
    """Param records of a block or a run, sorted by piece and SEB, then as in the file."""

    events: tuple[str, ...]
    event: Ints
    """Index into `events`."""
    piece: Ints
    seb: Ints
    """Index of the SEB in its timeline."""
    param_start: Ints
    param_count: Ints
    params: Floats
    """Record i has `param_count[i]` numbers from `param_start[i]`: parameters or counters."""

    def __len__(self) -> int:
        return len(self.event)

    @property
    def size_bytes(self) -> int:
        """The memory that the records take."""
        arrays = (self.event, self.piece, self.seb, self.param_start, self.param_count, self.params)
        return sum(array.nbytes for array in arrays) + sum(map(len, self.events))

    def kinds(self) -> tuple[tuple[tuple[str, int], ...], Ints]:
        """Return each event with each number of parameters that it has, ordered by both.

        The second result is the index of each record's kind among them.
        """
        most = int(self.param_count.max(initial=0)) + 1
        keys = self.event * most + self.param_count
        present = np.flatnonzero(np.bincount(keys))
        pairs = (divmod(key, most) for key in present.tolist())
        kinds = tuple((self.events[event], count) for event, count in pairs)
        return kinds, np.searchsorted(present, keys)

    def table(self, rows: Ints, count: int) -> Floats:
        """Return the numbers of records that all have `count` of them, shape (rows, count)."""
        chosen: Floats = self.params[self.param_start[rows][:, None] + np.arange(count)]
        return chosen


_NONE = np.zeros(0, dtype=np.int64)

NO_RECORDS = ParamRecords((), _NONE, _NONE, _NONE, _NONE, _NONE, np.zeros(0))
