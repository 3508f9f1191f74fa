"""Trace formats, a folder or file each; the interface that jobs use; and param records."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from rewritelog.arrays import Floats, Ints


class ParamRecords(Struct, frozen=True, eq=False):
    """Param records of a block or a run, sorted by piece and SEB, then as in the file."""

    events: tuple[str, ...]
    """The names of the events."""
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

    def event_keys(self) -> tuple[tuple[tuple[str, int], ...], Ints]:
        """Return the distinct pairs of event and number of parameters, and the pair of each record.

        Pairs are sorted by index of the event, then number; a record has the index of its pair.
        """
        most = int(self.param_count.max(initial=0)) + 1
        codes = self.event * most + self.param_count
        present = np.flatnonzero(np.bincount(codes))
        pairs = (divmod(code, most) for code in present.tolist())
        keys = tuple((self.events[event], count) for event, count in pairs)
        return keys, np.searchsorted(present, codes)

    def params_of(self, rows: Ints, count: int) -> Floats:
        """Return the numbers of records that have `count` each, shape (rows, count)."""
        chosen: Floats = self.params[self.param_start[rows][:, None] + np.arange(count)]
        return chosen


_NONE = np.zeros(0, dtype=np.int64)

NO_RECORDS = ParamRecords((), _NONE, _NONE, _NONE, _NONE, _NONE, np.zeros(0))
