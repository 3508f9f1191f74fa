"""The param records of a run: the events and parameters of the brackets in SEBs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from rewritelog.arrays import Floats, Ints, new_frame
from rewritelog.errors import UsageError
from rewritelog.formats import Columns
from rewritelog.formats.bgtrace.params import list_params
from rewritelog.options import PathLike
from rewritelog.paths import to_input
from rewritelog.sampling.records import RunRecords, read_folder
from rewritelog.text import TextTable, count_text, shorten


@dataclass(frozen=True, repr=False)
class Params:
    """The param records of a run, sorted by PE and SEB.

    >>> params = rewritelog.read_params("sample_logs/cells")
    >>> pe, seb, X = params.table("Cell::pairForces")
    """

    records: RunRecords

    @property
    def events(self) -> tuple[str, ...]:
        """The names of the events."""
        return self.records.events

    @property
    def warnings(self) -> tuple[str, ...]:
        """Irregularities of the files, one sentence each."""
        return self.records.warnings

    def table(self, event: str, parameters: int | None = None) -> tuple[Ints, Ints, Floats]:
        """Return PEs, SEBs and parameters of an event's records, the latter of shape (records, p).

        Raise `UsageError` for an event without records, and for one with records of different
        numbers of parameters unless `parameters` is one of them.
        """
        if event not in self.events:
            names = ", ".join(shorten(repr(name), 60) for name in self.events[:10])
            raise UsageError(f"no record of the event {event!r}; events: {names}")
        records = self.records
        own = records.event == self.events.index(event)
        counts = np.unique(records.param_count[own]).tolist()
        if parameters is None and len(counts) == 1:
            parameters = counts[0]
        if parameters is None or parameters not in counts:
            raise UsageError(
                f"{event!r} has records of {' and '.join(map(str, counts))} parameters"
            )
        rows = np.flatnonzero(own & (records.param_count == parameters))
        return records.pe[rows], records.seb[rows], records.table(rows, parameters)

    def to_pandas(self, rows: Ints | None = None) -> Any:
        """Return a DataFrame with the columns `pe`, `seb`, `event`, `p1`, `p2`, ….

        Parameters that an event does not have are NaN; `rows` selects some of the records.
        """
        records = self.records
        chosen = np.arange(len(self)) if rows is None else rows
        columns: dict[str, Any] = {
            "pe": records.pe[chosen],
            "seb": records.seb[chosen],
            "event": np.array([*records.events, ""], dtype=object)[records.event[chosen]],
        }
        counts = records.param_count[chosen]
        padded = np.append(records.params, np.nan)
        for k in range(int(counts.max(initial=0))):
            indices = np.where(k < counts, records.param_start[chosen] + k, len(padded) - 1)
            columns[f"p{k + 1}"] = padded[indices]
        return new_frame(columns)

    def __len__(self) -> int:
        return len(self.records)

    def __repr__(self) -> str:
        names = ", ".join(shorten(name, 30) for name in self.events[:2])
        more = ", …" if len(self.events) > 2 else ""
        records, events = count_text(len(self), "record"), count_text(len(self.events), "event")
        return f"<Params: {records} of {events} ({names}{more})>"

    def _repr_html_(self) -> str:
        counts = np.bincount(self.records.event, minlength=len(self.events)).tolist()
        rows = [(name, f"{n:,}") for name, n in zip(self.events, counts, strict=False)]
        return TextTable(("event", "records"), rows, most_rows=100).html()


def read_params(
    folder: PathLike,
    pes: Iterable[int] | None = None,
    *,
    strict: bool = False,
    columns: Columns = "params",
) -> Params:
    """Read the `param.P` files of a folder, for all or some PEs.

    With `strict` a malformed line is an error; `columns="counters"` reads performance counters.

    >>> rewritelog.read_params("sample_logs/cells").events
    ('Cell::pairForces', 'Cell::bonded')
    """
    if columns not in ("params", "counters"):
        raise UsageError(f"columns must be 'params' or 'counters', not {columns!r}")
    path = to_input(folder, "the folder of params")
    source = list_params(path if path.is_dir() else path.parent)
    chosen = sorted(source.pes) if pes is None else sorted({int(pe) for pe in pes})
    missing = [pe for pe in chosen if pe not in source.pes]
    if missing:
        raise UsageError(f"{source.folder}: there is no param.{missing[0]}")
    return Params(read_folder(source, chosen, strict=strict, columns=columns))
